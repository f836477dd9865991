"""`bilevel rules learn`: from problems by either algorithm, and from demonstrations."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bilevel.rules.rule_file import read_rules
from bilevel.symbolic.pddl import write_problem
from bilevel.tabletop.problems import domain_text, generate_problem, shipped_domain
from command_line import refused, run_json
from tiny_demonstrations import shown


@pytest.fixture(scope="module")
def swap(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A domain file and problem files, of which many rules are learned."""
    folder = tmp_path_factory.mktemp("swap")
    (folder / "domain.pddl").write_text(domain_text("swap"))
    for number in (2, 3, 4):
        problem = generate_problem("swap", number, random.Random(number))
        (folder / f"{number}.pddl").write_text(write_problem(problem, shipped_domain("swap")))
    return [folder / "domain.pddl", *(folder / f"{number}.pddl" for number in (2, 3, 4))]


def test_from_all_states_fewer_rules_solve_the_problems(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, swap: list[Path]
) -> None:
    found = run_json(capsys, "rules", "learn", *swap, "--output", tmp_path / "states.rules")
    assert found["rules"] == len(read_rules(tmp_path / "states.rules"))
    assert found["unsolved"] == []
    by_goals = run_json(
        capsys, "rules", "learn", *swap, "--output", tmp_path / "goals.rules", "--algorithm", "single-goal"
    )
    assert found["rules"] < by_goals["rules"]


def test_from_demonstrations_alone_as_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, swap: list[Path]
) -> None:
    words = ("rules", "learn", "--output", tmp_path / "printed.rules", "--demonstrations", shown().folder)
    run_json(capsys, *words, "--algorithm", "printed")
    assert any(len(rule.goal_condition) > 1 for rule in read_rules(tmp_path / "printed.rules"))
    assert "takes a domain and problems" in refused(capsys, *words, "--algorithm", "states")
    assert "printed takes --demonstrations" in refused(capsys, *words[:4], *swap, "--algorithm", "printed")
    assert "not both" in refused(capsys, *words, *swap)
