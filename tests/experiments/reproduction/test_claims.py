"""Runs that share a folder do not do the same work, and a run that is gone keeps nobody from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Barrier

import pytest

from bilevel.experiments.reproduction import claims as module
from bilevel.experiments.reproduction.claims import PATIENCE, Claims
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.settings import Experiment

KEY = ("policies/blocks/bison-paper-0",)
OTHER = ("policies/blocks/bison-paper-1",)

# A run that claims what it is told to, says so, and then waits to be killed.
TAKE_AND_WAIT = """
import sys, time
from pathlib import Path
from bilevel.experiments.reproduction.claims import Claims
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.settings import Experiment

claims = Claims(Kept(Path(sys.argv[1]), Experiment()))
print(claims.take(tuple(sys.argv[2:])), flush=True)
time.sleep(60)
"""

# Runs in processes of their own, all of which try at the same moment to take the same things one after the other.
TAKE_AT_ONCE = """
import sys, time
from pathlib import Path
from bilevel.experiments.reproduction.claims import Claims
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.settings import Experiment

claims = Claims(Kept(Path(sys.argv[1]), Experiment()))
print("ready", flush=True)
sys.stdin.readline()
print(*(number for number in range(int(sys.argv[2])) if claims.take((f"thing/{number}",))), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path, Experiment())


@pytest.fixture
def ours(kept: Kept) -> Iterator[Claims]:
    with closing(Claims(kept)) as claims:
        yield claims


@pytest.fixture
def theirs(kept: Kept) -> Iterator[Claims]:
    with closing(Claims(kept)) as claims:
        yield claims


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the time is, to be changed."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def claim_files(kept: Kept) -> list[str]:
    return sorted(path.name for path in kept.claims.iterdir())


def write_claim(kept: Kept, content: object, number: int = 1) -> None:
    (kept.claims / f"policies+blocks+bison-paper-0.{number}").write_text(json.dumps(content))


def write_run(kept: Kept, content: object, name: str = "far") -> None:
    (kept.runs / f"{name}.json").write_text(json.dumps(content))


FAR_AWAY = {"run": "far", "host": "another machine", "pid": os.getpid(), "started": "1"}


# Taking and giving back


def test_what_one_has_taken_another_does_not_get_until_it_is_given_back(ours: Claims, theirs: Claims) -> None:
    assert ours.take(KEY)
    assert not theirs.take(KEY)
    assert theirs.take(OTHER)
    assert not ours.take(KEY)  # nor oneself, twice
    ours.release(KEY)
    assert theirs.take(KEY)
    assert not ours.take(KEY)


def test_names_that_begin_alike_are_different_things(ours: Claims, theirs: Claims) -> None:
    names = ["episodes/blocks/bison-0/1", "episodes/blocks/bison-0/10", "episodes/blocks/bison-0", "episodes/blocks"]
    for number, name in enumerate(names):
        assert (ours, theirs)[number % 2].take((name,))


