"""The real commands, at tiny size: what they print, write and exit with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bilevel import cli
from bilevel.tabletop.problems import domain_text

PROBLEM = """
(define (problem small) (:domain blocks)
  (:objects b1 b2 - block p1 p2 - place)
  (:init (clear b1) (clear b2) (clear p1) (clear p2) (gripper-free))
  (:goal (and (at b1 p2) (at b2 p1))))
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(stopped.value.code or 0), captured.out, captured.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A domain, a problem, and rules learned from it."""
    (tmp_path / "domain.pddl").write_text(domain_text("blocks"))
    (tmp_path / "problem.pddl").write_text(PROBLEM)
    with pytest.raises(SystemExit):
        cli.main([*map(str, ("rules", "learn", tmp_path / "domain.pddl", tmp_path / "problem.pddl")),
                  "--output", str(tmp_path / "blocks.rules"), "--planner", "search"])  # fmt: skip
    return tmp_path


def test_learning_prints_and_writes_the_rules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = folder / "again.rules"
    code, out, _ = run(capsys, "rules", "learn", folder / "domain.pddl", folder / "problem.pddl", "--output", output)
    text = output.read_text()
    assert code == 0
    assert text in out
    assert "1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)" in text
    assert "2 rules from" in out


def test_any_number_of_workers_learns_the_same_rules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for workers in (1, 2):
        output = folder / f"{workers}.rules"
        problems = [folder / "problem.pddl"] * 3
        arguments = ("rules", "learn", folder / "domain.pddl", *problems, "--output", output, "--workers", workers)
        assert run(capsys, *arguments)[0] == 0
        texts.append(output.read_bytes())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "english"])
def test_rules_are_shown_in_every_format(folder: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    capsys.readouterr()
    code, out, _ = run(capsys, "rules", "show", folder / "blocks.rules", "--format", form)
    assert code == 0
    assert "place" in out


def test_solve_writes_a_plan_that_validates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = folder / "domain.pddl", folder / "problem.pddl"
    plan = folder / "plans" / "small.plan"
    capsys.readouterr()
    code, out, err = run(capsys, "solve", *files, "--rules", folder / "blocks.rules", "--plan", plan)
    assert (code, out) == (0, "")
    assert "solved in 4 steps" in err
    assert plan.read_text().splitlines() == [
        "(pick b1)", "(place b1 p2)", "(pick b2)", "(place b2 p1)", "; cost = 4 (unit cost)",
    ]  # fmt: skip
    assert run(capsys, "validate", *files, plan)[:2] == (0, "valid: 4 steps reach the goal\n")


def test_solve_says_why_it_stops_short(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = folder / "blocked.pddl"
    blocked.write_text(PROBLEM.replace("(clear p2)", ""))
    capsys.readouterr()
    plan = folder / "none.plan"
    arguments = ("solve", folder / "domain.pddl", blocked, "--rules", folder / "blocks.rules", "--plan", plan)
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert "no rule applies after 2 steps, 1 of 2 goals open" in err
    assert "clear(p2) does not hold" in err
    assert not plan.exists()
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 1
    assert json.loads(out)["outcome"] == "no-rule"
    code, _, err = run(capsys, *arguments, "--max-steps", 1)
    assert code == 1
    assert "the bound on steps is reached after 1 steps" in err


def test_an_invalid_plan_is_refused_with_its_step(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = folder / "bad.plan"
    plan.write_text("(pick b1)\n(pick b2)\n")
    capsys.readouterr()
    code, out, _ = run(capsys, "validate", folder / "domain.pddl", folder / "problem.pddl", plan)
    assert code == 1
    assert "step 2, pick(b2)" in out


def test_verify_proves_and_refutes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = folder / "domain.pddl", folder / "problem.pddl"
    capsys.readouterr()
    code, out, _ = run(capsys, "rules", "verify", folder / "blocks.rules", *files)
    assert (code, out.startswith("small: solved always")) == (0, True)
    grow = ("--grow", "block=3", "place=2", "--starts", "initial")
    assert run(capsys, "rules", "verify", folder / "blocks.rules", *files, *grow)[0] == 0
    printed = folder / "printed.rules"
    printed.write_text((folder / "blocks.rules").read_text().replace("clear(?b) & clear(?p) &", "clear(?b) &"))
    code, out, _ = run(capsys, "rules", "verify", printed, *files, *grow)
    assert code == 1
    assert "counterexample in 3 steps\n" in out
    assert "does not hold" in out
    assert "pick(" in out


@pytest.mark.parametrize("name", ["blocks", "gacha"])
def test_generated_problems_can_be_solved(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    problem = tmp_path / "p.pddl"
    assert run(capsys, "problem", name, "--objects", 3, "--output", problem)[0] == 0
    domain = tmp_path / f"{name}-domain.pddl"
    rules = tmp_path / "r.rules"
    assert run(capsys, "rules", "learn", domain, problem, "--output", rules, "--orders", 8)[0] == 0
    plan = tmp_path / "p.plan"
    assert run(capsys, "solve", domain, problem, "--rules", rules, "--plan", plan, "--seed", 5)[0] == 0
    assert run(capsys, "validate", domain, problem, plan)[0] == 0


BAD = [
    (("solve", "domain.pddl", "missing.pddl", "--rules", "blocks.rules"), "missing.pddl"),
    (("solve", "domain.pddl", "typo.pddl", "--rules", "blocks.rules"), "typo.pddl:4:11: "),
    (("solve", "domain.pddl", "cut.pddl", "--rules", "blocks.rules"), "cut.pddl:"),
    (("solve", "domain.pddl", "noise.pddl", "--rules", "blocks.rules"), "noise.pddl"),
    (("solve", "domain.pddl", ".", "--rules", "blocks.rules"), "directory"),
    (("solve", "domain.pddl", "problem.pddl", "--rules", "typo.rules"), "typo.rules:1:4: "),
    (("solve", "domain.pddl", "problem.pddl", "--rules", "blocks.rules", "--max-steps", "-1"), "--max-steps"),
    (("rules", "learn", "domain.pddl", "--output", "x.rules"), "no problems"),
    (("rules", "learn", "domain.pddl", "problem.pddl", "--output", "x.rules", "--orders", "0"), "--orders"),
    (("rules", "learn", "domain.pddl", "problem.pddl", "--output", "x.rules", "--workers", "-3"), "--workers"),
    (("rules", "learn", "domain.pddl", "problem.pddl", "--output", "x.rules", "--time-limit", "0"), "--time-limit"),
    (("rules", "verify", "blocks.rules", "domain.pddl"), "no problems"),
    (("rules", "verify", "blocks.rules", "domain.pddl", "problem.pddl", "--grow", "block"), "block=4"),
    (("problem", "block", "--output", "x.pddl"), "known kinds: blocks"),
    (("problem", "blocks", "--objects", "0", "--output", "x.pddl"), "at least 1 object"),
    (("problem", "blocks", "--output", "blocks-domain.pddl"), "choose another folder"),
    (("rules", "verify", "blocks.rules", "domain.pddl", "problem.pddl", "--max-states", "0"), "--max-states"),
    (("rules", "learn", "domain.pddl", "problem.pddl", "--output", "problem.pddl/x"), "cannot be written"),
]


@pytest.mark.parametrize(("arguments", "expected"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(folder)
    Path("typo.pddl").write_text(PROBLEM.replace("(clear b1)", "(claer b1)"))
    Path("cut.pddl").write_text(PROBLEM[:80])
    Path("noise.pddl").write_bytes(bytes(range(256)))
    Path("typo.rules").write_text("1: holdin(?b) & goal at(?b, ?p) -> place(?b, ?p)\n")
    capsys.readouterr()
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert err.startswith("bilevel: ")
    assert expected in err


def test_nothing_learned_leaves_the_old_rules_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = folder / "done.pddl"
    done.write_text(PROBLEM.replace("(gripper-free)", "(gripper-free) (at b1 p2) (at b2 p1)"))
    before = (folder / "blocks.rules").read_bytes()
    code, out, _ = run(capsys, "rules", "learn", folder / "domain.pddl", done, "--output", folder / "blocks.rules")
    assert code == 1
    assert "0 rules from 0 traces" in out
    assert (folder / "blocks.rules").read_bytes() == before


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command line as a person types it; `bilevel` is this interpreter's."""
    typed = command.replace("bilevel", f"{sys.executable} -m bilevel.cli")
    return subprocess.run(["bash", "-c", typed], cwd=folder, capture_output=True, text=True)


