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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from bilevel.rules.matching import Binding, join
from bilevel.rules.traces import explain_change, implied_types
from bilevel.symbolic.domain import NO_FACTS, Action, Domain, Facts, Outcome, Problem
from bilevel.symbolic.pddl import compiled, users_action
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground, ground_action, progress

SETTLING = 5  # steps
MAX_LOOKED_PAST = 50  # states in a row, however short-lived

OWN, EXOGENOUS, DROP, COLLISION, FLICKER = KINDS = "own", "exogenous", "drop", "collision", "flicker"
UNEXPECTED = DROP, COLLISION, FLICKER


class Period(NamedTuple):
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


def attribute_changes(domain: Domain, periods: Sequence[Period], objects: Mapping[str, str]) -> list[AttributedChange]:
    """Return the changes between periods, in order; `objects` are known by their types at least at the end.

    A policy that does not say what it does, as an end-to-end network, is taken to do what any one action explains; in a
    domain without actions, every change that lasts.
    """
    objects = {**implied_types(domain, [each.state for each in periods]), **objects}
    if domain.adl and periods:
        domain, _ = compiled(domain, Problem("episode", domain.name, objects, periods[0].state, NO_FACTS))

    @lru_cache(maxsize=1000)  # as labels that flicker repeat themselves
    def explains(action: GroundAction | None, before: Facts, after: Facts) -> bool:
        """Return whether a change is exactly the effects of one outcome of the action; if unknown, of any action."""
        if action is None:
            return not domain.schemas or bool(explain_change(domain, before, after, objects))
        return after in _results(action, before, after)

    found: list[AttributedChange] = []
    here, steps = 0, 0  # the period that a change starts from, and for how long it has lasted, flickers looked past
    while here < len(periods) - 1:
        before, left = periods[here].state, periods[here + 1].start
        action = _grounded(domain, periods[here].action, before)
        there, kinds = _next_change(periods, here, partial(explains, action, before))
        arrived, steps = periods[there].start, steps + periods[here].length
        if not kinds:
            events = [timestep for each in periods[here : there + 1] for timestep in each.events]
            has_events = any(left <= timestep <= arrived for timestep in events)
            kinds = _unexplained(action, before, periods[there].state, has_events)
        found += [AttributedChange(left, kind, steps) for kind in kinds]
        steps = steps + arrived - left if kinds == (FLICKER,) else 0
        here = there
    return found


def _grounded(domain: Domain, action: Action | None, state: Facts) -> GroundAction | None:
    """Return the ground action; in ADL, of its cases the one that a state is about."""
    if action is None or not domain.schemas:
        return None
    names = [name for name in domain.schemas if users_action(Action(name)).name == action.name]
    cases = [ground(domain.schemas[name], action.arguments) for name in names]
    first, *others = [case for case in cases if case] or [ground_action(domain, action)]
    return next((case for case in others if case.condition.holds(state)), first)


def _next_change(
    periods: Sequence[Period], here: int, explains: Callable[[Facts], bool]
) -> tuple[int, tuple[str, ...]]:
    """Return the period that the next change leads to, and its kind where it is a flicker or the action's own."""
    before, left = periods[here].state, periods[here + 1].start
    ahead = range(here + 1, min(here + 1 + MAX_LOOKED_PAST, len(periods)))
    for there in ahead:
        if periods[there].start <= left + SETTLING and periods[there].state == before:
            return there, (FLICKER,)
    for there in ahead:
        if periods[there].state == before:
            return there, (FLICKER,)
        if explains(periods[there].state):
            return there, (OWN,)
        if periods[there].length > SETTLING:
            return there, ()
    return here + 1, ()


def _unexplained(action: GroundAction | None, before: Facts, after: Facts, has_events: bool) -> tuple[str, ...]:
    """Return the kinds of a change that is more or less, or something else, than the action's effects."""
    if action is None:
        return (EXOGENOUS,) if has_events else (COLLISION,)
    reached = next((result for result in _results(action, before, after) if _leads(before, result, after)), before)
    if has_events:
        return (EXOGENOUS,) if reached == before else (OWN, EXOGENOUS)
    concerned = {term for fact in reached ^ after for term in fact.terms}
    needed = action.condition.positive & (reached - after)
    return (DROP,) if needed or concerned.issubset(action.action.arguments) else (COLLISION,)


def _leads(before: Facts, result: Facts, after: Facts) -> bool:
    """Whether a result of the action is part of the change: all that it adds and deletes has happened."""
    return result != before and result - before <= after and after.isdisjoint(before - result)


def _results(action: GroundAction, before: Facts, after: Facts) -> list[Facts]:
    """Return the states that the action can lead to, with nature's choices as they can be read off what came after."""
    return [
        progress(before, bind_outcome(outcome, choices))
        for outcome in action.outcomes
        for choices in _choices(outcome, before, after)
    ]


def _choices(outcome: Outcome, before: Facts, after: Facts) -> Iterator[Binding]:
    """Yield every way in which facts that are new are those of the outcome with values for what nature chooses."""
    names = {variable.name for variable in outcome.chosen}
    known = {term for fact in before for term in fact.terms} if outcome.new else set()
    new_facts = sorted(after - before)
    for binding in join([(fact, new_facts) for fact in sorted(outcome.add) if names.intersection(fact.terms)], {}):
        if known.isdisjoint(binding[name] for name in outcome.new if name in binding):
            yield binding
