"""The example programs run as they stand, and say what the docs say they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    """What a program prints, run in a folder that has nothing to do with it."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
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


def test_rules_of_ones_own_decide_and_the_expert_s_skills_move_the_hand(tmp_path: Path) -> None:
    lines = run("own_policy.py", tmp_path).splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines[::2]] == [
        "pick(block1): rule 2",
        "place(block1, place1): rule 1",
        "pick(block2): rule 2",
        "place(block2, place2): rule 1",
        "success",
    ]
    assert lines[3].split()[:4] == ["Because", "you", "hold", "block1,"]


def test_rules_of_ones_own_decide_and_a_learned_network_moves_the_hand(tmp_path: Path) -> None:
    bilevel(tmp_path, "collect", "blocks", "--objects", "1", "--episodes", "2", "--output", "data")
    bilevel(tmp_path, "learn", "data", "--recipe", "paper", "--epochs", "1", "--output", "policy")
    by_skills, by_network = (run("own_policy.py", tmp_path, *given).splitlines() for given in ([], ["policy"]))
    assert by_network[0] == by_skills[0]  # decided before anybody moves
    assert by_network[-1] != by_skills[-1]


def bilevel(folder: Path, *arguments: str) -> None:
    program = "from bilevel.cli import main; main()"
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, cwd=folder, capture_output=True)
