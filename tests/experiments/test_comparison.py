"""The benchmarks that compare methods run, at their smallest, and do not make again what is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALLEST = "--tasks blocks --recipes paper --demonstrations 4 --epochs 1 --episodes 1 --objects 1 2 --workers 1"
METHODS = ("expert", "det-plan", "ndt-replan", "pure-nn")


def run(script: object, *arguments: object) -> str:
    command = [sys.executable, str(BENCHMARKS / str(script)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_methods_are_learned_measured_and_kept(tmp_path: Path) -> None:
    made, output, times = tmp_path / "made", tmp_path / "comparison.jsonl", tmp_path / "inference.jsonl"
    compare = ("comparison.py", *SMALLEST.split(), "--folder", made, "--output", output, "--methods", *METHODS)
    run(*compare)
    found = rows(output)
    assert {row["method"]: row["recipe"] for row in found} == {"expert": None} | dict.fromkeys(METHODS[1:], "paper")
    for row in found:
        tried_out = "--demonstrations 4 --episodes 1 --objects 1 2 --epochs 1"
        assert row["command"] == f"python benchmarks/comparison.py {tried_out}"
        assert list(row["by_objects"]) == ["1", "2"]
        assert row["successes"] + sum(row["reasons"].values()) == row["episodes"] == 2
    assert sorted(folder.name for folder in (made / "policies").iterdir()) == [
        "blocks-bison-paper-0",
        "blocks-pure-nn-paper-0",
    ]
    assert str(tmp_path) not in output.read_text(encoding="utf-8")

    learned = {file: file.stat().st_mtime_ns for file in made.rglob("*.safetensors")}
    assert "demonstrations" not in run(*compare)
    assert {file: file.stat().st_mtime_ns for file in made.rglob("*.safetensors")} == learned

    options = ("--tasks", "blocks", "--objects", 1, "--episodes", 1, "--methods", *METHODS)
    run("inference_speed.py", "--folder", made, "--output", times, *options)
    plans = {row["method"]: row["plans"] for row in rows(times)}
    assert plans == {"expert": [0], "det-plan": [1], "ndt-replan": [1], "pure-nn": [0]}
    assert all(row["microseconds_per_step"]["policy"] > 0 for row in rows(times))
