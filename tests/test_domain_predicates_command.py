"""The command that proposes predicates, at tiny size: what it prints, writes and exits with."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bilevel.demonstrations.collection import collect
from bilevel.symbolic.pddl import read_domain
from command_line import run
from tiny_demonstrations import shown
from tiny_task import TINY

FUNCTIONS = """
def all_there(scene):
    parcels = zip(scene.of_type("parcel"), scene.of_type("spot"))
    return all(abs(p.x - s.x) < 0.1 and abs(p.y - s.y) < 0.1 and not p.held for p, s in parcels)

def broken(scene):
    return scene.agent.nowhere
"""


@cache
def _folder() -> TemporaryDirectory[str]:
    """One that is gone when the tests are over."""
    return TemporaryDirectory()


@pytest.fixture(scope="module")
def data() -> Path:
    folder = Path(_folder().name) / "data"
    if not folder.exists():
        collect(TINY, folder, objects=2, episodes=10)
    return folder


def test_it_writes_a_file_and_says_what_serves_for_what(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "labels.py"
    code, out, _ = run(capsys, "domain", "predicates", data, "--output", output)
    assert code == 0
    lines = out.splitlines()
    assert "  holding(parcel)              The parcel is in the hand: it moves with the agent." in lines
    assert "goal: near(parcel, spot) for all with the same number" in lines
    assert any(line.startswith("learned with them: ") and "pick (16)" in line for line in lines)
    assert any(line.startswith("in 2 demonstrations held out: 8 of 8 actions are as the rules say") for line in lines)
    assert lines[-1] == f"written to {output} and {tmp_path / 'labels.pddl'}"
    assert {"near", "holding"} <= set(read_domain(tmp_path / "labels.pddl").predicates)
    assert "def label(scene: Scene)" in output.read_text(encoding="utf-8")


def test_the_goal_may_be_the_tasks_or_a_function(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    functions = tmp_path / "functions.py"
    functions.write_text(FUNCTIONS, encoding="utf-8")
    words = ["domain", "predicates", data, "--output", tmp_path / "labels.py", "--json"]
    for goal, text in (
        ("task", "at(parcel, spot) for all with the same number"),
        (f"{functions}:all_there", "near(parcel, spot) for all with the same number"),
    ):
        found = json.loads(run(capsys, *words, "--goal", goal)[1])
        assert found["goals"] == [text]
        assert (found["held_out"], found["agreeing"], found["actions"], found["solved"]) == (2, 8, 8, 2)
        assert found["rules"]


def test_what_does_not_fit_is_one_line(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions = tmp_path / "functions.py"
    functions.write_text(FUNCTIONS, encoding="utf-8")
    few = shown(TINY).folder
    for folder, goal, output, reason in (
        (data, "final", "labels.pddl", "name a Python file, such as labels.py"),
        (data, "last", "labels.py", "the goal is 'final', 'task' or a function, not 'last'"),
        (data, f"{functions}:nothing", "labels.py", "no function called 'nothing' there"),
        (data, f"{functions}:broken", "labels.py", "'agent' has no feature 'nowhere'"),
        (few, "final", "labels.py", "it takes at least 8 demonstrations to propose predicates, not 3"),
        (tmp_path, "final", "labels.py", "manifest.json"),
    ):
        code, out, error = run(capsys, "domain", "predicates", folder, "--goal", goal, "--output", tmp_path / output)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert reason in error
    assert not (tmp_path / "labels.py").exists()
