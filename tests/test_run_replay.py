"""`bilevel run --replay`: an evaluated episode, run again exactly as it was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import drawn_task
import tiny_task
from command_line import run
from tiny_policies import moving_as_the_expert, still_folder

TINY = f"{tiny_task.__file__}:TINY"


def evaluated(
    capsys: pytest.CaptureFixture[str], output: Path, *options: object, objects: str = "1-2"
) -> list[dict[str, Any]]:
    """The results of an evaluation of two episodes for each number of objects."""
    words = (TINY, "--objects", objects, "--episodes", 2, "--output", output)
    assert run(capsys, "evaluate", *words, *options)[0] == 0
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def test_all_that_an_episode_depends_on_is_taken_from_its_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, policy = tmp_path / "results.jsonl", still_folder()
    perturbed = ("--noise", 0.9, "--env-args", "slip_rate=0.02", "--perception", "noise=0.01", "--recovery", "wait=4")
    with moving_as_the_expert():
        for line in evaluated(capsys, results, "--policy", policy, *perturbed):
            which = ("--objects", line["objects"], "--episode", line["episode"])
            code, out, _ = run(capsys, "run", TINY, "--replay", results, *which, "--json")
            found = json.loads(out)
            assert (found["as_recorded"], found["unlike"], found["seed"]) == (True, [], line["seed"])
            assert (found["outcome"], found["reason"], found["steps"]) == (
                line["outcome"],
                line["reason"],
                line["steps"],
            )
            assert code == (0 if line["outcome"] == "success" else 1)


def test_methods_that_plan_plan_with_what_they_planned_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.jsonl"
    planning = ("--method", "det-replan", "--planner", "search", "--planning-seconds", 7)
    with moving_as_the_expert():
        evaluated(capsys, results, "--policy", still_folder(), *planning, objects="1")
        code, out, err = run(capsys, "run", TINY, "--replay", results, "--episode", 1, "--explain")
    assert (code, err.splitlines()[-1]) == (0, "as recorded")
    assert [line.split()[1] for line in out.splitlines()] == ["pick(parcel1)", "put(parcel1,"]


def test_what_came_out_otherwise_is_told_with_what_may_be_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    line = evaluated(capsys, results, "--method", "expert", objects="1")[0]
    versions = {**line["versions"], "numpy": "0.1"}
    for changed, causes in (
        ({"steps": 7, "versions": versions}, [f"versions.numpy: 0.1 → {line['versions']['numpy']}"]),
        ({"steps": 7}, ["nothing that is recorded differs but the machine"]),
    ):
        results.write_text(json.dumps({**line, **changed}) + "\n", encoding="utf-8")
        code, _, err = run(capsys, "run", TINY, "--replay", results, "--episode", 0)
        assert code == 0
        assert err.splitlines()[1:] == ["not as recorded: that was success after 7 steps", *causes]


def test_another_policy_may_be_tried_on_the_same_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.jsonl"
    with moving_as_the_expert():
        evaluated(capsys, results, "--policy", still_folder(), objects="1")
    other = still_folder()
    code, _, err = run(capsys, "run", TINY, "--replay", results, "--episode", 0, "--policy", other)
    assert code == 1
    assert err.splitlines()[-2].startswith("not as recorded: that was success after ")


def test_it_can_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn, results, sheet = f"{drawn_task.__file__}:DRAWN", tmp_path / "results.jsonl", tmp_path / "sheet.png"
    options = (drawn, "--method", "expert", "--objects", 1, "--episodes", 1, "--output", results)
    assert run(capsys, "evaluate", *options)[0] == 0
    assert run(capsys, "run", drawn, "--replay", results, "--episode", 0, "--sheet", sheet)[0] == 0
    assert sheet.stat().st_size > 1000


def test_what_cannot_be_replayed_is_refused_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.jsonl"
    line = evaluated(capsys, results, "--method", "expert")[0]
    replay = ("run", TINY, "--replay", results)
    for words, what in (
        (replay, f"say which episode of {results} to replay, with --episode N; all succeeded"),
        ((*replay, "--episode", 0), f"{results} has episodes with 1, 2 objects: say which with --objects N"),
        ((*replay, "--episode", 5, "--objects", 2), f"{results} has no episode 5 with 2 objects; they are 0 to 1"),
        ((*replay, "--episode", 0, "--objects", 9), f"{results} has no episode 0 with 9 objects; it has 1, 2 objects"),
        ((*replay, "--episode", 0, "--seed", 1), "--seed does not go with --replay, which runs the episode as it was"),
        (("run", "--replay", results, "--episode", 0, "--objects", 1), "the episode is of the task 'tiny', which is"),
        (("run", "blocks", *replay[2:], "--episode", 0, "--objects", 1), "the episode is of the task 'tiny', not of "),
        (("run", TINY, "--episode", 0), "--episode needs --replay FILE"),
        (("run",), "name a TASK, such as blocks"),
    ):
        code, out, err = run(capsys, *words)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert err.startswith(f"bilevel: {what}")
    for changed, what in (
        ({"settings": {"recovery": 5}}, "the settings of the episode: "),
        ({"settings": {"estimation": "0" * 64}}, "the state estimation of another policy"),
    ):
        results.write_text(json.dumps({**line, **changed}) + "\n", encoding="utf-8")
        code, _, err = run(capsys, *replay, "--episode", 0)
        assert (code, len(err.splitlines())) == (2, 1)
        assert what in err
    failed = {**line, "outcome": "step limit", "reason": "time"}
    results.write_text(2 * (json.dumps(failed) + "\n"), encoding="utf-8")
    assert "; failed: 0 of 1 objects, 0 of 1 objects\n" in run(capsys, *replay)[2]
    assert "has 2 such episodes" in run(capsys, *replay, "--episode", 0)[2]
