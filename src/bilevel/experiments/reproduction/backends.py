"""What does the work: asked to start units, it says how they get on. Here by processes; see also `ray_backend`."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Protocol

from bilevel.experiments.reproduction.folder import ExperimentFolder
from bilevel.experiments.reproduction.units import Unit
from bilevel.files import remove_leftovers
from bilevel.processes import Worker, WorkerDied, stop_workers
from bilevel.symbolic.domain import BadInput


@dataclass(frozen=True)
class Advanced:
    """A unit says how far it is."""

    unit: Unit
    note: str


@dataclass(frozen=True)
class Finished:
    """What a unit makes is in the folder."""

    unit: Unit


@dataclass(frozen=True)
class Failed:
    """A unit raised something, or its process was killed."""

    unit: Unit
    error: str  # one line
    traceback: str = ""


Event = Advanced | Finished | Failed


class Backend(Protocol):
    """Processes here, or on a cluster."""

    @property
    def workers(self) -> int:
        """How many units it can do at the same time, as far as it knows now."""

    @property
    def gpu_slots(self) -> int:
        """How many of these may be units that use a GPU."""

    def start(self, unit: Unit) -> None:
        """Begin a unit; there is a worker for it."""

    def events(self, timeout: float) -> list[Event]:
        """Return what has happened; if nothing has, wait for so many seconds."""

    def close(self) -> None:
        """Stop whatever is being done."""


def failure(unit: Unit, error: BaseException) -> Failed:
    """Say what can be said of an error: one line, and for what no user can mend, where it happened."""
    if isinstance(error, BadInput):
        return Failed(unit, str(error))
    where = traceback.extract_tb(error.__traceback__)
    place = f" ({where[-1].filename.rpartition('/')[2]}, line {where[-1].lineno})" if where else ""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return Failed(unit, words + place, "".join(traceback.format_exception(error)))


class _UnitWorker(Worker):
    """A process that does units, one at a time."""

    def __init__(self, folder: ExperimentFolder, hide_gpu: bool) -> None:
        super().__init__(partial(_serve, folder, hide_gpu))
        self.unit: Unit | None = None  # that it is at, or was last


class Processes:
    """Workers are used again for further units, but for units that need a process of their own."""

    def __init__(self, folder: ExperimentFolder, workers: int, gpu_share: float = 0.0) -> None:
        """Training gets this share of a GPU; with none it uses the CPU, and comes to the same bits anywhere."""
        self.workers, self._folder, self._gpu_share = workers, folder, gpu_share
        self.gpu_slots = gpu_slots(gpu_share) if gpu_share else workers
        self._busy: dict[Connection, _UnitWorker] = {}
        self._idle: list[_UnitWorker] = []

    def start(self, unit: Unit) -> None:
        """Begin a unit, in a new process where it needs one of its own."""
        worker = self._free_worker(unit)
        worker.unit = unit
        self._busy[worker.connection] = worker
        worker.send(unit)

    def events(self, timeout: float) -> list[Event]:
        """Return what has happened; if nothing has, wait for so many seconds."""
        return [self._event(self._busy[ready]) for ready in wait(list(self._busy), timeout)]  # type: ignore[index]

    def close(self) -> None:
        """End all processes."""
        stop_workers([*self._busy.values(), *self._idle])
        self._busy, self._idle = {}, []

    def _free_worker(self, unit: Unit) -> _UnitWorker:
        self._idle = [worker for worker in self._idle if worker.is_alive]
        if self._idle and not unit.needs_own_process:
            return self._idle.pop()
        if self._idle and len(self._idle) + len(self._busy) >= self.workers:
            stop_workers([self._idle.pop()])
        return _UnitWorker(self._folder, hide_gpu=unit.is_training and not (self._gpu_share and unit.uses_gpu))

    def _event(self, worker: _UnitWorker) -> Event:
        assert worker.unit is not None
        died = False
        try:
            event: Event = worker.receive()
        except WorkerDied as death:
            event, died = Failed(worker.unit, str(death)), True
        if isinstance(event, Advanced):
            return event
        del self._busy[worker.connection]
        if died or worker.unit.needs_own_process:
            stop_workers([worker])
        else:
            self._idle.append(worker)
        return event


def gpu_slots(gpu_share: float) -> int:
    """Return how many units get such a share of one GPU at the same time."""
    return int(1 / gpu_share + 1e-9)


def _serve(folder: ExperimentFolder, hide_gpu: bool, connection: Connection) -> None:
    """Do the units that come, and say how they get on."""
    if hide_gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    while True:
        unit: Unit = connection.recv()
        try:
            for name in unit.outputs:
                remove_leftovers(folder.path / name)
            unit.perform(folder, lambda note, unit=unit: connection.send(Advanced(unit, note)))  # type: ignore[misc]
        except (EOFError, BrokenPipeError, ConnectionError):
            raise
        except Exception as error:
            connection.send(failure(unit, error))
        else:
            connection.send(Finished(unit))
