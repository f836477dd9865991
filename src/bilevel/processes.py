"""Spreading work over processes that can be interrupted, or killed, at any time.

Processes are spawned, not forked, because MuJoCo and torch do not survive a fork. `concurrent.futures` would leave
workers behind when the first process is killed, and would end all of them when one dies; here, each worker has a pipe
of its own, which breaks when it dies, and ends by itself when the first process is gone.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from bilevel.symbolic.domain import BadInput

PATIENCE = 2.0  # seconds
TO_START = 2.0  # seconds that a process takes to start, with all that it imports
WORTH_SPREADING = 2 * TO_START  # seconds of work
CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")

Result = TypeVar("Result")
Work = Callable[[int], Result]


class WorkerDied(BadInput):
    """It did not fail: it was killed. What it worked on can be tried again."""


def usable_cores() -> int:
    """Return how many cores this process may use: by its affinity and, in a container, by the limit of its group."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux knows
        cores = os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or no limit: "max 100000"
        quota, period = map(int, CPU_LIMIT.read_text(encoding="ascii").split())
        cores = min(cores, max(quota // period, 1))
    return cores


def spread(
    start: Callable[[], Work[Result]], items: Sequence[int], workers: int | None
) -> Generator[Result, None, None]:
    """Yield the results of all items, in no fixed order. `start`, run once in each process, gives what does the work.

    Without a number of `workers` there are as many as this process may use cores, where there is enough to do.
    `BadInput` in a worker is raised here. However it ends, the workers end with it; close it to make sure.
    """
    if workers is None:
        yield from _spread_what_takes_long(start, items)
        return
    workers = min(workers, len(items))
    if workers <= 1:
        if items:
            yield from map(start(), items)
        return
    team = [Worker(partial(_work, start)) for _ in range(workers)]
    busy, waiting = {worker.connection: worker for worker in team}, deque(items)
    try:
        for worker in team:
            worker.send(waiting.popleft())
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                result = busy[connection].receive()
                if isinstance(result, BadInput):
                    raise result
                if waiting:
                    busy[connection].send(waiting.popleft())
                else:
                    del busy[connection]
                yield result
    finally:
        stop_workers(team)


def _spread_what_takes_long(start: Callable[[], Work[Result]], items: Sequence[int]) -> Generator[Result, None, None]:
    """Begin in this process; start others as soon as what is left would take far longer than they take to start."""
    cores, spent, left, done = usable_cores(), 0.0, 0.0, 0
    work = start() if items else None
    while work and done < len(items) and (done == 0 or cores == 1 or left < WORTH_SPREADING):
        began = time.perf_counter()
        result = work(items[done])
        done, spent = done + 1, spent + time.perf_counter() - began
        left = (len(items) - done) * spent / done
        yield result
    del work
    yield from spread(start, items[done:], min(cores, math.ceil(left / TO_START)))


def in_order(results: Iterable[tuple[int, Result]], begin: int = 0) -> Iterator[Result]:
    """Yield results that come with their numbers in the order of these: one that is early waits for those before it."""
    early: dict[int, Result] = {}
    following = begin
    for number, result in results:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


class Worker:
    """A spawned process that runs `serve` with its end of a pipe; the other end is `connection`.

    It never sees Ctrl-C, which reaches all processes of a terminal: only the first answers it, and stops the others.
    """

    def __init__(self, serve: Callable[[Connection], None]) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(serve, theirs), daemon=True)
        resource_tracker.ensure_running()  # which lets Ctrl-C through when it starts
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which a new process inherits
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()  # so that ours breaks when the process dies

    def send(self, message: object) -> None:
        """Send it; where the process has died, `receive` will say so."""
        with suppress(BrokenPipeError):
            self.connection.send(message)

    def receive(self) -> Any:
        """Return what the process sends next; `WorkerDied` where it has ended instead."""
        try:
            return self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise WorkerDied(
                f"a worker process ended early (exit code {self.process.exitcode}), perhaps for want of memory"
            ) from None


def stop_workers(workers: Sequence[Worker]) -> None:
    """End these processes, all at the same time, and wait until they have ended."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join(PATIENCE)
        if worker.process.is_alive():  # Python may lose what a signal raises
            worker.process.kill()
            worker.process.join()
        worker.connection.close()


def _serve(serve: Callable[[Connection], None], connection: Connection) -> None:
    """Serve until nobody is at the other end; this process cleans up and ends when it is told to, or left alone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_end_with_first_process, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        serve(connection)


def _end_with_first_process() -> None:
    """Wait for its end, then have this process clean up and end: its planner, say, must not be left behind."""
    first, main_thread = parent_process(), threading.main_thread().ident
    assert first is not None
    assert main_thread is not None
    first.join()
    signal.pthread_kill(main_thread, signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(1)  # for a process that does not: Python may lose what a signal raises


def _work(start: Callable[[], Work[Result]], connection: Connection) -> None:
    """Answer each item with its result, and `BadInput` with itself."""
    try:
        work = start()
        while True:
            connection.send(work(connection.recv()))
    except BadInput as error:
        connection.send(error)
