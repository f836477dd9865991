"""What plans cost by hand, and what commands say that they cost."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from bilevel.symbolic.costs import Costs, parse_values, read_costs
from bilevel.symbolic.domain import Action, BadInput
from command_line import run

DOMAIN = """(define (domain roads) (:requirements :strips :action-costs)
  (:constants depot)
  (:predicates (at ?x) (road ?x ?y) (full))
  (:functions (total-cost) (distance ?x ?y) (toll ?x))
  (:action drive :parameters (?a ?b) :precondition (and (at ?a) (road ?a ?b))
    :effect (and (not (at ?a)) (at ?b) (increase (total-cost) (distance ?a ?b)) (increase (total-cost) 0.5)))
  (:action fill :parameters (?a) :precondition (at ?a) :effect (and (full) (increase (total-cost) (toll depot))))
  (:action wait :parameters () :precondition (full) :effect (full)))"""
PROBLEM = """(define (problem trip) (:domain roads) (:objects home inn)
  (:init (at home) (road home inn) (road inn depot) ; (= (distance home inn) 99)
    (= (total-cost) 0) (= (Distance home INN) 12) (= (distance inn depot) 2.5) (= (toll depot) 30))
  (:goal (and (at depot) (full))) (:metric minimize (total-cost)))"""
PLAN = "(drive home inn)\n(drive inn depot)\n(fill depot)\n"
COST = "45.5"  # 12 + 0.5 + 2.5 + 0.5 + 30


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name, text in (("domain", DOMAIN), ("problem", PROBLEM)):
        (tmp_path / f"{name}.pddl").write_text(text, encoding="utf-8")
    return [tmp_path / "domain.pddl", tmp_path / "problem.pddl"]


def test_numbers_functions_and_constants_add_up(files: list[Path]) -> None:
    costs = read_costs(*files)
    assert costs is not None
    drive, fill = Action("drive", ("home", "inn")), Action("fill", ("home",))
    assert [costs.total(each) for each in ([drive], [fill], [Action("wait", ())], [drive, fill, drive], [])] == [
        Decimal("12.5"), 30, 0, 55, 0,
    ]  # fmt: skip
    with pytest.raises(BadInput, match=r"^\(distance inn home\) has no value in the problem"):
        costs.total([Action("drive", ("inn", "home"))])


def test_values_are_read_whatever_they_look_like() -> None:
    assert parse_values("(= (f a)\n 3)(=(G)1e2) ; (= (f b) 4)\n(= x y) (= (f c) -2.50)") == {
        ("f", "a"): 3, ("g",): 100, ("f", "c"): Decimal("-2.5"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("effect", "reason"),
    [
        ("(when (full) (increase (total-cost) 2))", "'wait' costs depends on more than its arguments"),
        ("(increase (total-cost) (* 2 (toll depot)))", "'wait' costs is neither a number nor a function"),
    ],
)
def test_what_depends_on_more_is_not_known(effect: str, reason: str, files: list[Path]) -> None:
    files[0].write_text(DOMAIN.replace(":effect (full))", f":effect (and (full) {effect}))"), encoding="utf-8")
    costs = read_costs(*files)
    assert isinstance(costs, Costs)
    with pytest.raises(BadInput, match=reason):
        costs.total([])


def test_without_costs_steps_count(files: list[Path]) -> None:
    text = DOMAIN
    for increase in ("(distance ?a ?b)", "0.5", "(toll depot)"):
        text = text.replace(f"(increase (total-cost) {increase})", "")
    files[0].write_text(text, encoding="utf-8")
    assert read_costs(*files) is None


def test_plans_are_written_and_validated_with_their_cost(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "plan", *files)
    assert (code, out) == (0, f"{PLAN}; cost = {COST} (general cost)\n")
    plan = tmp_path / "trip.plan"
    plan.write_text(out, encoding="utf-8")
    code, out, _ = run(capsys, "validate", *files, plan)
    assert (code, out) == (0, f"valid: 3 steps reach the goal at a cost of {COST}\n")
    assert json.loads(run(capsys, "validate", *files, plan, "--json")[1])["cost"] == float(COST)
    rules = tmp_path / "roads.rules"
    rules.write_text(
        "1: at(?a) & goal full() -> fill(?a)\n"
        "2: at(?a) & road(?a, ?b) & road(?b, ?c) & goal at(?c) -> drive(?a, ?b)\n"
        "3: at(?a) & road(?a, ?b) & goal at(?b) -> drive(?a, ?b)\n"
    )
    code, out, _ = run(capsys, "solve", *files, "--rules", rules)
    assert (code, out.splitlines()[-1]) == (0, f"; cost = {COST} (general cost)")


@pytest.mark.parametrize(
    ("claim", "answer"),
    [
        ("", f"valid: 3 steps reach the goal at a cost of {COST}"),
        ("; cost = 3 (unit cost)", f"valid: 3 steps reach the goal at a cost of {COST}"),
        ("; cost = 45.50 (general cost)\n\n", f"valid: 3 steps reach the goal at a cost of {COST}"),
        ("; cost = 45 (general cost)", f"not valid: its last line says that the cost is 45, but it is {COST}"),
        ("; cost = 4 (unit cost)", "not valid: its last line says that the cost is 4, but it is 3"),
    ],
)
def test_a_wrong_cost_is_found(
    claim: str, answer: str, files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "trip.plan"
    plan.write_text(PLAN + claim, encoding="utf-8")
    code, out, _ = run(capsys, "validate", *files, plan)
    assert (code, out) == (int(answer.startswith("not")), f"{answer}\n")


def test_a_cost_that_is_not_known_is_no_reason_to_refuse_a_plan(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files[1].write_text(PROBLEM.replace("(= (toll depot) 30)", ""), encoding="utf-8")
    reason = "cost unknown: (toll depot) has no value in the problem, so what fill(depot) costs is not known"
    code, out, _ = run(capsys, "plan", *files)
    assert (code, out.splitlines()[-1]) == (0, f"; 3 steps; {reason}")
    (tmp_path / "trip.plan").write_text(out, encoding="utf-8")
    code, out, _ = run(capsys, "validate", *files, tmp_path / "trip.plan")
    assert (code, out) == (0, f"valid: 3 steps reach the goal; {reason}\n")
