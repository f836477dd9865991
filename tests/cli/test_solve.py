"""`solve` and `validate` say and write the same with the compiled parts and without."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from bilevel.native import PURE
from bilevel.symbolic.pddl import write_problem
from bilevel.tabletop.problems import domain_text, generate_problem, shipped_domain
from command_line import run

RULES = Path(__file__).parents[1] / "rules" / "golden"


@pytest.mark.parametrize(
    ("shape", "rules", "old", "new", "code"),
    [
        ("blocks", "blocks", "", "", 0),
        ("pick-place", "pick-place", "", "", 0),
        ("colour", "colour-complete", "", "", 0),
        ("gacha", "gacha-complete", "", "", 0),
        ("blocks", "blocks", "(gripper-free)", "", 1),
        ("blocks", "blocks", "(gripper-free)", "(gripper-fre)", 2),
        ("blocks", "blocks", "(:init", "(:init (clear nothing)", 2),
        ("blocks", "blocks", "(:goal", "; a café\n(:goal", 0),
    ],
)
def test_the_plan_and_what_goes_wrong_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    shape: str, rules: str, old: str, new: str, code: int,
) -> None:  # fmt: skip
    problem = generate_problem(shape, 12, random.Random(1))
    text = write_problem(problem, shipped_domain(problem.domain_name))
    assert old in text
    files = tmp_path / "domain.pddl", tmp_path / "problem.pddl"
    files[0].write_text(domain_text(problem.domain_name))
    files[1].write_text(text.replace(old, new) if old else text)
    plan = tmp_path / "plan"

    def both_ways(*arguments: object) -> tuple[int, str, str]:
        """Return the exit code and what is printed, but for times, which must be the same either way."""
        found = []
        for pure in ("0", "1"):
            monkeypatch.setenv(PURE, pure)
            ended, out, err = run(capsys, *arguments)
            found.append((ended, out, re.sub(r"[0-9.]+ s ", "", err)))
        assert found[0] == found[1]
        return found[0]

    solve = ("solve", *files, "--rules", RULES / f"{rules}.rules", "--seed", 3)
    ended, out, _ = both_ways(*solve)
    assert ended == code
    if code == 0:
        both_ways(*solve, "--plan", plan)
        assert plan.read_text() == out
        assert both_ways("validate", *files, plan)[0] == 0
        plan.write_text(out.partition("\n")[2])
        assert both_ways("validate", *files, plan)[0] == 1
    plan.write_text("(pick block1)\n(pick)\n")
    assert both_ways("validate", *files, plan)[0] == 2
