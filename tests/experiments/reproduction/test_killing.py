"""Whatever is killed or damaged on the way, and whoever else is at work: the same results as of one undisturbed run."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bilevel.demonstrations.manifest import read_manifest, write_manifest
from bilevel.experiments.reproduction.folder import ExperimentFolder, Locks, read_experiment
from bilevel.experiments.reproduction.recipes import PAPERS_RECIPE
from bilevel.experiments.reproduction.units import Train
from command_line import run
from killing import TINY, left_behind, results, start, survive, wait_for_changes

UNITS = 6  # collect, train, evaluate two methods with one and two objects
POLICY = "policies/blocks/bison-paper-0"
EPISODES = "episodes/blocks/bison-paper-0/02.jsonl"
SILENT = ("--json",)


@pytest.fixture(scope="module")
def wanted(undisturbed: Path) -> dict[str, Any]:
    found = results(undisturbed)
    assert len(found) == UNITS
    lines = [found[name].splitlines() for name in found if name.endswith(".jsonl")]
    assert [[json.loads(line)["episode"] for line in part] for part in lines] == [[0, 1]] * 4
    return found


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code and what it has said; whatever it started has ended with it."""
    out, err = process.communicate()
    assert left_behind(process) == []
    return process.returncode, out, err


def check_complete(folder: Path, wanted: dict[str, Any]) -> None:
    assert results(folder) == wanted
    assert list(folder.glob("unfinished/*")) == []
    assert held_locks(folder) == []
    assert len((folder / "findings.jsonl").read_text().splitlines()) == 3  # about all, and a row for each method


def held_locks(folder: Path) -> list[str]:
    """The locks that somebody holds; files are left behind."""
    names = [path.name for path in (folder / "locks").iterdir()]
    with closing(Locks(folder / "locks")) as locks:
        return [name for name in names if not locks.acquire([name])]


# Killing


def test_killed_interrupted_told_to_end_and_with_a_worker_killed(tmp_path: Path, wanted: dict[str, Any]) -> None:
    folder = tmp_path / "folder"
    process = start(folder, *TINY)
    assert wait_for_changes(process, folder, 2)
    process.kill()
    process.communicate()  # and the next one begins at once

    process = start(folder, *TINY)
    assert wait_for_changes(process, folder, 2)
    process.send_signal(signal.SIGINT)
    code, out, err = end(process)
    assert (code, out) == (130, "")
    told = err.splitlines()
    assert told[0] == "checking what is there: 6 units of work"
    assert told[1].startswith("6 units of work, ")
    assert told[-1].startswith("bilevel: interrupted; ")
    assert told[-1].endswith(" left; run the same command again to go on")
    assert held_locks(folder) == []

    process = start(folder, *TINY, *SILENT)
    assert wait_for_changes(process, folder, 1)
    process.send_signal(signal.SIGTERM)
    assert end(process) == (143, "", "")
    assert held_locks(folder) == []

    shutil.rmtree(folder / POLICY, ignore_errors=True)  # so that there is enough to do for workers to be killed at it
    process = start(folder, *TINY)
    while process.poll() is None and not (found := workers(process.pid)):  # one may just have ended, and none begun
        time.sleep(0.01)
    assert found
    for number in found:
        os.kill(number, signal.SIGKILL)
    code, out, err = end(process)
    assert (code, "failed" in err) == (0, False)
    assert "units of work done" in out or "unit of work done" in out
    check_complete(folder, wanted)


def test_other_results_are_noticed(tmp_path: Path, undisturbed: Path, wanted: dict[str, Any]) -> None:
    folder = tmp_path / "1"
    shutil.copytree(undisturbed, folder)
    path = folder / "episodes/blocks/expert-0/01.jsonl"
    path.write_text(path.read_text().replace('"steps": ', '"steps": 9'))
    told = survive(tmp_path, TINY, wanted, 0, random.Random(0))
    assert told == [f"{folder}: other results for episodes/blocks/expert-0/01.jsonl"]


def workers(number: int) -> list[int]:
    """The processes that were spawned by one and serve it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
            command = (path.parent / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == number and b"bilevel.processes" in command:
            found.append(int(path.parent.name))
    return found


# Two runs


def test_two_runs_at_the_same_time_share_the_work(tmp_path: Path, wanted: dict[str, Any]) -> None:
    folder = tmp_path / "folder"
    told = [end(process) for process in [start(folder, *TINY, *SILENT, "--workers", "1") for _ in range(2)]]
    assert [(code, err) for code, _, err in told] == [(0, "")] * 2
    found = [json.loads(out) for _, out, _ in told]
    assert sum(run["done"] for run in found) == UNITS
    assert [run["done"] + run["already_there"] for run in found] == [UNITS] * 2
    check_complete(folder, wanted)


# Damage


def tear_a_line(folder: Path) -> None:
    """Only the first of two lines is whole, and beside them is what was half written."""
    path = folder / EPISODES
    path.write_bytes(path.read_bytes()[:-100])
    path.with_name(f".{path.name}.abc").write_bytes(b"half")


def tear_a_checkpoint(folder: Path) -> None:
    """Training was stopped after an epoch, and what it had written then is cut off."""
    shutil.rmtree(folder / POLICY)
    unit = Train("blocks", "bison", PAPERS_RECIPE, 0)

    def stop(note: str) -> None:
        if note == "training, 1 of 2":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        unit.perform(ExperimentFolder(folder, read_experiment(folder)), stop)
    (checkpoint,) = folder.glob("unfinished/*/*.safetensors")
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])


def tear_a_data_set(folder: Path) -> None:
    """Some episodes are there, one of them not as a whole, and nothing says that they are all."""
    files = sorted((folder / "demonstrations/blocks").glob("*.npz"))
    files[0].write_bytes(files[0].read_bytes()[:-1000])
    files[2].unlink()
    files[3].with_name(f".{files[3].name}.abc").write_bytes(files[3].read_bytes()[:1000])
    files[3].unlink()
    manifest = read_manifest(files[0].parent)
    write_manifest(files[0].parent, msgspec.structs.replace(manifest, files=(), complete=False))


@pytest.mark.parametrize(
    ("damage", "units"), [([tear_a_line], 1), ([tear_a_line, tear_a_checkpoint, tear_a_data_set], 3)]
)
def test_what_is_torn_is_mended(
    damage: list[Callable[[Path], None]],
    units: int,
    undisturbed: Path,
    wanted: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And what is learned again is learned to the same bits."""
    folder = tmp_path / "folder"
    shutil.copytree(undisturbed, folder)
    for tear in damage:
        tear(folder)
    code, out, _ = run(capsys, "reproduce", *TINY, *SILENT, "--output", folder)
    assert (code, json.loads(out)["done"]) == (0, units)
    check_complete(folder, wanted)
    assert not list(folder.rglob(".*.abc"))
