"""The tables in README and docs are those that the results give."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/results.md",
    "docs/installation.md",
    "docs/architecture.md",
    "docs/reproduction.md",
    "docs/policies.md",
    "docs/methods.md",
    "docs/planning.md",
    "docs/worlds.md",
    "docs/demonstrations.md",
    "docs/perception.md",
    "docs/rules.md",
    "docs/suites.md",
    "docs/domains.md",
    "docs/hard.md",
)
TABLE = re.compile(r"(<!-- table: [^\n]* -->\n).*?(<!-- end of table -->\n)", re.DOTALL)


def tables(*arguments: str) -> str:
    command = [sys.executable, "benchmarks/tables.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_every_table_shows_what_was_measured(tmp_path: Path) -> None:
    """Written into copies of the pages without their tables, they are those that are there."""
    for page in PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        without, found = TABLE.subn(r"\1\2", (ROOT / page).read_text(encoding="utf-8"))
        assert found
        (tmp_path / page).write_text(without, encoding="utf-8")
    tables("--write", "--root", str(tmp_path))
    for page in PAGES:
        written = (tmp_path / page).read_text(encoding="utf-8")
        assert written == (ROOT / page).read_text(encoding="utf-8"), "run: python benchmarks/tables.py --write"


def test_all_tables_are_printed() -> None:
    assert tables().count("| gacha-noisy |") >= 6
