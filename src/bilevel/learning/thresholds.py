"""Thresholds of labels, fitted to sensors that are not perfect.

What holds in a demonstration is known: its scenes were recorded as they are, and labels say it with the thresholds of
the task. The same scenes are then seen through imperfect sensors, and thresholds are looked for with which the labels
say of what is seen what holds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.symbolic.domain import BadInput, Facts
from bilevel.tasks.estimation import Estimation
from bilevel.tasks.estimator import Estimator
from bilevel.tasks.perception import PERFECT, Perception, Sensor
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Spec
from bilevel.tasks.task import Labels, Task, Thresholds

ENOUGH = 40  # demonstrations
HELD_OUT = 4  # one demonstration of so many is not fitted to
MOST = 3000  # scenes that are fitted to, spread evenly over the demonstrations
USUAL = 8
FACTORS = [2 ** ((number - USUAL) / 4) for number in range(2 * USUAL + 1)]  # of a default, to try; USUAL is itself
MARGIN = 1.05  # a value is as good as the best where it is wrong at most so many times as often
ROUNDS = 4  # over all thresholds, at most


class Sample(NamedTuple):
    """What is seen at a timestep, and what holds."""

    scene: Scene
    state: Facts


@dataclass(frozen=True)
class ThresholdFit:
    """Thresholds, and how well labels agree with what holds, in demonstrations that they were not fitted to.

    The agreement is 1 where the labels are always right; see `agreement`.
    """

    defaults: Thresholds
    fitted: Thresholds
    before: float  # with the defaults
    after: float
    without: dict[str, float]  # with this one at its default and all others fitted
    demonstrations: int  # fitted to
    held_out: int

    @property
    def changed(self) -> dict[str, float]:
        """The thresholds that are no longer the defaults."""
        return {name: value for name, value in self.fitted.items() if value != self.defaults[name]}


def agreement(labels: Labels, samples: Sequence[Sample]) -> float:
    """Return how well labels agree with what holds: from 0 to 1, the mean over predicates, so that rare ones count.

    For a predicate this is, of the facts that hold and those that seem to hold, the share of those that do both.
    """
    both: Counter[str] = Counter()
    either: Counter[str] = Counter()
    for (state, seen), times in Counter((sample.state, labels.state(sample.scene)) for sample in samples).items():
        for facts, counter in ((state, either), (seen, either), (state & seen, both)):
            for fact in facts:
                counter[fact.predicate] += times
    return sum(2 * both[predicate] / either[predicate] for predicate in sorted(either)) / max(1, len(either))


def fit_thresholds(
    demonstrations: Demonstrations,
    task: Task,
    perception: Perception,
    estimation: Estimation | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> ThresholdFit:
    """Return the thresholds with which labels are right most often, where scenes are seen as `perception` says.

    A policy with state `estimation` labels what that makes of what is seen. One threshold is changed after the other,
    until none is changed any more. Where held-out demonstrations agree no better, the defaults are kept.
    """
    _check(demonstrations, task)
    labels, defaults = task.labels, dict(task.thresholds)
    shown = [demonstrations[number] for number in range(min(len(demonstrations), ENOUGH))]
    parts = [_samples(each, demonstrations.spec, labels, perception, estimation) for each in shown]
    held_out = [sample for part in parts[::HELD_OUT] for sample in part]
    rest = [sample for number, part in enumerate(parts) if number % HELD_OUT for sample in part]
    rest = rest[:: math.ceil(len(rest) / MOST)]

    found = _search(defaults, lambda thresholds: agreement(labels.with_thresholds(thresholds), rest), callback)

    def score(thresholds: Thresholds) -> float:
        return agreement(labels.with_thresholds(thresholds), held_out)

    if score(found) <= score(defaults):
        found = defaults
    return ThresholdFit(
        defaults=defaults,
        fitted=found,
        before=score(defaults),
        after=score(found),
        without={name: score({**found, name: default}) for name, default in defaults.items()},
        demonstrations=len(parts) - len(parts[::HELD_OUT]),
        held_out=len(parts[::HELD_OUT]),
    )


def _check(demonstrations: Demonstrations, task: Task) -> None:
    """`BadInput` where there is nothing to fit, or nothing to fit it to."""
    if not task.thresholds:
        raise BadInput(f"the task '{task.name}' has no thresholds; declare them: Task(…, thresholds=…)")
    if len(demonstrations) < 2:
        raise BadInput("fitting thresholds needs at least 2 demonstrations: one is held out, to see what was gained")
    manifest = demonstrations.manifest
    if manifest and manifest.settings.perception != PERFECT:
        seen = f"they were recorded as seen with {manifest.settings.perception}"
        raise BadInput(f"the demonstrations do not say what holds: {seen}; collect others, without --perception")


def _samples(
    shown: Demonstration, spec: Spec, labels: Labels, perception: Perception, estimation: Estimation | None
) -> list[Sample]:
    """Return what a policy would have seen at each timestep of a demonstration, and what held."""
    sensor = Sensor(perception, spec, shown.seed)
    estimator = Estimator(spec, estimation) if estimation else None
    samples = []
    for step, scene in enumerate(shown.scenes(spec)):
        seen = sensor.see(scene)
        if estimator:
            seen = estimator.update(seen)
            if step < shown.steps:
                estimator.act(shown.executed[step])
        samples.append(Sample(seen, labels.state(scene)))
    return samples


def _search(
    defaults: dict[str, float], score: Callable[[Thresholds], float], callback: Callable[[int, int], None] | None
) -> dict[str, float]:
    """Return the thresholds with the best score that changing one after the other finds."""
    found, total = dict(defaults), ROUNDS * len(defaults)
    for round_ in range(ROUNDS):
        before = dict(found)
        for number, name in enumerate(defaults, round_ * len(defaults) + 1):
            found[name] = _best(name, defaults[name], found, score)
            if callback:
                callback(number, total)
        if found == before:
            break
    return found


def _best(name: str, default: float, others: Thresholds, score: Callable[[Thresholds], float]) -> float:
    """Return the best value of a threshold; the default, if it is as good, else the middle of those that are as good.

    Where these go on to the end of what was tried, nothing is known of their middle: it is the one next to the default.
    """
    values = [_rounded(default * factor) for factor in FACTORS]
    values[USUAL] = default
    wrong = [1 - score({**others, name: value}) for value in values]
    enough = MARGIN * min(wrong) + 1e-12
    if wrong[USUAL] <= enough:
        return default
    first = last = wrong.index(min(wrong))
    while first > 0 and wrong[first - 1] <= enough:
        first -= 1
    while last < len(values) - 1 and wrong[last + 1] <= enough:
        last += 1
    if first == 0 or last == len(values) - 1:
        return values[first if first > USUAL else last]
    return _rounded(math.sqrt(values[first] * values[last]))


def _rounded(value: float) -> float:
    """Round to four digits, as more say nothing."""
    return float(f"{value:.4g}")
