"""`bilevel rules learn`: the same rules for any number of workers, and what it drops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bilevel.rules.rule_file import read_rules
from bilevel.symbolic.pddl import write_problem
from command_line import run
from generalised_problems import FOLDER, generalised_domain, generalised_problems
from tiny_demonstrations import shown


def written(folder: Path, name: str, count: int) -> list[Path]:
    """A domain file and problem files."""
    domain, files = generalised_domain(name), [FOLDER / f"{name}.pddl"]
    for problem in generalised_problems(name, "training", count):
        files.append(folder / f"{problem.name}.pddl")
        files[-1].write_text(write_problem(problem, domain), encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def logistics(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return written(tmp_path_factory.mktemp("logistics"), "logistics", 2)


def test_the_rules_are_the_same_for_any_number_of_workers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, logistics: list[Path]
) -> None:
    texts = set()
    for workers in (1, 2):
        output = tmp_path / f"{workers}.rules"
        code, out, _ = run(capsys, "rules", "learn", *logistics, "--output", output, "--workers", workers)
        assert code == 0
        assert "rules dropped: the others solve " in out
        texts.add(output.read_text(encoding="utf-8"))
    assert len(texts) == 1


def test_rules_are_dropped_unless_all_are_wanted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, logistics: list[Path]
) -> None:
    numbers = {}
    for prune in ("auto", "never", "always"):
        output = tmp_path / f"{prune}.rules"
        code, out, _ = run(capsys, "rules", "learn", *logistics, "--output", output, "--prune", prune, "--json")
        assert code == 0
        found = json.loads(out)
        assert found["rules"] == len(read_rules(output))
        numbers[prune] = found["rules"], found["dropped"]
    assert numbers["auto"] == numbers["always"]
    assert numbers["never"] == (sum(numbers["auto"]), 0)
    assert numbers["auto"][1] > 0


def test_pruning_needs_problems(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = ("--output", tmp_path / "x.rules")
    code, _, err = run(capsys, "rules", "learn", "--demonstrations", tmp_path, *output, "--prune", "always")
    assert (code, err.count("\n")) == (2, 1)
    assert "--prune always needs problems" in err


def test_the_algorithm_as_printed_learns_from_demonstrations_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, logistics: list[Path]
) -> None:
    output = tmp_path / "printed.rules"
    words = ("rules", "learn", "--output", output, "--algorithm", "printed")
    assert run(capsys, *words, "--demonstrations", shown().folder)[0] == 0
    assert any(len(rule.goal_condition) > 1 for rule in read_rules(output))
    code, _, err = run(capsys, *words, *logistics)
    assert (code, err.count("\n")) == (2, 1)
    assert "--algorithm printed takes --demonstrations" in err
