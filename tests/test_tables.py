"""The README's tables about the worlds are those that the results give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def tables(*arguments: str) -> str:
    command = [sys.executable, "benchmarks/tables.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_the_readme_shows_what_was_measured() -> None:
    printed = tables()
    assert printed.count("| gacha-noisy |") == 3
    shown = README.partition("--write README.md -->\n\n")[2].partition("\n<!-- results of the worlds: end -->")[0]
    assert shown == printed, "run: python benchmarks/tables.py --write README.md"


def test_old_tables_are_replaced_and_nothing_else(tmp_path: Path) -> None:
    copy = tmp_path / "README.md"
    copy.write_text(README.replace("| blocks-noisy |", "| old |"), encoding="utf-8")
    assert copy.read_text(encoding="utf-8") != README
    tables("--write", str(copy))
    assert copy.read_text(encoding="utf-8") == README
