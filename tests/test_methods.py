"""Every method on every task, from demonstrations to results, by the commands that a user gives, at tiny size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bilevel.experiments.failures import REASONS
from bilevel.experiments.methods import BILEVEL, METHODS
from bilevel.tasks import TASKS
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
