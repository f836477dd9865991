"""Every page is carried out from top to bottom, block by block, as `docs/contributing.md` says."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
BLOCK = re.compile(r"((?:^<!-- docs: .*? -->\n+)*)^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"<!-- docs: (.*?) -->")
VARIABLE = re.compile(r"^(?:export )?\w+=.*$", re.MULTILINE)
PRINTED = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
NUMBER = re.compile(r"\d[\d,.]*")
# A user's command with further options; `may fail` forgives the exit code 1.
SHELL = """set -e
bilevel() {{ {python} -m bilevel "$@" {more} || {forgiven}; }}
python() {{ {python} "$@"; }}
{variables}
"""


class Block(NamedTuple):
    """What is between two fences of a page, and the notes before it."""

    notes: list[str]
    language: str
    text: str

    @property
    def is_skipped(self) -> bool:
        return any(note.startswith("skip") for note in self.notes)

    def note(self, name: str) -> str:
        """Return what stands behind a name in the notes."""
        parts = (part.strip() for note in self.notes for part in note.split("; "))
        return " ".join(part.removeprefix(f"{name}:").strip() for part in parts if part.startswith(name))


def blocks_of(page: Path) -> list[Block]:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(NOTE.findall(block[1]), block[2], block[3]) for block in found]


def same(line: str) -> str:
    """Return a line without its numbers, which differ from machine to machine, and without the widths of columns."""
    return NUMBER.sub("#", " ".join(line.split()))


class Page:
    """A page that is being carried out in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = ""
        self.printed: list[str] = []
        self.namespace: dict[str, Any] = {"__name__": "__page__"}
        files = [file for part in ("examples", "src") for file in (ROOT / part).rglob("*.py")]
        self.sources = [file.read_text(encoding="utf-8") for file in files]

    def shell(self, block: Block) -> None:
        may_fail = "may fail" in " ".join(block.notes)
        head = SHELL.format(
            python=sys.executable,
            more=block.note("append"),
            forgiven="[ $? -eq 1 ]" if may_fail else "return $?",
            variables=self.variables,
        )
        script = f"{head}\n{block.note('setup')}\n{block.text}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{block.text}\n{done.stdout[-3000:]}"
        for line in VARIABLE.findall(block.text):
            self.variables += f"{line}\n"
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                os.environ[name] = value
        self.printed = [] if block.note("append") else done.stdout.splitlines()

    def python(self, block: Block) -> None:
        if any(block.text.strip() in source for source in self.sources):
            return
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile(block.text, "page", "exec"), self.namespace)
        expected = [same(line) for line in PRINTED.findall(block.text)]
        assert [same(line) for line in output.getvalue().splitlines()] == expected

    def printed_text(self, block: Block) -> None:
        """Look for each line, in this order, in what the shell block before has printed; `...` is anything."""
        lines = iter([same(line) for line in self.printed])
        for line in block.text.splitlines():
            if self.printed and line.strip() not in ("...", ""):
                assert same(line) in lines, f"not printed: {line}\n" + "\n".join(self.printed)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder like the top of a checkout, in which pages may write."""
    for name in ("src", "results", "benchmarks", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*precision lowered", "ignore:.*DISPLAY")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_does_what_it_says(path: Path, folder: Path) -> None:
    page = Page(folder)
    do = {"sh": page.shell, "python": page.python, "text": page.printed_text}
    for block in blocks_of(path):
        if block.language in do and not block.is_skipped and "illustration" not in block.notes:
            do[block.language](block)
