"""The experiment at its smallest: what is missing is made, whatever is killed on the way, here or on a cluster."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bilevel.experiments import making
from bilevel.experiments.experiment import read_settings
from bilevel.experiments.records import read_records
from bilevel.experiments.reproduce import reproduce
from bilevel.experiments.results import read_results
from bilevel.symbolic.domain import BadInput
from local_cluster import local_cluster

TINY: dict[str, Any] = {
    "tasks": ["blocks"],
    "methods": ["bison-paper", "bison-printed", "expert"],
    "objects": [1, 2],
    "episodes": 2,
    "seeds": 1,
    "demonstrations": 4,
    "epochs": 2,
    "parts": ("table",),
}
WORDS = (
    *("--tasks", "blocks", "--methods", "bison-paper", "bison-printed", "expert", "--objects", "1-2"),
    *("--episodes", "2", "--seeds", "1", "--demonstrations", "4", "--epochs", "2", "--parts", "table"),
)


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bilevel", "reproduce", *WORDS, *words, "--output", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def results(folder: Path) -> dict[str, bytes]:
    """What must not depend on what happened on the way: policies and records."""
    files = [*folder.glob("policies/*/*/weights.safetensors"), *folder.glob("policies/*/*/rules.txt")]
    files += [path for path in folder.glob("episodes/*/*/*.jsonl") if ".timings" not in path.name]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all is done; not to be changed."""
    folder = tmp_path_factory.mktemp("undisturbed") / "folder"
    outcome = reproduce(folder, **TINY, workers=1)
    assert (outcome.done, outcome.there, outcome.failed) == (9, 0, {})
    return folder


def wait_for(there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 600
    while not there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """The workers of a run, but for the process that tidies up after them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            text, words = entry.read_text(), entry.with_name("cmdline").read_text()
        except OSError:
            continue
        if text.rpartition(")")[2].split()[1] == str(process.pid) and "resource_tracker" not in words:
            found.append(int(entry.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="workers are found in /proc")
def test_a_run_that_is_killed_twice_comes_to_the_same_results(undisturbed: Path, tmp_path: Path) -> None:
    """At first the run itself is killed, and its workers end by themselves; then a worker is, and the run goes on."""
    folder = tmp_path / "folder"
    first = start(folder, "--workers", "2")
    wait_for(lambda: any(folder.glob("demonstrations/blocks/episode-*")), first)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = start(folder, "--workers", "2")
    wait_for(lambda: any(folder.glob("episodes/*/*/*.jsonl")) and bool(children(second)), second)
    os.kill(children(second)[0], signal.SIGKILL)
    out, err = second.communicate(timeout=900)
    assert second.returncode == 0, (out, err)
    assert results(folder) == results(undisturbed)


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
def test_a_cluster_comes_to_the_same_results(undisturbed: Path, tmp_path: Path) -> None:
    with local_cluster() as cluster:
        run = start(tmp_path / "folder", "--cluster", cluster.address)
        out, err = run.communicate(timeout=900)
        assert run.returncode == 0, (out, err)
    assert results(tmp_path / "folder") == results(undisturbed)


def test_asking_again_does_nothing_and_asking_for_more_adds_only_that(undisturbed: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(undisturbed, tmp_path / "folder")
    before = results(folder)
    assert (reproduce(folder, **TINY).done, results(folder)) == (0, before)
    shutil.rmtree(folder / "demonstrations")  # of no use any more
    assert reproduce(folder, **{**TINY, "objects": [1, 2, 3], "methods": ["expert"]}).done == 1
    assert reproduce(folder, **{**TINY, "episodes": 3, "methods": ["expert"]}).done == 2
    records = read_records(folder / "episodes/blocks/expert-0/01.jsonl")
    assert [record.episode for record in records] == [0, 1, 2]
    assert {name: text for name, text in results(folder).items() if "bison" in name} == {
        name: text for name, text in before.items() if "bison" in name
    }


def test_results_are_one_table(undisturbed: Path) -> None:
    found = read_results(undisturbed)
    table = found.table.set_index(["row", "objects"])
    assert table.loc[("expert", 1), ["episodes", "successes"]].tolist() == [2, 2]
    assert len(table) == 6
    assert list(found.about.rules) == ["blocks"]
    assert found.about.failures == {}


def test_what_fails_is_tried_again_and_told_and_the_rest_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def fail(folder: Path, settings: Any, cell: Any) -> None:
        tried.append(cell.row)
        raise ValueError("no luck")

    monkeypatch.setattr(making, "learn_policy", fail)
    outcome = reproduce(tmp_path / "folder", **{**TINY, "methods": ["bison-paper", "expert"]}, workers=1)
    assert tried == ["bison-paper"] * 3
    assert outcome.failed["policies/blocks/bison-paper-0/policy.json"] == "no luck"
    assert len(outcome.failed) == 3  # with the episodes of that policy
    failures = read_results(tmp_path / "folder").about.failures
    assert failures["policies/blocks/bison-paper-0/policy.json"] == "ValueError: no luck"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"methods": ["magic"]}, "unknown method 'magic'"),
        ({"tasks": ["chess"]}, "unknown task 'chess'"),
        ({"parts": ("soup",)}, "unknown part 'soup'"),
        ({"epochs": 2**63 - 1}, "settings of the experiment: "),
        ({"demonstrations": 1}, "settings of the experiment: "),
        ({"learning_rate": float("nan")}, "settings of the experiment: "),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadInput, match=reason):
        reproduce(tmp_path / "folder", **{**TINY, **change})
    assert not (tmp_path / "folder").exists()


def test_a_folder_of_something_else_is_left_alone(undisturbed: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds other files"):
        reproduce(tmp_path, **TINY)
    with pytest.raises(BadInput, match="was begun with epochs 2, not 3"):
        reproduce(undisturbed, **{**TINY, "epochs": 3})
    assert read_settings(undisturbed).epochs == 2
    assert reproduce(undisturbed, **TINY, workers=int("1" * 30)).done == 0
