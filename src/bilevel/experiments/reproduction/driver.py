"""Gets units done: whatever is not there yet, in an order in which each finds what it needs, by a back-end."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bilevel.experiments.reproduction.backends import Advanced, Backend, Event, Failed, Finished
from bilevel.experiments.reproduction.folder import ExperimentFolder, Locks
from bilevel.experiments.reproduction.forecast import Forecast
from bilevel.experiments.reproduction.units import Unit
from bilevel.files import write_atomically

PAUSE = 0.5  # seconds to wait for events at most
AGAIN = 2.0  # seconds until a unit that another run is at is looked at again
TRIES = 2


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
        """How many units there are in all."""
        return self.there + len(self.done) + len(self.running) + len(self.waiting) + len(self.failed)

    def seconds_left(self, workers: int) -> float:
        """Return how long the rest will take with so many workers."""
        return self.forecast.seconds_left([*self.running, *self.waiting], workers)


class Driver:
    """One run. Others may be at work in the same folder."""

    def __init__(
        self,
        folder: ExperimentFolder,
        units: Sequence[Unit],
        backend: Backend,
        locks: Locks,
        forecast: Forecast,
        checked: Callable[[int], None] = lambda number: None,
    ) -> None:
        """See what of these units is there already; `checked` is called with how many have been looked at."""
        self._folder, self._backend, self._locks = folder, backend, locks
        self.progress = RunProgress(forecast)
        self._available: set[str] = set()  # outputs that are there
        self._tried: dict[Unit, int] = {}
        self._not_before: dict[Unit, float] = {}
        waiting = []
        for number, unit in enumerate(units, 1):
            checked(number)
            if unit.is_done(folder):
                self._note_there(unit)
            else:
                waiting.append(unit)
        needed = {name for unit in waiting for name in unit.inputs}
        wanted = [unit for unit in waiting if not unit.is_intermediate or needed.intersection(unit.outputs)]
        self.progress.waiting = sorted(wanted, key=forecast.rank)
        forecast.expect(wanted)

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
