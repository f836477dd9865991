"""Gets units done: whatever is not there yet, in an order in which each finds what it needs, by a back-end.

It also guesses how long that takes, and gets better at it on the way.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bilevel.experiments.methods import METHODS
from bilevel.experiments.reproduction.backends import Advanced, Backend, Event, Failed, Finished
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder, Locks
from bilevel.experiments.reproduction.measurements import LAMA, Evaluate, Film, MeasureMemory, Scale
from bilevel.experiments.reproduction.units import Collect, Train, Unit
from bilevel.files import write_atomically
from bilevel.methods.methods import END_TO_END

PAUSE = 0.5  # seconds to wait for events at most
AGAIN = 2.0  # seconds until a unit that another run is at is looked at again
TRIES = 2

# Guesses, in seconds of one core of the machine on which they were measured: what matters is their ratio.
STEPS = {"blocks": 276, "factory": 590, "colour": 611, "gacha": 1123}  # of an expert with three objects, noisy or not
USUAL_STEPS = 600  # of a task that was not measured
STEP = 0.36e-3  # of a world and who acts in it
LABEL = 80e-6  # for each step of a demonstration
LEARN = {"pddl-nn": 190e-6, "pure-nn": 95e-6}  # for each sample of an epoch
USUAL_LEARN = 26e-6
ON_GPU = 1 / 25
STALLED = 1600  # steps for each object, of networks that do all, which often run until the time is up
PLAN = 0.2  # for each plan
BEGIN = 0.1  # of a world
ORDER = (Collect, Train, Film, Scale, MeasureMemory, Evaluate)


class Forecast:
    """How long units take: a rough guess, corrected by how wrong those for units of the same kind were so far."""

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


def _steps(task: str) -> int:
    return STEPS.get(task.removesuffix("-noisy"), USUAL_STEPS)


def _training(unit: Train, experiment: Experiment) -> float:
    steps, learn = _steps(unit.task), LEARN.get(unit.learner, USUAL_LEARN)
    samples = experiment.demonstrations * steps
    config = experiment.config(unit.learner, unit.preset)
    dagger = config.dagger.rounds * config.dagger.episodes * steps * 1.5  # steps
    seconds = samples * LABEL + samples * learn * config.training.epochs
    return seconds + dagger * 2 * STEP + config.dagger.rounds * config.dagger.epochs * (samples + dagger) * learn


def _episode(unit: Evaluate | MeasureMemory, experiment: Experiment) -> float:
    method = METHODS[unit.variant.method]
    stalls = method.training == END_TO_END and unit.objects > experiment.shown  # they are good at what they were shown
    steps = unit.objects * (STALLED if stalls else _steps(unit.task) / 3)
    plans = (unit.objects / 2 if method.replan else 1) if method.planners else 0
    return steps * STEP + plans * PLAN


@dataclass
class RunProgress:
    """How far a run is."""

    forecast: Forecast
    done: list[Unit] = field(default_factory=list)  # by this run
    there: int = 0  # units that were there before, or that others did
    running: dict[Unit, str] = field(default_factory=dict)  # with what they last said
    waiting: list[Unit] = field(default_factory=list)
    failed: dict[Unit, Failed] = field(default_factory=dict)  # twice, for good
    elsewhere: set[Unit] = field(default_factory=set)  # that another run is at

    @property
    def total(self) -> int:
        return self.there + len(self.done) + len(self.running) + len(self.waiting) + len(self.failed)

    def seconds_left(self, workers: int) -> float:
        return self.forecast.seconds_left([*self.running, *self.waiting], workers)


class Driver:
    """One run. Others may be at work in the same folder."""

    def __init__(
        self, folder: ExperimentFolder, units: Sequence[Unit], backend: Backend, locks: Locks, forecast: Forecast
    ) -> None:
        self._folder, self._backend, self._locks = folder, backend, locks
        self.progress = RunProgress(forecast)
        self._available: set[str] = set()  # outputs that are there
        self._tried: dict[Unit, int] = {}
        self._not_before: dict[Unit, float] = {}
        waiting = []
        for unit in units:
            if unit.is_done(folder):
                self._note_there(unit)
            else:
                waiting.append(unit)
        needed = {name for unit in waiting for name in unit.inputs}
        wanted = [unit for unit in waiting if not unit.is_intermediate or needed.intersection(unit.outputs)]
        self.progress.waiting = sorted(wanted, key=forecast.rank)

    def run(self, show: Callable[[], None] = lambda: None) -> RunProgress:
        """Go on until nothing is left that can be done; what is then still `waiting` needs something that failed."""
        progress = self.progress
        while progress.running or any(map(self._has_inputs, progress.waiting)):
            self._start_units()
            for event in self._backend.events(PAUSE):
                self._handle(event)
            show()
        return progress

    def _has_inputs(self, unit: Unit) -> bool:
        return self._available.issuperset(unit.inputs)

    def _start_units(self) -> None:
        """Start all that there is a worker for; a unit that has to wait for a GPU lets others pass."""
        now, running, workers = time.monotonic(), self.progress.running, self._backend.workers
        gpu_slots = self._backend.gpu_slots - sum(unit.uses_gpu for unit in running)
        for unit in list(self.progress.waiting):
            if len(running) >= workers:
                return
            if unit.uses_gpu and gpu_slots <= 0:
                continue
            if self._has_inputs(unit) and self._not_before.get(unit, 0.0) <= now and self._may_start(unit):
                self.progress.waiting.remove(unit)
                running[unit] = "beginning"
                gpu_slots -= unit.uses_gpu
                self.progress.forecast.begin(unit)
                self._backend.start(unit)

    def _may_start(self, unit: Unit) -> bool:
        """Lock a unit, and return whether it is ours to be done: another run may be at it, or have done it."""
        is_locked = self._locks.acquire(unit.outputs)
        if unit.is_done(self._folder):
            self._locks.release(unit.outputs)
            self.progress.waiting.remove(unit)
            self.progress.elsewhere.discard(unit)
            self._note_there(unit)
            return False
        if is_locked:
            self.progress.elsewhere.discard(unit)
        else:
            self._not_before[unit] = time.monotonic() + AGAIN
            self.progress.elsewhere.add(unit)
        return is_locked

    def _note_there(self, unit: Unit) -> None:
        self._note_done(unit)
        self.progress.there += 1

    def _note_done(self, unit: Unit) -> None:
        self._available.update(unit.outputs)
        self._failure_file(unit).unlink(missing_ok=True)
        for name in unit.unfinished:
            shutil.rmtree(self._folder.path / name, ignore_errors=True)

    def _handle(self, event: Event) -> None:
        unit = event.unit
        if isinstance(event, Advanced):
            self.progress.running[unit] = event.note
            return
        del self.progress.running[unit]
        if isinstance(event, Finished):
            self.progress.forecast.finish(unit)
            self._note_done(unit)
            self.progress.done.append(unit)
        else:
            self._handle_failure(event)
        self._locks.release(unit.outputs)

    def _handle_failure(self, failed: Failed) -> None:
        """Try it once more, after all else that waits; then list it."""
        unit = failed.unit
        self.progress.forecast.give_up(unit)
        self._tried[unit] = self._tried.get(unit, 0) + 1
        if self._tried[unit] < TRIES:
            self.progress.waiting.append(unit)
            return
        self.progress.failed[unit] = failed
        content = {"unit": unit.name, "error": failed.error, "traceback": failed.traceback}
        write_atomically(self._failure_file(unit), json.dumps(content, indent=1) + "\n")

    def _failure_file(self, unit: Unit) -> Path:
        return self._folder.path / "failures" / f"{unit.name.replace('/', '+').replace(' ', '+')}.json"
