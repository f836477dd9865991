"""Units are done in an order in which each finds what it needs, once, by whichever run, and failures are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from bilevel.experiments.reproduction import driver as module
from bilevel.experiments.reproduction.backends import Advanced, Event, Failed, Finished, failure
from bilevel.experiments.reproduction.driver import Driver, RunProgress
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder, Locks
from bilevel.experiments.reproduction.forecast import Forecast
from bilevel.experiments.reproduction.units import Callback, Unit
from bilevel.symbolic.domain import BadInput


@dataclass(frozen=True)
class Piece(Unit):
    """A file of its name, which needs others."""

    kind: ClassVar[str] = "piece"
    after: tuple[str, ...] = ()
    trains: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"pieces/{self.task}",)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"pieces/{name}" for name in self.after)

    @property
    def uses_gpu(self) -> bool:
        return self.trains

    def is_done(self, folder: ExperimentFolder) -> bool:
        return (folder.path / self.outputs[0]).exists()

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        assert all((folder.path / name).exists() for name in self.inputs)
        callback("half")
        (folder.path / self.outputs[0]).touch()


class Alphabetical(Forecast):
    """Guesses that everything takes a second."""

    def rank(self, unit: Unit) -> tuple[int, float]:
        return 0, float(ord(unit.task[0]))

    def guess(self, unit: Unit) -> float:
        return 1.0


@dataclass
class Slowly:
    """A back-end that does a little whenever it is asked what has happened: one unit, the first that was started."""

    folder: ExperimentFolder
    workers: int = 2
    gpu_slots: int = 2
    fails: dict[str, int] = field(default_factory=dict)  # how often
    before: Callable[[Unit], None] = lambda unit: None
    running: list[Unit] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    most: int = 0
    asked: int = 0

    def start(self, unit: Unit) -> None:
        self.running.append(unit)
        assert len(self.running) <= self.workers
        assert sum(unit.uses_gpu for unit in self.running) <= self.gpu_slots
        self.started.append(unit.task)
        self.most = max(self.most, len(self.running))

    def events(self, timeout: float) -> list[Event]:
        self.asked += 1
        assert self.asked < 1000, "it waits for what will never happen"
        return list(self._go_on(self.running.pop(0))) if self.running else []

    def _go_on(self, unit: Unit) -> Iterator[Event]:
        self.before(unit)
        if self.fails.get(unit.task, 0) > 0:
            self.fails[unit.task] -= 1
            yield failure(unit, BadInput(f"{unit.task} cannot be done"))
            return
        told: list[str] = []
        unit.perform(self.folder, told.append)
        yield from (Advanced(unit, note) for note in told)
        yield Finished(unit)

    def close(self) -> None:
        self.running.clear()


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    (tmp_path / "pieces").mkdir()
    return ExperimentFolder(tmp_path, Experiment())


@pytest.fixture
def locks(folder: ExperimentFolder) -> Iterator[Locks]:
    with closing(Locks(folder.path / "locks")) as locks:
        yield locks


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.0)


def drive(backend: Slowly, locks: Locks, *units: Unit) -> RunProgress:
    return Driver(backend.folder, units, backend, locks, Alphabetical(backend.folder.experiment)).run()


def failures(folder: ExperimentFolder) -> list[Path]:
    return list(folder.path.glob("failures/*"))


def names(units: Sequence[Unit]) -> list[str]:
    return [unit.task for unit in units]


# Order


def test_each_unit_comes_after_what_it_needs(folder: ExperimentFolder, locks: Locks) -> None:
    units = Piece("d", ("b", "c")), Piece("c", ("a",)), Piece("b"), Piece("a")
    backend = Slowly(folder)
    progress = drive(backend, locks, *units)
    assert backend.started == ["a", "b", "c", "d"]
    assert names(progress.done) == backend.started
    assert (progress.total, progress.there, progress.failed, progress.waiting, progress.running) == (4, 0, {}, [], {})


def test_what_is_there_is_not_done_again_and_serves_others(folder: ExperimentFolder, locks: Locks) -> None:
    (folder.path / "pieces/a").touch()
    backend = Slowly(folder)
    progress = drive(backend, locks, Piece("a"), Piece("b", ("a",)))
    assert backend.started == ["b"]
    assert (progress.there, names(progress.done), progress.total) == (1, ["b"], 2)
    again = drive(Slowly(folder), locks, Piece("a"), Piece("b", ("a",)))
    assert (again.there, again.done, again.total) == (2, [], 2)


@pytest.mark.parametrize("workers", [1, 3])
def test_there_are_never_more_at_once_than_there_is_room_for(
    folder: ExperimentFolder, locks: Locks, workers: int
) -> None:
    backend = Slowly(folder, workers)
    drive(backend, locks, *(Piece(letter) for letter in "abcdefgh"))
    assert backend.most == workers
    assert sorted(backend.started) == list("abcdefgh")


def test_those_that_there_is_no_room_for_let_others_pass(folder: ExperimentFolder, locks: Locks) -> None:
    backend = Slowly(folder, workers=2, gpu_slots=1)
    units = [Piece("a", trains=True), Piece("b", trains=True), Piece("c"), Piece("d")]
    assert names(drive(backend, locks, *units).done) == backend.started == ["a", "c", "b", "d"]


def test_what_units_say_is_shown(folder: ExperimentFolder, locks: Locks) -> None:
    shown: list[dict[str, str]] = []
    units = [Piece("a"), Piece("b")]
    backend = Slowly(folder, workers=1)
    backend_events = backend.events

    def one_by_one(timeout: float, queue: list[Event] = []) -> list[Event]:  # noqa: B006 (is to be kept)
        queue += backend_events(timeout) if not queue else []
        return [queue.pop(0)] if queue else []

    backend.events = one_by_one  # type: ignore[method-assign]
    driver = Driver(folder, units, backend, locks, Alphabetical(folder.experiment))
    driver.run(lambda: shown.append({unit.task: note for unit, note in driver.progress.running.items()}))
    assert {"a": "half"} in shown
    assert {"b": "half"} in shown
    assert shown[-1] == {}


# Failures


def test_a_unit_that_fails_once_is_tried_again_after_the_others(folder: ExperimentFolder, locks: Locks) -> None:
    backend = Slowly(folder, workers=1, fails={"a": 1})
    progress = drive(backend, locks, Piece("a"), Piece("b"), Piece("c", ("a",)))
    assert backend.started == ["a", "b", "a", "c"]
    assert progress.failed == {}
    assert failures(folder) == []


def test_one_that_fails_twice_is_listed_and_what_needs_it_is_not_tried(folder: ExperimentFolder, locks: Locks) -> None:
    backend = Slowly(folder, fails={"a": 9})
    units = [Piece("a"), Piece("b"), Piece("c", ("a",)), Piece("d", ("c", "b")), Piece("e", ("b",))]
    progress = drive(backend, locks, *units)
    assert sorted(backend.started) == ["a", "a", "b", "e"]
    assert {unit.task: failed.error for unit, failed in progress.failed.items()} == {"a": "a cannot be done"}
    assert names(progress.waiting) == ["c", "d"]
    assert (sorted(names(progress.done)), progress.total) == (["b", "e"], 5)
    (file,) = failures(folder)
    assert json.loads(file.read_text()).items() >= {"unit": "piece a", "error": "a cannot be done"}.items()


def test_a_failure_is_forgotten_once_it_is_mended(folder: ExperimentFolder, locks: Locks) -> None:
    drive(Slowly(folder, fails={"a": 9}), locks, Piece("a"))
    assert len(failures(folder)) == 1
    progress = drive(Slowly(folder), locks, Piece("a"))
    assert (names(progress.done), progress.failed) == (["a"], {})
    assert failures(folder) == []


def test_what_nobody_gives_is_not_waited_for(folder: ExperimentFolder, locks: Locks) -> None:
    progress = drive(Slowly(folder), locks, Piece("a", ("nowhere",)), Piece("b"))
    assert (names(progress.done), names(progress.waiting)) == (["b"], ["a"])


def test_an_error_is_told_in_one_line_with_its_place() -> None:
    unit = Piece("a")
    assert failure(unit, BadInput("no such file")) == Failed(unit, "no such file")
    try:
        raise KeyError("some\n  lines")
    except KeyError as error:
        told = failure(unit, error)
    assert told.error.startswith("KeyError: 'some\\n lines' (test_driver.py, line ")
    assert "Traceback" in told.traceback


# Other runs


def test_what_another_run_does_meanwhile_is_not_done_again(folder: ExperimentFolder, locks: Locks) -> None:
    """By the time that there is room for the last one, somebody else has done it."""

    def other(unit: Unit) -> None:
        if unit.task == "a":
            (folder.path / "pieces/b").touch()

    backend = Slowly(folder, workers=1, before=other)
    progress = drive(backend, locks, Piece("a"), Piece("b"), Piece("c", ("b",)))
    assert backend.started == ["a", "c"]
    assert (names(progress.done), progress.there, progress.total) == (["a", "c"], 1, 3)


def test_what_another_run_is_at_is_waited_for(folder: ExperimentFolder, locks: Locks) -> None:
    with closing(Locks(folder.path / "locks")) as others:
        assert others.acquire(Piece("a").outputs)
        backend, seen = Slowly(folder), []
        driver = Driver(folder, [Piece("a"), Piece("b", ("a",))], backend, locks, Alphabetical(folder.experiment))

        def show() -> None:
            seen.append(names(list(driver.progress.elsewhere)))
            if backend.asked == 10:
                (folder.path / "pieces/a").touch()

        progress = driver.run(show)
    assert seen[:10] == [["a"]] * 10
    assert backend.started == ["b"]
    assert (progress.there, names(progress.done), progress.elsewhere) == (1, ["b"], set())


def test_what_another_run_gives_up_is_done_here(folder: ExperimentFolder, locks: Locks) -> None:
    with closing(Locks(folder.path / "locks")) as others:
        assert others.acquire(Piece("a").outputs)
        backend = Slowly(folder)
        driver = Driver(folder, [Piece("a"), Piece("b")], backend, locks, Alphabetical(folder.experiment))
        progress = driver.run(lambda: others.release(Piece("a").outputs) if backend.asked == 5 else None)
    assert backend.started == ["b", "a"]
    assert (names(progress.done), progress.elsewhere) == (["b", "a"], set())


def test_two_runs_share_the_work(folder: ExperimentFolder, locks: Locks) -> None:
    """They take turns: whenever one is told what has happened, the other goes on for a while, too."""
    units = [Piece("a"), *(Piece(letter, ("a",)) for letter in "bcdefgh"), Piece("i", tuple("bcdefgh"))]
    with closing(Locks(folder.path / "locks")) as others:
        first, second = Slowly(folder), Slowly(folder)
        other = Driver(folder, units, second, others, Alphabetical(folder.experiment))

        def go_on() -> None:
            other._start_units()
            for event in second.events(0):
                other._handle(event)

        ours = Driver(folder, units, first, locks, Alphabetical(folder.experiment)).run(go_on)
        theirs = other.run()
    assert sorted(first.started + second.started) == list("abcdefghi")
    assert len(first.started) > 1
    assert len(second.started) > 1
    assert len(ours.done) + ours.there == len(theirs.done) + theirs.there == len(units)
    assert len(ours.done) + len(theirs.done) == len(units)


# How long it will take


def test_the_estimate_learns_from_what_is_done() -> None:
    now = [0.0]
    forecast = Alphabetical(Experiment(), clock=lambda: now[0])
    a, b, c = Piece("a"), Piece("b"), Piece("c")
    assert forecast.seconds_left([a, b, c], workers=1) == 3.0
    assert forecast.seconds_left([a, b, c], workers=2) == 1.5
    assert forecast.seconds_left([a], workers=2) == 1.0
    forecast.begin(a)
    now[0] = 4.0
    forecast.finish(a)
    assert forecast.seconds_left([b, c], workers=1) == 8.0, "nothing else was expected"
    forecast.begin(b)
    now[0] = 5.0
    assert forecast.seconds_left([b, c], workers=1) == 7.0
    forecast.expect([a, b, c])
    assert 2.0 < forecast.seconds_left([b, c], workers=1) < 7.0, "one of three counts less than that"
    assert forecast.seconds_left([], workers=1) == 0.0
