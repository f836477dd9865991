"""`bilevel run` with an end-to-end policy: it says what changes, and that there are no rules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tiny_task
from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.learning import learn_end_to_end
from bilevel.learning.networks import LearningOptions
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from command_line import run
from tiny_demonstrations import QUICK, shown
from tiny_task import TINY

TASK = f"{tiny_task.__file__}:TINY"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    learn_end_to_end(shown(), tmp_path / "policy", "pddl-nn", LearningOptions(task=TINY, config=QUICK))
    return tmp_path / "policy"


def test_it_says_what_changes_and_that_there_are_no_rules(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(policy: EndToEndPolicy, scene: Scene) -> Control:
        """Its hand is that of the expert."""
        policy.reset(scene)
        return tiny_task.act(scene)

    monkeypatch.setattr(EndToEndPolicy, "act", act)
    code, out, err = run(capsys, "run", TASK, "--policy", folder, "--objects", 1, "--explain")
    assert code == 0
    changes = [line.split(maxsplit=1)[1] for line in out.splitlines()]
    assert changes == [
        "carrying(parcel1); no longer free(), lying(parcel1)",
        "at(parcel1, spot1), free(); no longer carrying(parcel1), empty(spot1)",
    ]
    first, last = err.splitlines()
    assert first == "this policy has no rules to explain what it does"
    assert last.startswith("success after ")


def test_a_failure_is_told(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EndToEndPolicy, "act", lambda policy, scene: np.zeros(3, np.float32))
    code, out, _ = run(capsys, "run", TASK, "--policy", folder, "--objects", 1, "--json", "--explain")
    told = json.loads(out)
    assert (code, told["outcome"], told["decisions"]) == (1, "step limit", [])
