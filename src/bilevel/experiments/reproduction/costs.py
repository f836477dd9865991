"""How long units will take: a rough guess from what they do, which gets better as some of them are done.

The guesses are in seconds of one core of the machine on which they were measured, so what matters is their ratio.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable

from bilevel.experiments.methods import METHODS
from bilevel.experiments.reproduction.measurements import LAMA
from bilevel.experiments.reproduction.settings import Experiment
from bilevel.experiments.reproduction.unit import Unit
from bilevel.experiments.reproduction.units import Collect, Evaluate, Film, MeasureMemory, Scale, Train
from bilevel.policies.policy_folder import BISON

# Steps that an expert takes with three objects.
STEPS = {
    "blocks": 268,
    "blocks-noisy": 284,
    "factory": 547,
    "factory-noisy": 632,
    "colour": 595,
    "colour-noisy": 627,
    "gacha": 1096,
    "gacha-noisy": 1150,
}
USUAL_STEPS = 600  # of a task that was not measured
STEP = 0.36e-3  # seconds, of a world with its expert
LABEL = 80e-6  # for each step of a demonstration
LEARN = {BISON: 26e-6, "pddl-nn": 190e-6, "pure-nn": 95e-6}  # for each sample of an epoch
ON_GPU = 1 / 25
THINK = {"pddl-nn": 0.25e-3, "pure-nn": 0.15e-3}  # for each step
STALLED = {"pddl-nn": 1300, "pure-nn": 2000}  # steps for each object, of those that often run until the time is up
PLAN = {"det-plan": 0.2, "det-replan": 0.2}  # seconds
BEGIN = 0.1  # seconds, of a world
ORDER = (Collect, Train, Film, Scale, MeasureMemory, Evaluate)


def _steps(task: str) -> int:
    return STEPS.get(task, USUAL_STEPS)


def _training(unit: Train, experiment: Experiment) -> float:
    steps = _steps(unit.task)
    samples = experiment.demonstrations * steps
    learn = LEARN.get(unit.learner, LEARN[BISON])
    config = experiment.config(unit.learner, unit.preset)
    dagger = config.dagger.rounds * config.dagger.episodes * steps * 1.5  # steps
    seconds = samples * LABEL + samples * learn * config.training.epochs
    return seconds + dagger * 2 * STEP + config.dagger.rounds * config.dagger.epochs * (samples + dagger) * learn


def _episode(unit: Evaluate | MeasureMemory, experiment: Experiment) -> float:
    method = METHODS[unit.variant.method]
    like_shown = unit.objects <= experiment.shown  # networks that do all are good at what they were shown
    per_object = _steps(unit.task) / 3 if like_shown else STALLED.get(method.name, _steps(unit.task) / 3)
    plans = PLAN.get(method.name, 0.0) * (unit.objects / 2 if method.replan else 1)
    return unit.objects * per_object * (0.2e-3 + THINK.get(method.name, 0.1e-3)) + plans


class Forecast:
    """What is left, corrected by how wrong the guesses for units of the same kind were so far."""

    def __init__(self, experiment: Experiment, gpu: bool = False) -> None:
        self._experiment, self._gpu = experiment, gpu
        self._began: dict[Unit, float] = {}
        self._guessed: defaultdict[str, float] = defaultdict(float)  # by kind, seconds of those that are done
        self.taken: defaultdict[str, float] = defaultdict(float)  # the same, of a worker

    def rank(self, unit: Unit) -> tuple[int, float]:
        """Sort first what others need, and of each kind the longest, so that it does not end last."""
        return ORDER.index(type(unit)), -self.guess(unit)

    def guess(self, unit: Unit) -> float:
        """Return how many seconds a unit takes."""
        experiment = self._experiment
        if isinstance(unit, Collect):
            return BEGIN + experiment.demonstrations * _steps(unit.task) * STEP
        if isinstance(unit, Train):
            return _training(unit, experiment) * (ON_GPU if self._gpu and unit.uses_gpu else 1.0)
        if isinstance(unit, Evaluate):
            return BEGIN + unit.episodes * _episode(unit, experiment)
        if isinstance(unit, MeasureMemory):
            return 1.0 + _episode(unit, experiment)
        if isinstance(unit, Scale):
            return experiment.lama_seconds / 4 if unit.solver == LAMA else 1.0
        return 20.0

    def begin(self, unit: Unit) -> None:
        self._began[unit] = time.monotonic()

    def give_up(self, unit: Unit) -> None:
        del self._began[unit]

    def finish(self, unit: Unit) -> None:
        self.taken[unit.kind] += time.monotonic() - self._began.pop(unit)
        self._guessed[unit.kind] += self.guess(unit)

    def _correction(self, kind: str) -> float:
        """Return that of this kind, or where nothing of it is done yet, of all."""
        if self._guessed.get(kind):
            return self.taken[kind] / self._guessed[kind]
        guessed = sum(self._guessed.values())
        return sum(self.taken.values()) / guessed if guessed else 1.0

    def seconds_left(self, units: Iterable[Unit], workers: int) -> float:
        """Return how long these will take by the wall clock, with so many workers."""
        left = []
        for unit in units:
            expected = self.guess(unit) * self._correction(unit.kind)
            now = time.monotonic()
            spent = now - self._began.get(unit, now)  # another thread may show this while a unit ends
            left.append(max(expected - spent, 0.1 * expected))
        return max(sum(left) / max(workers, 1), max(left, default=0.0))
