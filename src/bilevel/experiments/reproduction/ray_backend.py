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
from typing import Any

from bilevel.experiments.reproduction.backends import Advanced, Event, Failed, failure, gpu_slots
from bilevel.experiments.reproduction.folder import ExperimentFolder
from bilevel.experiments.reproduction.ray_worker import (
    Message,
    OtherVersions,
    RemoteWorker,
    read_files,
    versions_here,
    write_files,
)
from bilevel.experiments.reproduction.units import Unit
from bilevel.symbolic.domain import BadInput

INSTALL = "pip install 'bilevel[cluster]'"
START = "`ray start --head` starts one"
LOST = "its worker was lost: the process or its node ended, perhaps for want of memory"
PATIENCE = 5.0  # seconds
BEFOREHAND = {  # what Ray looks for when it is imported
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # else it takes a quarter of an hour to find that nobody answers
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # else what happens to workers is printed on standard output
}


@dataclass(frozen=True)
class _Actor:
    worker: Any  # the handle of a `RemoteWorker`
    gpu_share: float


class RayCluster:
    """An actor takes the next unit, if there is one just then; else it gives its core back."""

    def __init__(self, folder: ExperimentFolder, address: str, workers: int | None, gpu_share: float) -> None:
        """By default a worker for each core of the cluster. Training gets this share of a GPU."""
        self._folder, self._wanted, self._gpu_share = folder, workers, gpu_share
        self._ray = connect(address)
        self._busy: dict[Any, tuple[_Actor, Unit]] = {}  # by the reference of a `Message` to come
        self._idle: list[_Actor] = []
        self._events: list[Event] = []
        if gpu_share and not self._resource("GPU"):
            self._ray.shutdown()
            raise BadInput("--gpu-share: the cluster has no GPU; leave it out to train on CPUs")

    @property
    def workers(self) -> int:
        """How many units it can do at the same time: one for each core of the cluster, or as many as were asked for."""
        return self._wanted or max(self._resource("CPU"), 1)

    @property
    def gpu_slots(self) -> int:
        """How many of these may be units that use a GPU."""
        return self._resource("GPU") * gpu_slots(self._gpu_share) if self._gpu_share else self.workers

    def start(self, unit: Unit) -> None:
        """Send a unit, with the files that it needs, to a worker of the cluster."""
        with _connected():
            actor = self._free_actor(self._gpu_share if unit.uses_gpu else 0.0)
            files = read_files(self._folder.path, [*unit.inputs, *unit.unfinished, *unit.outputs])
            self._busy[actor.worker.begin.remote(unit, files)] = actor, unit
        self._events.append(Advanced(unit, "waiting for a core of the cluster"))

    def events(self, timeout: float) -> list[Event]:
        """Return what has happened; if nothing has, wait for so many seconds."""
        events, self._events = self._events, []
        while self._idle:  # the driver has started all that it can; Ray ends an actor that nobody knows any more
            self._idle.pop().worker.stop.remote()
        if self._busy:
            with _connected():
                self._ray.wait(list(self._busy), timeout=0 if events else timeout)
                ready, _ = self._ray.wait(list(self._busy), num_returns=len(self._busy), timeout=0)
            events += [event for answer in ready if (event := self._receive(answer))]
        elif not events:
            time.sleep(timeout)
        return events

    def close(self) -> None:
        """Leave the cluster, which goes on without us, and ends what is left of ours."""
        actors = [actor for actor, _ in self._busy.values()] + self._idle
        with suppress(Exception):
            if stopping := [actor.worker.stop.remote() for actor in actors]:
                self._ray.wait(stopping, num_returns=len(stopping), timeout=PATIENCE)
        self._busy, self._idle = {}, []
        self._ray.shutdown()

    def _resource(self, name: str) -> int:
        """Ask how much of something the cluster has now: it grows and shrinks."""
        with _connected():
            return int(self._ray.cluster_resources().get(name, 0))

    def _free_actor(self, share: float) -> _Actor:
        for actor in self._idle:
            if actor.gpu_share == share:
                self._idle.remove(actor)
                return actor
        remote = self._ray.remote(num_cpus=1, num_gpus=share, max_restarts=0, max_task_retries=0)(RemoteWorker)
        return _Actor(remote.remote(self._folder.experiment, share, versions_here()), share)

    def _receive(self, answer: Any) -> Event | None:
        actor, unit = self._busy.pop(answer)
        try:
            message: Message = self._ray.get(answer)
            write_files(self._folder.path, message.files, message.removed)
        except Exception as error:  # go on without a worker that does not answer, or not well
            with suppress(Exception):
                self._ray.kill(actor.worker)
            return explain(unit, error)
        if message.is_last:
            self._idle.append(actor)
        else:
            self._busy[actor.worker.news.remote()] = actor, unit
        return message.event


def explain(unit: Unit, error: Exception) -> Failed:
    """Say why there is no answer; `BadInput` where there never will be one, as the cluster is not set up for us."""
    cause = getattr(error, "cause", None)  # what was raised there
    if isinstance(cause, OtherVersions):
        raise OtherVersions(str(cause)) from None
    if "No module named 'bilevel" in str(error):
        raise BadInput("a node of the cluster lacks bilevel; install the same version of it on all nodes") from None
    if isinstance(cause, Exception) or isinstance(error, BadInput):
        return replace(failure(unit, cause or error), traceback=str(error))
    return Failed(unit, LOST, str(error))


def connect(address: str) -> Any:
    """Return Ray, connected to a cluster that runs; one is never started."""
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
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
