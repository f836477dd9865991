"""Gets units done: whatever is not there yet, in an order in which each finds what it needs, by a back-end."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bilevel.experiments.reproduction.backends import Backend, Event, Failed, Finished, Told
from bilevel.experiments.reproduction.claims import Claims
from bilevel.experiments.reproduction.costs import Forecast
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.unit import Unit
from bilevel.files import write_atomically

PAUSE = 0.5  # seconds to wait for events at most
AGAIN = 2.0  # seconds until a unit that somebody else is at is looked at again
TRIES = 2


@dataclass
class Progress:
    """How far it is."""

    forecast: Forecast
    done: list[Unit] = field(default_factory=list)  # by this run
    there: int = 0  # units that were there before, or that others did
    running: dict[Unit, str] = field(default_factory=dict)  # with what they last said
    waiting: list[Unit] = field(default_factory=list)
    failed: dict[Unit, Failed] = field(default_factory=dict)  # twice, for good
    elsewhere: set[Unit] = field(default_factory=set)  # that another run is at

    @property
    def total(self) -> int:
        return self.there + len(self.done) + len(self.running) + len(self.waiting) + len(self.failed)

    def seconds_left(self, workers: int) -> float:
        return self.forecast.seconds_left([*self.running, *self.waiting], workers)


class Driver:
    """One run. Others may be at work in the same folder."""

    def __init__(
        self,
        kept: Kept,
        units: Sequence[Unit],
        backend: Backend,
        claims: Claims,
        forecast: Forecast,
    ) -> None:
        self._kept, self._backend, self._claims = kept, backend, claims
        self.progress = Progress(forecast)
        self._known: set[str] = set()  # what is there
        self._tried: dict[Unit, int] = {}
        self._not_before: dict[Unit, float] = {}
        for unit in units:
            if unit.is_done(kept):
                self._note_there(unit)
            else:
                self.progress.waiting.append(unit)
        needed = {name for unit in self.progress.waiting for name in unit.needs}
        self.progress.waiting = [u for u in self.progress.waiting if not u.is_means or needed.intersection(u.gives)]
        self.progress.waiting.sort(key=forecast.rank)

    def run(self, show: Callable[[], None] = lambda: None) -> Progress:
        """Until nothing is left that can be done; what is left then `waiting` needs something that failed."""
        progress = self.progress
        while progress.running or self._is_hope():
            self._start_what_can_be()
            for event in self._backend.events(PAUSE):
                self._handle(event)
            show()
        return progress

    def _is_hope(self) -> bool:
        """Whether something waits that can be done now; asked while nothing is running."""
        return any(self._known.issuperset(unit.needs) for unit in self.progress.waiting)

    def _start_what_can_be(self) -> None:
        now = time.monotonic()
        for unit in list(self.progress.waiting):
            if not self._known.issuperset(unit.needs) or self._not_before.get(unit, 0.0) > now:
                continue
            if not self._backend.has_room(unit):
                if unit.likes_gpu:  # there may still be room for others
                    continue
                break
            if not self._claims.take(unit.gives):
                self._not_before[unit] = now + AGAIN
                self.progress.elsewhere.add(unit)
                if unit.is_done(self._kept):
                    self._done_elsewhere(unit)
                continue
            self.progress.elsewhere.discard(unit)
            if unit.is_done(self._kept):  # by somebody else, meanwhile
                self._claims.release(unit.gives)
                self._done_elsewhere(unit)
                continue
            self.progress.waiting.remove(unit)
            self.progress.running[unit] = "beginning"
            self.progress.forecast.begin(unit)
            self._backend.start(unit)

    def _done_elsewhere(self, unit: Unit) -> None:
        self.progress.waiting.remove(unit)
        self.progress.elsewhere.discard(unit)
        self._note_there(unit)

    def _note_there(self, unit: Unit) -> None:
        self._note_done(unit)
        self.progress.there += 1

    def _note_done(self, unit: Unit) -> None:
        self._known.update(unit.gives)
        self._failure_file(unit).unlink(missing_ok=True)
        for folder in unit.leftovers(self._kept):
            shutil.rmtree(folder, ignore_errors=True)

    def _handle(self, event: Event) -> None:
        unit = event.unit
        if isinstance(event, Told):
            self.progress.running[unit] = event.note
            return
        del self.progress.running[unit]
        if isinstance(event, Finished):
            self.progress.forecast.finish(unit)
            self._note_done(unit)
            self.progress.done.append(unit)
        else:
            self._handle_failure(event)
        self._claims.release(unit.gives)

    def _handle_failure(self, failed: Failed) -> None:
        """Once more, after all else that waits; then it is listed."""
        unit = failed.unit
        self.progress.forecast.give_up(unit)
        self._tried[unit] = self._tried.get(unit, 0) + 1
        if self._tried[unit] < TRIES:
            self.progress.waiting.append(unit)
            return
        self.progress.failed[unit] = failed
        content = {"unit": unit.name, "error": failed.error, "traceback": failed.traceback}
        write_atomically(self._failure_file(unit), json.dumps(content, indent=1) + "\n")

    def _failure_file(self, unit: Unit) -> Path:
        return self._kept.failures / f"{unit.name.replace('/', '+').replace(' ', '+')}.json"
