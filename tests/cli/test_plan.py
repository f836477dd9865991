"""`bilevel plan` as a user gives it: what it prints, writes and exits with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bilevel.planning.planner import ContingentPolicy, PlanResult, Status
from bilevel.planning.planners import PLANNERS
from bilevel.symbolic.domain import Domain, Problem
from bilevel.tabletop.problems import domain_text
from command_line import refused, run, run_json, run_well

COINS = """(define (domain coins) (:requirements :non-deterministic) (:predicates (tails) (heads) (lost) (rich))
  (:action flip :precondition (tails) :effect (oneof (and (heads) (not (tails))) (and)))
  (:action push :precondition (tails) :effect (and (not (tails)) (oneof (heads) (lost))))
  (:action win :precondition (heads) :effect (rich)))"""
ONE = "(define (problem one) (:domain coins) (:init (tails)) (:goal (rich)))"
BLOCKS = """(define (problem small) (:domain blocks)
  (:objects b1 b2 - block p1 p2 - place)
  (:init (clear b1) (clear b2) (clear p1) (clear p2) (gripper-free)) (:goal (and {goal})))"""
LAMPS = """(define (domain lamps) (:types lamp room)
  (:predicates (lit ?l - lamp) (broken ?l - lamp) (in ?l - lamp ?r - room) (at ?r - room) (dark))
  (:action go :parameters (?r - room) :precondition (not (at ?r))
    :effect (and (at ?r) (forall (?other - room) (when (and (at ?other) (not (= ?other ?r))) (not (at ?other))))))
  (:action switch :parameters (?r - room) :precondition (and (at ?r) (exists (?l - lamp) (in ?l ?r)))
    :effect (forall (?l - lamp) (when (in ?l ?r) (oneof (lit ?l) (not (lit ?l))))))
  (:action connect :parameters () :precondition (dark) :effect (not (dark))))"""
LIT = """(define (problem evening) (:domain lamps) (:objects a b - lamp hall attic - room)
  (:init (in a hall) (in b hall) (at attic) (dark)) (:goal {goal}))"""
PLAN = "(pick b1)\n(place b1 p2)\n; cost = 2 (unit cost)\n"
Files = tuple[Path, Path]


def written(folder: Path, domain: str, problem: str) -> Files:
    files = folder / "domain.pddl", folder / "problem.pddl"
    for file, text in zip(files, (domain, problem), strict=True):
        file.write_text(text)
    return files


@pytest.fixture
def coins(tmp_path: Path) -> Files:
    """A nondeterministic domain and a problem."""
    return written(tmp_path, COINS, ONE)


@pytest.mark.parametrize("planner", ["auto", "fast-downward", "lama", "search"])
def test_every_classical_planner(planner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = written(tmp_path, domain_text("blocks"), BLOCKS.format(goal="(at b1 p2)"))
    assert run_well(capsys, "plan", *files, "--planner", planner) == PLAN
    found = run_json(capsys, "plan", *files, "--planner", planner, "--output", tmp_path / "plan.json")
    assert [step["do"] for step in found["plan"]] == ["pick(b1)", "place(b1, p2)"]
    assert json.loads((tmp_path / "plan.json").read_text())["plan"] == found["plan"]
    written(tmp_path, domain_text("blocks"), BLOCKS.format(goal="(at b1 p2) (at b2 p2)"))
    assert run(capsys, "plan", *files, "--planner", planner) == (1, "", "no plan exists\n")


def test_a_policy_is_printed_written_and_checked(coins: Files, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "plan", *coins)
    assert (code, err.splitlines()[1:]) == (0, ["checked: strong-cyclic, 3 reachable states"])
    assert out.splitlines()[:2] == ["1: if heads() do win()", "2: if tails() do flip()"]
    file = coins[0].with_name("policy.json")
    found = run_json(capsys, "plan", *coins, "--output", file)
    assert (found["status"], found["checked"], found["plan"]) == ("solved", "strong-cyclic", None)
    assert found["policy"][1] == {"if": ["tails()"], "if_not": [], "do": "flip()", "distance": 2}
    assert json.loads(file.read_text())["policy"] == found["policy"]
    assert run_well(capsys, "plan", *coins, "--output", coins[0].with_name("policy")) == ""
    assert coins[0].with_name("policy").read_text() == out
    _, _, err = run(capsys, "plan", *coins, "--max-states", 2)
    assert "checked: strong-cyclic, decision by decision, as there are more than 2 reachable states\n" in err


@pytest.mark.parametrize("planner", ["search", "fond", "fast-downward"])
def test_limits_of_time_and_memory_are_kept(planner: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run_well(capsys, "problem", "blocks", "--objects", 400, "--output", tmp_path / "large.pddl")
    words = ("plan", "--planner", planner, tmp_path / "blocks-domain.pddl", tmp_path / "large.pddl")
    assert run(capsys, *words, "--timeout", 0.05) == (1, "", "timed out; the limits are 0.05 s and 4 GB\n")
    if planner != "fast-downward":
        command = [sys.executable, "-m", "bilevel", *map(str, words), "--memory", "0.05"]
        ended = subprocess.run(command, capture_output=True, text=True)
        told = "out of memory; the limits are 60 s and 0.05 GB"
        assert (ended.returncode, ended.stdout, told in ended.stderr) == (1, "", True)


def test_a_missing_planner_says_how_to_get_it(
    coins: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert 'pip install "bilevel[planners]"' in refused(capsys, "plan", *coins, "--planner", "fast-downward")
    run_well(capsys, "plan", *coins)


def test_a_policy_is_not_believed_but_checked(
    coins: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def liar(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
        return PlanResult(Status.SOLVED, policy=ContingentPolicy(()))

    monkeypatch.setitem(PLANNERS, "fond", liar)
    told = refused(capsys, "plan", *coins)
    assert "its policy is not strong-cyclic: at the start: the policy has no action" in told


def test_adl_is_planned_for_in_the_words_of_its_author(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    goal = "(and (not (dark)) (or (lit a) (forall (?l - lamp) (broken ?l))) (imply (in b hall) (lit a)))"
    files = written(tmp_path, LAMPS, LIT.format(goal=goal))
    code, out, err = run(capsys, "plan", *files)
    decisions = {line.split(" do ")[1] for line in out.splitlines() if " do " in line}
    assert (code, decisions, "goal:" in out) == (0, {"connect()", "switch(hall)", "go(hall)"}, False)
    assert "checked: strong-cyclic" in err
    for planner in ("search", "fast-downward"):
        lines = run_well(capsys, "plan", *files, "--planner", planner).splitlines()[:-1]
        assert sorted(line.split(" ;")[0] for line in lines) == ["(connect)", "(go hall)", "(switch hall)"]
    files[1].write_text(LIT.format(goal="(and (not (dark)) (not (at attic)))"))
    assert "(go hall)" in run_well(capsys, "plan", *files, "--planner", "search")
    assert "only `bilevel plan` reads such" in refused(capsys, "validate", *files, files[0])
