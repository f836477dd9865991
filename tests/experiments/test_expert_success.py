"""The benchmark of the experts runs, at its smallest, and takes the place of its own earlier rows only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_one_episode_of_one_task_is_measured_at_every_size(tmp_path: Path) -> None:
    output = tmp_path / "experts.jsonl"
    other = {"task": "gacha", "objects": 3, "noise": 0.0}
    outdated = {"task": "factory", "objects": 3, "noise": 0.0, "successes": -1}
    output.write_text(f"{json.dumps(outdated)}\n{json.dumps(other)}\n", encoding="utf-8")
    options = ["--episodes", "1", "--tasks", "factory", "--workers", "1", "--output", str(output)]
    command = [sys.executable, str(BENCHMARKS / "expert_success.py"), *options]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    kept, *rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert kept == other
    assert [(row["objects"], row["noise"]) for row in rows] == [(1, 0.0), (3, 0.0), (10, 0.0), (3, 0.7)]
    for row, line in zip(rows, printed.splitlines(), strict=True):
        assert (row["task"], row["episodes"], row["successes"]) == ("factory", 1, 1)
        assert set(row["mean_steps_per_schema"]) == {"pick", "place"}
        assert row["failures"] == []
        assert f"n={row['objects']}" in line
    assert str(tmp_path) not in output.read_text(encoding="utf-8")
