"""What brought about each change of the labelled state: the chosen action, the environment, or neither.

The paper assumes that a low level which executes an action brings about that action's effects and no others (downward
refinement). How often that holds is `ChangeCounts.refinement`.

| kind | a change of the state while an action is being done |
|---|---|
| own | exactly the effects of one outcome of that action, whatever nature chose in it; of any, if none is known |
| exogenous | at the timestep of an event that is reported; with the action's whole effects, it counts as own, too |
| flicker | undone within 5 steps, or through states of which none lasts longer |
| drop | takes a fact that the action needs, or is about the action's arguments alone |
| collision | any other: it is about things that the action has nothing to do with |

The last three are unexpected. Labels may take a while to settle: states that last at most 5 steps are looked past, as
they are where traces are made of demonstrations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from bilevel.rules.matching import Binding, unify
from bilevel.rules.traces import explain_change, implied_types
from bilevel.symbolic.adl import compiled, users_action
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, Domain, Facts, Outcome, Problem
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground, ground_action, progress, substitute

SETTLING = 5  # steps
MAX_LOOKED_PAST = 50  # states in a row, however short-lived

OWN, EXOGENOUS, DROP, COLLISION, FLICKER = "own", "exogenous", "drop", "collision", "flicker"
KINDS = (OWN, EXOGENOUS, DROP, COLLISION, FLICKER)
UNEXPECTED = (DROP, COLLISION, FLICKER)


class Stretch(NamedTuple):
    """Steps in a row with the same state, the last action that was done in it, and the timesteps of events."""

    state: Facts
    action: Action | None
    start: int
    length: int
    events: Sequence[int] = ()


class AttributedChange(NamedTuple):
    """A change of the state; `steps` is how long the action had been done before it."""

    timestep: int
    kind: str
    steps: int


@dataclass(frozen=True)
class ChangeCounts:
    """How many changes of each kind there were; those of several episodes can be added."""

    own: int = 0
    exogenous: int = 0
    drop: int = 0
    collision: int = 0
    flicker: int = 0

    @property
    def unexpected(self) -> int:
        """How many changes were drops, collisions or flickers."""
        return self.drop + self.collision + self.flicker

    @property
    def refinement(self) -> float | None:
        """The part of the changes that are the policy's to answer for which the chosen action explains."""
        answered_for = self.own + self.unexpected
        return self.own / answered_for if answered_for else None

    def __add__(self, other: ChangeCounts) -> ChangeCounts:
        counts, others = asdict(self), asdict(other)
        return ChangeCounts(**{kind: counts[kind] + others[kind] for kind in KINDS})


def count_changes(changes: Sequence[AttributedChange]) -> ChangeCounts:
    """Return how many changes there are of each kind."""
    kinds = [change.kind for change in changes]
    return ChangeCounts(**{kind: kinds.count(kind) for kind in KINDS})


def attribute_changes(
    domain: Domain, stretches: Sequence[Stretch], objects: Mapping[str, str]
) -> list[AttributedChange]:
    """Return the changes between stretches, in order; `objects` are known by their types at least at the end.

    A policy that does not say what it does, as an end-to-end network, is taken to do what any one action explains; in a
    domain without actions, every change that lasts.
    """
    objects = {**implied_types(domain, [each.state for each in stretches]), **objects}
    if domain.adl and stretches:
        domain, _ = compiled(domain, Problem("episode", domain.name, objects, stretches[0].state, NO_FACTS))
    judge = _Judge(domain, objects)
    found: list[AttributedChange] = []
    here, steps = 0, 0  # the stretch that a change starts from, and for how long it has lasted, flickers looked past
    while here < len(stretches) - 1:
        steps += stretches[here].length
        there, kinds = _next_change(judge, stretches, here)
        timestep = stretches[here + 1].start
        found += [AttributedChange(timestep, kind, steps) for kind in kinds]
        steps = steps + stretches[there].start - timestep if kinds == (FLICKER,) else 0
        here = there
    return found


