"""The benchmark of how long methods think runs, at its smallest, on what `bilevel reproduce` has learned."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALLEST = (
    *("--methods", "det-plan", "pure-nn", "--tasks", "blocks", "--objects", "1", "--episodes", "1", "--seeds", "1"),
    *("--demonstrations", "4", "--epochs", "1", "--parts", "table", "--workers", "1"),
)
METHODS = ("bison-paper", "expert", "det-plan", "ndt-replan", "pure-nn")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)


def think(folder: Path, output: Path, *methods: str) -> subprocess.CompletedProcess[str]:
    places = ("--folder", folder, "--output", output)
    smallest = ("--tasks", "blocks", "--objects", 1, "--episodes", 1)
    return run(BENCHMARKS / "inference_speed.py", "--methods", *methods, *smallest, *places)


def test_methods_think_and_some_of_them_plan(tmp_path: Path) -> None:
    folder, output = tmp_path / "made", tmp_path / "inference.jsonl"
    assert run("-m", "bilevel.cli", "reproduce", *SMALLEST, "--output", folder).returncode == 0
    assert think(folder, output, *METHODS).returncode == 0
    text = output.read_text(encoding="utf-8")
    rows = {row["method"]: row for row in map(json.loads, text.splitlines())}
    assert {method: row["plans"] for method, row in rows.items()} == {
        "bison": [0],
        "expert": [0],
        "det-plan": [1],
        "ndt-replan": [1],
        "pure-nn": [0],
    }
    assert {method: row["recipe"] for method, row in rows.items()} == dict.fromkeys(rows, "paper") | {"expert": None}
    assert all(row["microseconds_per_step"]["policy"] > 0 for row in rows.values())
    assert all((row["microseconds_per_step"]["planning"] > 0) == (row["plans"] == [1]) for row in rows.values())
    assert str(tmp_path) not in text

    lacking = think(folder, output, "pddl-nn")
    assert lacking.returncode == 1
    assert "`bilevel reproduce --methods pddl-nn` learns it" in lacking.stderr
    assert output.read_text(encoding="utf-8") == text
