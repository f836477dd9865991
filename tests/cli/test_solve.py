"""`solve` and `validate` say and write the same with the compiled parts and without."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from bilevel.compiled import PURE
from bilevel.symbolic.pddl import write_problem
from bilevel.tabletop.problems import domain_text, generate_problem, shipped_domain
from command_line import run

RULES = Path(__file__).parents[1] / "rules" / "golden"


def write_files(folder: Path, shape: str, objects: int) -> tuple[Path, Path]:
    problem = generate_problem(shape, objects, random.Random(1))
    (folder / "domain.pddl").write_text(domain_text(problem.domain_name))
    (folder / "problem.pddl").write_text(write_problem(problem, shipped_domain(problem.domain_name)))
    return folder / "domain.pddl", folder / "problem.pddl"


def both_ways(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[int, str, str]:
    """Return the exit code and what is printed, but for times, which must be the same either way."""
    found = []
    for pure in ("0", "1"):
        monkeypatch.setenv(PURE, pure)
        code, out, err = run(capsys, *arguments)
        found.append((code, out, re.sub(r"[0-9.]+ s ", "", err)))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("shape", "rules"),
    [
        ("blocks", "blocks"),
        ("pick-place", "pick-place"),
        ("colour", "colour-complete"),
        ("gacha", "gacha-complete"),
    ],
)
def test_the_plan_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shape: str, rules: str
) -> None:
    files = write_files(tmp_path, shape, 12)
    arguments = ("solve", *files, "--rules", RULES / f"{rules}.rules", "--seed", 3)
    code, out, err = both_ways(capsys, monkeypatch, *arguments)
    assert (code, err.startswith("solved in ")) == (0, True)
    plan = tmp_path / "plan"
    both_ways(capsys, monkeypatch, *arguments, "--plan", plan)
    assert plan.read_text() == out
    assert both_ways(capsys, monkeypatch, "validate", *files, plan)[0] == 0
    lines = out.splitlines()
    plan.write_text("\n".join(lines[: len(lines) // 2]))
    assert both_ways(capsys, monkeypatch, "validate", *files, plan)[0] == 1
    plan.write_text("\n".join(lines[1:]))
    assert both_ways(capsys, monkeypatch, "validate", *files, plan)[0] == 1


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("(gripper-free)", "", 1),
        ("(gripper-free)", "(gripper-fre)", 2),
        ("(:init", "(:init (clear nothing)", 2),
        ("(:goal", "; a café\n(:goal", 0),
        ("(:goal (and", "(:goal (and (and)", 0),
    ],
)
def test_what_goes_wrong_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, old: str, new: str, code: int
) -> None:
    domain, problem = write_files(tmp_path, "blocks", 4)
    assert old in problem.read_text()
    problem.write_text(problem.read_text().replace(old, new))
    arguments = ("solve", domain, problem, "--rules", RULES / "blocks.rules")
    assert both_ways(capsys, monkeypatch, *arguments)[0] == code
    plan = tmp_path / "plan"
    plan.write_text("(pick block1)\n(pick)\n")
    assert both_ways(capsys, monkeypatch, "validate", domain, problem, plan)[0] == 2
