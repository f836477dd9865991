"""What happened in an episode, step by step, how it ended, and why.

An `Episode` is filled by `rollout` while a policy acts. It has an entry for every step at which something is new. It
ends with an `outcome`: success, step limit, terminated or another one of the environment's; no action, where the policy
did not know what to do; settled, where everything had come to rest for good; or stopped by the caller. What did not
succeed has a `reason`, one of `REASONS`: what the policy itself says, or what follows from the outcome and the changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from bilevel.files import read_bytes
from bilevel.json_files import decode
from bilevel.rules.explanation import sentence
from bilevel.rules.matching import Match
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import MOST_LOOKED_PAST, explain_change, implied_types
from bilevel.symbolic.axioms import outcome_in
from bilevel.symbolic.domain import NO_FACTS, Action, BadInput, Domain, Facts, Problem
from bilevel.symbolic.pddl import compiled, parse_problem, users_action, write_problem
from bilevel.symbolic.semantics import GroundAction, ground, ground_action, progress
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS

# Incidents: what a policy does where it cannot go on as usual, and why it cannot.
WAIT, PLAN, NUDGE, RETRY, OTHER, STOP = INCIDENT_KINDS = "wait", "plan", "nudge", "retry", "other", "stop"
NO_RULE, UNSEEN, JAM, STALL = "no rule", "unseen", "jam", "stall"

# Changes of the state, by what brought them about.
OWN, EXOGENOUS, DROP, COLLISION, FLICKER = CHANGE_KINDS = "own", "exogenous", "drop", "collision", "flicker"
UNEXPECTED = DROP, COLLISION, FLICKER
SETTLING = 5  # steps in which a change that is undone is a flicker, and that labels may take to settle

NO_ACTION, STOPPED, SETTLED = "no action", "stopped", "settled"  # outcomes, beside those of environments
UNSTABLE = "unstable simulation"  # an outcome that an environment may report
LAST_PART = 1000  # steps
MUCH_LONGER = 10  # times
MANY_FLICKERS = 5

# Of other outcomes it is that the environment terminated the episode.
REASON_OF_OUTCOME = {SUCCESS: None, NO_ACTION: NO_RULE, SETTLED: STALL, STOPPED: "stopped", UNSTABLE: "physics"}

REASONS: Mapping[str, str] = {  # in words
    NO_RULE: "it does not know what to do",
    "no model": "its planner cannot plan here",
    "no plan": "its planner found no plan",
    "plan broken": "what happened is not what it had planned for",
    UNSEEN: "an object that it needs is not seen",
    "physics": "the simulation became unstable",
    "terminated": "the environment ended the episode",
    "stopped": "it was given up",
    "label": "its labels flicker: {flicker} changes of the state were undone at once",
    "control": "its control is unsteady: things moved to and fro",  # in tables of results alone
    STALL: "it is stuck: nothing that it does has an effect any more",
    DROP: "it keeps losing what it holds or needs: {drop} times in this episode",
    COLLISION: "it keeps upsetting other things: {collision} times in this episode",
    "time": "it was still making progress when the time was up",
}


class Seconds(NamedTuple):
    """CPU seconds that an episode's steps took, without all that is done only to observe them.

    They are those of the thread that acts and of the programs that it waits for, so they do not depend on what else the
    machine is busy with. A policy that acts in a process of its own is timed by the wall clock.
    """

    policy: float
    physics: float  # with what is seen, and what nature does
    longest: float = 0.0  # of the policy's for one step, or before the first: for so long the robot waits


@dataclass(frozen=True)
class Incident:
    """That a policy could not go on as usual, why, and what it did instead; `action` is what it does now, if any."""

    step: int
    kind: str
    reason: str
    state: Facts
    goal: Facts
    objects: dict[str, str]  # that were seen, with their types
    action: Action | None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """From this step on: what holds, what is wanted, what is being done, and by which rule, if that is asked for.

    `events` are what happened at this very step that no action explains. The action of the last entry, what was seen at
    the end, is `None`, as is that of a policy that does not say what it does.
    """

    step: int
    state: Facts
    goal: Facts
    action: Action | None
    events: tuple[str, ...] = ()
    match: Match | None = None
    incidents: tuple[Incident, ...] = ()  # at this very step
    before: LogEntry | None = field(default=None, repr=False, compare=False)
    looks_at: str = ""  # at first, in the place of something that the action names

    @property
    def sentence(self) -> str | None:
        """Why this is done, in English, and with regard to what else."""
        return sentence(*self.match) + f" It looks at {self.looks_at}." * bool(self.looks_at) if self.match else None


@dataclass
class Episode:
    """What happened in an episode; while it goes on, what has happened so far."""

    seed: int
    rules: RulePolicy | None = field(default=None, compare=False)  # that the policy followed
    domain: Domain | None = None  # whose actions it did
    explain: bool = False  # whether entries say by which rule
    outcome: str = ""
    steps: int = 0
    failure: tuple[str, str] | None = None  # the reason and more about it, where the policy itself says so
    seconds: Seconds = field(default=Seconds(0.0, 0.0), compare=False)
    entries: list[LogEntry] = field(default_factory=list, repr=False)
    incidents: list[Incident] = field(default_factory=list, repr=False)  # when the policy could not go on as usual
    events: tuple[str, ...] = ()  # that led to what is seen last
    scene: Scene = field(init=False, repr=False)  # what is seen last: where the environment ended it, what really is
    remarks: list[str] = field(
        default_factory=list, repr=False
    )  # for the next entry: what a viewer did is an event, too

    @property
    def success(self) -> bool:
        """Whether all goals were achieved."""
        return self.outcome == SUCCESS

    def note(
        self,
        state: Facts,
        goal: Facts,
        action: Action | None,
        events: tuple[str, ...],
        incidents: Sequence[Incident],
        looks_at: str = "",
    ) -> None:
        """Add an entry for the present step if anything is new; known `incidents` are left out."""
        last = self.entries[-1] if self.entries else None
        events, new_incidents = (*events, *self.remarks), tuple(incidents[len(self.incidents) :])
        is_new = last is None or (last.state, last.goal, last.action) != (state, goal, action)
        if is_new or events or new_incidents:
            match = self.rules.explain(state, goal) if self.explain and self.rules and action else None
            if match is not None and match.action != action:  # what is done is not what the rules say
                match = None
            self.entries.append(LogEntry(self.steps, state, goal, action, events, match, new_incidents, last, looks_at))
            self.remarks, self.incidents = [], [*self.incidents, *new_incidents]

    @property
    def new_entry(self) -> LogEntry | None:
        """The entry that begins at the present step, if anything is new at it."""
        return self.entries[-1] if self.entries and self.entries[-1].step == self.steps else None

    # What follows from the entries

    def decisions(self) -> list[LogEntry]:
        """Return the entries with which another action begins."""
        acting = (entry for entry in self.entries if entry.action is not None)
        return [next(group) for _, group in groupby(acting, key=lambda entry: entry.action)]

    @cached_property
    def changes(self) -> list[AttributedChange]:
        """Every change of the state, and what brought it about."""
        if self.domain is None or not self.entries:
            return []
        return attribute_changes(self.domain, self.entries, self.steps, self.scene.objects)

    @property
    def counts(self) -> dict[str, int]:
        """How many changes of each kind there were."""
        return count_changes(self.changes)

    @property
    def unexpected(self) -> list[AttributedChange]:
        """The changes that neither an action nor an event explains."""
        return [change for change in self.changes if change.kind in UNEXPECTED]

    @cached_property
    def reason(self) -> str | None:
        """Why it did not succeed, one of `REASONS`; `None` for a success."""
        return self.failure[0] if self.failure else reason_of_failure(self.outcome, self.steps, self.changes)

    @property
    def detail(self) -> str | None:
        """What the policy itself says about why it did not succeed."""
        return self.failure[1] if self.failure else None


# What brought about each change of the state

# The paper assumes that a low level which executes an action brings about that action's effects and no others (downward
# refinement). A summary of results says how often that holds.
#
# | kind | a change of the state while an action is being done |
# |---|---|
# | own | exactly the effects of one outcome of that action, whatever nature chose in it; of any, if none is known |
# | exogenous | at the timestep of an event that is reported; with the action's whole effects, it counts as own, too |
# | flicker | undone within 5 steps, or through states of which none lasts longer |
# | drop | takes a fact that the action needs, or is about the action's arguments alone |
# | collision | any other: it is about things that the action has nothing to do with |


class AttributedChange(NamedTuple):
    """A change of the state; `steps` is how long the action had been done before it."""

    timestep: int
    kind: str
    steps: int


def count_changes(changes: Sequence[AttributedChange]) -> dict[str, int]:
    """Return how many changes there are of each kind, and how many of them are unexpected."""
    counts = {**dict.fromkeys(CHANGE_KINDS, 0), **Counter(change.kind for change in changes)}
    return {**counts, "unexpected": sum(counts[kind] for kind in UNEXPECTED)}


def attribute_changes(
    domain: Domain, entries: Sequence[LogEntry], end: int, objects: Mapping[str, str]
) -> list[AttributedChange]:
    """Return the changes in an episode that ended at this step; `objects` are known by their types at least then.

    A policy that does not say what it does, as an end-to-end network, is taken to do what any one action explains; in a
    domain without actions, every change that lasts.
    """
    spans = [list(group) for _, group in groupby(entries, key=lambda entry: entry.state)]
    states, starts = [span[0].state for span in spans], [*(span[0].step for span in spans), end]
    events = [entry.step for entry in entries if entry.events]
    objects = {**implied_types(domain, states), **objects}
    if domain.adl:
        domain, _ = compiled(domain, Problem("episode", domain.name, objects, states[0], NO_FACTS))

    @lru_cache(maxsize=1000)  # as labels that flicker repeat themselves
    def explains(action: GroundAction | None, before: Facts, after: Facts) -> bool:
        """Return whether a change is exactly the effects of one outcome of the action; if unknown, of any action."""
        if action is None:
            return not domain.schemas or bool(explain_change(domain, before, after, objects))
        if not any(outcome.chosen for outcome in action.outcomes):
            results = (outcome_in(before, outcome, domain, objects) for outcome in action.outcomes)
            return any(progress(before, outcome) == after for outcome in results)
        return any(each.action == action.action for each, _ in explain_change(domain, before, after, objects))

    found: list[AttributedChange] = []
    here, steps = 0, 0  # the state that a change starts from, and for how long it has lasted, flickers looked past
    while here < len(states) - 1:
        before, left = states[here], starts[here + 1]
        doing = [entry.action for entry in spans[here] if entry.action is not None]
        action = _grounded(domain, doing[-1] if doing else None, before)
        there, kinds = _next_change(states, starts, here, partial(explains, action, before))
        arrived, steps = starts[there], steps + left - starts[here]
        if not kinds:
            has_events = any(left <= event <= arrived for event in events)
            kinds = _unexplained(action, before, states[there], has_events)
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
    states: Sequence[Facts], starts: Sequence[int], here: int, explains: Callable[[Facts], bool]
) -> tuple[int, tuple[str, ...]]:
    """Return which state the next change leads to, and its kind where it is a flicker or the action's own."""
    ahead = range(here + 1, min(here + 1 + MOST_LOOKED_PAST, len(states)))
    for there in ahead:
        if starts[there] <= starts[here + 1] + SETTLING and states[there] == states[here]:
            return there, (FLICKER,)
    for there in ahead:
        if states[there] == states[here]:
            return there, (FLICKER,)
        if explains(states[there]):
            return there, (OWN,)
        if starts[there + 1] - starts[there] > SETTLING:
            return there, ()
    return here + 1, ()


