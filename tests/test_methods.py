"""Every method from demonstrations to results, by the commands that a user gives, at tiny size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tiny_task
from bilevel.learning.learn import LearningConfig, learn
from bilevel.lowlevel.training import TrainingConfig
from bilevel.methods.methods import BILEVEL, METHODS
from bilevel.policies.episode import REASONS
from command_line import refused, run
from tiny_demonstrations import shown
from tiny_policies import learned_folder, moving_as_the_expert

TINY = f"{tiny_task.__file__}:TINY"
END_TO_END = ("pddl-nn", "pure-nn")
IN_ENVIRONMENTS = [name for name in METHODS if name not in ("lerobot", "smolvla", "smolvla-metaworld")]


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


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--method expert --planner fond", "the method 'expert' takes no --planner"),
        ("--method ndt-plan --policy p --planner lama", "cannot plan with 'lama', but with fond"),
        ("blocks --method expert --objects 0", "'0' is no range of numbers from 1 on"),
    ],
)
def test_bad_input_is_one_line(words: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reason in refused(capsys, "evaluate", *words.split(), "--output", tmp_path / "results.jsonl")
    assert not list(tmp_path.iterdir())
