"""What the commands print: answers as text or JSON, text of others made printable, and how far long work is."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bilevel.progress import Callback, Progress

LONGEST_LINE = 4000  # characters
SHOWN_EVERY = 0.2  # seconds, on a terminal
SAID_EVERY = 30.0  # seconds, where standard error is no terminal


def printable(text: str, most: int = LONGEST_LINE) -> str:
    """Return text of others as a terminal may show it: no control characters, and no line longer than `most`."""
    lines = [line if len(line) <= most else f"{line[:most]}… ({len(line):,} characters)" for line in text.split("\n")]
    return "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in "\n".join(lines))


def wants_json() -> bool:
    """Return whether the command that runs was given --json."""
    return bool(click.get_current_context().meta.get("json"))


def answer(values: Mapping[str, object], *lines: str) -> None:
    """Print what a command has found: as one JSON object, as the lines of text or, if none are given, as `name: value`.

    Lines and values that are empty are left out of the text.
    """
    if wants_json():
        print(json.dumps(values, default=_plain))
        return
    given = {name.replace("_", " "): value for name, value in values.items() if value or value in (0, False)}
    for line in filter(None, lines or (f"{name}: {listed(value)}" for name, value in given.items())):
        print(printable(line))


def _plain(value: object) -> object:
    """Return what JSON does not know as something that it does."""
    import msgspec

    return msgspec.to_builtins(value, str_keys=True, enc_hook=str)


def listed(value: object) -> str:
    """Return a value in words: of several things, one after the other."""
    if isinstance(value, Mapping):
        value = [f"{name or 'unknown'} {listed(each)}" for name, each in sorted(value.items())]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def say(*lines: str) -> None:
    """Print lines that are no answer on standard error, but for programs, which want JSON."""
    if not wants_json():
        sys.stdout.flush()
        for line in filter(None, lines):
            print(printable(line), file=sys.stderr, flush=True)


def count(things: Sized | int, noun: str) -> str:
    """Return `1 unit` or `2 units`."""
    number = things if isinstance(things, int) else len(things)
    return f"{number} {noun}{'' if number == 1 else 's'}"


@contextmanager
def progress_line(resumes: bool = False) -> Iterator[Callback]:
    """Give a callback that shows how far work is, on one line of standard error; where it `resumes`, Ctrl-C says so."""
    is_terminal = sys.stderr.isatty()
    doing, shown = "", time.monotonic()
    stage, began, first = "", shown, 0

    def show(progress: Progress) -> None:
        """Show the progress, unless the line was shown a moment ago."""
        nonlocal doing, shown, stage, began, first
        now, total = time.monotonic(), progress.total
        if progress.stage != stage:
            stage, began, first = progress.stage, now, progress.done
        of = f" of {total:,}" if total is not None else ""
        doing = printable(stage, 60) + (f", {progress.done:,}{of}" if of or progress.done else "")
        if now - shown < (SHOWN_EVERY if is_terminal else SAID_EVERY):
            return
        shown, done = now, progress.done - first
        values = "".join(f"; {name} {value:.4g}" for name, value in progress.values.items())
        left = timedelta(seconds=round((now - began) / done * (total - progress.done))) if done and total else ""
        line = f"{doing}{values}{f'; about {left} left' if left else ''}"
        print(f"\r\033[K{line}" if is_terminal else f"{line}\n", end="", file=sys.stderr, flush=True)

    try:
        yield show
    except KeyboardInterrupt:
        again = "; run the same command again to go on" if resumes else ""
        raise KeyboardInterrupt(f"interrupted{f' while {doing}' if doing else ''}{again}") from None
    finally:
        print("\r\033[K" if is_terminal else "", end="", file=sys.stderr, flush=True)
