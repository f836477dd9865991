"""The diagnosis of a data set: whether rules and a network could be learned from it, in seconds and without training.

The rules are learned, and asked at the demonstrators' own decisions. For the network, the controls are looked at, and
how well they could be told from what a network is told: by those of the most similar steps in other episodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.checking import Contents, Look, Report, check
from bilevel.demonstrations.dataset import Manifest
from bilevel.demonstrations.traces import LabelledEpisode, explain
from bilevel.lowlevel.encoding import Samples, Unseen, encode_episode, encoding_of
from bilevel.progress import Callback, silent
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_file import require_open_world
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Array
from bilevel.tasks.task import Task

MOSTLY = 0.8  # of the changes should be explained, and of the steps have an action
HARDLY = 0.3  # of the controls' variance; below, what the network is told says little of what was done
OFTEN = 0.2  # of nearly equal scenes
MOST_DECISIONS = 2000
MOST_STEPS = 6000  # that are compared with each other
FEWEST_STEPS = 100  # of a schema, below which a network has hardly seen it
NEIGHBOURS = 3
FAR_APART = 1.0  # of two controls, in one of their numbers: half of its range
CLOSE = 0.25  # this share of the steps, those that are most similar to another, are nearly equal to it


class Verdict(NamedTuple):
    """Whether something can be learned: yes, no, or doubtful, with the reasons."""

    possible: bool
    reason: str
    doubts: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """Yes, no, or doubtful."""
        return "no" if not self.possible else "doubtful" if self.doubts else "yes"

    def __str__(self) -> str:
        return f"{self.answer}: {'; '.join((self.reason, *self.doubts))}"


def diagnose(folder: Path, task: Task | None = None, callback: Callback = silent) -> tuple[Report, Diagnosis | None]:
    """Check the files of a data set, as `check` does, and return what can be learned from those that are whole."""
    begun: list[Diagnosis] = []

    def begin(manifest: Manifest, domain: Domain) -> Look:
        begun.append(Diagnosis(manifest, domain))
        return begun[0].look

    report = check(folder, task, callback, begin)
    if not begun or report.contents is None or not report.contents.episodes:
        return report, None
    begun[0].conclude(report.contents)
    return report, begun[0]


class Diagnosis:
    """What was found in a data set; its verdicts are known once all episodes were looked at."""

    def __init__(self, manifest: Manifest, domain: Domain) -> None:
        self.domain = domain
        self.rate = manifest.source.rate if manifest.source else None
        self.rules = RuleFindings(())
        self._samples = ControlSamples(domain, manifest)
        self.controls = self._samples.found
        self._traces: list[Trace] = []
        self._episodes: list[int] = []

    def look(self, episode: LabelledEpisode) -> None:
        """Look at one episode."""
        self._samples.add(episode)
        self._traces += episode.found.traces
        self._episodes += [episode.number] * len(episode.found.traces)

    def conclude(self, contents: Contents) -> None:
        """Learn the rules and compare the controls, once all episodes were looked at."""
        self.contents = contents
        self.rules = check_rules(self._traces, self._episodes, self.domain)
        self._samples.conclude()

    @property
    def for_rules(self) -> Verdict:
        """Whether rules can be learned."""
        found = self.rules
        if not found.rules:
            return Verdict(False, self._why_no_rules())
        rules = f"{len(found.rules)} rule{'s' if len(found.rules) > 1 else ''}"
        reason = f"{rules}, which do what the demonstrators did at {found.same} of {found.decisions} decisions"
        if found.possible:
            reason += f" and could do it at {found.possible} more"
        return Verdict(True, reason, tuple(self._doubts_about_rules()))

    @property
    def for_network(self) -> Verdict:
        """Whether a network can be learned."""
        found, contents = self.controls, self.contents
        if contents.without_controls:
            where = f"{contents.without_controls} of {contents.episodes} episodes"
            return Verdict(False, f"no controls were recorded in {where}")
        if not found.with_action:
            known = "" if self.domain.schemas else ", as the domain has none"
            return Verdict(False, f"no step has an action{known}")
        if found.unseen:
            return Verdict(False, f"an action is about something that cannot be seen: {found.unseen}")
        reason = f"{found.with_action} of {found.steps} steps have an action"
        if found.told is not None:
            reason += f", and the most similar ones in other episodes tell {max(0.0, found.told):.0%} of their controls"
        return Verdict(True, reason, tuple(self._doubts_about_network()))

    def _why_no_rules(self) -> str:
        if self.domain.adl:
            return "the domain is in ADL: a planner acts in it, not rules"
        if not self.domain.schemas:
            return "the domain has no actions; learn them with: bilevel domain learn, or bilevel learn --learn-domain"
        if not self.contents.goals:
            return "no episode has a goal; `bilevel import` can find goals in hindsight"
        if not self._traces:
            return "no change of the labels is the effect of an action; compare labels and domain"
        return "no fact of a goal becomes true by the effects of an action; compare goal, labels and domain"

    def _doubts_about_rules(self) -> Iterator[str]:
        found = self.rules
        if found.absent:
            yield found.absent
        explained = sum(len(trace.steps) for trace in self._traces)
        unexplained = sum(kind.count - kind.reported for kind in self.contents.unexplained)
        if explained < MOSTLY * (explained + unexplained):
            yield f"{unexplained} of {explained + unexplained} changes are not the effect of an action"
        if others := found.decisions - found.same - found.possible:
            yield f"at {others} they never would (first in {found.first_other})"
        if never := [name for name in self.contents.goals if not self.contents.reached[name]]:
            yield f"goals with '{never[0]}' were never reached"

    def _doubts_about_network(self) -> Iterator[str]:
        found = self.controls
        if few := [f"{name} {steps}" for name, steps in found.by_schema.items() if 0 < steps < FEWEST_STEPS]:
            yield f"few steps of {', '.join(few)}"
        if found.with_action < MOSTLY * found.steps:
            yield f"{found.steps - found.with_action} steps have no action and are left out"
        if found.out_of_bounds:
            yield "controls leave their bounds, to which a policy's are clipped"
        if found.told is not None and found.told < HARDLY:
            yield "what the network is told says little of what was done"
        if found.conflicts is not None and found.conflicts > OFTEN:
            share = f"{found.conflicts:.0%} of nearly equal scenes"
            yield f"in {share} something else was done, so there may be several ways ({found.first_conflict})"


# Rules


class RuleFindings(msgspec.Struct):
    """The rules that were learned, and what they choose where a demonstrator chose."""

    rules: tuple[str, ...]
    decisions: int = 0
    same: int = 0
    possible: int = 0  # of the others, where the demonstrator's action is that of a rule that would come later
    none: int = 0  # where no rule applies
    first_other: str | None = None  # of those that are neither the same nor possible
    absent: str | None = None  # why a policy, for which an absent fact is unknown, refuses the rules


def check_rules(traces: Sequence[Trace], episodes: Sequence[int], domain: Domain) -> RuleFindings:
    """Learn the rules of traces from these episodes, and return what they choose at the demonstrators' decisions."""
    rules = learn_rules(traces, domain)
    found = RuleFindings(tuple(map(str, rules)))
    try:
        require_open_world(rules)
    except BadInput as error:
        found.absent = str(error)
    policy = RulePolicy(rules, domain, open_world=False)
    every = 1 + sum(len(trace.steps) for trace in traces) // MOST_DECISIONS  # some of the traces, if there are many
    for trace, episode in list(zip(traces, episodes, strict=True))[::every] if rules else ():
        policy.reset(trace.steps[0].state, trace.steps[0].goal, trace.objects)
        for step in trace.steps:
            chosen, shown = policy.choose(step.state, step.goal), step.action.action
            found.decisions += 1
            found.none += chosen is None
            if chosen == shown:
                found.same += 1
            elif shown in policy.alternatives(step.state, step.goal):
                found.possible += 1
            elif found.first_other is None:
                found.first_other = f"episode {episode}: {shown} was done where the rules say {chosen or 'nothing'}"
    return found


