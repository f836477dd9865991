"""The command that evaluates policies, at tiny size: what it prints, writes, refuses, and how it goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tiny_task
from bilevel.commands.evaluate_command import parse_numbers
from bilevel.policies.episode import read_problems
from bilevel.policies.folder import read_policy
from bilevel.symbolic.domain import Atom, BadInput
from command_line import run
from tiny_policies import PICK, RULES_TEXT, learned_folder, still_folder, still_policy

TINY = f"{tiny_task.__file__}:TINY"
EXPERT = ("evaluate", TINY, "--method", "expert")
ONE = ("--objects", "1", "--episodes", "1")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_table_tells_the_results_and_the_file_holds_each_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new" / "results.jsonl"
    command = (*EXPERT, "--objects", "1-2", "--episodes", "2", "--output", output)
    code, out, err = run(capsys, *command)
    assert (code, err) == (0, "")
    assert out.startswith("tiny, expert: 4 episodes\n")
    assert [line.split()[:2] for line in out.splitlines()[2:5]] == [["1", "2/2"], ["2", "2/2"], ["total", "4/4"]]
    assert out.endswith(f"written to {output}\n")
    assert [(line["objects"], line["episode"]) for line in lines(output)] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert "4 episodes, 4 of them already there" in run(capsys, *command)[1]
    found = json.loads(run(capsys, *command, "--json")[1])
    assert (found["already_there"], found["total"]["successes"], list(found["by_objects"])) == (4, 4, ["1", "2"])
    assert found["total"]["refinement"] == 1.0


def test_a_policy_that_fails_is_measured_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "results.jsonl"
    policy = still_folder()
    code, out, _ = run(capsys, "evaluate", TINY, "--policy", policy, *ONE, "--output", output)
    assert code == 0
    assert out.splitlines()[2].split()[-2:] == ["stall", "1"]
    (line,) = lines(output)
    assert (line["task"], line["method"], line["policy"]) == ("tiny", "bison", str(policy))
    assert (line["policy_seed"], line["policy_digest"]) == (7, read_policy(policy).digest)
    assert (line["outcome"], line["reason"], line["steps"]) == ("step limit", "stall", 400)


def test_arguments_of_the_environment_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "results.jsonl"
    assert run(capsys, *EXPERT, *ONE, "--env-args", "slip_rate=0.1", "--noise", "0.5", "--output", output)[0] == 0
    (line,) = lines(output)
    assert (line["arguments"], line["noise"]) == ({"slip_rate": 0.1}, 0.5)
    code, _, err = run(capsys, *EXPERT, *ONE, "--output", output)
    assert (code, err) == (2, f"bilevel: {output}: made with another --noise; choose another --output\n")


def test_where_it_was_at_a_loss_is_counted_and_kept_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    still_policy(rules=RULES_TEXT.replace(PICK, "")).write(tmp_path)
    command = ("evaluate", TINY, "--policy", tmp_path, *ONE, "--recovery", "wait=4")
    code, out, _ = run(capsys, *command, "--output", tmp_path / "a.jsonl")
    assert (code, out.splitlines()[2].split()[-3:]) == (0, ["no", "rule", "1"])
    assert "incidents: 1 waits, 0 plans, 0 nudges, 0 retries, 0 other choices, 1 stops" in out
    (line,) = lines(tmp_path / "a.jsonl")
    assert (line["recovery"], line["incidents"], line["steps"]) == ({"wait": 1, "stop": 1}, None, 4)
    assert line["settings"] == {"recovery": "wait=4"}
    found = json.loads(run(capsys, *command, "--keep-incidents", "--json", "--output", tmp_path / "b.jsonl")[1])
    assert found["total"]["recovery"] == {"wait": 1, "plan": 0, "nudge": 0, "retry": 0, "other": 0, "stop": 1}
    (line,) = lines(tmp_path / "b.jsonl")
    assert [(incident["step"], incident["kind"]) for incident in line["incidents"]] == [(0, "wait"), (4, "stop")]
    (problem,) = read_problems([tmp_path / "b.jsonl"], tiny_task.DOMAIN)
    assert problem.goal == {Atom("at", ("parcel1", "spot1"))}
    refused = run(capsys, *command[:-1], "off", "--output", tmp_path / "a.jsonl")[2]
    assert "made with other settings of the method" in refused


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--method", "magic"), "unknown method 'magic'; known methods: bison, expert"),
        (("--method", "bison"), "the method 'bison' needs a --policy; `bilevel learn` makes one"),
        (("--method", "bison", "--policy", "nowhere"), "nowhere: there is no such folder"),
        (("--objects", "0"), "--objects: there can be 1 or more objects in this task, not 0"),
        (("--objects", "1-21"), "the task 'tiny' takes 1 to 12 objects, not 21"),
        (("--objects", "x"), "--objects takes numbers and ranges, such as 3, 1-10 or 1-3,10, not 'x'"),
        (("--objects", "1,,2"), "--objects takes numbers and ranges, such as 3, 1-10 or 1-3,10, not '1,,2'"),
        (("--objects", "5-2"), "--objects: the range 5-2 ends before it begins"),
        (("--episodes", "0"), "--episodes must be at least 1, but is 0"),
        (("--workers", "0"), "--workers must be at least 1, but is 0"),
        (("--seed", "-1"), "--seed must be at least 0, but is -1"),
        (("--noise", "nan"), "--noise must be at least 0, but is nan"),
        (("--env-args", "draw=uniform"), "the task 'tiny' takes no argument 'draw'; it takes: slip_rate"),
        (("--recovery", "pray"), "--recovery takes off, or some of wait=20,"),
        (("--recovery", "off"), "the method 'expert' takes no --recovery: only bison does"),
        (("--output", "."), ".: is no plain file"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *EXPERT, "--objects", "1", "--output", "results.jsonl", *arguments)
    assert (code, len(err.splitlines())) == (2, 1)
    assert reason in err
    assert not Path("results.jsonl").exists()


def test_a_policy_needs_its_task_or_one_that_it_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, policy = tmp_path / "results.jsonl", learned_folder()
    code, _, err = run(capsys, "evaluate", "--method", "expert", "--output", output)
    assert (code, err) == (2, "bilevel: the method 'expert' needs a task: bilevel evaluate TASK\n")
    code, _, err = run(capsys, "evaluate", "--policy", policy, "--output", output)
    told = "is of the task 'tiny', which is not registered here; name it: bilevel evaluate file.py:task"
    assert (code, err) == (2, f"bilevel: {policy} {told}\n")
    code, _, err = run(capsys, "evaluate", "gacha", "--policy", policy, "--output", output)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "the policy was learned on 'tiny': its domain lacks " in err
    assert not output.exists()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("3", (3,)), ("1-4", (1, 2, 3, 4)), ("1,3,10", (1, 3, 10)), ("1-3,10", (1, 2, 3, 10)), ("3,1-3", (1, 2, 3))],
)
def test_numbers_of_objects(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_numbers(text, 10) == parse_numbers(text, None) == numbers


@pytest.mark.parametrize("text", ["", "-", "1-", "-3", "1-2-3", "²", "1.5", "9" * 5000])
def test_what_is_no_number_of_objects(text: str) -> None:
    with pytest.raises(BadInput, match="--objects takes numbers and ranges"):
        parse_numbers(text, 10)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ("cubes", "unknown task 'cubes'; known tasks: blocks,"),
        ("nowhere.py:task", "nowhere.py: there is no such file"),
    ],
)
def test_a_task_that_is_not_there_is_one_line(
    task: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "evaluate", task, "--method", "expert", "--output", tmp_path / "results.jsonl")
    assert (code, len(err.splitlines()), reason in err) == (2, 1, True)


def test_perception_is_recorded_and_results_with_another_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.jsonl"
    command = (*EXPERT, *ONE, "--output", output)
    assert run(capsys, *command, "--perception", "noise=0.001,missed=0")[0] == 0
    assert lines(output)[0]["perception"] == "noise=0.001"
    code, _, err = run(capsys, *command)
    assert (code, "made with another --perception" in err) == (2, True)
    code, _, err = run(capsys, *command, "--perception", "fog=1")
    assert (code, err.count("\n"), "not 'fog=1'" in err) == (2, 1, True)


def test_estimation_is_that_of_the_policy_or_off_or_lent_to_the_expert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def settings(*command: object) -> Any:
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        code, _, err = run(capsys, *command, *ONE, "--perception", "missed=0.1", "--output", output)
        return lines(output)[0]["settings"] if code == 0 else err

    learned = ("evaluate", TINY, "--policy", learned_folder())
    assert "estimation" not in settings(*learned)
    assert settings(*learned, "--estimation", "on") == settings(*learned)
    assert settings(*learned, "--estimation", "off")["estimation"] == "off"
    estimation = read_policy(learned_folder()).card.estimation
    assert estimation is not None
    assert settings(*EXPERT, "--estimation", learned_folder()) == {"estimation": estimation.digest}
    assert settings(*EXPERT) == {}
    assert "no state estimation of its own" in settings(*EXPERT, "--estimation", "on")
    still = ("evaluate", TINY, "--policy", still_folder())
    assert "learned without state estimation" in settings(*still, "--estimation", "on")
