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
from bilevel.experiments.reproduction.backends import Event, Failed, Finished, Told, failure
from bilevel.experiments.reproduction.claims import Claims
from bilevel.experiments.reproduction.costs import Forecast
from bilevel.experiments.reproduction.driver import Driver, Progress
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.settings import Experiment
from bilevel.experiments.reproduction.unit import Tick, Unit
from bilevel.symbolic.domain import BadInput


@dataclass(frozen=True)
class Piece(Unit):
    """A file of its name, which needs others."""

    kind: ClassVar[str] = "piece"
    after: tuple[str, ...] = ()
    trains: bool = False

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"pieces/{self.task}",)

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(f"pieces/{name}" for name in self.after)

    @property
    def likes_gpu(self) -> bool:
        return self.trains

    def is_done(self, kept: Kept) -> bool:
        return (kept.folder / self.task).exists()

    def sources(self, kept: Kept) -> Sequence[Path]:
        return [kept.folder / name for name in self.after]

    def products(self, kept: Kept) -> Sequence[Path]:
        return [kept.folder / self.task]

    def perform(self, kept: Kept, tick: Tick) -> None:
        assert all(path.exists() for path in self.sources(kept))
        tick("half")
        (kept.folder / self.task).touch()


class Alphabetical(Forecast):
    """Guesses that everything takes a second."""

    def rank(self, unit: Unit) -> tuple[int, float]:
        return 0, float(ord(unit.task[0]))

    def guess(self, unit: Unit) -> float:
        return 1.0


@dataclass
class Slowly:
    """A back-end that does a little whenever it is asked what has happened: one unit, the first that was started."""

    kept: Kept
    workers: int = 2
    trainings: int = 2  # at most, at the same time
    fails: dict[str, int] = field(default_factory=dict)  # how often
    before: Callable[[Unit], None] = lambda unit: None
    running: list[Unit] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    most: int = 0
    asked: int = 0

    def has_room(self, unit: Unit) -> bool:
        training = sum(other.likes_gpu for other in self.running)
        return len(self.running) < self.workers and not (unit.likes_gpu and training >= self.trainings)

    def start(self, unit: Unit) -> None:
        assert self.has_room(unit)
        self.running.append(unit)
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
        unit.perform(self.kept, told.append)
        yield from (Told(unit, note) for note in told)
        yield Finished(unit)

    def close(self) -> None:
        self.running.clear()


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path, Experiment())


@pytest.fixture
def claims(kept: Kept) -> Iterator[Claims]:
    with closing(Claims(kept)) as claims:
        yield claims


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.0)


def drive(backend: Slowly, claims: Claims, *units: Unit) -> Progress:
    return Driver(backend.kept, units, backend, claims, Alphabetical(backend.kept.experiment)).run()


def names(units: Sequence[Unit]) -> list[str]:
    return [unit.task for unit in units]


# Order


def test_each_unit_comes_after_what_it_needs(kept: Kept, claims: Claims) -> None:
    units = Piece("d", ("b", "c")), Piece("c", ("a",)), Piece("b"), Piece("a")
    backend = Slowly(kept)
    progress = drive(backend, claims, *units)
    assert backend.started == ["a", "b", "c", "d"]
    assert names(progress.done) == backend.started
    assert (progress.total, progress.there, progress.failed, progress.waiting, progress.running) == (4, 0, {}, [], {})


def test_what_is_there_is_not_done_again_and_serves_others(kept: Kept, claims: Claims) -> None:
    (kept.folder / "a").touch()
    backend = Slowly(kept)
    progress = drive(backend, claims, Piece("a"), Piece("b", ("a",)))
    assert backend.started == ["b"]
    assert (progress.there, names(progress.done), progress.total) == (1, ["b"], 2)
    again = drive(Slowly(kept), claims, Piece("a"), Piece("b", ("a",)))
    assert (again.there, again.done, again.total) == (2, [], 2)


@pytest.mark.parametrize("workers", [1, 3])
def test_there_are_never_more_at_once_than_there_is_room_for(kept: Kept, claims: Claims, workers: int) -> None:
    backend = Slowly(kept, workers)
    drive(backend, claims, *(Piece(letter) for letter in "abcdefgh"))
    assert backend.most == workers
    assert sorted(backend.started) == list("abcdefgh")


def test_those_that_there_is_no_room_for_let_others_pass(kept: Kept, claims: Claims) -> None:
    backend = Slowly(kept, workers=2, trainings=1)
    units = [Piece("a", trains=True), Piece("b", trains=True), Piece("c"), Piece("d")]
    assert names(drive(backend, claims, *units).done) == backend.started == ["a", "c", "b", "d"]


def test_what_units_say_is_shown(kept: Kept, claims: Claims) -> None:
    shown: list[dict[str, str]] = []
    units = [Piece("a"), Piece("b")]
    backend = Slowly(kept, workers=1)
    backend_events = backend.events

    def one_by_one(timeout: float, queue: list[Event] = []) -> list[Event]:  # noqa: B006 (is to be kept)
        queue += backend_events(timeout) if not queue else []
        return [queue.pop(0)] if queue else []

    backend.events = one_by_one  # type: ignore[method-assign]
    driver = Driver(kept, units, backend, claims, Alphabetical(kept.experiment))
    driver.run(lambda: shown.append({unit.task: note for unit, note in driver.progress.running.items()}))
    assert {"a": "half"} in shown
    assert {"b": "half"} in shown
    assert shown[-1] == {}


# Failures


