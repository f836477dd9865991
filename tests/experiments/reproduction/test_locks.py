"""Runs that share a folder do not do the same work, and a run that is gone keeps nobody from it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Barrier

import pytest

from bilevel.experiments.reproduction.folder import Locks

ONE, OTHER = "policies/blocks/bison-paper-0", "policies/blocks/bison-paper-1"

# A run that locks what it is told to, says so, and then waits to be killed.
LOCK_AND_WAIT = """
import sys, time
from pathlib import Path
from bilevel.experiments.reproduction.folder import Locks

locks = Locks(Path(sys.argv[1]))
print(locks.acquire(sys.argv[2:]), flush=True)
time.sleep(60)
"""


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Locks]:
    with closing(Locks(tmp_path)) as locks:
        yield locks


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Locks]:
    with closing(Locks(tmp_path)) as locks:
        yield locks


def test_what_one_has_locked_another_does_not_get_until_it_is_released(ours: Locks, theirs: Locks) -> None:
    assert ours.acquire([ONE])
    assert not theirs.acquire([ONE])
    assert theirs.acquire([OTHER])
    assert not ours.acquire([ONE])  # nor oneself, twice
    theirs.release([ONE])  # which it does not hold
    assert not theirs.acquire([ONE])
    ours.release([ONE])
    assert theirs.acquire([ONE])
    assert not ours.acquire([ONE])


def test_names_that_begin_alike_are_different_things(ours: Locks, theirs: Locks) -> None:
    names = ["episodes/blocks/bison-0/1", "episodes/blocks/bison-0/10", "episodes/blocks/bison-0", "episodes/blocks"]
    for number, name in enumerate(names):
        assert (ours, theirs)[number % 2].acquire([name])


def test_several_things_are_locked_together_or_not_at_all(ours: Locks, theirs: Locks) -> None:
    assert ours.acquire([OTHER])
    assert not theirs.acquire([ONE, OTHER])
    assert ours.acquire([ONE])
    ours.close()
    assert theirs.acquire([ONE, OTHER])


def test_what_a_killed_process_had_locked_is_free_at_once(tmp_path: Path, ours: Locks) -> None:
    command = [sys.executable, "-c", LOCK_AND_WAIT, str(tmp_path), ONE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "True\n"
        assert not ours.acquire([ONE])
        other.kill()
    assert ours.acquire([ONE])


def test_of_many_each_thing_goes_to_one(tmp_path: Path) -> None:
    runs, things = 8, 25
    start = Barrier(runs)

    def acquire_all(locks: Locks) -> list[int]:
        start.wait()
        return [number for number in range(things) if locks.acquire([f"thing/{number}"])]

    with ExitStack() as opened, ThreadPoolExecutor(runs) as pool:
        team = [opened.enter_context(closing(Locks(tmp_path))) for _ in range(runs)]
        found = [number for numbers in pool.map(acquire_all, team) for number in numbers]
    assert sorted(found) == list(range(things))