def test_an_answer_that_is_lost_makes_no_claim_that_nobody_holds(
    kept: Kept, ours: Claims, theirs: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over NFS, where a link that is asked for again is there already."""
    link = os.link

    def link_twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    assert ours.take(KEY)
    assert not theirs.take(KEY)
    ours.release(KEY)
    assert claim_files(kept) == []


def test_a_claim_that_another_run_takes_for_a_leftover_is_made_later(
    kept: Kept, ours: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: Path, target: Path) -> None:
        source.unlink()
        raise FileNotFoundError

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        assert not ours.take(KEY)
    assert ours.take(KEY)
    assert claim_files(kept) == ["policies+blocks+bison-paper-0.1"]


def test_several_things_are_taken_together_or_not_at_all(kept: Kept, ours: Claims, theirs: Claims) -> None:
    assert ours.take(OTHER)
    assert not theirs.take(KEY + OTHER)
    assert claim_files(kept) == ["policies+blocks+bison-paper-1.1"]
    assert ours.take(KEY)
    ours.release(KEY + OTHER)
    assert claim_files(kept) == []
    assert theirs.take(KEY + OTHER)
    assert not ours.take(OTHER)


def test_what_is_not_ours_we_do_not_give_back(ours: Claims, theirs: Claims) -> None:
    assert ours.take(KEY)
    theirs.release(KEY)
    assert not theirs.take(KEY)


def test_at_its_end_a_run_gives_everything_back(kept: Kept, ours: Claims) -> None:
    with closing(Claims(kept)) as another:
        assert another.take(KEY + OTHER)
    assert claim_files(kept) == []
    assert ours.take(KEY + OTHER)


def test_a_run_shows_that_it_is_alive(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT", 0.01)
    with closing(Claims(kept)):
        (path,) = kept.runs.glob("*.json")
        counts: set[int] = set()
        while len(counts) < 3:
            counts.add(json.loads(path.read_text())["count"])
            time.sleep(0.005)
        assert json.loads(path.read_text())["ended"] is False
    assert json.loads(path.read_text())["ended"] is True


# Claims of those who are gone


def start_other(kept: Kept, *keys: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", TAKE_AND_WAIT, str(kept.folder), *keys]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert line(other) == "True\n"
    return other


def test_what_a_killed_process_had_taken_is_free_at_once(kept: Kept, ours: Claims, theirs: Claims) -> None:
    other = start_other(kept, *KEY, *OTHER)
    try:
        assert not ours.take(KEY)
    finally:
        other.kill()
    while Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    assert ours.take(KEY)  # even while nobody has asked for its exit code
    other.wait()
    assert not theirs.take(KEY)
    assert theirs.take(OTHER)
    ours.release(KEY)
    theirs.release(OTHER)
    assert claim_files(kept) == []


def test_a_later_process_of_the_same_number_is_not_taken_for_it(kept: Kept, ours: Claims) -> None:
    write_claim(kept, {"run": "gone", "host": module._host(), "pid": os.getpid(), "started": "1"})
    write_run(kept, {"count": 1, "ended": False}, "gone")
    assert ours.take(KEY)


def test_one_that_is_silent_elsewhere_is_given_up_after_a_minute_and_not_before(
    kept: Kept, ours: Claims, clock: list[float]
) -> None:
    write_claim(kept, FAR_AWAY)
    write_run(kept, {"count": 1, "ended": False})
    assert not ours.take(KEY)
    clock[0] += PATIENCE - 1
    assert not ours.take(KEY)
    write_run(kept, {"count": 2, "ended": False})
    clock[0] += PATIENCE - 1
    assert not ours.take(KEY)  # it has counted meanwhile
    clock[0] += PATIENCE - 1
    assert not ours.take(KEY)
    clock[0] += 2
    assert ours.take(KEY)


def test_of_one_that_has_ended_elsewhere_or_left_no_trace_nothing_is_waited_for(kept: Kept, ours: Claims) -> None:
    write_claim(kept, FAR_AWAY)
    assert ours.take(KEY)
    ours.release(KEY)
    write_claim(kept, FAR_AWAY)
    write_run(kept, {"count": 9, "ended": True})
    assert ours.take(KEY)


def test_one_that_comes_back_to_life_does_not_give_back_what_another_has_now(
    kept: Kept, ours: Claims, theirs: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ours.take(KEY)
    with monkeypatch.context() as patch:
        patch.setattr(theirs, "_is_void", lambda path: True)
        assert theirs.take(KEY)
    ours.release(KEY)
    assert claim_files(kept) == ["policies+blocks+bison-paper-0.2"]
    assert not ours.take(KEY)
    theirs.release(KEY)
    assert ours.take(KEY)


# Many at once


def test_of_many_who_want_what_a_dead_one_had_one_gets_it(kept: Kept) -> None:
    runs, rounds = 8, 25
    kept.claims.mkdir()
    for number in range(rounds):
        (kept.claims / f"thing+{number}.1").write_text(json.dumps({**FAR_AWAY, "run": "nobody"}))
    start = Barrier(runs)

    def take_all(claims: Claims) -> list[int]:
        start.wait()
        return [number for number in range(rounds) if claims.take((f"thing/{number}",))]

    with ExitStack() as open_things, ThreadPoolExecutor(runs) as pool:
        team = [open_things.enter_context(closing(Claims(kept))) for _ in range(runs)]
        taken = [number for found in pool.map(take_all, team) for number in found]
    assert sorted(taken) == list(range(rounds))


def test_of_many_processes_each_thing_goes_to_one(kept: Kept) -> None:
    things = 60
    command = [sys.executable, "-c", TAKE_AT_ONCE, str(kept.folder), str(things)]
    team = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [line(process) for process in team] == ["ready\n"] * len(team)
    for process in team:
        tell(process, "go")
    taken = [int(word) for process in team for word in line(process).split()]
    for process in team:
        tell(process, "end")
        process.communicate()
    assert sorted(taken) == list(range(things))


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def tell(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def test_one_who_looked_too_early_notices_a_claim_made_since(
    kept: Kept, ours: Claims, theirs: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it looked, the first claim was a dead one's, whose number has been used again since."""
    assert ours.take(KEY)
    is_void, early = theirs._is_void, iter([True])
    monkeypatch.setattr(theirs, "_is_void", lambda path: next(early, False) or is_void(path))
    assert not theirs.take(KEY)
    assert next(early, None) is None
    assert claim_files(kept) == ["policies+blocks+bison-paper-0.1"]


# Damage

GARBAGE = [
    b"",
    b"{",
    b"\xff\xfe\x00",
    b"[]",
    b"null",
    b"{}",
    b'{"run": 3, "host": null, "pid": "x"}',
    b'{"run": "a/../\\u0000", "host": "elsewhere"}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
def test_a_claim_that_nobody_can_read_binds_nobody(kept: Kept, ours: Claims, content: bytes) -> None:
    (kept.claims / "policies+blocks+bison-paper-0.1").write_bytes(content)
    (kept.claims / "policies+blocks+bison-paper-0.x").write_bytes(content)
    assert ours.take(KEY)


def test_garbage_that_names_this_machine_binds_nobody(kept: Kept, ours: Claims) -> None:
    for number, pid in enumerate([None, "1", -1, 2**70, 0], 1):
        write_claim(kept, {"run": "gone", "host": module._host(), "pid": pid, "started": "x"}, number)
    assert ours.take(KEY)


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
def test_a_sign_of_life_that_nobody_can_read_is_not_waited_for_for_ever(
    kept: Kept, ours: Claims, clock: list[float], content: bytes
) -> None:
    write_claim(kept, FAR_AWAY)
    (kept.runs / "far.json").write_bytes(content)
    taken = ours.take(KEY)
    clock[0] += PATIENCE + 1
    assert taken or ours.take(KEY)
