"""The example programs run as they stand, and say what the docs say they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, folder: Path) -> str:
    """What a program prints, run in an empty folder."""
    command = [sys.executable, str(EXAMPLES / name)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


def test_rules_are_learned_and_solve_a_larger_problem(tmp_path: Path) -> None:
    printed = run("learn_and_solve.py", tmp_path)
    assert "The problem 'round' with 8 parcels: solved" in printed
    assert "With the first 3 rules alone none applies" in printed


def test_an_expert_acts_in_the_worlds_alone_and_beside_others(tmp_path: Path) -> None:
    printed = run("worlds.py", tmp_path)
    assert "The goal: at(block1, place1) at(block2, place2)\n" in printed
    assert "(arrival block4)" in printed
    assert printed.count("success") == 1
    assert "it ends the same, bit for bit" in printed
    steps = printed.splitlines()[-1].removeprefix("Three worlds at once take ").removesuffix(" steps").split()
    assert len(steps) == 3
    assert all(0 < int(count) < 2 * 2048 for count in steps)