# The network


class ControlFindings(msgspec.Struct):
    """What the controls are like; numbers of a control are counted from 0."""

    steps: int = 0
    with_action: int = 0
    by_schema: dict[str, int] = {}
    constant: dict[int, float] = {}  # the numbers that never change, with their value
    out_of_bounds: dict[int, float] = {}  # those that leave their bounds, with the share of the steps
    unseen: str | None = None  # where an action is about something that cannot be seen
    told: float | None = None  # share of the controls' variance that the most similar steps tell
    conflicts: float | None = None  # share of nearly equal steps whose controls are far apart
    first_conflict: str | None = None


class ControlSamples:
    """Steps of demonstrations, gathered one by one; only some of them, where there are many."""

    def __init__(self, domain: Domain, manifest: Manifest) -> None:
        self.domain, self.encoding, self.controls = domain, encoding_of(domain, manifest.spec), manifest.controls
        self.found = ControlFindings(by_schema=dict.fromkeys(self.encoding.schemas, 0))
        self._most = max(1, MOST_STEPS // max(1, manifest.episodes))
        self._names: dict[int, str] = {}  # of the episodes
        self._targets: list[Array] = []
        self._samples: list[Samples] = []
        self._steps: list[NDArray[np.int64]] = []

    def add(self, episode: LabelledEpisode) -> None:
        """Take in one episode, with the action of each step as learning takes it."""
        number, demonstration, states, goals, explained = episode
        actions = explained.actions
        if explained.exogenous and any(demonstration.actions):  # before these, it is what the demonstrator said
            actions = explain(demonstration, self.domain, states, goals).actions
        counts = Counter(action.name for action in actions if action is not None)
        who = demonstration.demonstrator
        self._names[number] = f"episode {number} of {who}" if who else f"episode {number}"
        self.found.steps += demonstration.steps
        self.found.with_action += counts.total()
        for name in counts:
            self.found.by_schema[name] += counts[name]
        if not demonstration.has_controls:
            return
        targets = self.controls.encode(demonstration.controls)
        self._targets.append(targets)
        steps = np.flatnonzero([action is not None for action in actions])
        if len(steps) > self._most:
            steps = np.sort(np.random.default_rng(number).choice(steps, self._most, replace=False))
        seen = {name: getattr(demonstration, name)[steps] for name in ("agent", "features", "visible")}
        scenes = replace(demonstration, **seen).scenes(self.encoding.spec)
        situations = [(states[step], goals[step], actions[step]) for step in steps.tolist()]
        try:
            samples = encode_episode(self.encoding, scenes, situations, targets[steps], number)
        except Unseen as error:
            self.found.unseen = self.found.unseen or f"episode {number}: {error}"
            return
        self._samples.append(samples)
        self._steps.append(steps)

    def conclude(self) -> None:
        """Note what the controls of all episodes are like."""
        if self._targets and isinstance(self.controls, BoxControls):
            _look_at(np.concatenate(self._targets), self.controls, self.found)
        if self._samples:
            samples, steps = Samples.concatenate(self._samples), np.concatenate(self._steps)
            if conflict := _compare(samples, self.found):
                apart, *rows = conflict
                one, other = (f"{self._names[samples.episodes[row]]}, step {steps[row]}" for row in sorted(rows))
                action = self.encoding.schemas[samples.schemas[rows[0]]]
                self.found.first_conflict = f"{action} in {one}, and in {other}: controls {apart:.2f} apart"


def _look_at(targets: Array, controls: BoxControls, found: ControlFindings) -> None:
    """Note what strikes about each number of the controls, (steps, size)."""
    for index, column in enumerate(targets.T):
        low, high = controls.low[index], controls.high[index]
        if np.ptp(column) < 1e-6:
            found.constant[index] = round(float(low + (column[0] + 1) * (high - low) / 2), 6)
        elif beyond := float((np.abs(column) > 1.001).mean()):
            found.out_of_bounds[index] = round(beyond, 4)


def _compare(samples: Samples, found: ControlFindings) -> tuple[float, int, int] | None:
    """Note how well the controls follow from what the network is told.

    Return how far apart the controls are in the two rows that are most alike, of those that are alike and far apart.
    """
    told = np.concatenate([samples.globals, *samples.objects.swapaxes(0, 1)], axis=1)
    mean = samples.targets.mean(0) if len(samples) else 0
    missed = spread = 0.0
    pairs: list[tuple[float, float, int, int]] = []  # how far apart scenes and controls are, and in which rows
    for schema in np.unique(samples.schemas):
        rows = np.flatnonzero(samples.schemas == schema)
        if len(np.unique(samples.episodes[rows])) < 2:
            continue
        neighbours, distances = _neighbours(told[rows], samples.episodes[rows])
        targets = samples.targets[rows]
        missed += float(((targets - targets[neighbours].mean(1)) ** 2).sum())
        spread += float(((targets - mean) ** 2).sum())
        apart = np.abs(targets - targets[neighbours[:, 0]]).max(1)
        pairs += zip(distances.tolist(), apart.tolist(), rows.tolist(), rows[neighbours[:, 0]].tolist(), strict=True)
    if not pairs or not spread:
        return None
    found.told = round(1 - missed / spread, 4)
    close = sorted(pairs)[: math.ceil(CLOSE * len(pairs))]
    far = [pair for pair in close if pair[1] > FAR_APART]
    found.conflicts = round(len(far) / len(close), 4)
    return far[0][1:] if far else None


def _neighbours(told: Array, episodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return for each row the nearest rows of other episodes, the nearest first, and how far that one is."""
    spread = told.std(0)
    scaled = (told[:, spread > 1e-6] / spread[spread > 1e-6]).astype(np.float64)
    squares = (scaled**2).sum(1)
    count = min(NEIGHBOURS, len(told) - int(np.unique(episodes, return_counts=True)[1].max()))
    nearest, distances = [], []
    for start in range(0, len(told), 500):
        part = slice(start, start + 500)
        distance = squares[part, None] + squares[None] - 2 * scaled[part] @ scaled.T
        distance[episodes[part, None] == episodes[None]] = np.inf
        best = np.argsort(distance, axis=1, kind="stable")[:, :count]
        nearest.append(best)
        distances.append(np.take_along_axis(distance, best[:, :1], 1)[:, 0])
    return np.concatenate(nearest), np.concatenate(distances)
