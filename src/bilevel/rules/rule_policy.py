"""Rules as a policy for a robot: given the labels of each timestep, it names the next action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bilevel.rules.engine import RuleEngine
from bilevel.rules.matching import Match, bindings
from bilevel.rules.nearest import why_not
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import require_open_world
from bilevel.symbolic.domain import Action, Domain, Facts, Problem


class RulePolicy:
    """Memoryless, so that the choice depends on state and goal alone, unless it commits.

    With `commit` it serves a goal fact until it holds, for rules that need this. Successive states are mostly alike, so
    only what changed is handed to the engine. In an open world, where an absent fact is unknown, rules that test for
    absence are refused.
    """

    failure: tuple[str, str] | None = None  # nothing but that no rule applies

    def __init__(self, rules: Sequence[Rule], domain: Domain, *, open_world: bool = True, commit: bool = False) -> None:
        self.domain = domain
        self.commit = commit
        self.open_world = open_world
        self._objects = dict(domain.constants)
        self._engine: RuleEngine | None = None
        self._chosen: Match | None = None
        self._action: Action | None = None
        self._asked: tuple[Facts, Facts] | None = None  # the state and goal for which they were chosen
        self.follow(rules)

    def __repr__(self) -> str:
        return f"RulePolicy({self.domain.name}: {len(self.rules)} rule{'s' * (len(self.rules) != 1)})"

    def follow(self, rules: Sequence[Rule]) -> None:
        """Follow these rules from the next choice on."""
        if self.open_world:
            require_open_world(rules)
        self.rules = tuple(rules)
        self._engine = None

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str] | None = None) -> None:
        """Begin an episode; `objects` gives the types of the objects known so far."""
        self._objects = {**self.domain.constants, **(objects or {})}
        self._engine = None

    @property
    def objects(self) -> Mapping[str, str]:
        """The objects known so far in this episode, with their types; without the domain's constants."""
        return {name: kind for name, kind in self._objects.items() if name not in self.domain.constants}

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since the episode began."""
        new = {name: kind for name, kind in objects.items() if name not in self._objects}
        if new:
            self._objects |= new
            self._asked = None
            if self._engine is not None:
                self._engine.declare(new)

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        """Return the action of the rule that fires, or `None` where no rule applies."""
        self._engine_in(state, goal)
        return self._action

    def alternatives(self, state: Facts, goal: Facts) -> Iterator[Action]:
        """Yield the actions of all rules that apply, each once; the first is what `choose` returns.

        This asks every rule about the whole state, so it takes longer.
        """
        yield from dict.fromkeys(match.action for match in self._engine_in(state, goal).matches())

    def explain(self, state: Facts, goal: Facts) -> Match | None:
        """Return the rule that fires, with all its variables bound."""
        self._engine_in(state, goal)
        if self._chosen is None:
            return None
        rule, outputs = self._chosen
        given = {variable: outputs[variable] for variable in outputs.keys() & rule.types.keys()}
        found = bindings(rule, self.domain, state, goal, self._objects, given)
        return Match(rule, min(found, key=lambda binding: sorted(binding.items())))

    def why_not(self, state: Facts, goal: Facts) -> str:
        """Return why no rule applies: the rules that came closest and what each of them lacks, a line each."""
        return why_not(self.rules, self.domain, state, goal, self._objects)

    def _engine_in(self, state: Facts, goal: Facts) -> RuleEngine:
        """Return the engine in this state, which has chosen; what is asked again is answered as before."""
        if self._engine is None:
            problem = Problem("", self.domain.name, self._objects, state, goal)
            self._engine = RuleEngine(self.rules, self.domain, problem, commit=self.commit)
        elif self._asked == (state, goal):
            return self._engine
        self._engine.follow(state, goal)
        self._chosen, self._asked = self._engine.choose(), (state, goal)
        self._action = self._chosen.action if self._chosen else None
        return self._engine
