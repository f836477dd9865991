"""`bilevel rules learn`: the same rules for any number of workers, and what it drops."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bilevel.rules.rule_file import read_rules
from bilevel.symbolic.pddl import write_problem
from bilevel.tabletop.problems import domain_text, generate_problem, shipped_domain
from command_line import run_json


@pytest.fixture(scope="module")
def swap(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A domain file and problem files, of which many rules are learned."""
    folder = tmp_path_factory.mktemp("swap")
    (folder / "domain.pddl").write_text(domain_text("swap"))
    for number in (2, 3, 4):
        problem = generate_problem("swap", number, random.Random(number))
        (folder / f"{number}.pddl").write_text(write_problem(problem, shipped_domain("swap")))
    return [folder / "domain.pddl", *(folder / f"{number}.pddl" for number in (2, 3, 4))]


def test_the_rules_are_the_same_for_any_number_of_workers_and_superfluous_ones_are_dropped(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, swap: list[Path]
) -> None:
    found = {}
    for workers, prune in ((1, "always"), (2, "always"), (1, "never")):
        output = tmp_path / f"{workers}-{prune}.rules"
        options = ("--orders", 5, "--output", output, "--workers", workers, "--prune", prune)
        found[workers, prune] = run_json(capsys, "rules", "learn", *swap, *options)
        assert found[workers, prune]["rules"] == len(read_rules(output))
    assert (tmp_path / "1-always.rules").read_text() == (tmp_path / "2-always.rules").read_text()
    pruned, whole = found[1, "always"], found[1, "never"]
    assert (pruned["rules"] + pruned["dropped"], whole["dropped"]) == (whole["rules"], 0)
    assert pruned["dropped"] > 0
