"""Collecting: the same files whoever collects, and whatever happens in between."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from small_datasets import EPISODES, collect

import bilevel
from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.manifest import MANIFEST, file_name, read_manifest
from bilevel.demonstrations.recording import make_recipe
from bilevel.symbolic.domain import BadInput


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_complete_data_set_lists_its_files(collected: Path) -> None:
    found = read_manifest(collected)
    assert found.complete
    assert [entry.file for entry in found.entries] == [file_name(index) for index in range(EPISODES)]
    assert set(contents(collected)) == {MANIFEST, *(entry.file for entry in found.entries)}
    assert found.versions.keys() == {"bilevel", "python", "mujoco", "metaworld", "gymnasium", "numpy"}


def test_any_number_of_workers_writes_the_same_bytes(collected: Path, tmp_path: Path) -> None:
    collect(tmp_path / "two", workers=2)
    assert contents(tmp_path / "two") == contents(collected)


def test_what_is_there_is_kept_and_what_is_missing_or_broken_is_collected(copied: Path) -> None:
    whole = contents(copied)
    (copied / file_name(0)).unlink()
    (copied / file_name(1)).write_bytes(whole[file_name(1)][:-100])
    (copied / ".episode-00002.npz.x1y2z3").write_bytes(b"half")
    recipe, slots = make_recipe("blocks", 1)
    with open_collection(copied, recipe, slots, EPISODES) as collection:
        assert collection.missing == [0, 1]
        assert len(collection.broken) == 1
        assert f"{file_name(1)}: no whole npz archive" in collection.broken[0]
        assert not read_manifest(copied).complete
        assert len(list(collection.collect())) == 2
    assert contents(copied) == whole


def test_a_whole_file_that_the_manifest_does_not_describe_is_collected_again(copied: Path, tmp_path: Path) -> None:
    whole = contents(copied)
    text = (copied / MANIFEST).read_text()
    sha256 = read_manifest(copied).entries[1].sha256
    (copied / MANIFEST).write_text(text.replace(sha256, "0" * 64))
    collect(copied)
    assert contents(copied) == whole


def test_more_episodes_extend_a_data_set(copied: Path, tmp_path: Path) -> None:
    collect(copied, episodes=EPISODES + 2)
    collect(tmp_path / "at-once", episodes=EPISODES + 2)
    assert contents(copied) == contents(tmp_path / "at-once")
    with pytest.raises(BadInput, match="a data set of 5 episodes, more than the 3 wanted; choose another --output"):
        collect(copied)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"objects": 2}, "begun with objects 1 instead of 2; choose another --output or remove the folder"),
        ({"seed": 4}, "begun with seed 0 instead of 4"),
        ({"noise": 0.5}, "begun with noise None instead of {'amplitude': 0.5"),
        ({"teleport_rate": 0.5}, "begun with teleport rate 0.0 instead of 0.5"),
        ({"task": "factory"}, "begun with task blocks instead of factory"),
    ],
)
def test_other_arguments_are_refused_and_nothing_changes(copied: Path, arguments: dict[str, Any], reason: str) -> None:
    before = contents(copied)
    with pytest.raises(BadInput, match=reason):
        collect(copied, **arguments)
    assert contents(copied) == before


def test_other_versions_are_refused_only_where_something_is_missing(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(copied)
    monkeypatch.setattr(bilevel, "__version__", "9.0")
    collect(copied)
    assert contents(copied) == before
    with pytest.raises(BadInput, match=r"begun with bilevel 0.* instead of 9\.0"):
        collect(copied, episodes=EPISODES + 1)


def test_without_its_manifest_a_data_set_is_taken_up_if_it_fits(copied: Path) -> None:
    whole = contents(copied)
    (copied / MANIFEST).write_bytes(whole[MANIFEST][:100])
    with pytest.raises(BadInput, match=r"manifest.json: not JSON: .*; remove this file and run the same command again"):
        collect(copied)
    (copied / MANIFEST).unlink()
    with pytest.raises(BadInput, match=r"episode-00000.npz: belongs to another data set: seed 0 instead of 1"):
        collect(copied, seed=1)
    collect(copied)
    assert contents(copied) == whole


def test_files_in_the_wrong_place_are_not_overwritten(copied: Path) -> None:
    (copied / MANIFEST).unlink()
    (copied / file_name(0)).rename(copied / file_name(7))
    with pytest.raises(BadInput, match=r"episode-00007.npz: its seed \d+ is not that of episode 7"):
        collect(copied, episodes=8)


def test_two_cannot_collect_into_one_folder(copied: Path) -> None:
    recipe, slots = make_recipe("blocks", 1)
    with (
        open_collection(copied, recipe, slots, EPISODES),
        pytest.raises(BadInput, match="another process is collecting here"),
    ):
        collect(copied)
    collect(copied)


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
        collect(tmp_path / "set")
    assert set(contents(tmp_path / "set")) == {MANIFEST, file_name(0)}
    monkeypatch.undo()
    collect(tmp_path / "set")
    assert contents(tmp_path / "set") == contents(collected)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="file: cannot be used as a folder"):
        collect(tmp_path / "file")
    with pytest.raises(BadInput, match="at least 1"):
        collect(tmp_path / "folder", episodes=0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_killed_collection_goes_on(tmp_path: Path, number: int, code: int) -> None:
    """It is killed, all its processes at once as by Ctrl-C, as soon as two episodes are there."""
    folder, episodes = tmp_path / "set", 500
    command = [sys.executable, "-m", "bilevel.cli", "collect", "blocks", "--objects", "1", "--episodes", str(episodes)]
    command += ["--output", str(folder), "--workers", "2"]
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
    recipe, slots = make_recipe("blocks", 1)
    kept = {path.name: path.stat().st_mtime_ns for path in there}
    with open_collection(folder, recipe, slots, episodes) as collection:
        assert collection.broken == []
        assert len(collection.entries) == len(there)
        assert not list(folder.glob(".*"))
    assert {path.name: path.stat().st_mtime_ns for path in there} == kept
