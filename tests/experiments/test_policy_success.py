"""The benchmark of learned policies runs, at its smallest, and does not make again what is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALLEST = "--tasks blocks --recipes best --seeds 1 --demonstrations 6 --epochs 1 --episodes 1 --jostled-episodes 1"


def run(folder: Path) -> str:
    places = ["--folder", str(folder / "made"), "--output", str(folder / "policies.jsonl"), "--workers", "1"]
    command = [sys.executable, str(BENCHMARKS / "policy_success.py"), *SMALLEST.split(), "--kinds", "jostled", *places]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_policy_is_learned_and_measured_and_kept(tmp_path: Path) -> None:
    run(tmp_path)
    weights = tmp_path / "made" / "policies" / "blocks-best-0" / "weights.safetensors"
    learned = weights.stat().st_mtime_ns
    text = (tmp_path / "policies.jsonl").read_text(encoding="utf-8")
    (row,) = [json.loads(line) for line in text.splitlines()]
    assert (row["task"], row["recipe"], row["seed"], row["kind"]) == ("blocks", "best", 0, "jostled")
    assert row["episodes"] == 1
    assert row["successes"] + sum(row["reasons"].values()) == 1
    assert row["settings"]["training"]["epochs"] == 1
    assert str(tmp_path) not in text
    assert "blocks, best, [0]: learned" in run(tmp_path)
    assert weights.stat().st_mtime_ns == learned
    assert (tmp_path / "policies.jsonl").read_text(encoding="utf-8") == text
