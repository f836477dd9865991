"""`bilevel plan` as a user gives it: what it prints, writes and exits with, and that it leaves no planner behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bilevel.planning.planner import ContingentPolicy, PlanResult, Status
from bilevel.planning.planners import PLANNERS
from bilevel.symbolic.domain import Domain, Problem
from bilevel.tabletop.problems import domain_text
from command_line import run

COINS = """(define (domain coins) (:requirements :non-deterministic) (:predicates (tails) (heads) (lost) (rich))
  (:action flip :precondition (tails) :effect (oneof (and (heads) (not (tails))) (and)))
  (:action push :precondition (tails) :effect (and (not (tails)) (oneof (heads) (lost))))
  (:action win :precondition (heads) :effect (rich)))"""

BLOCKS = """(define (problem small) (:domain blocks)
  (:objects b1 b2 - block p1 p2 - place)
  (:init (clear b1) (clear b2) (clear p1) (clear p2) (gripper-free)) (:goal (and {goal})))"""


@pytest.fixture
def coins(tmp_path: Path) -> tuple[Path, Path]:
    """A nondeterministic domain and a problem."""
    files = tmp_path / "coins.pddl", tmp_path / "one.pddl"
    files[0].write_text(COINS)
    files[1].write_text("(define (problem one) (:domain coins) (:init (tails)) (:goal (rich)))")
    return files


@pytest.fixture
def blocks(tmp_path: Path) -> tuple[Path, Path]:
    """A deterministic domain and a problem."""
    files = tmp_path / "blocks.pddl", tmp_path / "small.pddl"
    files[0].write_text(domain_text("blocks"))
    files[1].write_text(BLOCKS.format(goal="(at b1 p2)"))
    return files


def test_a_plan_in_the_format_of_the_competitions(
    blocks: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(capsys, "plan", *blocks)
    assert (code, out) == (0, "(pick b1)\n(place b1 p2)\n; cost = 2 (unit cost)\n")
    assert err.startswith("found in ")
    assert err.endswith(" s: 2 steps\n")
    (tmp_path / "plan").write_text(out)
    assert run(capsys, "validate", *blocks, tmp_path / "plan")[0] == 0


@pytest.mark.parametrize("planner", ["search", "fond"])
def test_too_little_memory(planner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "problem", "blocks", "--objects", 60, "--output", tmp_path / "p.pddl")[0] == 0
    files = tmp_path / "blocks-domain.pddl", tmp_path / "p.pddl"
    answer = run(capsys, "plan", *files, "--planner", planner, "--memory", 0.001)
    assert answer == (1, "", "not found within 0.001 GB of memory; --memory sets the limit\n")


def test_a_precondition_with_very_many_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = " ".join(f"x{i}" for i in range(1500))
    done = " ".join(f"(done x{i})" for i in range(1500))
    files = tmp_path / "domain.pddl", tmp_path / "problem.pddl"
    files[0].write_text(
        """(define (domain d) (:requirements :adl) (:predicates (done ?x) (over))
        (:action end :parameters () :precondition (forall (?x) (done ?x)) :effect (over)))"""
    )
    files[1].write_text(f"(define (problem p) (:domain d) (:objects {names}) (:init {done}) (:goal (over)))")
    assert run(capsys, "plan", *files)[:2] == (0, "(end)\n; cost = 1 (unit cost)\n")


@pytest.mark.parametrize("planner", ["fast-downward", "lama", "search"])
def test_every_classical_planner(planner: str, blocks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "plan", *blocks, "--planner", planner)[:2] == (
        0,
        "(pick b1)\n(place b1 p2)\n; cost = 2 (unit cost)\n",
    )


def test_a_policy_line_by_line(coins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "plan", *coins)
    assert code == 0
    assert out.splitlines() == [
        "1: if heads() do win()",
        "2: if tails() do flip()",
        "; 2 decisions; the first whose condition holds counts",
    ]
    assert err.splitlines()[1:] == ["checked: strong-cyclic, 3 reachable states"]


def test_a_plan_in_a_nondeterministic_domain_is_a_hope(
    coins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "plan", *coins, "--planner", "search")
    assert code == 0
    assert "; outcome " in out
    assert out.endswith("(win)\n; cost = 2 (unit cost)\n")
    assert err.splitlines()[-1].endswith("a hope, not a promise")


def test_json_has_everything(
    coins: tuple[Path, Path], blocks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "plan", *coins, "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer.pop("seconds") >= 0
    assert answer == {
        "status": "solved",
        "message": "",
        "checked": "strong-cyclic",
        "remarks": ["checked: strong-cyclic, 3 reachable states"],
        "plan": None,
        "policy": [
            {"if": ["heads()"], "if_not": [], "do": "win()", "distance": 1},
            {"if": ["tails()"], "if_not": [], "do": "flip()", "distance": 2},
        ],
        "output": None,
    }
    answer = json.loads(run(capsys, "plan", *blocks, "--json")[1])
    assert [step["do"] for step in answer["plan"]] == ["pick(b1)", "place(b1, p2)"]
    assert (answer["policy"], answer["checked"]) == (None, None)


def test_the_format_follows_the_name_of_the_file(
    coins: tuple[Path, Path], blocks: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = {suffix: tmp_path / f"policy{suffix}" for suffix in (".txt", "", ".json")}
    for file in files.values():
        assert run(capsys, "plan", *coins, "--output", file)[:2] == (0, "")
    assert files[".txt"].read_text() == files[""].read_text() == run(capsys, "plan", *coins)[1]
    assert len(json.loads(files[".json"].read_text())["policy"]) == 2
    assert run(capsys, "plan", *blocks, "--output", tmp_path / "plan.json")[0] == 0
    assert len(json.loads((tmp_path / "plan.json").read_text())["plan"]) == 2


def test_where_there_is_none(
    coins: tuple[Path, Path], blocks: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    coins[0].write_text(COINS.replace("(:action flip :precondition (tails)", "(:action flip :precondition (rich)"))
    output = tmp_path / "none.json"
    assert run(capsys, "plan", *coins, "--output", output) == (1, "", "no strong-cyclic policy exists\n")
    assert not output.exists()
    assert run(capsys, "plan", *coins, "--planner", "search")[0] == 0  # with luck
    blocks[1].write_text(BLOCKS.format(goal="(at b1 p2) (at b2 p2)"))
    for planner in ("search", "fast-downward"):
        assert run(capsys, "plan", *blocks, "--planner", planner) == (1, "", "no plan exists\n")
    answer = json.loads(run(capsys, "plan", *blocks, "--json")[1])
    assert (answer["status"], answer["message"], answer["plan"]) == ("unsolvable", "no plan exists", None)


@pytest.mark.parametrize("planner", ["search", "fast-downward", "fond"])
def test_not_found_in_time(planner: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "problem", "blocks", "--objects", 400, "--output", tmp_path / "large.pddl")[0] == 0
    files = tmp_path / "blocks-domain.pddl", tmp_path / "large.pddl"
    answer = run(capsys, "plan", *files, "--planner", planner, "--timeout", 0.05)
    assert answer == (1, "", "not found in time (0.05 s)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--timeout", "0"], "0.0 is not in the range 0<x<=1000000"),
        (["--memory", "nan"], "nan is not a finite number"),
        (["--output", "/dev/null/policy.json"], "/dev/null/policy.json: cannot be written"),
    ],
)
def test_bad_input(
    arguments: list[str], message: str, coins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "plan", *coins, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_missing_planner_says_how_to_get_it(
    blocks: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = run(capsys, "plan", *blocks, "--planner", "fast-downward")
    assert code == 2
    assert 'pip install "bilevel[planners]"' in err
    assert run(capsys, "plan", *blocks)[0] == 0


def test_new_objects_have_a_policy_and_a_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "problem", "gacha", "--objects", 1, "--output", tmp_path / "p.pddl")[0] == 0
    files = tmp_path / "gacha-domain.pddl", tmp_path / "p.pddl"
    code, out, err = run(capsys, "plan", *files)
    assert code == 0
    assert "holding(new-block) do place-goal(new-block, " in out
    assert "checked: strong-cyclic" in err
    assert "new-block stands for the block that roll has made last" in err
    assert run(capsys, "plan", *files, "--planner", "search")[0] == 0


def test_a_policy_is_not_believed_but_checked(
    coins: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def liar(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
        return PlanResult(Status.SOLVED, policy=ContingentPolicy(()))

    monkeypatch.setitem(PLANNERS, "fond", liar)
    code, out, err = run(capsys, "plan", *coins)
    assert (code, out) == (2, "")
    assert "its policy is not strong-cyclic: at the start: the policy has no action" in err


def test_a_policy_that_is_too_large_to_go_through_is_proved(
    coins: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "plan", *coins, "--max-states", 2)
    assert code == 0
    assert "checked: strong-cyclic, decision by decision, as there are more than 2 reachable states\n" in err


def test_a_check_that_is_not_finished_is_said(
    coins: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bilevel.planning.strong_cyclic.is_proved", lambda *_: False)
    code, _, err = run(capsys, "plan", *coins, "--max-states", 2)
    assert code == 0
    assert "not checked: there are more than 2 reachable states" in err


LAMPS = """(define (domain lamps) (:types lamp room)
  (:predicates (lit ?l - lamp) (broken ?l - lamp) (in ?l - lamp ?r - room) (at ?r - room) (dark))
  (:action go :parameters (?r - room) :precondition (not (at ?r))
    :effect (and (at ?r) (forall (?other - room) (when (and (at ?other) (not (= ?other ?r))) (not (at ?other))))))
  (:action switch :parameters (?r - room) :precondition (and (at ?r) (exists (?l - lamp) (in ?l ?r)))
    :effect (forall (?l - lamp) (when (in ?l ?r) (oneof (lit ?l) (not (lit ?l))))))
  (:action switch :parameters () :precondition (dark) :effect (not (dark))))"""

LIT = """(define (problem evening) (:domain lamps) (:objects a b - lamp hall attic - room)
  (:init (in a hall) (in b hall) (at attic) (dark)) (:goal {goal}))"""


@pytest.fixture
def lamps(tmp_path: Path) -> tuple[Path, Path]:
    """A domain with most of what ADL has, and a problem."""
    files = tmp_path / "lamps.pddl", tmp_path / "evening.pddl"
    files[0].write_text(LAMPS)
    files[1].write_text(
        LIT.format(goal="(and (not (dark)) (or (lit a) (forall (?l - lamp) (broken ?l))) (imply (in b hall) (lit a)))")
    )
    return files


def test_adl_is_planned_for_in_the_words_of_its_author(
    lamps: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(capsys, "plan", *lamps)
    assert code == 0
    decisions = [line.split(" do ")[1] for line in out.splitlines() if " do " in line]
    assert set(decisions) == {"switch()", "switch(hall)", "go(hall)"}
    assert [int(line.split(":")[0]) for line in out.splitlines() if " do " in line] == sorted([1, 2, 3])
    assert "checked: strong-cyclic" in err
    assert run(capsys, "plan", *lamps, "--output", tmp_path / "policy.json")[0] == 0
    drawing = (tmp_path / "policy.json").read_text()
    assert "switch(hall)" in drawing
    assert "goal:" not in drawing + out
    assert run(capsys, "plan", *lamps, "--output", tmp_path / "policy.json")[0] == 0
    assert "switch(hall)" in (tmp_path / "policy.json").read_text()


@pytest.mark.parametrize("planner", ["search", "fast-downward"])
def test_a_plan_for_adl_ends_with_an_action_of_its_author(
    planner: str, lamps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "plan", *lamps, "--planner", planner)
    assert code == 0
    steps = [line.split(" ;")[0] for line in out.splitlines()[:-1]]
    assert sorted(steps) == ["(go hall)", "(switch hall)", "(switch)"]


@pytest.mark.parametrize("goal", ["(not (dark))", "(and (not (dark)) (not (at attic)))"])
def test_goals_that_something_shall_not_hold(
    goal: str, lamps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lamps[1].write_text(LIT.format(goal=goal))
    code, out, _ = run(capsys, "plan", *lamps, "--planner", "search")
    assert code == 0
    assert "(switch)" in out
    assert ("(go hall)" in out) == ("attic" in goal)


def test_a_goal_that_can_never_hold(lamps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    lamps[1].write_text(LIT.format(goal="(or (broken a) (in a attic))"))
    assert run(capsys, "plan", *lamps) == (1, "", "no strong-cyclic policy exists\n")


def test_other_commands_say_that_plan_reads_adl(lamps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "validate", *lamps, lamps[0])
    assert code == 2
    assert "is not supported" in err
    assert err.rstrip().endswith("; only `bilevel plan` reads such files")
