"""The command that fits thresholds, at tiny size: what it prints, writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny_task
from bilevel.policies.policy_folder import read_policy
from command_line import run
from tiny_demonstrations import shown
from tiny_policies import still_policy
from tiny_task import REACH, TINY_MEASURED

TASK = f"{tiny_task.__file__}:TINY_MEASURED"


def arguments(perception: str = "noise=0.04", task: str = TASK) -> list[object]:
    folder = shown(TINY_MEASURED).folder
    return ["demonstrations", "thresholds", folder, "--perception", perception, "--task", task]


def test_it_says_what_is_gained_and_keeps_it_in_the_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still_policy(TINY_MEASURED).write(tmp_path)
    code, out, _ = run(capsys, *arguments(), "--policy", tmp_path)
    assert code == 0
    head, row, agreement, written = out.splitlines()
    assert head.split()[:3] == ["threshold", "default", "fitted"]
    fitted = read_policy(tmp_path).card.thresholds
    assert row.split()[:3] == ["near", f"{REACH:g}", f"{fitted['near']:g}"]
    assert fitted["near"] > REACH
    assert agreement.startswith("agreement in 1 held-out demonstration: 0.")
    assert agreement.endswith(" fitted to 2 others")
    assert written == f"written to {tmp_path}"


def test_without_a_policy_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, *arguments(), "--json")[1])
    assert found["thresholds"]["near"] > found["defaults"]["near"] == REACH
    assert found["agreement_after"] > found["agreement_before"] == found["agreement_without"]["near"]
    assert (found["demonstrations"], found["held_out"]) == (2, 1)
    assert "written" not in run(capsys, *arguments())[1]


def test_where_nothing_is_better_the_policy_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still_policy(TINY_MEASURED).write(tmp_path)
    run(capsys, *arguments(), "--policy", tmp_path)
    assert read_policy(tmp_path).card.thresholds
    code, out, _ = run(capsys, *arguments(perception=""), "--policy", tmp_path)
    assert code == 0
    assert out.splitlines()[-1] == "no other thresholds are better: the defaults are kept"
    assert not read_policy(tmp_path).card.thresholds


def test_what_does_not_fit_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, reason in (
        (arguments(perception="noisy=1"), "perception takes NAME=VALUE"),
        (arguments(task=f"{tiny_task.__file__}:TINY"), "the task 'tiny' has no thresholds; declare them"),
        ([*arguments(), "--policy", tmp_path], "no policy: there is no policy.json in it"),
    ):
        code, _, error = run(capsys, *words)
        assert (code, error.count("\n")) == (2, 1)
        assert reason in error
