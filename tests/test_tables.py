"""The tables in README and docs are those that the results give."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/policies.md", "docs/worlds.md", "docs/demonstrations.md")


def tables(*arguments: str) -> str:
    command = [sys.executable, "benchmarks/tables.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_every_table_shows_what_was_measured(tmp_path: Path) -> None:
    """Written into copies of the pages without their tables' rows, they are those that are there."""
    for page in PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
        spoilt = (tmp_path / page).read_text(encoding="utf-8").replace("| blocks", "| old")
        assert spoilt != (ROOT / page).read_text(encoding="utf-8")
        (tmp_path / page).write_text(spoilt, encoding="utf-8")
    tables("--write", "--root", str(tmp_path))
    for page in PAGES:
        written = (tmp_path / page).read_text(encoding="utf-8")
        assert written == (ROOT / page).read_text(encoding="utf-8"), "run: python benchmarks/tables.py --write"


def test_all_tables_are_printed() -> None:
    assert tables().count("| gacha-noisy |") >= 6