def _next_change(judge: _Judge, stretches: Sequence[Stretch], here: int) -> tuple[int, tuple[str, ...]]:
    """Return the stretch that the next change leads to, and of which kinds it is."""
    before, left = stretches[here].state, stretches[here + 1].start
    ahead = range(here + 1, min(here + 1 + MAX_LOOKED_PAST, len(stretches)))
    for there in ahead:
        if stretches[there].start > left + SETTLING:
            break
        if stretches[there].state == before:
            return there, (FLICKER,)
    action = judge.grounded(stretches[here].action, before)
    for there in ahead:
        after = stretches[there].state
        if after == before:
            return there, (FLICKER,)
        if judge.explains(action, before, after):
            return there, (OWN,)
        if stretches[there].length > SETTLING:
            break
    else:
        there = here + 1
    arrived = stretches[there].start
    has_events = any(left <= timestep <= arrived for each in stretches[here : there + 1] for timestep in each.events)
    return there, judge.unexplained(action, before, stretches[there].state, has_events)


class _Judge:
    """Says of which kind a change is; remembers, because labels that flicker repeat themselves."""

    def __init__(self, domain: Domain, objects: Mapping[str, str]) -> None:
        self._domain, self._objects = domain, objects
        self._cases: dict[str, list[str]] = {}  # of each action; one, unless it is of ADL
        for name in domain.schemas:
            self._cases.setdefault(users_action(Action(name)).name, []).append(name)
        self._actions: dict[Action, list[GroundAction]] = {}
        self._explained: dict[tuple[Action | None, Facts, Facts], bool] = {}

    def grounded(self, action: Action | None, state: Facts) -> GroundAction | None:
        """The action, or the case of it that a state is about."""
        if action is None or not self._domain.schemas:
            return None
        if action not in self._actions:
            schemas = [self._domain.schemas[name] for name in self._cases[action.name]]
            fitting = [case for schema in schemas if (case := ground(schema, action.arguments)) is not None]
            self._actions[action] = fitting or [ground_action(self._domain, action)]
        first, *others = self._actions[action]
        return next((case for case in others if case.condition.holds(state)), first)

    def explains(self, action: GroundAction | None, before: Facts, after: Facts) -> bool:
        """Whether the change is exactly the effects of one outcome of the action, or of any one where none is known."""
        key = action.action if action else None, before, after
        if key not in self._explained:
            if action:
                self._explained[key] = after in results(action, before, after)
            else:
                known = self._domain.schemas
                self._explained[key] = not known or bool(explain_change(self._domain, before, after, self._objects))
        return self._explained[key]

    def unexplained(self, action: GroundAction | None, before: Facts, after: Facts, events: bool) -> tuple[str, ...]:
        """The kinds of a change that is more or less, or something else, than the action's effects."""
        if action is None:
            return (EXOGENOUS,) if events else (COLLISION,)
        reached = _reached(action, before, after)
        if events:
            return (EXOGENOUS,) if reached == before else (OWN, EXOGENOUS)
        concerned = {term for fact in reached ^ after for term in fact.terms}
        needed = action.condition.positive & (reached - after)
        return (DROP,) if needed or concerned.issubset(action.action.arguments) else (COLLISION,)


def _reached(action: GroundAction, before: Facts, after: Facts) -> Facts:
    """How far the action itself led on the way from one state to the other: to a whole outcome, or nowhere."""
    for result in results(action, before, after):
        if result != before and result - before <= after and after.isdisjoint(before - result):
            return result
    return before


def results(action: GroundAction, before: Facts, after: Facts) -> list[Facts]:
    """The states that the action can lead to, with nature's choices as they can be read off what came after."""
    return [
        progress(before, bind_outcome(outcome, choices))
        for outcome in action.outcomes
        for choices in _choices(outcome, before, after)
    ]


def _choices(outcome: Outcome, before: Facts, after: Facts) -> Iterator[Binding]:
    """Every way in which facts that are new are those of the outcome with values for what nature chooses."""
    names = {variable.name for variable in outcome.chosen}
    known = {term for fact in before for term in fact.terms} if outcome.new else set()
    new_facts = sorted(after - before)

    def match(patterns: Sequence[Atom], binding: Binding) -> Iterator[Binding]:
        if not patterns:
            yield binding
            return
        pattern = substitute(patterns[0], binding)
        for fact in new_facts:
            extended = unify(pattern, fact)
            if extended is not None:
                yield from match(patterns[1:], binding | extended)

    for binding in match(sorted(fact for fact in outcome.add if names.intersection(fact.terms)), {}):
        if known.isdisjoint(binding[name] for name in outcome.new if name in binding):
            yield binding