def test_a_unit_that_fails_once_is_tried_again_after_the_others(kept: Kept, claims: Claims) -> None:
    backend = Slowly(kept, workers=1, fails={"a": 1})
    progress = drive(backend, claims, Piece("a"), Piece("b"), Piece("c", ("a",)))
    assert backend.started == ["a", "b", "a", "c"]
    assert progress.failed == {}
    assert not kept.failures.exists() or not list(kept.failures.iterdir())


def test_one_that_fails_twice_is_listed_and_what_needs_it_is_not_tried(kept: Kept, claims: Claims) -> None:
    backend = Slowly(kept, fails={"a": 9})
    units = [Piece("a"), Piece("b"), Piece("c", ("a",)), Piece("d", ("c", "b")), Piece("e", ("b",))]
    progress = drive(backend, claims, *units)
    assert sorted(backend.started) == ["a", "a", "b", "e"]
    assert {unit.task: failed.error for unit, failed in progress.failed.items()} == {"a": "a cannot be done"}
    assert names(progress.waiting) == ["c", "d"]
    assert (sorted(names(progress.done)), progress.total) == (["b", "e"], 5)
    (file,) = kept.failures.iterdir()
    assert json.loads(file.read_text()).items() >= {"unit": "piece a", "error": "a cannot be done"}.items()
    assert list(kept.claims.iterdir()) == []


def test_a_failure_is_forgotten_once_it_is_mended(kept: Kept, claims: Claims) -> None:
    drive(Slowly(kept, fails={"a": 9}), claims, Piece("a"))
    assert len(list(kept.failures.iterdir())) == 1
    progress = drive(Slowly(kept), claims, Piece("a"))
    assert (names(progress.done), progress.failed) == (["a"], {})
    assert list(kept.failures.iterdir()) == []


def test_what_nobody_gives_is_not_waited_for(kept: Kept, claims: Claims) -> None:
    progress = drive(Slowly(kept), claims, Piece("a", ("nowhere",)), Piece("b"))
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


def test_what_another_run_does_meanwhile_is_not_done_again(kept: Kept, claims: Claims) -> None:
    """By the time that there is room for the last one, somebody else has done it."""

    def other(unit: Unit) -> None:
        if unit.task == "a":
            (kept.folder / "b").touch()

    backend = Slowly(kept, workers=1, before=other)
    progress = drive(backend, claims, Piece("a"), Piece("b"), Piece("c", ("b",)))
    assert backend.started == ["a", "c"]
    assert (names(progress.done), progress.there, progress.total) == (["a", "c"], 1, 3)


def test_what_another_run_is_at_is_waited_for(kept: Kept, claims: Claims) -> None:
    with closing(Claims(kept)) as others:
        assert others.take(Piece("a").gives)
        backend, seen = Slowly(kept), []
        driver = Driver(kept, [Piece("a"), Piece("b", ("a",))], backend, claims, Alphabetical(kept.experiment))

        def show() -> None:
            seen.append(names(list(driver.progress.elsewhere)))
            if backend.asked == 10:
                (kept.folder / "a").touch()

        progress = driver.run(show)
    assert seen[:10] == [["a"]] * 10
    assert backend.started == ["b"]
    assert (progress.there, names(progress.done), progress.elsewhere) == (1, ["b"], set())


def test_what_another_run_gives_up_is_done_here(kept: Kept, claims: Claims) -> None:
    with closing(Claims(kept)) as others:
        assert others.take(Piece("a").gives)
        backend = Slowly(kept)
        driver = Driver(kept, [Piece("a"), Piece("b")], backend, claims, Alphabetical(kept.experiment))
        progress = driver.run(lambda: others.release(Piece("a").gives) if backend.asked == 5 else None)
    assert backend.started == ["b", "a"]
    assert (names(progress.done), progress.elsewhere) == (["b", "a"], set())


def test_two_runs_share_the_work(kept: Kept, claims: Claims) -> None:
    """They take turns: whenever one is told what has happened, the other goes on for a while, too."""
    units = [Piece("a"), *(Piece(letter, ("a",)) for letter in "bcdefgh"), Piece("i", tuple("bcdefgh"))]
    with closing(Claims(kept)) as others:
        first, second = Slowly(kept), Slowly(kept)
        other = Driver(kept, units, second, others, Alphabetical(kept.experiment))

        def go_on() -> None:
            other._start_what_can_be()
            for event in second.events(0):
                other._handle(event)

        ours = Driver(kept, units, first, claims, Alphabetical(kept.experiment)).run(go_on)
        theirs = other.run()
    assert sorted(first.started + second.started) == list("abcdefghi")
    assert len(first.started) > 1
    assert len(second.started) > 1
    assert len(ours.done) + ours.there == len(theirs.done) + theirs.there == len(units)
    assert len(ours.done) + len(theirs.done) == len(units)


# How long it will take


def test_the_estimate_learns_from_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    forecast = Alphabetical(Experiment())
    a, b, c = Piece("a"), Piece("b"), Piece("c")
    assert forecast.seconds_left([a, b, c], workers=1) == 3.0
    assert forecast.seconds_left([a, b, c], workers=2) == 1.5
    assert forecast.seconds_left([a], workers=2) == 1.0
    forecast.begin(a)
    now[0] = 4.0
    forecast.finish(a)
    assert forecast.seconds_left([b, c], workers=1) == 8.0
    forecast.begin(b)
    now[0] = 5.0
    assert forecast.seconds_left([b, c], workers=1) == 7.0
    assert forecast.seconds_left([], workers=1) == 0.0
