"""The back-end of one machine: a process for each core that is given, spawned, not forked."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from bilevel.experiments.reproduction.backends import Event, Failed, Finished, Told, failure
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.unit import Unit
from bilevel.processes import end_with_first_process, see_off, spawn

MOST_UNITS = 60  # that a process does: its memory grows a little with each world that it makes


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    unit: Unit | None = None
    done: int = 0  # units


class Processes:
    """Workers are kept for further units, but for units that are to be alone in their process."""

    def __init__(self, kept: Kept, workers: int, gpu_share: float = 0.0) -> None:
        """Units that train get this share of a GPU; with none they use the CPU, and come to the same bits anywhere."""
        self.workers, self._kept, self._gpu_share = workers, kept, gpu_share
        self._most_on_gpu = int(1 / gpu_share + 1e-9) if gpu_share else workers
        self._team: list[_Worker] = []

    def has_room(self, unit: Unit) -> bool:
        busy = [worker.unit for worker in self._team if worker.unit]
        on_gpu = sum(other.likes_gpu for other in busy)
        return len(busy) < self.workers and not (unit.likes_gpu and on_gpu >= self._most_on_gpu)

    def start(self, unit: Unit) -> None:
        for worker in [worker for worker in self._team if not (worker.unit or worker.process.is_alive())]:
            self._dismiss(worker)  # it was killed when it had nothing to do
        idle = [worker for worker in self._team if worker.unit is None]
        if unit.is_alone or not idle:
            if len(self._team) >= self.workers:
                self._dismiss(idle[0])
            self._team.append(worker := self._hire(unit))
        else:
            worker = idle[0]
        worker.unit = unit
        with suppress(BrokenPipeError):  # it died; its events will say so
            worker.connection.send(unit)

    def events(self, timeout: float) -> list[Event]:
        busy = {worker.connection: worker for worker in self._team if worker.unit}
        ready = wait(list(busy), timeout)
        return [event for connection, worker in busy.items() if connection in ready for event in self._heard(worker)]

    def close(self) -> None:
        team, self._team = self._team, []
        for worker in team:
            worker.process.terminate()
        for worker in team:
            see_off(worker.process)
            worker.connection.close()

    def _hire(self, unit: Unit) -> _Worker:
        hide_gpu = unit.is_training and not (self._gpu_share and unit.likes_gpu)
        return _Worker(*spawn(partial(_serve, self._kept, hide_gpu)))

    def _dismiss(self, worker: _Worker) -> None:
        self._team.remove(worker)
        worker.process.terminate()
        see_off(worker.process)
        worker.connection.close()

    def _heard(self, worker: _Worker) -> list[Event]:
        assert worker.unit is not None
        try:
            event: Event = worker.connection.recv()
        except (EOFError, ConnectionError):
            worker.process.join()
            event = Failed(
                worker.unit,
                f"its process ended early (exit code {worker.process.exitcode}), perhaps for want of memory",
            )
            self._dismiss(worker)
            return [event]
        if not isinstance(event, Told):
            worker.done += 1
            if worker.unit.is_alone or worker.done >= MOST_UNITS:
                self._dismiss(worker)
            worker.unit = None
        return [event]


def _serve(kept: Kept, hide_gpu: bool, connection: Connection) -> None:
    """Do units for as long as there is somebody to do them for."""
    end_with_first_process()
    if hide_gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    with suppress(EOFError, ConnectionError):
        while True:
            unit: Unit = connection.recv()
            try:
                unit.perform(kept, lambda note, unit=unit: connection.send(Told(unit, note)))  # type: ignore[misc]
            except (EOFError, ConnectionError):
                raise
            except Exception as error:
                connection.send(failure(unit, error))
            else:
                connection.send(Finished(unit))
