"""Spreading work over processes that can be interrupted, or killed, at any time.

Processes are spawned, not forked, because MuJoCo does not survive a fork. Each has a pipe of its own to this one: a
process whose pipe breaks has died. A process whose first process is gone has nobody left to work for, and ends at once,
whatever it is at.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from bilevel.symbolic.domain import BadInput

PATIENCE = 2.0  # seconds

Result = TypeVar("Result")
Work = Callable[[int], Result]


class WorkerDied(BadInput):
    """It did not fail: it was killed. What it worked on can be tried again."""


def spread(start: Callable[[], Work[Result]], items: Sequence[int], workers: int) -> Generator[Result, None, None]:
    """The results of all items, in no fixed order. `start`, run once in each process, gives what does the work.

    `BadInput` in a worker is raised here. However it ends, the workers end with it; close it to make sure.
    """
    if min(workers, len(items)) <= 1:
        if items:
            yield from map(start(), items)
        return
    team = [spawn(partial(_serve, start)) for _ in range(min(workers, len(items)))]
    try:
        yield from _hand_out({connection: process for process, connection in team}, list(items))
    finally:
        for process, _ in team:
            process.terminate()
        for process, connection in team:
            see_off(process)
            connection.close()


def in_order(results: Iterable[tuple[int, Result]], begin: int = 0) -> Iterator[Result]:
    """Results that come with their numbers, in the order of these: one that comes early waits for those before it."""
    early: dict[int, Result] = {}
    following = begin
    for number, result in results:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


def spawn(serve: Callable[[Connection], None]) -> tuple[SpawnProcess, Connection]:
    """A process that serves whoever is at the other end of a pipe.

    It never sees Ctrl-C, which reaches all of them: only the first answers it, and ends the others.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    resource_tracker.ensure_running()  # which lets Ctrl-C through when it starts
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which a new process inherits
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    theirs.close()  # so that ours breaks when the process dies
    return process, ours


def see_off(process: SpawnProcess) -> None:
    """Wait for a process that was told to end, and end one that does not: Python may lose what a signal raises."""
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()


def _hand_out(team: dict[Connection, SpawnProcess], items: list[int]) -> Iterator[Any]:
    """An item to each worker, then another to whichever has a result."""
    waiting = items[::-1]
    busy = [connection for connection in team if _give(connection, waiting)]
    while busy:
        for connection in wait(busy):
            assert isinstance(connection, Connection)
            busy.remove(connection)
            result = _result(connection, team[connection])
            if _give(connection, waiting):
                busy.append(connection)
            yield result


def _give(connection: Connection, waiting: list[int]) -> bool:
    if waiting:
        try:
            connection.send(waiting[-1])
        except BrokenPipeError:  # it died; its answer will say so
            return True
        waiting.pop()
        return True
    return False


def _result(connection: Connection, process: SpawnProcess) -> Any:
    try:
        result = connection.recv()
    except (EOFError, ConnectionError):
        process.join()
        raise WorkerDied(
            f"a worker process ended early (exit code {process.exitcode}), perhaps for want of memory"
        ) from None
    if isinstance(result, BadInput):
        raise result
    return result


def _serve(start: Callable[[], Work[Result]], connection: Connection) -> None:
    """Work for as long as there is somebody to work for; when told to end, clean up."""
    end_with_first_process()
    with suppress(EOFError, ConnectionError):
        try:
            work = start()
            while True:
                connection.send(work(connection.recv()))
        except BadInput as error:
            connection.send(error)


def end_with_first_process() -> None:
    """From now on this process ends, cleaning up, when it is told to, or the one that spawned it is gone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_wait_for_its_end, daemon=True).start()


def _wait_for_its_end() -> None:
    """Then have this process clean up and end: its planner, say, must not be left behind."""
    first, main_thread = parent_process(), threading.main_thread().ident
    assert first is not None
    assert main_thread is not None
    first.join()
    signal.pthread_kill(main_thread, signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(1)  # for a process that does not: Python may lose what a signal raises
