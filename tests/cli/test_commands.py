"""Each real command, once, at tiny size: what it prints, writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny_task
from bilevel.policies.folder import read_policy
from bilevel.rules.rule_file import read_rules
from bilevel.tabletop.problems import domain_text
from command_line import refused, run, run_json, run_well
from tiny_policies import learned_folder

TINY = f"{tiny_task.__file__}:TINY"
PROBLEM = """
(define (problem small) (:domain blocks)
  (:objects b1 b2 - block p1 p2 - place)
  (:init (clear b1) (clear b2) (clear p1) (clear p2) (gripper-free))
  (:goal (and (at b1 p2) (at b2 p1))))
"""
SWAP = """variables: ?b - block, ?p - place, ?s - surface
1: holding(?b) & free(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: at(?b, ?s) & free(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b, ?s)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a domain and a problem, in which commands are given."""
    (tmp_path / "domain.pddl").write_text(domain_text("blocks"))
    (tmp_path / "problem.pddl").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Symbols


@pytest.mark.usefixtures("folder")
def test_rules_are_learned_shown_verified_and_solve_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    files = "domain.pddl", "problem.pddl"
    learned = run_well(capsys, "rules", "learn", *files, "--output", "b.rules")
    assert Path("b.rules").read_text() in learned
    assert "1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)" in learned
    assert "3 rules from 1 problem" in learned
    for form in ("text", "english"):
        assert "place" in run_well(capsys, "rules", "show", "b.rules", "--format", form)
    assert run_well(capsys, "rules", "verify", "b.rules", *files).startswith("small: solved always")
    solve = ("solve", *files, "--rules", "b.rules")
    assert run(capsys, *solve, "--plan", "new/small.plan")[::2][0] == 0
    assert Path("new/small.plan").read_text().splitlines()[:2] == ["(pick b1)", "(place b1 p2)"]
    assert run_well(capsys, "validate", *files, "new/small.plan") == "valid: 4 steps reach the goal\n"
    code, _, err = run(capsys, *solve, "--max-steps", 1)
    assert (code, "the bound on steps is reached after 1 steps" in err) == (1, True)


@pytest.mark.usefixtures("folder")
def test_an_answer_that_is_no_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.plan").write_text("(pick b1)\n(pick b2)\n")
    code, out, _ = run(capsys, "validate", "domain.pddl", "problem.pddl", "bad.plan")
    assert (code, "step 2, pick(b2)" in out) == (1, True)
    Path("one.rules").write_text("variables: ?b - block\n1: clear(?b) & gripper-free() & goal at(?b, ?p) -> pick(?b)\n")
    words = ("solve", "domain.pddl", "problem.pddl", "--rules", "one.rules")
    code, _, err = run(capsys, *words)
    assert (code, "no rule applies after 1 steps, 2 of 2 goals open; closest:" in err) == (1, True)
    code, out, _ = run(capsys, *words, "--json")
    assert (code, json.loads(out)["outcome"]) == (1, "no-rule")
    grow = ("--grow", "block=2", "place=2", "--starts", "initial")
    code, out, _ = run(capsys, "rules", "verify", "one.rules", "domain.pddl", "problem.pddl", *grow)
    assert (code, "counterexample" in out) == (1, True)


@pytest.mark.usefixtures("folder")
def test_rules_are_completed_or_left_as_they_were(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("domain.pddl").write_text(domain_text("swap"))
    Path("swap.rules").write_text(SWAP)
    Path("p.pddl").write_text(
        """(define (problem p) (:domain swap) (:objects b - block p - place table - table)
        (:init (at b table) (free p) (free table) (gripper-free)) (:goal (at b p)))"""
    )
    sizes = "--objects", "block=2", "place=2"
    words = ("rules", "complete", "swap.rules", "domain.pddl", "p.pddl", *sizes, "--output", "c.rules")
    found = run_json(capsys, *words)
    assert (found["is_proved"], found["given"], found["rules"]) == (True, 2, len(read_rules(Path("c.rules"))))
    assert read_rules(Path("c.rules"))[:2] == read_rules(Path("swap.rules"))
    text = Path("c.rules").read_text()
    code, out, _ = run(capsys, *words[:-2], "--budget", 1)
    assert (code, "the budget is used up" in out) == (1, True)
    assert "no object of type 'blok'" in refused(capsys, *words, "--objects", "blok=2")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bilevel.rules.complete.complete_rules", interrupted)
    assert run(capsys, *words)[0] == 130
    assert Path("c.rules").read_text() == text


# Data, policies and measurements


@pytest.mark.usefixtures("folder")
def test_from_demonstrations_to_a_policy_and_its_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    collect = ("collect", TINY, "--objects", 1, "--episodes", 3, "--output", "data")
    assert run_well(capsys, *collect).startswith("output: data\nepisodes: 3\n")
    assert "already there: 3" in run_well(capsys, *collect)
    checked = run_json(capsys, "demonstrations", "check", "data", "--task", TINY)
    assert (checked["problems"], checked["verdicts"]["rules"]["answer"]) == ([], "yes")
    replayed = run_well(capsys, "demonstrations", "replay", "data", "--task", TINY)
    assert replayed.startswith("3 episodes, 3 the same bit for bit\n")
    assert "pick(parcel1)" in run_well(capsys, "demonstrations", "show", "data", "--episode", 0)
    brief = ("--preset", "paper", "--epochs", 2, "--hidden", 8, "--task", TINY)
    learned = run_well(capsys, "learn", "data", *brief, "--output", "policy")
    assert learned.startswith(read_policy(Path("policy")).texts()["rules.txt"])
    one = ("--objects", "1", "--episodes", "2")
    evaluate = ("evaluate", TINY, "--policy", "policy", *one, "--output", "a.jsonl")
    assert run_well(capsys, *evaluate).startswith("tiny, bison: 2 episodes\n")
    assert run_json(capsys, *evaluate)["already_there"] == 2


def test_a_task_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no errors: a policy can be learned" in run_well(capsys, "check", TINY, "--objects", 1, "--seeds", 1)


def test_methods_policies_axes_and_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "det-replan" in run_well(capsys, "methods")
    assert "blocks" in run_well(capsys, "policies")
    assert "-> pick(?p)" in run_well(capsys, "policies", learned_folder())
    assert "teleports" in run_well(capsys, "benchmark", "axes")
    assert run(capsys, "lerobot", "check")[0] in (0, 1)