def _unexplained(action: GroundAction | None, before: Facts, after: Facts, has_events: bool) -> tuple[str, ...]:
    """Return the kinds of a change that is more or less, or something else, than the action's effects."""
    if action is None:
        return (EXOGENOUS,) if has_events else (COLLISION,)
    results = [each for each in (progress(before, outcome) for outcome in action.outcomes) if each != before]
    parts = (each for each in results if each - before <= after and after.isdisjoint(before - each))
    reached = next(parts, before)  # by the action: all that an outcome of it adds and deletes has happened
    if has_events:
        return (EXOGENOUS,) if reached == before else (OWN, EXOGENOUS)
    concerned = {term for fact in reached ^ after for term in fact.terms}
    needed = action.condition.positive & (reached - after)
    return (DROP,) if needed or concerned.issubset(action.action.arguments) else (COLLISION,)


# Why it failed


def reason_of_failure(outcome: str, steps: int, changes: Sequence[AttributedChange]) -> str | None:
    """Return why an episode of so many steps failed; `None` for a success.

    At the step limit, the changes in the last 1000 steps decide: at least five flickers, and most of the changes, are
    the labels' fault. Nothing brought about for 1000 steps, or for ten times the longest action, is a stall. Half as
    many drops or collisions as own changes are the reason, too. Else it is time.
    """
    if outcome != STEP_LIMIT:
        return REASON_OF_OUTCOME.get(outcome, "terminated")
    late = [change for change in changes if change.timestep > steps - LAST_PART]
    last = count_changes(late)
    if last[FLICKER] >= MANY_FLICKERS and 2 * last[FLICKER] > len(late):
        return "label"
    effects = [change.timestep for change in changes if change.kind not in (FLICKER, EXOGENOUS)]
    longest = max((change.steps for change in changes if change.kind == OWN), default=LAST_PART)
    if not effects or steps - effects[-1] >= min(LAST_PART, MUCH_LONGER * longest):
        return STALL
    if 2 * (last[DROP] + last[COLLISION]) >= max(last[OWN], 1):
        return DROP if last[DROP] >= last[COLLISION] else COLLISION
    return "time"


