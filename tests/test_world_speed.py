"""The speed benchmark runs beside MetaWorld and writes what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_world_is_measured_beside_metaworld(tmp_path: Path) -> None:
    output = tmp_path / "speed.jsonl"
    options = ["--tasks", "blocks", "factory", "--objects", "1", "20", "--rounds", "1", "--output", str(output)]
    command = [sys.executable, str(ROOT / "benchmarks" / "world_speed.py"), *options]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [(row["task"], row["objects"]) for row in rows] == [("blocks", 1), ("blocks", 20), ("factory", 1)]
    assert all(row["steps_per_second"] > 0 < row["metaworld_steps_per_second"] for row in rows)
    assert "mujoco" in rows[0]["versions"]
    assert len(table.splitlines()) == 1 + len(rows)
    assert str(tmp_path) not in output.read_text(encoding="utf-8")
