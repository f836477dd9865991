"""What a unit writes elsewhere comes back whole, in an order that can be interrupted, and nothing is left there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import ClassVar

import pytest

from bilevel.experiments.reproduction import backends, shipping
from bilevel.experiments.reproduction.backends import Failed, Finished, Told
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.settings import Experiment
from bilevel.experiments.reproduction.shipping import Misfit, Workplace, check_versions, pack, unpack, versions_here
from bilevel.experiments.reproduction.unit import Tick, Unit

EXPERIMENT = Experiment()


@dataclass(frozen=True)
class Training(Unit):
    """As long as there is no permission to end it, it goes on; then its checkpoint is gone, and a policy is there."""

    kind: ClassVar[str] = "training"
    permission: str
    fails: bool = False

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"policies/{self.task}",)

    def is_done(self, kept: Kept) -> bool:
        raise NotImplementedError

    def sources(self, kept: Kept) -> Sequence[Path]:
        return [kept.folder / "demonstrations", *self.products(kept)]

    def products(self, kept: Kept) -> Sequence[Path]:
        return [kept.folder / "unfinished" / self.task, kept.folder / "policies"]

    def perform(self, kept: Kept, tick: Tick) -> None:
        checkpoint, _ = self.products(kept)
        number = int((checkpoint / "epoch").read_text()) if checkpoint.exists() else 0
        shown = (kept.folder / "demonstrations" / "shown").read_text()
        while not Path(self.permission).exists():
            number += 1
            unpack(kept, {f"unfinished/{self.task}/epoch": str(number).encode()})
            tick(f"epoch {number}")
            time.sleep(0.02)
        if self.fails:
            raise ValueError("diverged")
        weights = f"{shown}, learned".encode()
        unpack(kept, {"policies/weights": weights, "policies/policy.json": b"{}"}, [f"unfinished/{self.task}/epoch"])


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders of workplaces are."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(shipping, "SEND_EVERY", 0.1)
    monkeypatch.setattr(shipping, "LISTEN", 0.3)
    return place


def made(folder: Path, files: dict[str, str]) -> Kept:
    kept = Kept(folder, EXPERIMENT)
    unpack(kept, {name: text.encode() for name, text in files.items()})
    return kept


def texts(kept: Kept) -> dict[str, str]:
    return {kept.relative(file): file.read_text() for file in kept.files(kept.folder)}


@contextmanager
def workplace() -> Iterator[Workplace]:
    place = Workplace(EXPERIMENT, 0.0, versions_here())
    try:
        yield place
    finally:
        place.leave()


def inputs(kept: Kept, unit: Unit) -> list[shipping.Files]:
    return [pack(kept, [path]) for path in unit.sources(kept)]


def received(place: Workplace, kept: Kept, answers: int) -> Iterator[backends.Event]:
    """Events, with their files in the folder; for so many answers, or until the unit is over."""
    for _ in range(answers):
        parcel = place.news()
        unpack(kept, parcel.files, parcel.removed)
        yield from parcel.events
        if parcel.is_last:
            return


def test_files_that_complete_a_folder_are_the_last_of_it(tmp_path: Path) -> None:
    names = ["d/manifest.json", "d/episode-0", "p/policy.json", "p/domain.pddl", "p/weights", "other/x"]
    kept = made(tmp_path / "kept", dict.fromkeys(names, "."))
    packed = list(pack(kept, [tmp_path / "kept" / "d", tmp_path / "kept" / "p"]))
    assert set(packed) == set(names) - {"other/x"}
    assert packed.index("d/manifest.json") == 1
    assert packed[-1] == "p/policy.json"


def test_what_is_packed_is_unpacked(tmp_path: Path) -> None:
    here = made(tmp_path / "here", {"a/b/c": "one", "a/d": "two"})
    there = made(tmp_path / "there", {"a/d": "old", "gone/e": "three"})
    unpack(there, pack(here, [here.folder / "a", here.folder / "missing"]), removed=["gone/e", "gone/never"])
    assert texts(there) == texts(here)
    assert not (there.folder / "gone").exists()


def test_a_unit_is_done_elsewhere_and_its_files_come_back_on_the_way(tmp_path: Path, scratch: Path) -> None:
    kept = made(tmp_path / "kept", {"demonstrations/shown": "pick", "unfinished/blocks/epoch": "1000"})
    unit = Training("blocks", str(tmp_path / "permission"))
    with workplace() as place:
        assert isinstance(place.begin(unit, *inputs(kept, unit)).events[0], Told)
        events = []
        while texts(kept)["unfinished/blocks/epoch"] == "1000":
            events += list(received(place, kept, 1))
        assert all(isinstance(event, Told) and int(event.note.split()[1]) > 1000 for event in events)
        assert list(kept.folder.glob("policies")) == []

        (tmp_path / "permission").touch()
        assert list(received(place, kept, 100))[-1] == Finished(unit)
        assert texts(kept) == {
            "demonstrations/shown": "pick",
            "policies/weights": "pick, learned",
            "policies/policy.json": "{}",
        }
    assert [path for path in scratch.rglob("*") if path.is_file()] == []


def test_a_workplace_is_used_again_after_a_failure(tmp_path: Path) -> None:
    kept = made(tmp_path / "kept", {"demonstrations/shown": "pick"})
    (tmp_path / "permission").touch()
    failing = Training("blocks", str(tmp_path / "permission"), fails=True)
    with workplace() as place:
        place.begin(failing, *inputs(kept, failing))
        (failed,) = received(place, kept, 100)
        assert isinstance(failed, Failed)
        assert failed.error.startswith("ValueError: diverged")

        made(kept.folder, {"demonstrations/shown": "place"})
        good = Training("blocks", str(tmp_path / "permission"))
        place.begin(good, *inputs(kept, good))
        assert list(received(place, kept, 100)) == [Finished(good)]
    assert texts(kept)["policies/weights"] == "place, learned"


def test_folders_that_killed_processes_left_are_removed(scratch: Path) -> None:
    context = get_context("spawn")
    ready = context.Event()
    killed = context.Process(target=_take_and_wait, args=(str(scratch), ready))
    killed.start()
    assert ready.wait(60)
    (left,) = scratch.glob("*/*")
    with workplace():
        assert left.exists()
        killed.kill()
        killed.join()
        with workplace():
            assert not left.exists()
            assert len(list(scratch.glob("*/*"))) == 2  # those of the living
    assert list(scratch.glob("*/*")) == []


def _take_and_wait(scratch: str, ready: Event) -> None:
    tempfile.tempdir = scratch
    Workplace(EXPERIMENT, 0.0, {})
    ready.set()
    time.sleep(600)


def test_other_versions_are_told_apart() -> None:
    here = versions_here()
    check_versions(here)
    check_versions({})
    with pytest.raises(Misfit, match=r"a node of the cluster, has numpy .*, not 0\.1, nothing is missing, not 2; "):
        check_versions({**here, "numpy": "0.1", "nothing": "2"})
