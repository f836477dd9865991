"""Work spread over processes: all of it is done, trouble in a worker comes out here, and no worker is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import joblib
import pytest

from bilevel import parallel as module
from bilevel.parallel import WorkerDied, parallel
from bilevel.symbolic.domain import BadInput

SLEEPER = """
import os, sys, time
from bilevel.parallel import parallel

def sleep(item):
    print(os.getpid(), flush=True)
    time.sleep(60)

try:
    list(parallel(sleep, range(4), 2))
except KeyboardInterrupt:
    sys.exit(130)
"""


class Counting:
    """Counts in each process how often it was called, as one does that keeps an environment."""

    def __init__(self) -> None:
        self.calls = 0
        self.environment: object = None

    def __call__(self, item: int) -> tuple[int, int, int]:
        self.calls += 1
        self.environment = threading.Lock()  # which cannot be sent to another process
        return item, os.getpid(), self.calls


@pytest.mark.parametrize("workers", [None, 1, 2, 10**30])
def test_every_item_is_worked_on_once_by_functions_that_are_kept(workers: int | None) -> None:
    found = list(parallel(Counting(), range(7), workers))
    assert [item for item, _, _ in found] == list(range(7))
    calls = [(process, call) for _, process, call in found]
    assert len(set(calls)) == 7, "each process has one function, which counts on"


def test_long_work_moves_to_workers_and_short_work_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {process for _, process, _ in parallel(Counting(), range(5))} == {os.getpid()}
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    monkeypatch.setattr(module, "TO_START", 0.0)
    first, *others = [process for _, process, _ in parallel(Counting(), range(5))]
    assert first == os.getpid()
    assert first not in others


def test_trouble_in_a_worker_comes_out_here() -> None:
    def refuse(item: int) -> int:
        if item == 3:
            raise BadInput("three is too many")
        return item

    def die(item: int) -> int:
        if item == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(BadInput, match="three is too many"):
        list(parallel(refuse, range(6), 2))
    with pytest.raises(WorkerDied, match="a worker process ended early"):
        list(parallel(die, range(6), 2))
    assert list(parallel(abs, range(6), 2)) == list(range(6))


def test_what_cannot_be_sent_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(BadInput, match="cannot be sent to other processes"):
        list(parallel(lambda item: (item, lock), range(3), 2))


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def sleeper() -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout
    yield process, [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.wait()


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes by /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(
    sleeper: tuple[subprocess.Popen[str], list[int]], number: signal.Signals
) -> None:
    process, workers = sleeper
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.kill()
    assert process.wait(timeout=20) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    deadline = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, workers))
