"""Whether rules and a network could be learned from demonstrations, found out in seconds and without training.

The rules are learned, and asked at the demonstrators' own decisions. For the network, the controls are looked at, and
how well they could be told from what a network is told: by those of the most similar steps in other episodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.traces import LabelledEpisode, explain
from bilevel.lowlevel.encoding import Samples, Unseen, encode_episode, encoding_of
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_file import require_open_world
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import Action, BadInput, Domain
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene import Array
from bilevel.tasks.spec import Spec

MOST_DECISIONS = 2000
MOST_STEPS = 6000  # that are compared with each other
FEWEST_STEPS = 100  # of a schema, below which a network has hardly seen it
NEIGHBOURS = 3
AT_A_BOUND = 0.999
FAR_APART = 1.0  # of two controls, in one of their numbers: half of its range
CLOSE = 0.25  # this share of the steps, those that are most similar to another, are nearly equal to it


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


def check_rules(traces: Sequence[Trace], where: Sequence[int], domain: Domain) -> RuleFindings:
    """Learn the rules of traces, and ask them for the demonstrators' decisions; `where` names the traces' episodes."""
    rules = learn_rules(traces, domain)
    found = RuleFindings(tuple(map(str, rules)))
    try:
        require_open_world(rules)
    except BadInput as error:
        found.absent = str(error)
    policy = RulePolicy(rules, domain, open_world=False)
    every = 1 + sum(len(trace.steps) for trace in traces) // MOST_DECISIONS  # some of the traces, if there are many
    for trace, episode in list(zip(traces, where, strict=True))[::every] if rules else ():
        policy.reset(trace.steps[0].state, trace.steps[0].goal, trace.objects)
        for step in trace.steps:
            chosen, shown = policy.choose(step.state, step.goal), step.action.action
            found.decisions += 1
            found.same += chosen == shown
            found.none += chosen is None
            if chosen == shown:
                continue
            if shown in policy.alternatives(step.state, step.goal):
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
    at_bounds: dict[int, float] = {}  # those that are mostly at a bound, with the share of the steps
    unseen: str | None = None  # where an action is about something that cannot be seen
    never: tuple[int, ...] = ()  # controls of a Discrete space that nobody chose
    told: float | None = None  # share of the controls' variance that the most similar steps tell
    conflicts: float | None = None  # share of nearly equal steps whose controls are far apart
    first_conflict: str | None = None


class ControlSamples:
    """Steps of demonstrations, gathered one by one; only some of them, where there are many."""

    def __init__(self, domain: Domain, spec: Spec, controls: Controls, episodes: int) -> None:
        self.domain, self.encoding, self.controls = domain, encoding_of(domain, spec), controls
        self._most = max(1, MOST_STEPS // max(1, episodes))
        self._found = ControlFindings()
        self._names: dict[int, str] = {}  # of the episodes
        self._schemas: Counter[str] = Counter()
        self._targets: list[Array] = []
        self._samples: list[Samples] = []
        self._steps: list[NDArray[np.int64]] = []

    def add(self, episode: LabelledEpisode) -> None:
        """Take in one episode."""
        number, demonstration, states, goals, _ = episode
        actions = _actions(episode, self.domain)
        known = np.array([action is not None for action in actions], np.bool_)
        who = demonstration.demonstrator
        self._names[number] = f"episode {number} of {who}" if who else f"episode {number}"
        self._found.steps += demonstration.steps
        self._found.with_action += int(known.sum())
        self._schemas.update(action.name for action in actions if action is not None)
        if not demonstration.has_controls:
            return
        targets = self.controls.encode(demonstration.controls)
        self._targets.append(targets)
        steps = np.flatnonzero(known)
        if len(steps) > self._most:
            steps = np.sort(np.random.default_rng(number).choice(steps, self._most, replace=False))
        seen = {name: getattr(demonstration, name)[steps] for name in ("agent", "features", "visible")}
        scenes = replace(demonstration, **seen).scenes(self.encoding.spec)
        situations = [(states[step], goals[step], actions[step]) for step in steps.tolist()]
        try:
            samples = encode_episode(self.encoding, scenes, situations, targets[steps], number)
        except Unseen as error:
            self._found.unseen = self._found.unseen or f"episode {number}: {error}"
            return
        self._samples.append(samples)
        self._steps.append(steps)

    def result(self) -> ControlFindings:
        """Return what the controls of all episodes are like."""
        found = self._found
        found.by_schema = {name: self._schemas[name] for name in self.encoding.schemas}
        if self._targets:
            _look_at(np.concatenate(self._targets), self.controls, found)
        if self._samples:
            samples, steps = Samples.concatenate(self._samples), np.concatenate(self._steps)
            conflict = _compare(samples, found)
            if conflict:
                apart, *rows = conflict
                one, other = (f"{self._names[samples.episodes[row]]}, step {steps[row]}" for row in sorted(rows))
                action = self.encoding.schemas[samples.schemas[rows[0]]]
                found.first_conflict = f"{action} in {one}, and in {other}: controls {apart:.2f} apart"
        return found


def _actions(episode: LabelledEpisode, domain: Domain) -> Sequence[Action | None]:
    """Return the action of each step, as learning takes it: before a change that none explains, the demonstrator's."""
    if not episode.found.exogenous or not any(episode.demonstration.actions):
        return episode.found.actions
    return explain(episode.demonstration, domain, episode.states, episode.goals).actions


def _look_at(targets: Array, controls: Controls, found: ControlFindings) -> None:
    """Note what strikes about each number of the controls, (steps, size)."""
    if not isinstance(controls, BoxControls):
        found.never = tuple(controls.start + int(index) for index in np.flatnonzero(targets.sum(0) == 0))
        return
    middle, half = controls.decode(np.zeros(controls.size, np.float32)).reshape(-1), np.abs(targets)
    for index in range(controls.size):
        column = targets[:, index]
        if np.ptp(column) < 1e-6:
            found.constant[index] = round(float(middle[index] + column[0] * (controls.high[index] - middle[index])), 6)
            continue
        beyond, at = float((half[:, index] > 1.001).mean()), float((half[:, index] >= AT_A_BOUND).mean())
        if beyond:
            found.out_of_bounds[index] = round(beyond, 4)
        if at > 0.5:
            found.at_bounds[index] = round(at, 4)


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
        best = np.argpartition(distance, count - 1, axis=1)[:, :count]
        order = np.take_along_axis(distance, best, 1).argsort(axis=1, kind="stable")
        nearest.append(np.take_along_axis(best, order, 1))
        distances.append(np.take_along_axis(distance, nearest[-1][:, :1], 1)[:, 0])
    return np.concatenate(nearest), np.concatenate(distances)
