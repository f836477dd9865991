"""How far the whole experiment is, for whoever looks on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bilevel.commands.arguments import count

if TYPE_CHECKING:
    from bilevel.experiments.reproduction.backends import Backend
    from bilevel.experiments.reproduction.driver import RunProgress
    from bilevel.experiments.reproduction.unit import Unit

MOST_SHOWN = 16  # units that are being worked on
SAID_EVERY = 30.0  # seconds, where nobody looks at a terminal


def duration(seconds: float) -> str:
    """Return a time in words that a person plans with."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


class Display:
    """Shows how far it is: on a terminal all the time, elsewhere in a line now and then."""

    def __init__(self, progress: RunProgress, backend: Backend, silent: bool) -> None:
        self._progress, self._backend, self._silent = progress, backend, silent
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, transient=True, refresh_per_second=2, get_renderable=self._draw)
        self._said = time.monotonic()

    def __enter__(self) -> Display:
        if self._console.is_terminal and not self._silent:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def announce(self, units: Sequence[Unit], left_out: Sequence[str]) -> None:
        """Say what there is to do, and about how long it will take."""
        for line in left_out:
            self._say(f"left out: {line}")
        kinds = Counter(unit.kind for unit in self._progress.waiting)
        what = ", ".join(f"{kind} {number}" for kind, number in kinds.items()) or "nothing"
        self._say(f"{count(units, 'unit')} of work, {self._progress.there} of them there; to do: {what}")
        if kinds:
            workers, left = count(range(self._backend.workers), "worker"), self._left()
            self._say(f"about {left} with {workers}; the estimate gets better on the way")

    def show(self) -> None:
        """Say now and then how far it is, where there is no terminal that shows it."""
        if not self._live.is_started and time.monotonic() - self._said > SAID_EVERY:
            self._said = time.monotonic()
            self._say(self.state())

    def state(self) -> str:
        progress = self._progress
        failed = f", {len(progress.failed)} failed" if progress.failed else ""
        others = f", {len(progress.elsewhere)} with another run" if progress.elsewhere else ""
        done = progress.there + len(progress.done)
        return f"{done} of {progress.total} units there{failed}{others}; about {self._left()} left"

    def _left(self) -> str:
        return duration(self._progress.seconds_left(self._backend.workers))

    def _say(self, line: str) -> None:
        if not self._silent:
            self._console.print(line, highlight=False, soft_wrap=True)

    def _draw(self) -> RenderableType:
        progress = self._progress
        bar = ProgressBar(progress.total, progress.there + len(progress.done), width=60)
        table = Table.grid(padding=(0, 2))
        for unit, note in list(progress.running.items())[:MOST_SHOWN]:
            table.add_row(unit.name, Text(note, style="dim"))
        return Group(Text(self.state()), bar, table)
