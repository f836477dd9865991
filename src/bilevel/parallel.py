"""Work spread over the cores of this machine by joblib, or over a cluster by Ray.

Workers are new processes, because MuJoCo and torch do not survive a fork. They end with the process that started them,
also when that is killed, and leave Ctrl-C to it.
"""

from __future__ import annotations

import copy
import logging
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, TypeVar

from bilevel.symbolic.domain import BadInput

TO_START = 2.0  # seconds that a worker takes to start, with all that it imports
MOST_PER_CORE = 8  # workers: more only wait for each other

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerDied(BadInput):
    """A worker was killed, perhaps for want of memory; what it worked on can be tried again."""


def parallel(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None, cluster: str | None = None
) -> Generator[Result, None, None]:
    """Yield the result of the function for each item, in the order of the items.

    Each worker gets the function once, so an object with `__call__` may keep an environment between its items. Without
    a number of `workers`, the work begins in this process, and moves to a worker for each core if it takes long enough.
    A `cluster` is the address of a Ray cluster. What a worker raises is raised here; `WorkerDied` if it was killed.
    """
    import joblib

    items, cores = list(items), joblib.cpu_count()
    if workers is None and not cluster:
        began, total, left = time.perf_counter(), len(items), 0.0
        here = copy.copy(function)  # what it keeps between its items is not sent
        while items and (cores == 1 or left <= 2 * TO_START):
            yield here(items.pop(0))
            left = len(items) * (time.perf_counter() - began) / (total - len(items)) + 1e-9  # at the pace so far
    if cluster and items:
        yield from _on_cluster(_sent(function), items, workers, cluster)
    elif (number := min(workers or cores, len(items), MOST_PER_CORE * cores)) > 1:
        yield from _on_this_machine(_sent(function), items, number)
    else:
        yield from map(function, items)


def _on_this_machine(sent: Callable[[Item], Result], items: list[Item], workers: int) -> Iterator[Result]:
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    warnings.filterwarnings("ignore", "[0-9]+ tasks ", UserWarning)  # were begun, and their results are not wanted
    one_thread = {"inner_max_num_threads": 1, "initializer": _begin_worker, "initargs": (os.getpid(),)}
    try:
        with joblib.parallel_config("loky", **one_thread):
            pool = joblib.Parallel(workers, return_as="generator", batch_size=1, pre_dispatch=2 * workers)
        yield from pool(joblib.delayed(sent)(item) for item in items)
    except TerminatedWorkerError:
        raise WorkerDied("a worker process ended early, perhaps for want of memory") from None


def _on_cluster(sent: Callable[[Item], Result], items: list[Item], workers: int | None, to: str) -> Iterator[Result]:
    import ray
    from ray.exceptions import RayActorError
    from ray.util.multiprocessing import Pool

    try:
        ray.init(to, ignore_reinit_error=True, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise BadInput(f"no Ray cluster at '{to}': {str(error).splitlines()[0]}") from None
    try:
        with Pool(processes=workers) as pool:
            yield from pool.imap(sent, items, chunksize=1)
    except RayActorError:
        raise WorkerDied("a worker of the cluster ended early, perhaps for want of memory") from None


def _sent(function: Callable[[Item], Result]) -> Callable[[Item], Result]:
    """Return a function for other processes, each of which keeps one of it between its items."""
    import cloudpickle

    try:
        return partial(_call, cloudpickle.dumps(function))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        remedy = "use 1 worker, or name the task as file.py:task"
        raise BadInput(f"the work cannot be sent to other processes ({error}); {remedy}") from None


_loaded = lru_cache(maxsize=1)(pickle.loads)  # in a worker


def _call(function: bytes, item: Any) -> Any:
    return _loaded(function)(item)


def _begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end with it."""

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(2.0)  # for cleaning up
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # which cleans up: a planner must not be left
    threading.Thread(target=end_with_parent, daemon=True).start()
