"""The adapter against programs that stand in for PR2, good, bad and silent ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from fake_pr2 import LIST, TRANSLATION, write_program
from small_policies import COINS, FLIPPING, HEADS, LOST, ONE_COIN, TAILS

from bilevel.planning.planner import ContingentPolicy, NoModel, PolicyResult, Status
from bilevel.planning.planners import CONTINGENT_PLANNERS
from bilevel.planning.pr2 import close_choices, command_words, pr2
from bilevel.symbolic.domain import BadInput, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_domain, write_problem
from bilevel.tabletop.problems import shipped_domain, training_problems

GOOD = {"output.sas": TRANSLATION, "policy.out": LIST}


def plan(tmp_path: Path, files: dict[str, str], then: str = "", limit: float = 60) -> PolicyResult:
    return pr2(COINS, ONE_COIN, limit, write_program(tmp_path / "pr2", files, then))


@pytest.mark.parametrize(
    "files",
    [
        GOOD,
        {"output": TRANSLATION, "output.sas": "begin_variable", "policy.out": LIST, "policy.fsap": ""},
    ],
    ids=["pr2", "prp"],
)
def test_every_format_is_read(tmp_path: Path, files: dict[str, str]) -> None:
    assert plan(tmp_path, files) == PolicyResult(Status.SOLVED, FLIPPING)


def test_it_runs_in_a_directory_of_its_own_with_our_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    report = tmp_path / "report"
    then = f"Path({str(report)!r}).write_text('|'.join([*sys.argv[1:], *sorted(os.listdir()), os.getcwd()]))"
    assert plan(tmp_path, GOOD, then).status is Status.SOLVED
    *words, directory = report.read_text().split("|")
    assert words == [
        *("domain.pddl", "problem.pddl", "--output-format", "2"),
        *("bilevel.log", "domain.pddl", "output.sas", "policy.out", "problem.pddl"),
    ]
    assert Path(directory).parent == tmp_path / "temporary"
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_is_forbidden_is_taken_out(tmp_path: Path) -> None:
    """A penny is flipped unless it is lost, and, as an example, not won with where it is heads and lost."""
    loose = LIST.replace("var0:1 var1:1", "var0:1")
    forbidden = "\nIf holds: var1:0\nForbid: a1 penny\n\nIf holds: var0:0 var1:0\nForbid: a4 penny\n"
    policy = plan(tmp_path, {**GOOD, "policy.out": loose, "policy.fsap": forbidden}).policy
    assert policy is not None
    for state, action in [({HEADS}, "win(penny)"), ({TAILS}, "flip(penny)"), ({TAILS, LOST}, "None"), ({LOST}, "None")]:
        assert str(policy.choose(frozenset(state))) == action
    assert str(policy.choose(frozenset({HEADS, LOST}))) == "None"


def test_none_of_those_is_the_absence_of_all(tmp_path: Path) -> None:
    rest = "\nIf holds: var0:2\nExecute: a3 / NSC / d=9\n"
    policy = plan(tmp_path, {**GOOD, "policy.out": LIST + rest}).policy
    assert policy is not None
    assert policy.decisions[-1].condition.negative == {HEADS, TAILS}


@pytest.mark.parametrize(
    ("files", "then", "status", "message"),
    [
        ({}, "print('core dumped'); sys.exit(3)", Status.ERROR, "wrote no policy (exit code 3): core dumped"),
        ({}, "raise RuntimeError('out of luck')", Status.ERROR, "wrote no policy (exit code 1): RuntimeError: out of"),
        ({}, "os.abort()", Status.ERROR, "wrote no policy (exit code 134): no output"),
        ({}, "print('No solution -- aborting repairs.')", Status.UNSOLVABLE, "no strong-cyclic policy exists, says"),
        ({"policy.out": "rubbish"}, "", Status.ERROR, "wrote cannot be read: there is no file output.sas"),
        (
            {**GOOD, "policy.out": "rub\nbish"},
            "",
            Status.ERROR,
            "expected 'If holds: …' but found 'rub'",
        ),
        ({**GOOD, "output.sas": "rubbish"}, "", Status.ERROR, "unknown value 'var0:0' of a variable"),
        ({**GOOD, "policy.out": LIST.replace("a4", "a9")}, "", Status.ERROR, "unknown action 'a9 penny'"),
        ({**GOOD, "output.sas": TRANSLATION.replace("Atom lost()", "Fact")}, "", Status.ERROR, "unknown fact 'Fact'"),
        ({**GOOD}, "Path('policy.out').write_bytes(bytes([255]))", Status.ERROR, "policy.out is not text"),
        (
            {**GOOD, "policy.out": LIST.replace("a1", "a2")},
            "",
            Status.ERROR,
            "is not strong-cyclic: after push(penny) [lost()]: the policy has no action",
        ),
        ({**GOOD, "policy.out": ""}, "", Status.ERROR, "is not strong-cyclic: at the start: the policy has no action"),
    ],
)
def test_failures_are_results(tmp_path: Path, files: dict[str, str], then: str, status: Status, message: str) -> None:
    result = plan(tmp_path, files, then)
    assert result.status is status
    assert message in result.message
    assert "\n" not in result.message
    assert (result.policy is None) == (status is not Status.SOLVED)


def test_one_that_hangs_is_ended_in_time(tmp_path: Path) -> None:
    result = plan(tmp_path, GOOD, "time.sleep(600)", limit=0.3)
    assert result == PolicyResult(Status.TIMED_OUT, None, "no policy within 0.3 s")


def test_the_command_is_checked_before_anything_is_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BILEVEL_PR2", raising=False)
    for command, message in [
        (None, "name its command with --pr2-command or in BILEVEL_PR2"),
        ("  ", "name its command with --pr2-command or in BILEVEL_PR2"),
        ("no-such-planner --fast", "there is no program 'no-such-planner'"),
        ("pr2 'unfinished", "the command of PR2 cannot be read: No closing quotation"),
        (str(tmp_path), "there is no program"),
    ]:
        with pytest.raises(BadInput) as error:
            pr2(COINS, ONE_COIN, 60, command)
        assert message in str(error.value)


def test_the_environment_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BILEVEL_PR2", write_program(tmp_path / "my planner", GOOD).replace(" ", "\\ "))
    assert CONTINGENT_PLANNERS["pr2"](COINS, ONE_COIN, 60).policy == FLIPPING


def test_command_lines(tmp_path: Path) -> None:
    program = write_program(tmp_path / "PRP", {})
    assert command_words(program)[1:] == ["domain.pddl", "problem.pddl", "--dump-policy", "2"]
    command = f"{program} --in={{domain}} {{problem}} -x"
    assert command_words(command) == [program, "--in=domain.pddl", "problem.pddl", "-x"]


def test_a_goal_that_holds_needs_no_planner_to_run(tmp_path: Path) -> None:
    problem = Problem("p", "coins", ONE_COIN.objects, ONE_COIN.state, frozenset({TAILS}))
    command = write_program(tmp_path / "pr2", {})
    assert pr2(COINS, problem, 60, command) == PolicyResult(Status.SOLVED, ContingentPolicy(()))


def test_new_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match="action 'roll' makes new objects, which PR2 cannot plan for"):
        pr2(shipped_domain("gacha"), training_problems("gacha")[0], 60, write_program(tmp_path / "pr2", {}))


def test_natures_choices_become_outcomes() -> None:
    domain, problem = shipped_domain("colour"), training_problems("colour")[-1]
    closed, for_it, names = close_choices(domain, problem)
    colours = [name for name, kind in problem.objects.items() if kind == "colour"]
    press = next(new for new, old in names.items() if old == "press")
    assert len(closed.schemas[press].outcomes) == len(colours)
    assert not any(outcome.chosen for schema in closed.schemas.values() for outcome in schema.outcomes)
    # What is written is what is meant, types included.
    again = parse_domain(write_domain(closed))
    assert again == closed
    assert parse_problem(write_problem(for_it, again), again) == for_it