# Incidents that were kept with the results of episodes, read again to learn from them


class _KeptIncidents(msgspec.Struct):
    """What is needed here of the result of an episode."""

    task: str
    incidents: list[Incident] | None = None


def read_problems(paths: Sequence[Path], domain: Domain) -> list[Problem]:
    """Return the situations of kept incidents, each once, as problems: reach the goal from there.

    `BadInput`, which names the file and the line, for what is no result of an episode, holds no incidents, or is of
    another domain.
    """
    found: dict[tuple[Facts, Facts], Problem] = {}
    for path in paths:
        for number, line in enumerate(read_bytes(path).splitlines(), 1):
            where = f"{path}, line {number}"
            kept = decode(line, _KeptIncidents, f"{where}: not the result of an episode")
            if kept.incidents is None:
                raise BadInput(f"{where}: incidents were not kept; run `bilevel evaluate` with --keep-incidents")
            for incident in kept.incidents:
                objects = {name: kind for name, kind in incident.objects.items() if name not in domain.constants}
                problem = Problem(f"met-{len(found) + 1}", domain.name, objects, incident.state, incident.goal)
                parse_problem(write_problem(problem, domain), domain, where)  # which refuses what the domain lacks
                found.setdefault((problem.state, problem.goal), problem)
    return list(found.values())
