"""Work spread over processes: all of it is done, and trouble in a worker comes out here."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bilevel import processes
from bilevel.memory import LACKING
from bilevel.processes import in_order, spread, usable_cores
from bilevel.symbolic.domain import BadInput


def square() -> Callable[[int], int]:
    return lambda number: number * number


def refuse() -> Callable[[int], int]:
    def work(number: int) -> int:
        if number == 3:
            raise BadInput("three is too many")
        return number

    return work


def die() -> Callable[[int], int]:
    def work(number: int) -> int:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    return work


def test_results_that_come_early_wait_and_later_ones_need_not() -> None:
    found = in_order(iter([(5, "e"), (3, "c"), (4, "d"), (6, "f")]), begin=3)
    assert list(found) == ["c", "d", "e", "f"]
    endless = in_order((number, number) for number in itertools.count())
    assert [next(endless) for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("workers", [1, 3])
def test_every_item_is_worked_on_once(workers: int) -> None:
    assert sorted(spread(square, range(7), workers)) == [number * number for number in range(7)]


def whereabouts() -> Callable[[int], int]:
    return lambda number: os.getpid()


def threads() -> Callable[[int], int]:
    return lambda number: int(os.environ["OPENBLAS_NUM_THREADS"])


@pytest.mark.parametrize("wanted", [None, 2])
def test_a_worker_has_one_thread_unless_a_user_says_so(wanted: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if wanted:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", str(wanted))
    assert list(spread(threads, range(4), 2)) == 4 * [wanted or 1]


def test_short_work_stays_in_this_process() -> None:
    assert set(spread(whereabouts, range(7), None)) == {os.getpid()}


def test_of_long_work_the_rest_goes_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("usable_cores", lambda: 2), ("WORTH_SPREADING", 0.0), ("TO_START", 1e-9)):
        monkeypatch.setattr(processes, name, value)
    first, *others = spread(whereabouts, range(7), None)
    assert first == os.getpid()
    assert (len(others), len({*others}), first in others) == (6, 2, False)
    assert sorted(spread(square, range(7), None)) == [number * number for number in range(7)]


@pytest.mark.parametrize(("limit", "cores"), [("max 100000", 4), ("200000 100000", 2), ("50000 100000", 1), ("", 4)])
def test_cores_are_counted_as_the_system_grants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, cores: int
) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(processes, "CPU_LIMIT", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert usable_cores() == cores


def test_nothing_to_do_is_done_without_processes() -> None:
    assert list(spread(square, [], 4)) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_input_in_a_worker_is_raised_here(workers: int) -> None:
    with pytest.raises(BadInput, match="three is too many"):
        list(spread(refuse, range(6), workers))


def lose() -> Callable[[int], int]:
    def work(number: int) -> int:
        if number == 1:
            time.sleep(1)  # until the other worker is at work, too
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            time.sleep(600)
        except SystemExit:
            raise ValueError("as a library says that cleans up") from None
        return number

    return work


def test_a_worker_that_is_told_to_end_says_nothing_of_other_errors(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match="ended early"):
        list(spread(lose, range(2), 2))
    assert capfd.readouterr().err == ""


def test_a_worker_that_dies_is_noticed() -> None:
    with pytest.raises(BadInput, match=r"a worker process ended early \(process \d+, exit code -9\)"):
        list(spread(die, range(6), 2))


def test_a_worker_whose_first_process_is_killed_cleans_up_and_ends_amid_its_work(tmp_path: Path) -> None:
    script = Path(__file__).with_name("sleeping_workers.py")
    first = subprocess.Popen([sys.executable, script, tmp_path], stdout=subprocess.DEVNULL)
    assert eventually(lambda: len(list(tmp_path.iterdir())) == 2)
    first.kill()
    first.wait()
    assert eventually(lambda: not list(tmp_path.iterdir()))


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_worker_whose_first_process_dies_while_it_starts_says_nothing(tmp_path: Path, delay: float) -> None:
    script = Path(__file__).with_name("sleeping_workers.py")
    first = subprocess.Popen([sys.executable, script, tmp_path], stderr=subprocess.PIPE, text=True)
    assert eventually(lambda: children_of(first.pid) > 0)
    time.sleep(delay)
    first.kill()
    assert first.communicate()[1] == ""  # once every process that could say something has ended


def children_of(process: int) -> int:
    return len(Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split())


def test_more_workers_than_work_or_than_cores_can_bear_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Counted(processes.Worker):
        def __init__(self, serve: Callable[..., None]) -> None:
            started.append(self)
            super().__init__(serve)

    monkeypatch.setattr(processes, "Worker", Counted)
    monkeypatch.setattr(processes, "usable_cores", lambda: 1)
    monkeypatch.setattr(processes, "MOST_PER_CORE", 2)
    endless = spread(square, range(10**30), 10**9)
    assert next(endless) in (0, 1)
    endless.close()
    assert len(started) == 2


def lack_memory() -> Callable[[int], int]:
    def work(number: int) -> int:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")

    return work


def test_a_worker_without_memory_says_so_in_a_line() -> None:
    with pytest.raises(BadInput, match=LACKING):
        list(spread(lack_memory, range(6), 2))


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
