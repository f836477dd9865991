"""Work spread over the cores of this machine by joblib, or over a cluster by Ray.

Workers are new processes, because MuJoCo and torch do not survive a fork. They end with the process that started them,
also when that is killed, and leave Ctrl-C to it.
"""

from __future__ import annotations

import copy
import logging
import os
import pickle
import secrets
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from bilevel.symbolic.domain import BadInput

TO_START = 2.0  # seconds that a worker takes to start, with all that it imports
MOST_PER_CORE = 8  # workers: more only wait for each other
LOOK_EVERY = 0.5  # seconds after which a worker looks whether its parent is still there
PATIENCE = 2.0  # seconds that a worker whose parent is gone has to clean up

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerDied(BadInput):
    """A worker was killed, perhaps for want of memory; what it worked on can be tried again."""


def parallel(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int | None = None,
    cluster: str | None = None,
) -> Generator[Result, None, None]:
    """Yield the result of the function for each item as it comes, in no fixed order.

    Each worker gets the function once, so an object with `__call__` may keep an environment between its items. Without
    a number of `workers`, the work begins in this process, and moves to a worker for each core if it takes long enough.
    A `cluster` is the address of a Ray cluster. What a worker raises is raised here; `WorkerDied` if it was killed.
    """
    import joblib

    items = list(items)
    if cluster is not None:
        yield from _on_cluster(_Sent(function), items, workers, cluster)
        return
    if workers is None:
        began, done, cores = time.perf_counter(), 0, joblib.cpu_count()
        here = copy.copy(function)  # what it keeps between its items is not sent
        while done < len(items) and (done == 0 or cores == 1 or _left(began, done, len(items)) < 2 * TO_START):
            yield here(items[done])
            done += 1
        items, workers = items[done:], cores
    workers = min(workers, len(items), MOST_PER_CORE * joblib.cpu_count())
    if workers <= 1:
        yield from map(function, items)
    else:
        yield from _on_this_machine(_Sent(function), items, workers)


def _left(began: float, done: int, total: int) -> float:
    """Return the seconds that the rest will take at the pace so far."""
    return (total - done) * (time.perf_counter() - began) / done


def _on_this_machine(sent: _Sent[Item, Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    warnings.filterwarnings("ignore", "[0-9]+ tasks ", UserWarning)  # and are not wanted
    one_thread = {"inner_max_num_threads": 1, "initializer": _begin_worker, "initargs": (os.getpid(),)}
    try:
        with joblib.parallel_config("loky", **one_thread):
            pool = joblib.Parallel(workers, return_as="generator_unordered", batch_size=1, pre_dispatch=2 * workers)
        yield from pool(joblib.delayed(sent)(item) for item in items)
    except TerminatedWorkerError:
        raise WorkerDied("a worker process ended early, perhaps for want of memory") from None


def _on_cluster(
    sent: _Sent[Item, Result], items: Sequence[Item], workers: int | None, address: str
) -> Iterator[Result]:
    import ray
    from ray.exceptions import RayActorError
    from ray.util.multiprocessing import Pool

    try:
        ray.init(address, ignore_reinit_error=True, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise BadInput(f"no Ray cluster at '{address}': {str(error).splitlines()[0]}") from None
    try:
        with Pool(processes=workers) as pool:
            yield from pool.imap_unordered(sent, items, chunksize=1)
    except RayActorError:
        raise WorkerDied("a worker of the cluster ended early, perhaps for want of memory") from None


_KEPT: dict[str, Callable[[Any], Any]] = {}  # in a worker: the function that it was sent last, by its name


class _Sent(Generic[Item, Result]):
    """A function on its way to workers, pickled once, and unpickled once in each of them."""

    def __init__(self, function: Callable[[Item], Result]) -> None:
        import cloudpickle

        try:
            self._data: bytes = cloudpickle.dumps(function)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            remedy = "use 1 worker, or name the task as file.py:task"
            raise BadInput(f"the work cannot be sent to other processes ({error}); {remedy}") from None
        self._name = secrets.token_hex(8)

    def __call__(self, item: Item) -> Result:
        if self._name not in _KEPT:
            _KEPT.clear()
            _KEPT[self._name] = pickle.loads(self._data)
        result: Result = _KEPT[self._name](item)
        return result


def _begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # which cleans up: a planner must not be left
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(1)


def in_order(results: Iterable[tuple[int, Result]], begin: int = 0) -> Iterator[Result]:
    """Yield results that come with their numbers in the order of these: one that is early waits for those before it."""
    early: dict[int, Result] = {}
    following = begin
    for number, result in results:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1
