"""Every method on every task, from demonstrations to results, by the commands that a user gives, at tiny size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bilevel.experiments import methods
from bilevel.experiments.methods import BILEVEL, METHODS
from bilevel.policies.failures import REASONS
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import TASKS
from command_line import run

LEARNED = ("bison", "pddl-nn", "pure-nn")
IN_WORLDS = [name for name, method in METHODS.items() if not method.model and name != "lama"]

# Why a planner that knows only what a problem names cannot plan: here nature makes new objects.
WITHOUT_MODEL = [task for task in TASKS if TASKS[task].domain_name == "gacha"]


@pytest.fixture(scope="module", params=TASKS)
def task(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def policies(task: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What was learned for each method that is learned; those that plan share BISON's."""
    folder = tmp_path_factory.mktemp(task)
    command("collect", task, "--objects", 1, "--episodes", 2, "--output", folder / "demonstrations")
    for method in LEARNED:
        options = ("--method", method, "--recipe", "paper", "--epochs", 1)
        command("learn", folder / "demonstrations", "--output", folder / method, *options)
    return {
        name: folder / ("bison" if method.training == BILEVEL else name)
        for name, method in METHODS.items()
        if method.training
    }


def command(*arguments: object) -> None:
    from bilevel import cli

    with pytest.raises(SystemExit) as stopped:
        cli.main([str(argument) for argument in arguments])
    assert stopped.value.code in (0, None)


@pytest.mark.parametrize("method", IN_WORLDS)
def test_a_method_runs_end_to_end(
    method: str, task: str, policies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.jsonl"
    policy = ("--policy", policies[method]) if method in policies else ()
    options = ("--method", method, "--task", task, "--objects", 1, "--episodes", 1, "--output", output)
    code, out, err = run(capsys, "evaluate", *policy, *options)
    assert (code, err) == (0, "")
    assert out.startswith(f"{task}, {method}: 1 episode\n")
    record: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    assert (record["task"], record["method"], record["objects"]) == (task, method, 1)
    assert (record["reason"] is None) == (record["outcome"] == "success")
    assert record["reason"] in (None, *REASONS)
    if METHODS[method].planners and task in WITHOUT_MODEL:
        assert (record["reason"], record["steps"]) == ("no model", 0)
        assert record["detail"].startswith("action 'roll' makes new objects")
    else:
        assert record["steps"] > 0
    if method == "expert":
        assert record["outcome"] == "success"


# The table and the commands


def test_the_commands_name_every_method(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "methods")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == list(METHODS)
    _, help_text, _ = run(capsys, "evaluate", "--help")
    assert all(name in help_text for name in METHODS)
    _, help_text, _ = run(capsys, "learn", "--help")
    assert all(name in help_text for name, method in METHODS.items() if method.training)


def test_the_list_says_what_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed() -> object:
        raise BadInput("no Fast Downward; install it")

    monkeypatch.setitem(methods.NEEDS, "lama", not_installed)
    _, out, _ = run(capsys, "methods", "--json")
    missing = {row["name"]: row["missing"] for row in json.loads(out)["methods"]}
    assert missing["det-plan"] == missing["lama"] == "no Fast Downward; install it"
    assert missing["bison"] is missing["ndt-plan"] is None


@pytest.mark.parametrize("task", ["blocks", "factory-noisy", "colour"])
def test_lama_plans_without_a_world(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "results.jsonl"
    options = ("--method", "lama", "--task", task, "--objects", "2,30", "--episodes", 1, "--output", output)
    assert run(capsys, "evaluate", *options)[0] == 0
    small, large = (json.loads(line) for line in output.read_text(encoding="utf-8").splitlines())
    assert small["outcome"] == large["outcome"] == "success"
    assert small["steps"] < large["steps"]
    assert small["settings"] == {"planner": "lama", "planning_seconds": 100.0}


def test_lama_has_a_time_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "results.jsonl"
    options = ("--method", "lama", "--task", "blocks", "--objects", 400, "--episodes", 1, "--output", output)
    assert run(capsys, "evaluate", *options, "--planning-seconds", 0.5)[0] == 0
    record = json.loads(output.read_text(encoding="utf-8"))
    assert (record["reason"], record["detail"]) == ("no plan", "no plan within 0.5 s")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--method", "magic"), "unknown method 'magic'; known methods: bison, expert,"),
        (("--method", "bison"), "the method 'bison' needs a --policy; `bilevel learn` makes one"),
        (("--method", "expert", "--policy", "p"), "the method 'expert' takes no --policy"),
        (("--method", "expert"), "the method 'expert' needs a --task"),
        (("--method", "expert", "--planner", "fond"), "the method 'expert' does not plan"),
        (("--method", "expert", "--planning-seconds", "0"), "--planning-seconds must be more than 0, but is 0"),
        (
            ("--method", "ndt-plan", "--policy", "p", "--planner", "lama"),
            "cannot plan with 'lama', but with fond, pr2",
        ),
        (("--method", "lama", "--task", "blocks", "--objects", "0"), "there can be 1 to 1000000 objects"),
        (
            ("--method", "lama", "--task", "colour", "--noise", "0.7", "--colours", "3"),
            "the method 'lama' is measured without a world: it takes no --noise and no --colours",
        ),
    ],
)
def test_bad_input_is_one_line(
    arguments: tuple[str, ...], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "evaluate", *arguments, "--output", tmp_path / "results.jsonl")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert reason in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["expert", "lama", "smolvla"])
def test_what_is_not_learned_says_so(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "learn", tmp_path, "--method", method, "--output", tmp_path / "policy")
    assert code == 2
    assert err == (
        f"bilevel: the method '{method}' is not learned: `bilevel evaluate --method {method}` runs it as it is\n"
    )


def test_pr2_needs_a_command_of_ones_own(
    policies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BILEVEL_PR2", raising=False)
    options = ("--policy", policies["ndt-plan"], "--method", "ndt-plan", "--planner", "pr2")
    code, _, err = run(capsys, "evaluate", *options, "--output", tmp_path / "results.jsonl")
    assert code == 2
    assert err == "bilevel: the planner 'pr2' is a program of your own: name its command in BILEVEL_PR2\n"


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
        code, _, err = run(capsys, "evaluate", *options)
        assert (code, reason in err) == (2, True)


def test_a_folder_says_by_which_method_it_is_measured(
    task: str, policies: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.jsonl"
    options = ("--objects", 1, "--episodes", 1, "--output", output)
    assert run(capsys, "evaluate", "--policy", policies["pddl-nn"], *options)[1].startswith(f"{task}, pddl-nn: ")