def test_a_full_disk_a_closed_output_and_a_poor_terminal_are_survived(folder: Path) -> None:
    full = shell(folder, "bilevel rules show blocks.rules > /dev/full")
    assert (full.returncode, len(full.stderr.splitlines())) == (2, 1)
    assert "No space left on device" in full.stderr
    assert shell(folder, "bilevel rules show blocks.rules | head -1; exit ${PIPESTATUS[0]}").stderr == ""
    assert shell(folder, "bilevel rules show blocks.rules >&-").stderr == ""
    poor = shell(folder, "PYTHONIOENCODING=ascii bilevel rules show blocks.rules --format markdown")
    assert (poor.returncode, poor.stderr) == (0, "")
    assert shell(folder, "bilevel solve domain.pddl problem.pddl --rules blocks.rules --plan /dev/stdout").stdout


def test_output_goes_through_links_and_keeps_the_mode_of_the_file(folder: Path) -> None:
    target = folder / "real.rules"
    target.write_text("old")
    target.chmod(0o640)
    (folder / "link.rules").symlink_to(target)
    learned = shell(folder, "bilevel rules learn domain.pddl problem.pddl --output link.rules")
    assert learned.returncode == 0
    assert (folder / "link.rules").is_symlink()
    assert target.read_text().startswith("# Rules for the domain blocks")
    assert target.stat().st_mode & 0o777 == 0o640


def test_the_installed_command_runs() -> None:
    shown = subprocess.run([sys.executable, "-m", "bilevel.cli", "--version"], capture_output=True, text=True)
    assert shown.returncode == 0
    assert shown.stdout.startswith("bilevel ")
