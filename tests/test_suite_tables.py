"""The tables about environments of others say what the lines of their results say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from suite_tables import official_table, published_table, size_table

ROOT = Path(__file__).parents[1]
MADE = {"command": "python made_up.py", "machine": {"cores": 2, "cpu": "made up"}}


def episodes(task: str, method: str, seed: int | None, successes: int, count: int, objects: int = 1) -> list[Any]:
    about = {"task": task, "method": method, "training_seed": seed, "objects": objects, **MADE}
    return [{**about, "success": number < successes, "steps": 10 * (number + 1)} for number in range(count)]


OURS = [row for seed, won in enumerate((4, 3)) for row in episodes("scene-task2", "bison", seed, won, 4)]
ROWS = [*OURS, *episodes("scene-task2", "expert", None, 2, 2)]


def test_successes_are_counted_by_seed_and_beside_the_expert() -> None:
    line = official_table(ROWS, "made.jsonl").splitlines()[-1]
    assert line == "| scene-task2 | bison | 7/8 (53–99%) | 4, 3 | 23 | 750 | 2/2 (34–100%) |"


def test_published_figures_stand_beside_ours() -> None:
    cells = published_table(ROWS, "made.jsonl").splitlines()[-1].split(" | ")
    assert cells[:4] == ["| scene", "87.5", "5", "42"]
    assert cells[8] == "94, ASO [2]"


def test_sizes_have_a_line_each() -> None:
    rows = [*episodes("Gates", "bison", 0, 2, 2, objects=10), *episodes("Gates", "bison", 0, 1, 2, objects=3)]
    assert [line.split(" | ")[1:3] for line in size_table(rows, "made.jsonl").splitlines()[-2:]] == [
        ["3", "1/2 (9–91%)"],
        ["10", "2/2 (34–100%)"],
    ]


def test_a_family_that_a_suite_does_not_have_is_refused_in_a_line() -> None:
    command = [sys.executable, "benchmarks/foreign_suites.py", "ogbench", "--family", "cube"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 2
    assert found.stderr.splitlines()[-1].endswith("ogbench has no family 'cube'; it has: cubes, scene, puzzle")
