"""How long units take: guesses, which get better on the way."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from bilevel.experiments.methods import METHODS
from bilevel.experiments.reproduction.folder import Experiment
from bilevel.experiments.reproduction.large_problems import RULES, Scale
from bilevel.experiments.reproduction.measurements import Evaluate, Film, MeasureMemory
from bilevel.experiments.reproduction.units import Collect, Train, Unit
from bilevel.methods.methods import END_TO_END
from bilevel.tasks.task import STEPS_PER_OBJECT

# Guesses, in seconds of one core of the machine on which they were measured: what matters is their ratio.
STEPS = {"blocks": 92, "factory": 197, "colour": 204, "swap": 130}  # of an expert for each object, noisy or not
USUAL_STEPS = 200  # of a task that was not measured
ROLL = 340  # steps until Gacha's next block is put away
STEP = 0.36e-3  # of a world and who acts in it
LABEL = 80e-6  # for each step of a demonstration
LEARN = {"pddl-nn": 110e-6, "pure-nn": 90e-6}  # for each sample of an epoch
USUAL_LEARN = 26e-6
ON_GPU = 1 / 25
STALLED = 1600  # steps for each object, of networks that do all, which often run until the time is up
PLAN = 0.2  # for each plan
BEGIN = 0.1  # of a world
ORDER = (Collect, Train, Film, Scale, MeasureMemory, Evaluate)
TRUST = 0.3  # what part of the work has to be done until it counts as much as the guesses


class Forecast:
    """How long units take: a rough guess, corrected by how wrong those for units of the same kind were so far.

    A correction is trusted as far as it rests on a part of all that there is to do. So the first unit, which also
    waits for imports, does not turn minutes into hours.
    """

    def __init__(self, experiment: Experiment, gpu: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._experiment, self._gpu, self._clock = experiment, gpu, clock
        self._began: dict[Unit, float] = {}
        self._expected: defaultdict[str, float] = defaultdict(float)  # by kind, the guesses for all that is to be done
        self._guessed: defaultdict[str, float] = defaultdict(float)  # the same, for what is done
        self.taken: defaultdict[str, float] = defaultdict(float)  # by kind, seconds of a worker

    def expect(self, units: Iterable[Unit]) -> None:
        """Learn what there is to do."""
        for unit in units:
            self._expected[unit.kind] += self.guess(unit)

    def rank(self, unit: Unit) -> tuple[int, float]:
        """Sort first what others need, and of each kind the longest, so that it does not end last."""
        order = next((number for number, kind in enumerate(ORDER) if isinstance(unit, kind)), ORDER.index(Scale))
        return order, -self.guess(unit)

    def guess(self, unit: Unit) -> float:
        """Return how many seconds a unit takes."""
        experiment = self._experiment
        if isinstance(unit, Collect):
            return BEGIN + experiment.demonstrations * _steps(unit.task, unit.shown or experiment.shown) * STEP
        if isinstance(unit, Train):
            return _training(unit, experiment) * (ON_GPU if self._gpu and unit.uses_gpu else 1.0)
        if isinstance(unit, Evaluate):
            return BEGIN + unit.episodes * _episode(unit, experiment)
        if isinstance(unit, MeasureMemory):
            return 1.0 + _episode(unit, experiment)
        if isinstance(unit, Scale):
            return 1.0 if unit.solver == RULES else experiment.lama_seconds / 4
        return unit.expected_seconds(experiment)

    def begin(self, unit: Unit) -> None:
        """Note that a unit begins now."""
        self._began[unit] = self._clock()

    def give_up(self, unit: Unit) -> None:
        """Forget that a unit was begun."""
        del self._began[unit]

    def finish(self, unit: Unit) -> None:
        """Learn from a unit that ends now."""
        self.taken[unit.kind] += self._clock() - self._began.pop(unit)
        self._guessed[unit.kind] += self.guess(unit)

    def _correction(self, kind: str) -> float:
        """Return by how much guesses of this kind are to be multiplied."""
        return _corrected(
            self.taken.get(kind, 0.0), self._guessed.get(kind, 0.0), self._expected.get(kind, 0.0), self._speed()
        )

    def _speed(self) -> float:
        """Return the same for all kinds together: that is how slow the machine is."""
        return _corrected(sum(self.taken.values()), sum(self._guessed.values()), sum(self._expected.values()), 1.0)

    def seconds_left(self, units: Iterable[Unit], workers: int) -> float:
        """Return how long these will take by the wall clock, with so many workers."""
        left, now = [], self._clock()
        for unit in units:
            expected = self.guess(unit) * self._correction(unit.kind)
            spent = max(now - self._began.get(unit, now), 0.0)  # another thread may show this while a unit ends
            left.append(max(expected - spent, 0.1 * expected))
        return max(sum(left) / max(workers, 1), max(left, default=0.0))


def _corrected(taken: float, guessed: float, expected: float, usual: float) -> float:
    """Return how many times what was guessed was taken, and as long as little is done, about the usual."""
    weight = TRUST * expected
    return (taken + weight * usual) / (guessed + weight) if guessed + weight else usual


def _steps(task: str, objects: int) -> float:
    world = task.removesuffix("-noisy")
    if world == "gacha":  # so many draws until each of n colours out of n + 2 has come
        return ROLL * (objects + 2) * sum(1 / number for number in range(1, objects + 1))
    return STEPS.get(world, USUAL_STEPS) * objects


def _training(unit: Train, experiment: Experiment) -> float:
    recipe, learn = unit.recipe, LEARN.get(unit.learner, USUAL_LEARN)
    steps = _steps(unit.task, recipe.shown or experiment.shown)
    samples = (recipe.demonstrations or experiment.demonstrations) * steps
    if recipe.network:
        return samples * LABEL
    config = experiment.config(recipe)
    dagger = config.dagger.rounds * config.dagger.episodes * steps * 1.5  # steps
    seen = config.training.updates * config.training.batch or samples * config.training.epochs
    seconds = samples * LABEL + seen * learn
    return seconds + dagger * 2 * STEP + config.dagger.rounds * config.dagger.epochs * (samples + dagger) * learn


def _episode(unit: Evaluate | MeasureMemory, experiment: Experiment) -> float:
    method = METHODS[unit.variant.method]
    stalls = method.training == END_TO_END and unit.objects > experiment.shown  # they are good at what they were shown
    steps = unit.objects * STALLED if stalls else _steps(unit.task, unit.objects)
    if isinstance(unit, Evaluate):
        steps = min(steps * unit.condition.lengthening, unit.objects * STEPS_PER_OBJECT)
    plans = (unit.objects / 2 if method.replan else 1) if method.planners else 0
    return steps * STEP + plans * PLAN
