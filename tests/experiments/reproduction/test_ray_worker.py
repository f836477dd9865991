"""What a unit writes elsewhere comes back whole, in an order that can be interrupted, and nothing is left there."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path
from typing import ClassVar

import pytest

from bilevel.experiments.reproduction import ray_worker
from bilevel.experiments.reproduction.backends import Advanced, Event, Failed, Finished
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder
from bilevel.experiments.reproduction.ray_worker import (
    Files,
    OtherVersions,
    RemoteWorker,
    check_versions,
    read_files,
    versions_here,
    write_files,
)
from bilevel.experiments.reproduction.units import Callback, Unit
from bilevel.files import make_scratch_folder, write_atomically

EXPERIMENT = Experiment()


@dataclass(frozen=True)
class Training(Unit):
    """As long as there is no permission to end it, it goes on; then its checkpoint is gone, and a policy is there."""

    kind: ClassVar[str] = "training"
    permission: str
    fails: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("policies",)

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("demonstrations",)

    @property
    def unfinished(self) -> tuple[str, ...]:
        return (f"unfinished/{self.task}",)

    def is_done(self, folder: ExperimentFolder) -> bool:
        raise NotImplementedError

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        checkpoint = folder.path / self.unfinished[0] / "epoch"
        number = int(checkpoint.read_text()) if checkpoint.exists() else 0
        shown = (folder.path / "demonstrations" / "shown").read_text()
        while not Path(self.permission).exists():
            number += 1
            write_atomically(checkpoint, str(number))
            callback(f"epoch {number}")
            time.sleep(0.02)
        if self.fails:
            raise ValueError("diverged")
        write_atomically(folder.path / "policies/weights", f"{shown}, learned")
        write_atomically(folder.path / "policies/policy.json", "{}")
        shutil.rmtree(checkpoint.parent, ignore_errors=True)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folders of workers are."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # which a worker replaces
    monkeypatch.setattr(ray_worker, "SEND_EVERY", 0.1)
    monkeypatch.setattr(ray_worker, "LISTEN", 0.3)
    return place


def make(folder: Path, files: dict[str, str]) -> Path:
    write_files(folder, {name: text.encode() for name, text in files.items()})
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def started_worker() -> Iterator[RemoteWorker]:
    worker = RemoteWorker(EXPERIMENT, 0.0, versions_here())
    try:
        yield worker
    finally:
        worker.stop()


def files_of(folder: Path, unit: Unit) -> Files:
    return read_files(folder, [*unit.inputs, *unit.unfinished, *unit.outputs])


def received(worker: RemoteWorker, folder: Path, messages: int) -> Iterator[Event]:
    """Yield events, with their files in the folder; for so many messages, or until the unit is over."""
    for _ in range(messages):
        message = worker.news()
        write_files(folder, message.files, message.removed)
        if message.event:
            yield message.event
        if message.is_last:
            return


def test_files_that_complete_a_folder_are_the_last_of_it(tmp_path: Path) -> None:
    names = ["d/manifest.json", "d/episode-0", "p/policy.json", "p/domain.pddl", "p/weights", "other/x"]
    folder = make(tmp_path / "folder", dict.fromkeys(names, "."))
    packed = list(read_files(folder, ["d", "p"]))
    assert set(packed) == set(names) - {"other/x"}
    assert packed.index("d/manifest.json") == 1
    assert packed[-1] == "p/policy.json"


def test_what_is_read_is_written(tmp_path: Path) -> None:
    here = make(tmp_path / "here", {"a/b/c": "one", "a/d": "two"})
    there = make(tmp_path / "there", {"a/d": "old", "gone/e": "three"})
    write_files(there, read_files(here, ["a", "missing"]), removed=["gone/e", "gone/never"])
    assert texts(there) == texts(here)
    assert not (there / "gone").exists()


def test_a_unit_is_done_elsewhere_and_its_files_come_back_on_the_way(tmp_path: Path, scratch: Path) -> None:
    folder = make(tmp_path / "folder", {"demonstrations/shown": "pick", "unfinished/blocks/epoch": "1000"})
    unit = Training("blocks", str(tmp_path / "permission"))
    with started_worker() as worker:
        assert isinstance(worker.begin(unit, files_of(folder, unit)).event, Advanced)
        events = []
        while texts(folder)["unfinished/blocks/epoch"] == "1000":
            events += list(received(worker, folder, 1))
        assert all(isinstance(event, Advanced) and int(event.note.split()[1]) > 1000 for event in events)
        assert list(folder.glob("policies")) == []

        (tmp_path / "permission").touch()
        assert list(received(worker, folder, 100))[-1] == Finished(unit)
        assert texts(folder) == {
            "demonstrations/shown": "pick",
            "policies/weights": "pick, learned",
            "policies/policy.json": "{}",
        }
    assert [path for path in scratch.rglob("*") if path.is_file()] == []


def test_a_worker_is_used_again_after_a_failure(tmp_path: Path) -> None:
    folder = make(tmp_path / "folder", {"demonstrations/shown": "pick"})
    (tmp_path / "permission").touch()
    failing = Training("blocks", str(tmp_path / "permission"), fails=True)
    with started_worker() as worker:
        worker.begin(failing, files_of(folder, failing))
        (failed,) = received(worker, folder, 100)
        assert isinstance(failed, Failed)
        assert failed.error.startswith("ValueError: diverged")

        make(folder, {"demonstrations/shown": "place"})
        good = Training("blocks", str(tmp_path / "permission"))
        worker.begin(good, files_of(folder, good))
        assert list(received(worker, folder, 100)) == [Finished(good)]
    assert texts(folder)["policies/weights"] == "place, learned"


def test_folders_that_killed_processes_left_are_removed(scratch: Path) -> None:
    context = get_context("spawn")
    ready = context.Event()
    killed = context.Process(target=_make_and_wait, args=(str(scratch), ready))
    killed.start()
    assert ready.wait(60)
    (left,) = scratch.glob("*/*")
    with started_worker():
        assert left.exists()
        killed.kill()
        killed.join()
        with started_worker():
            assert not left.exists()
            assert len(list(scratch.glob("*/*"))) == 2  # those of the living
    assert list(scratch.glob("*/*")) == []


def _make_and_wait(scratch: str, ready: ProcessEvent) -> None:
    tempfile.tempdir = scratch
    make_scratch_folder()
    ready.set()
    time.sleep(600)


def test_other_versions_are_told_apart() -> None:
    here = versions_here()
    check_versions(here)
    check_versions({})
    with pytest.raises(
        OtherVersions, match=r"a node of the cluster, has numpy .*, not 0\.1, nothing is missing, not 2; "
    ):
        check_versions({**here, "numpy": "0.1", "nothing": "2"})
