"""Whose doing each change of the labelled state was: the chosen action's own, the environment's, or nobody's.

The paper assumes that a low level which executes an action brings about that action's effects and no others (downward
refinement). How often that holds is `Changes.refinement`.

| kind | a change of the state while an action is being done |
|---|---|
| own | exactly the effects of one outcome of that action, whatever nature chose in it; of any, if none is known |
| exogenous | at the timestep of an event that is reported; with the action's whole effects, it counts as own, too |
| flicker | undone within 5 steps, or through states of which none lasts longer |
| drop | takes a fact that the action needs, or is about the action's arguments alone |
| collision | any other: it is about things that the action has nothing to do with |

The last three are unexpected. Labels may take a while to settle: states that last at most 5 steps are looked past, as
they are where traces are made of demonstrations.

Why an episode did not succeed follows from these changes: one reason for each, the first of these that fits.

| reason | the episode |
|---|---|
| no rule | ended because the policy did not know what to do |
| no model | the same, as its planner cannot express what may happen |
| no plan | the same, as its planner found none, or none in time |
| plan broken | the same, as its plan is not for what happened |
| unseen | the same, as an object that its action names is not seen |
| physics | ended because the simulation became unstable |
| terminated | was ended by the environment, for a reason of its own |
| label | had mostly flickers among the changes of its last 1000 steps, and at least five |
| control | the same, but at most of these flickers the things in question really moved: labels are not to blame |
| stall | came to rest for good, or brought nothing about: never, not for 1000 steps, or ten times its longest action |
| drop, collision | had in its last 1000 steps half as many changes of these two kinds as own ones, or more |
| time | was still making progress at the step limit |

Flickers and exogenous changes are nothing that was brought about. Of drops and collisions it is the commoner that is
told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from bilevel.policies.episode_log import Stretch
from bilevel.policies.rollout import NO_ACTION, SETTLED
from bilevel.rules.matching import Binding, unify
from bilevel.rules.traces import explain_change, implied_types
from bilevel.symbolic.adl import compiled
from bilevel.symbolic.adl_actions import users_action
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, Domain, Facts, Outcome, Problem
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground, ground_action, progress, substitute
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, TERMINATED

SETTLING = 5  # steps
MAX_LOOKED_PAST = 50  # states in a row, however short-lived

OWN, EXOGENOUS, DROP, COLLISION, FLICKER = "own", "exogenous", "drop", "collision", "flicker"
KINDS = (OWN, EXOGENOUS, DROP, COLLISION, FLICKER)
UNEXPECTED = (DROP, COLLISION, FLICKER)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the state; `steps` is how long the action had been done before it."""

    timestep: int
    kind: str
    steps: int


@dataclass(frozen=True)
class Changes:
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

    def __add__(self, other: Changes) -> Changes:
        return Changes(**{kind: number + getattr(other, kind) for kind, number in asdict(self).items()})


def count_changes(changes: Sequence[Change]) -> Changes:
    """Return how many changes there are of each kind."""
    kinds = [change.kind for change in changes]
    return Changes(**{kind: kinds.count(kind) for kind in KINDS})


def find_changes(domain: Domain, runs: Sequence[Stretch], objects: Mapping[str, str]) -> list[Change]:
    """The changes between runs of equal states, in order; `objects` are known by their types at least at the end.

    A policy that does not say what it does, as an end-to-end network, is taken to do what any one action explains; in a
    domain without actions, every change that lasts.
    """
    objects = {**implied_types(domain, [run.state for run in runs]), **objects}
    if domain.adl and runs:
        domain, _ = compiled(domain, Problem("episode", domain.name, objects, runs[0].state, NO_FACTS))
    judge = _Judge(domain, objects)
    found: list[Change] = []
    here, steps = 0, 0  # the run that a change starts from, and for how long it has lasted, flickers looked past
    while here < len(runs) - 1:
        steps += runs[here].length
        there, kinds = _next_change(judge, runs, here)
        timestep = runs[here + 1].start
        found += [Change(timestep, kind, steps) for kind in kinds]
        steps = steps + runs[there].start - timestep if kinds == (FLICKER,) else 0
        here = there
    return found


