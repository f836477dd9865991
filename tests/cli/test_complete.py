"""`bilevel rules complete`, as a user gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bilevel.rules.rule_file import read_rules
from bilevel.tabletop.problems import domain_text, shipped_domain
from command_line import run

PROBLEM = """(define (problem p1) (:domain swap) (:objects b1 - block p1 - place table - table)
  (:init (at b1 table) (free p1) (free table) (gripper-free)) (:goal (at b1 p1)))"""
RULES = """variables: ?b - block, ?p - place, ?s - surface
1: holding(?b) & free(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: at(?b, ?s) & free(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b, ?s)
"""
SIZES = ("--objects", "block=2", "place=2", "--random-problems", "5")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("swap.rules", "swap.pddl", "p1.pddl")]
    for path, text in zip(paths, (RULES, domain_text("swap"), PROBLEM), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def test_rules_are_completed_and_written(files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "complete.rules"
    code, out, _ = run(capsys, "rules", "complete", *files, *SIZES, "--output", output)
    assert code == 0
    assert "no rule missing and no loop for all problems of up to 2 blocks and 2 places" in out
    rules = read_rules(output, shipped_domain("swap"))
    assert rules[:2] == read_rules(files[0])
    assert len(rules) > 2
    assert "# no rule missing" in output.read_text(encoding="utf-8")


def test_without_problems_the_rules_say_where_to_begin(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "rules", "complete", *files[:2], "--json")
    told = json.loads(out)
    assert code == 0
    assert told["proved"]
    assert told["given"] == 2


def test_what_is_not_proved_has_another_exit_code(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "rules", "complete", *files, *SIZES, "--budget", "1")
    assert code == 1
    assert "the budget is used up" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objects", "blok=2"], "unknown type 'blok' in 'blok=2'"),
        (["--objects", "block"], "'block' is not a count of objects"),
        (["--objects", "block=0"], "at least one object of each type is needed"),
        (["--budget", "0"], "budget"),
    ],
)
def test_bad_options_are_one_line(
    options: list[str], message: str, files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "rules", "complete", *files, *options)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_bad_files_are_one_line(files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        given = [tmp_path / "missing" if place == number else path for place, path in enumerate(files)]
        code, _, err = run(capsys, "rules", "complete", *given)
        assert code == 2
        assert "missing" in err
        assert len(err.strip().splitlines()) == 1
    files[2].write_text(PROBLEM.replace("(at b1 p1)))", "(and)))"), encoding="utf-8")
    code, _, err = run(capsys, "rules", "complete", *files)
    assert code == 2
    assert "no problem with a goal to start from" in err


def test_an_interruption_leaves_the_old_file(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    output = tmp_path / "complete.rules"
    output.write_text(RULES, encoding="utf-8")
    monkeypatch.setattr("bilevel.rules.complete.complete_rules", interrupted)
    code, _, _ = run(capsys, "rules", "complete", *files, "--output", output)
    assert code == 130
    assert output.read_text(encoding="utf-8") == RULES
