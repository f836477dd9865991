"""Collecting: the same files whoever collects, and whatever happens in between."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bilevel
import tiny_task
from bilevel.demonstrations.collection import collect, open_collection
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.manifest import DOMAIN, MANIFEST, file_name, read_manifest
from bilevel.demonstrations.recording import collection_settings
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.spec import Scalar, Spec
from bilevel.tasks.task import Task
from tiny_task import TINY, TINY_DISCRETE

EPISODES = 3  # in the data set that was collected
SETTINGS = collection_settings(TINY, 1)


def gather(folder: Path, task: Task = TINY, episodes: int = EPISODES, **arguments: Any) -> Demonstrations:
    return collect(task, folder, **{"objects": 1, "episodes": episodes, **arguments})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_first_of_a_data_set_are_one_too(collected: Path) -> None:
    data = Demonstrations.read(collected)
    first = data.first(2)
    assert (len(first), len(data), first.task) == (2, EPISODES, data.task)
    assert [one.seed for one in first] == [one.seed for one in data[:2]]
    for number in (0, EPISODES + 1):
        with pytest.raises(BadInput, match=f"the first {number} are asked for"):
            data.first(number)


def test_a_complete_data_set_stands_alone(collected: Path) -> None:
    found = read_manifest(collected)
    assert found.complete
    assert [entry.file for entry in found.files] == [file_name(index) for index in range(EPISODES)]
    assert set(contents(collected)) == {MANIFEST, DOMAIN, *(entry.file for entry in found.files)}
    assert found.versions.keys() == {"bilevel", "python", "numpy", "gymnasium"}
    data = Demonstrations.read(collected)
    assert (data.task, data.arguments) == ("tiny", {"objects": 1, "slip_rate": 0.0})
    assert (data.spec, data.domain) == (TINY.spec, TINY.domain) == (found.spec, read_domain(collected / DOMAIN))
    assert data.controls.size == 3
    assert data.folder == collected
    assert len(data[:2]) == 2


def test_any_number_of_workers_writes_the_same_bytes(collected: Path, tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    data = gather(tmp_path / "two", workers=2, callback=lambda *counts: done.append(counts))
    assert contents(tmp_path / "two") == contents(collected)
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert len(data) == EPISODES


def test_a_task_that_cannot_be_sent_to_workers_is_one_line(tmp_path: Path) -> None:
    local = replace(TINY, goal=lambda scene: tiny_task.goal(scene))
    with pytest.raises(BadInput, match=r"the task 'tiny' cannot be sent to other processes .*; use 1 worker"):
        gather(tmp_path, local, workers=2)
    gather(tmp_path, local)


def test_what_is_there_is_kept_and_what_is_missing_or_broken_is_collected(copied: Path) -> None:
    whole = contents(copied)
    (copied / file_name(0)).unlink()
    (copied / file_name(1)).write_bytes(whole[file_name(1)][:-100])
    for half in (".episode-00002.npz.x1y2z3", ".manifest.json.x1y2z3", ".domain.pddl.x1y2z3"):
        (copied / half).write_bytes(b"half")
    with open_collection(TINY, copied, SETTINGS, EPISODES) as collection:
        assert collection.missing == [0, 1]
        assert len(collection.broken) == 1
        assert f"{file_name(1)}: no whole npz archive" in collection.broken[0]
        assert not read_manifest(copied).complete
        assert len(list(collection.record_missing())) == 2
    assert contents(copied) == whole


def test_files_that_the_manifest_does_not_describe_are_collected_again(copied: Path) -> None:
    whole = contents(copied)
    text = (copied / MANIFEST).read_text()
    sha256 = read_manifest(copied).files[1].sha256
    (copied / MANIFEST).write_text(text.replace(sha256, "0" * 64))
    (copied / file_name(0)).write_bytes(whole[file_name(2)])
    gather(copied)
    assert contents(copied) == whole


def test_more_episodes_extend_a_data_set(copied: Path, tmp_path: Path) -> None:
    gather(copied, episodes=EPISODES + 2)
    gather(tmp_path / "at-once", episodes=EPISODES + 2)
    assert contents(copied) == contents(tmp_path / "at-once")
    with pytest.raises(BadInput, match="a data set of 5 episodes, more than the 3 wanted; choose another --output"):
        gather(copied)


OTHER_SPEC = Spec({**TINY.spec.agent, "mood": Scalar}, TINY.spec.objects)


@pytest.mark.parametrize(
    ("task", "arguments", "reason"),
    [
        (TINY, {"objects": 2}, "begun with objects 1 instead of 2; choose another --output or remove the folder"),
        (TINY, {"seed": 4}, "begun with seed 0 instead of 4"),
        (TINY, {"noise": 0.5}, r"begun with noise None instead of Perturbation\(amplitude=0.5"),
        (TINY, {"slip_rate": 0.5}, "begun with slip rate 0.0 instead of 0.5"),
        (TINY_DISCRETE, {}, "begun with task tiny instead of tiny-discrete"),
        (replace(TINY, spec=OTHER_SPEC), {}, "begun when the task had another spec"),
        (replace(TINY_DISCRETE, name="tiny"), {}, "begun when the task had another action space"),
        (replace(TINY, domain=replace(TINY.domain, name="other")), {}, "domain.pddl: not the domain of the task"),
    ],
)
def test_other_settings_are_refused_and_nothing_changes(
    copied: Path, task: Task, arguments: dict[str, Any], reason: str
) -> None:
    before = contents(copied)
    with pytest.raises(BadInput, match=reason):
        gather(copied, task, **arguments)
    assert contents(copied) == before


def test_other_versions_are_refused_only_where_something_is_missing(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(copied)
    monkeypatch.setattr(bilevel, "__version__", "9.0")
    gather(copied)
    assert contents(copied) == before
    with pytest.raises(BadInput, match=r"begun with bilevel 0.* instead of 9\.0"):
        gather(copied, episodes=EPISODES + 1)


def test_a_folder_without_a_sound_manifest_is_not_touched(copied: Path) -> None:
    (copied / MANIFEST).write_bytes((copied / MANIFEST).read_bytes()[:100])
    with pytest.raises(BadInput, match=r"manifest.json: Input data was truncated; choose another --output or remove"):
        gather(copied)
    (copied / MANIFEST).unlink()
    before = contents(copied)
    with pytest.raises(BadInput, match=r"there are episodes but no manifest.json; choose another --output"):
        gather(copied)
    assert contents(copied) == before


def test_two_cannot_collect_into_one_folder(copied: Path) -> None:
    with (
        open_collection(TINY, copied, SETTINGS, EPISODES),
        pytest.raises(BadInput, match="another process is collecting here"),
    ):
        gather(copied)
    gather(copied)


def test_a_full_disk_leaves_whole_files_and_can_be_mended(
    tmp_path: Path, collected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def full(source: str, target: Path) -> None:
        if Path(target).name == file_name(1):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadInput, match=r"episode-00001.npz: cannot be written: No space left on device"):
        gather(tmp_path / "set")
    assert set(contents(tmp_path / "set")) == {MANIFEST, DOMAIN, file_name(0)}
    monkeypatch.undo()
    gather(tmp_path / "set")
    assert contents(tmp_path / "set") == contents(collected)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="file: cannot be used as a folder"):
        gather(tmp_path / "file")
    with pytest.raises(BadInput, match="at least 1"):
        gather(tmp_path / "folder", episodes=0)
    with pytest.raises(BadInput, match="no expert"):
        gather(tmp_path / "folder", replace(TINY, expert=None))
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_killed_collection_goes_on(tmp_path: Path, number: int, code: int) -> None:
    """It is killed, all its processes at once as by Ctrl-C, as soon as two episodes are there."""
    folder, episodes = tmp_path / "set", 5000
    command = [sys.executable, "-m", "bilevel.cli", "collect", f"{tiny_task.__file__}:TINY", "--objects", "1"]
    command += ["--episodes", str(episodes), "--output", str(folder), "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while process.poll() is None and len(list(folder.glob("episode-*.npz"))) < 2:
        time.sleep(0.01)
    os.killpg(process.pid, number)
    _, complaint = process.communicate()
    assert process.returncode == code
    there = sorted(folder.glob("episode-*.npz"))
    assert 2 <= len(there) < episodes
    if number == signal.SIGINT:
        assert complaint.startswith("bilevel: interrupted; ")
        assert f"of {episodes} episodes are in {folder}; run the same command again to go on" in complaint
        assert len(complaint.splitlines()) == 1
    kept = {path.name: path.stat().st_mtime_ns for path in there}
    with open_collection(TINY, folder, SETTINGS, episodes, patience=10) as collection:
        assert collection.broken == []
        assert len(collection.entries) == len(there)
        assert not list(folder.glob(".*"))
    assert {path.name: path.stat().st_mtime_ns for path in there} == kept


def test_demonstrations_are_what_is_seen_and_the_manifest_says_how_well(tmp_path: Path) -> None:
    clean = collect(TINY, tmp_path / "clean", objects=2, episodes=1)
    noisy = collect(TINY, tmp_path / "noisy", objects=2, episodes=1, perception="noise=0.001")
    assert noisy.manifest is not None
    assert str(noisy.manifest.settings.perception) == "noise=0.001"
    assert noisy.command.endswith("--perception noise=0.001")
    assert "perception" not in (tmp_path / "clean" / MANIFEST).read_text()
    off = np.abs(noisy[0].features[0] - clean[0].features[0])
    assert 0 < off.max() < 0.01
    with pytest.raises(BadInput, match=r"perception noise=0.001 instead of perfect"):
        collect(TINY, tmp_path / "noisy", objects=2, episodes=1)