def _next_change(judge: _Judge, runs: Sequence[Stretch], here: int) -> tuple[int, tuple[str, ...]]:
    """The run that the next change leads to, and of which kinds it is."""
    before, left = runs[here].state, runs[here + 1].start
    ahead = range(here + 1, min(here + 1 + MAX_LOOKED_PAST, len(runs)))
    for there in ahead:
        if runs[there].start > left + SETTLING:
            break
        if runs[there].state == before:
            return there, (FLICKER,)
    action = judge.grounded(runs[here].action, before)
    for there in ahead:
        after = runs[there].state
        if after == before:
            return there, (FLICKER,)
        if judge.explains(action, before, after):
            return there, (OWN,)
        if runs[there].length > SETTLING:
            break
    else:
        there = here + 1
    return there, judge.unexplained(action, before, runs[there].state, _has_events(runs[here : there + 1], left))


def _has_events(runs: Sequence[Stretch], left: int) -> bool:
    """Whether an event was reported on the way to the last of these runs, after the first had been left."""
    return any(left <= timestep <= runs[-1].start for run in runs for timestep, _ in run.events)


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


UNSTABLE = "unstable simulation"  # an outcome that an environment may report
LAST_PART = 1000  # steps
MUCH_LONGER = 10  # times
MANY_FLICKERS = 5

REASONS: Mapping[str, str] = {  # in words
    "no rule": "it does not know what to do",
    "no model": "its planner cannot plan here",
    "no plan": "its planner found no plan",
    "plan broken": "what happened is not what it had planned for",
    "unseen": "an object that it needs is not seen",
    "physics": "the simulation became unstable",
    "terminated": "the environment ended the episode",
    "label": "its labels flicker: {flicker} changes of the state were undone at once, although hardly anything moved",
    "control": "its control is unsteady: {flicker} times something moved to and fro, as with an undertrained network",
    "stall": "it is stuck: nothing that it does has an effect any more",
    "drop": "it keeps losing what it holds or needs: {drop} times in this episode",
    "collision": "it keeps upsetting other things: {collision} times in this episode",
    "time": "it was still making progress when the time was up",
}


def reason_of_failure(outcome: str, steps: int, changes: Sequence[Change], moved: Collection[int] = ()) -> str | None:
    """`None` for a success; `steps` is how long the episode was, and at which of them changes were seen to be moves."""
    known = {SUCCESS: None, NO_ACTION: "no rule", UNSTABLE: "physics", SETTLED: "stall", TERMINATED: "terminated"}
    if outcome != STEP_LIMIT:
        return known.get(outcome, "terminated")
    last = count_changes([change for change in changes if change.timestep > steps - LAST_PART])
    if last.flicker >= MANY_FLICKERS and 2 * last.flicker > last.own + last.exogenous + last.unexpected:
        flickers = [change for change in changes if change.kind == FLICKER and change.timestep > steps - LAST_PART]
        return "control" if 2 * sum(change.timestep in moved for change in flickers) > len(flickers) else "label"
    if _stalled(steps, changes):
        return "stall"
    if 2 * (last.drop + last.collision) >= max(last.own, 1):
        return "drop" if last.drop >= last.collision else "collision"
    return "time"


def _stalled(steps: int, changes: Sequence[Change]) -> bool:
    """Whether the policy has brought nothing about, good or bad, for too long."""
    timesteps = [change.timestep for change in changes if change.kind not in (FLICKER, EXOGENOUS)]
    longest = max((change.steps for change in changes if change.kind == OWN), default=LAST_PART)
    return not timesteps or steps - timesteps[-1] >= min(LAST_PART, MUCH_LONGER * longest)
