"""Rules as a policy for a robot: given the labels of each timestep, it names the next action."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from bilevel.rules.commitment import CommittedChoice
from bilevel.rules.engine import Instance, RuleEngine
from bilevel.rules.instances import Instances
from bilevel.rules.matching import Match, bind_action
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import require_open_world
from bilevel.rules.why_not import why_not
from bilevel.symbolic.domain import NO_FACTS, Action, Domain, Facts


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
        self._objects: dict[str, str] = {}
        self._state = self._goal = NO_FACTS
        self._engine: RuleEngine | None = None
        self._choose: Callable[[], Instance | None] = lambda: None
        self.follow(rules)

    def __repr__(self) -> str:
        noun = "rule" if len(self.rules) == 1 else "rules"
        return f"RulePolicy({self.domain.name}: {len(self.rules)} {noun})"

    def follow(self, rules: Sequence[Rule]) -> None:
        """Follow these rules from the next choice on."""
        if self.open_world:
            require_open_world(rules)
        self.rules = tuple(rules)
        self._engine = None

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str] | None = None) -> None:
        """Begin an episode; `objects` gives the types of the objects known so far."""
        self._objects = {**self.domain.constants, **(objects or {})}
        self._state, self._goal = state, goal
        self._engine = RuleEngine(self.rules, self.domain, state, goal, self._objects, commit=self.commit)
        self._choose = CommittedChoice(self._engine) if self.commit else self._engine.choose

    @property
    def objects(self) -> Mapping[str, str]:
        """The objects known so far in this episode, with their types; without the domain's constants."""
        return {name: kind for name, kind in self._objects.items() if name not in self.domain.constants}

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since the episode began."""
        for name, kind in objects.items():
            if name not in self._objects:
                self._objects[name] = kind
                if self._engine is not None:
                    self._engine.declare(name, kind)

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        """Return the action of the rule that fires, or `None` where no rule applies."""
        engine = self._following(state, goal)
        instance = self._choose()
        return bind_action(engine.rules[instance[0]].action, engine.binding(instance)) if instance else None

    def alternatives(self, state: Facts, goal: Facts) -> Iterator[Action]:
        """Yield the actions of all rules that apply, each once; the first is what `choose` returns.

        This asks every rule about the whole state, so it takes longer.
        """
        seen = set()
        for match in Instances(self.rules, self.domain).in_order(state, goal, self._objects):
            if match.action not in seen:
                seen.add(match.action)
                yield match.action

    def explain(self, state: Facts, goal: Facts) -> Match | None:
        """Return the rule that fires, with all its variables bound."""
        engine = self._following(state, goal)
        instance = self._choose()
        if instance is None:
            return None
        rule = Instances([engine.rules[instance[0]]], self.domain)
        return next(rule.in_order(state, goal, self._objects, engine.binding(instance)))

    def why_not(self, state: Facts, goal: Facts) -> str:
        """Return why no rule applies: the rules that came closest and what each of them lacks, a line each."""
        return why_not(self.rules, self.domain, state, goal, self._objects)

    def _following(self, state: Facts, goal: Facts) -> RuleEngine:
        """Return the engine, brought up to date."""
        if self._engine is None or goal != self._goal:
            self.reset(state, goal, self._objects)
        assert self._engine is not None
        if state != self._state:
            for fact in state - self._state:  # additions first: fewer views fall empty between
                self._engine.add(fact)
            for fact in self._state - state:
                self._engine.remove(fact)
            self._state = state
        return self._engine
