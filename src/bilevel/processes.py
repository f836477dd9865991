"""Spreading work over processes that can be interrupted, or killed, at any time.

Processes are new ones, not forked, because MuJoCo and torch do not survive a fork. `concurrent.futures` would leave
workers behind when the first process is killed, and would end all of them when one dies; here, each worker has a pipe
of its own, which breaks when it dies, and ends by itself when the first process is gone. `multiprocessing` shows a
traceback where the first process dies while a worker starts, so that is done here.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from multiprocessing import Pipe, process, spawn
from multiprocessing.connection import Connection, wait
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import Any, TypeVar

from bilevel.memory import LACKING, lacks_memory
from bilevel.symbolic.domain import BadInput

PATIENCE = 2.0  # seconds
TO_START = 2.0  # seconds that a process takes to start, with all that it imports
WORTH_SPREADING = 2 * TO_START  # seconds of work
CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")
MOST_PER_CORE = 8  # workers: more only wait for each other
# A worker has a core. Libraries that would use them all make workers wait for each other; a user may say otherwise.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

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
    waiting = iter(items)
    first = list(islice(waiting, max(1, min(workers, MOST_PER_CORE * usable_cores()))))
    if len(first) <= 1:
        if first:
            yield from map(start(), chain(first, waiting))
        return
    team: list[Worker] = []
    try:
        for item in first:
            team.append(worker := Worker(partial(_work, start)))
            worker.send(item)
        busy = {worker.connection: worker for worker in team}
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                result = busy[connection].receive()
                if isinstance(result, BadInput):
                    raise result
                following = next(waiting, None)
                if following is None:
                    del busy[connection]
                else:
                    busy[connection].send(following)
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
    """A new process that runs `serve` with its end of a pipe; the other end is `connection`.

    It never sees Ctrl-C, which reaches all processes of a terminal: only the first answers it, and stops the others.
    """

    def __init__(self, serve: Callable[[Connection], None]) -> None:
        prepared = spawn.get_preparation_data("worker")  # where to find what `serve` is made of
        prepared["authkey"] = bytes(prepared["authkey"])
        self.connection, theirs = Pipe()
        first, self._first = os.pipe()  # which breaks when this process dies
        code = f"import sys; sys.path[:] = {sys.path!r}; from bilevel.processes import _main"
        command = [sys.executable, "-c", f"{code}; _main({theirs.fileno()}, {first})"]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which a new process inherits
        try:
            environment = {**ONE_THREAD, **os.environ}
            self.process = Popen(command, stdin=DEVNULL, pass_fds=(theirs.fileno(), first), env=environment)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()  # so that ours breaks when the process dies
            os.close(first)
        try:
            self.send(prepared)
            self.send(serve)
        except BaseException:
            stop_workers([self])
            raise

    @property
    def is_alive(self) -> bool:
        """Return whether the process is still there."""
        return self.process.poll() is None

    def send(self, message: object) -> None:
        """Send it; where the process has died, `receive` will say so."""
        with suppress(BrokenPipeError, ConnectionError):
            self.connection.send(message)

    def receive(self) -> Any:
        """Return what the process sends next; `WorkerDied` where it has ended instead."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            number, code = self.process.pid, self.process.wait()
            raise WorkerDied(
                f"a worker process ended early (process {number}, exit code {code}), perhaps for want of memory"
            ) from None

    def close(self) -> None:
        """Close our ends of what connects us with the process."""
        self.connection.close()
        os.close(self._first)


def stop_workers(workers: Sequence[Worker]) -> None:
    """End these processes, all at the same time, and wait until they have ended."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        try:
            worker.process.wait(PATIENCE)
        except TimeoutExpired:  # Python may lose what a signal raises
            worker.process.kill()
            worker.process.wait()
        worker.close()


def _main(connection: int, first: int) -> None:
    """Be a worker: serve until nobody is at the other end of the pipe; the first process lives while `first` is open.

    This process cleans up and ends when it is told to, or left alone, and says nothing of that.
    """
    sys.unraisablehook = lambda lost: None if lost.exc_type is SystemExit else sys.__unraisablehook__(lost)
    told = threading.Event()

    def end(*_: object) -> None:
        told.set()
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_end_with_first_process, args=(first,), daemon=True).start()
    pipe: Connection[Any, Any] = Connection(connection)
    try:
        prepared = pipe.recv()
        process.current_process()._inheriting = True  # type: ignore[attr-defined]  # it must not start others yet
        spawn.prepare(prepared)
        serve: Callable[[Connection], None] = pipe.recv()
        del process.current_process()._inheriting  # type: ignore[attr-defined]
        serve(pipe)
    except (EOFError, OSError):
        return
    except Exception:
        if not told.is_set():
            raise
        sys.exit(1)  # of which a library has made another error, while it cleaned up


def _end_with_first_process(first: int) -> None:
    """Wait for its end, then have this process clean up and end: its planner, say, must not be left behind."""
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    os.read(first, 1)
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
    except Exception as error:
        if not lacks_memory(error):
            raise
        connection.send(BadInput(LACKING))
