"""The fenced blocks of the pages of the docs, and the commands in those for a shell."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
VARIABLE = re.compile(r"^(?:export )?\w+=", re.MULTILINE)
# A shell that knows hardly any program: whatever else is called is written down, with the folder and its arguments.
RECORDER = r"""
record() { printf '%s\0' "$PWD" $# "$@" >&9; }
command_not_found_handle() { record "$@"; }
source() { /bin/cat "${1:--}" >/dev/null 2>&1 || true; record source "$@"; }
cd() { builtin cd "$1" 2>/dev/null || true; }
cat() { /bin/cat "$@"; }
cp() { /bin/cp "$@"; }
sed() { /bin/sed "$@"; }
mkdir() { /bin/mkdir "$@"; }
HOME=$PWD
PATH=/nowhere
"""


class Block(NamedTuple):
    """What is between two fences of a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


class Command(NamedTuple):
    """A command with the shell's expansions made, and the folder in which it is given."""

    words: tuple[str, ...]
    folder: Path

    def __str__(self) -> str:
        return " ".join(self.words)


def blocks_of(page: Path) -> list[Block]:
    text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
    return [
        Block(
            name, text.count("\n", 0, found.start()) + 1, found[2].strip(), dedent(found[3]) if found[1] else found[3]
        )
        for found in FENCE.finditer(text)
    ]


def commands_in(text: str, folder: Path) -> list[Command]:
    """Return the commands that a shell would give, in their order."""
    script = re.sub(r"^\.venv\S*/bin/", "", text, flags=re.MULTILINE)
    record = folder / "commands"
    bash = ["/bin/bash", "-euc", f"exec 9>{record}\n{RECORDER}\n{script}"]
    done = subprocess.run(bash, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    fields = iter(record.read_text(encoding="utf-8").split("\0")[:-1])
    record.unlink()
    return list(_commands(fields))


def _commands(fields: Iterator[str]) -> Iterator[Command]:
    for folder in fields:
        number = int(next(fields))
        yield Command(tuple(next(fields) for _ in range(number)), Path(folder))


def variables_in(text: str) -> str:
    """Return the lines that set variables, which the later blocks of a page use."""
    return "\n".join(line for line in text.splitlines() if VARIABLE.match(line))
