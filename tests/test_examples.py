"""The example programs run as they stand, and say what the docs say they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import bilevel

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    """What a program prints, run in a folder that has nothing to do with it."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


def test_rules_are_learned_and_solve_a_larger_problem(tmp_path: Path) -> None:
    printed = run("learn_and_solve.py", tmp_path)
    assert "The problem 'round' with 8 parcels: solved" in printed
    assert "Whatever happens: solved always" in printed
    assert "With the first 3 rules alone: no rule applies after 0 steps" in printed


def test_an_expert_acts_in_the_worlds_alone_and_beside_others(tmp_path: Path) -> None:
    printed = run("worlds.py", tmp_path)
    assert "The goal: at(block1, place1) at(block2, place2)\n" in printed
    assert "(arrival block4)" in printed
    assert printed.count("success") == 1
    assert "it ends the same, bit for bit" in printed
    steps = printed.splitlines()[-1].removeprefix("Three worlds at once take ").removesuffix(" steps").split()
    assert len(steps) == 3
    assert all(0 < int(count) < 2 * 2048 for count in steps)


def test_a_program_of_ones_own_decides_and_skills_or_a_network_move_the_hand(tmp_path: Path) -> None:
    by_skills = run("own_policy.py", tmp_path).splitlines()
    assert [line.split(maxsplit=1)[1] for line in by_skills] == [
        "pick(block1)",
        "place(block1, place1)",
        "pick(block2)",
        "place(block2, place2)",
        "success",
    ]
    by_network = run("own_policy.py", tmp_path, str(bilevel.pretrained_policies()["blocks"])).splitlines()
    assert [line.split(maxsplit=1)[-1] for line in by_network] == [line.split(maxsplit=1)[-1] for line in by_skills]
