"""Files of results: lines of JSON, each with the command that made it, the versions it depends on, and the machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bilevel.experiments.machines import machine
from bilevel.files import write_atomically
from bilevel.versions import versions

Row = dict[str, Any]


def origin(packages: Iterable[str] = ()) -> Row:
    """Return what every row says of where it comes from: this program, with the versions of these packages."""
    command = f"python benchmarks/{Path(sys.argv[0]).name}"
    return {"command": command, "versions": versions(packages), "machine": machine()}


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; there are none where there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file anew."""
    write_atomically(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def replace_row(path: Path, new: Row, keys: Sequence[str]) -> None:
    """Put a row into a file, in place of the one with the same values under these keys."""
    kept = [row for row in read_rows(path) if any(row.get(key) != new.get(key) for key in keys)]
    write_rows(path, [*kept, new])
