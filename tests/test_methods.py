"""Every method from demonstrations to results, by the commands that a user gives, at tiny size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tiny_task
from bilevel.learning.learn import LearningConfig, learn
from bilevel.lowlevel.training import TrainingConfig
from bilevel.methods.methods import BILEVEL, METHODS, find_policy
from bilevel.policies.episode import REASONS
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.controls import BoxControls
from command_line import refused, run, run_json, run_well
from tiny_demonstrations import shown
from tiny_policies import learned_folder, moving_as_the_expert, still_policy

TINY = f"{tiny_task.__file__}:TINY"
END_TO_END = ("pddl-nn", "pure-nn")
IN_ENVIRONMENTS = [name for name in METHODS if name != "lama" and not name.startswith("smolvla")]


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What was learned for each method that is learned; those that plan share BISON's."""
    folder = tmp_path_factory.mktemp("policies")
    config = LearningConfig(hidden=8, training=TrainingConfig(epochs=1))
    for method in END_TO_END:
        learn(shown(), folder / method, task=tiny_task.TINY, method=method, config=config)
    return {
        name: learned_folder() if method.training == BILEVEL else folder / name
        for name, method in METHODS.items()
        if method.training
    }


@pytest.mark.parametrize("method", IN_ENVIRONMENTS)
def test_a_method_runs_end_to_end(
    method: str, policies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it decides and something else moves, it succeeds."""
    output = tmp_path / "results.jsonl"
    policy = ("--policy", policies[method]) if method in policies else ()
    options = (TINY, "--method", method, "--objects", 1, "--episodes", 1, "--output", output)
    with moving_as_the_expert():
        code, out, err = run(capsys, "evaluate", *policy, *options)
    assert (code, err) == (0, "")
    assert out.startswith(f"tiny, {method}: 1 episode\n")
    record: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    assert (record["task"], record["method"], record["objects"]) == ("tiny", method, 1)
    assert (record["reason"] is None) == (record["outcome"] == "success") == (method not in END_TO_END)
    assert record["reason"] in (None, *REASONS)
    assert record["steps"] > 0


@pytest.fixture
def still_gacha(tmp_path: Path) -> Path:
    """A policy for a task in which nature makes new objects."""
    rule = "variables: ?d - box\n1: gripper-free() & closed(?d) -> open(?d)"
    still_policy(TASKS["gacha"], rule, BoxControls([-1.0] * 4, [1.0] * 4, [4])).write(tmp_path / "policy")
    return tmp_path / "policy"


@pytest.mark.parametrize(
    ("method", "planner"), [("det-plan", "search"), ("det-replan", "search"), ("ndt-plan", "fond")]
)
def test_where_nature_makes_new_objects_the_planner_has_a_model_of_them(
    method: str, planner: str, still_gacha: Path
) -> None:
    assert find_policy(still_gacha, method=method).settings["planner"] == planner


def test_a_planner_that_cannot_express_what_may_happen_says_so(
    still_gacha: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--method", "det-plan", "--planner", "lama", "--objects", 1, "--episodes", 1)
    assert run(capsys, "evaluate", "--policy", still_gacha, *options, "--output", tmp_path / "results.jsonl")[0] == 0
    record = json.loads((tmp_path / "results.jsonl").read_text(encoding="utf-8"))
    assert (record["outcome"], record["reason"], record["steps"]) == ("no action", "no model", 0)
    assert record["detail"].startswith("action 'roll' makes new objects")


# The table and the commands


def test_the_commands_name_every_method_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = run_well(capsys, "methods")
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == list(METHODS)
    assert all(name in "".join(run_well(capsys, "evaluate", "--help").split()) for name in METHODS)

    def not_installed() -> None:
        raise BadInput("no Fast Downward; install it")

    monkeypatch.setattr("bilevel.planning.fast_downward.find_program", not_installed)
    missing = {row["name"]: row["missing"] for row in run_json(capsys, "methods")["methods"]}
    assert missing["det-plan"] == missing["lama"] == "no Fast Downward; install it"
    assert missing["bison"] is missing["ndt-plan"] is None


def test_lama_plans_without_an_environment_and_with_a_time_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.jsonl"
    options = ("colour", "--method", "lama", "--objects", "2,30", "--episodes", 1, "--output", output)
    assert run(capsys, "evaluate", *options)[0] == 0
    small, large = (json.loads(line) for line in output.read_text(encoding="utf-8").splitlines())
    assert small["outcome"] == large["outcome"] == "success"
    assert small["steps"] < large["steps"]
    assert small["settings"] == {"planner": "lama", "planning_seconds": 100.0}

    limits = ("blocks", "--method", "lama", "--objects", 400, "--episodes", 1)
    limited = tmp_path / "limited.jsonl"
    assert run(capsys, "evaluate", *limits, "--planning-seconds", 0.5, "--output", limited)[0] == 0
    record = json.loads(limited.read_text(encoding="utf-8"))
    assert (record["reason"], record["detail"]) == ("no plan", "timed out (limit 0.5 s)")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--method expert --planner fond", "the method 'expert' does not plan"),
        ("--method ndt-plan --policy p --planner lama", "cannot plan with 'lama', but with fond"),
        ("blocks --method lama --objects 0", "'0' is no range of numbers from 1 on"),
        ("colour --method lama --noise 0.7", "measured without an environment: it takes no --noise"),
    ],
)
def test_bad_input_is_one_line(words: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reason in refused(capsys, "evaluate", *words.split(), "--output", tmp_path / "results.jsonl")
    assert not list(tmp_path.iterdir())


def test_methods_do_not_take_each_others_policies(
    policies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for method, folder, reason in (
        ("bison", "pure-nn", "a policy of the method 'pure-nn', not of bison"),
        ("det-plan", "pddl-nn", "a policy of the method 'pddl-nn', not of bison"),
        ("pddl-nn", "pure-nn", "a policy of the method 'pure-nn', not of 'pddl-nn'"),
        ("pure-nn", "bison", "a policy of the method 'bison', not of 'pure-nn'"),
    ):
        options = ("--method", method, "--policy", policies[folder], "--output", tmp_path / "results.jsonl")
        assert reason in refused(capsys, "evaluate", TINY, *options)
    assert "needs no environment" in refused(capsys, "run", "blocks", "--method", "lama")
