"""The back-end of many machines: a Ray cluster that somebody runs already.

A worker is an actor with a core of its own. It is asked again and again how its unit gets on, and answers with the
files that are new, so nodes need not see the folder. It does the unit in a process like those of one machine.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bilevel.experiments.reproduction.backends import Event, Failed, Told, failure
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.shipping import Misfit, Parcel, Workplace, pack, unpack, versions_here
from bilevel.experiments.reproduction.unit import Unit
from bilevel.symbolic.domain import BadInput

INSTALL = "pip install 'bilevel[ray]'"
START = "`ray start --head` starts one"
LOST = "its worker was lost: the process or its node ended, perhaps for want of memory"
LOOKED_AFTER = 10.0  # seconds after which the size of the cluster is asked for again
KEPT_IDLE = 30.0  # seconds after which a worker without work gives its core back
PATIENCE = 5.0  # seconds
BEFOREHAND = {  # what Ray looks for when it is imported
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # else it takes a quarter of an hour to find that nobody answers
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # else what happens to workers is printed on standard output
}


@dataclass(eq=False)
class _Worker:
    place: Any  # the handle of a `Workplace`
    gpu_share: float
    unit: Unit | None = None
    answer: Any = None  # the reference of a `Parcel` to come
    has_begun: bool = False  # with its unit
    idle_since: float | None = None  # if it has done one before


class RayCluster:
    """Workers are kept for further units, as long as there are some."""

    def __init__(self, kept: Kept, address: str, workers: int | None, gpu_share: float) -> None:
        """By default a worker for each core of the cluster. Units that train get this share of a GPU."""
        self._kept, self._wanted, self._gpu_share = kept, workers, gpu_share
        self._ray = connect(address)
        self._team: list[_Worker] = []
        self._told: list[Event] = []
        self._shared: dict[Path, Any] = {}  # references to what several units read
        self._cores, self._gpus, self._looked = 0, 0, -LOOKED_AFTER
        self._look()
        if gpu_share and not self._gpus:
            self._ray.shutdown()
            raise BadInput("--gpu-share: the cluster has no GPU; leave it out to train on CPUs")

    @property
    def workers(self) -> int:
        self._look()
        return self._wanted or max(self._cores, 1)

    def has_room(self, unit: Unit) -> bool:
        busy = [worker.unit for worker in self._team if worker.unit]
        most_on_gpu = self._gpus * int(1 / self._gpu_share + 1e-9) if self._gpu_share else self.workers
        on_gpu = sum(other.likes_gpu for other in busy)
        return len(busy) < self.workers and not (unit.likes_gpu and on_gpu >= most_on_gpu)

    def start(self, unit: Unit) -> None:
        share = self._gpu_share if unit.likes_gpu else 0.0
        idle = [worker for worker in self._team if worker.unit is None]
        fitting = [worker for worker in idle if worker.gpu_share == share]
        with _connected():
            if not fitting and len(self._team) >= self.workers and idle:
                self._dismiss(idle[0])
            worker = fitting[0] if fitting else self._hire(share)
            worker.unit, worker.has_begun = unit, False
            worker.answer = worker.place.begin.remote(unit, *self._inputs(unit))
        self._told.append(Told(unit, "waiting for a core of the cluster"))

    def events(self, timeout: float) -> list[Event]:
        told, self._told = self._told, []
        busy = {worker.answer: worker for worker in self._team if worker.unit}
        if busy:
            with _connected():
                self._ray.wait(list(busy), timeout=0 if told else timeout)
                ready, _ = self._ray.wait(list(busy), num_returns=len(busy), timeout=0)
            told += [event for answer in ready for event in self._heard(busy[answer])]
        elif not told:
            time.sleep(timeout)
        self._dismiss_idle()
        return told

    def close(self) -> None:
        """The cluster goes on without us."""
        team, self._team = self._team, []
        with suppress(Exception):
            leaving = [worker.place.leave.remote() for worker in team]
            if leaving:
                self._ray.wait(leaving, num_returns=len(leaving), timeout=PATIENCE)
        for worker in team:
            with suppress(Exception):
                self._ray.kill(worker.place)
        self._shared.clear()
        self._ray.shutdown()

    def _look(self) -> None:
        """Clusters grow and shrink."""
        if time.monotonic() - self._looked >= LOOKED_AFTER:
            with _connected():
                resources = self._ray.cluster_resources()
            self._cores, self._gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
            self._looked = time.monotonic()

    def _hire(self, share: float) -> _Worker:
        actor = self._ray.remote(num_cpus=1, num_gpus=share, max_restarts=0, max_task_retries=0)(Workplace)
        self._team.append(worker := _Worker(actor.remote(self._kept.experiment, share, versions_here()), share))
        return worker

    def _dismiss(self, worker: _Worker) -> None:
        """Ray ends an actor that nobody knows any more, once it has done what it was asked to."""
        self._team.remove(worker)
        worker.place.leave.remote()

    def _dismiss_idle(self) -> None:
        for worker in list(self._team):
            if worker.unit is None and worker.idle_since and time.monotonic() - worker.idle_since > KEPT_IDLE:
                self._dismiss(worker)

    def _inputs(self, unit: Unit) -> Iterator[Any]:
        """What it only reads is stored in the cluster once for all units that read it while others do."""
        sources, products = unit.sources(self._kept), unit.products(self._kept)
        read = [path for path in sources if path not in products]
        used = {path for worker in self._team if worker.unit for path in worker.unit.sources(self._kept)}
        self._shared = {path: stored for path, stored in self._shared.items() if path in used}
        for path in read:
            if path not in self._shared:
                self._shared[path] = self._ray.put(pack(self._kept, [path]))
            yield self._shared[path]
        yield pack(self._kept, [path for path in sources if path in products])

    def _heard(self, worker: _Worker) -> list[Event]:
        assert worker.unit is not None
        try:
            parcel: Parcel = self._ray.get(worker.answer)
            unpack(self._kept, parcel.files, parcel.removed)
        except Exception as error:
            return self._without(worker, worker.unit, error)
        worker.has_begun = True
        if parcel.is_last:
            worker.unit, worker.answer, worker.idle_since = None, None, time.monotonic()
        else:
            worker.answer = worker.place.news.remote()
        return list(parcel.events)

    def _without(self, worker: _Worker, unit: Unit, error: Exception) -> list[Event]:
        """Go on without a worker that does not answer, or not well."""
        self._team.remove(worker)
        with suppress(Exception):
            self._ray.kill(worker.place)
        failed = explained(unit, error)
        if failed.error == LOST and worker.idle_since and not worker.has_begun:  # it died when it had nothing to do
            self.start(unit)
            return []
        return [failed]


def explained(unit: Unit, error: Exception) -> Failed:
    """Why there is no answer; `BadInput` where there never will be one, as the cluster is not set up for us."""
    cause = getattr(error, "cause", None)  # what was raised there
    if isinstance(cause, Misfit):
        raise Misfit(str(cause)) from None
    if "No module named 'bilevel" in str(error):
        raise BadInput("a node of the cluster lacks bilevel; install the same version of it on all nodes") from None
    if isinstance(cause, Exception) or isinstance(error, BadInput):
        return replace(failure(unit, cause or error), traceback=str(error))
    return Failed(unit, LOST, str(error))


def connect(address: str) -> Any:
    """Ray, connected to a cluster that runs; one is never started."""
    os.environ.update(BEFOREHAND)
    try:
        import ray
    except ImportError:
        raise BadInput(f"--backend ray needs Ray, which is not installed; {INSTALL}") from None
    _require_listener(address)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with _silence():
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:
        raise BadInput(f"--address {address}: {_reason(address, error)}") from None
    finally:
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGTERM, handler)  # Ray sets its own
    return ray


def _require_listener(address: str) -> None:
    """Quickly find that nobody is there, which Ray does slowly."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    if not port.isdecimal() or not host or "/" in host:
        raise BadInput(f"--address {address}: neither auto, nor like 10.0.0.1:6379, nor like ray://10.0.0.1:10001")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"--address {address}: no Ray cluster answers there: {reason}; {START}") from None


def _reason(address: str, error: Exception) -> str:
    words = " ".join(str(error).split())
    if "ersion mismatch" in words:
        return f"the cluster runs on other versions: {words}"
    if "ray[client]" in words:
        return f"addresses with ray:// need more of Ray; {INSTALL}"
    if address == "auto":
        return f"no Ray cluster runs on this machine; {START}"
    return f"no Ray cluster can be used from there: {words[:300]}"


@contextmanager
def _connected() -> Iterator[None]:
    """`BadInput` where the cluster is there no more."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        raise BadInput(
            f"the connection to the Ray cluster is lost: {words}; run the same command again to go on"
        ) from None


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what Ray's libraries write past Python from the terminal."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
