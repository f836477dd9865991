"""The example with recorded play: rules come from arrays alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import Summary, summaries
from bilevel.rules.learning import learn_rules
from bilevel.tasks.registry import find_function, find_task

pytest.importorskip("ogbench", reason="the example is with OGBench's cubes")

EXAMPLES = Path(__file__).parents[2] / "examples" / "ogbench"
PLAY = EXAMPLES / "recorded_play.py"


def test_rules_are_learned_from_play(tmp_path: Path) -> None:
    find_function(f"{PLAY}:play")(str(tmp_path / "play.npz"), episodes=2, steps=200)
    data = Demonstrations.from_npz(
        tmp_path / "play.npz",
        find_task(f"{EXAMPLES / 'first_cubes.py'}:task"),
        perceive=find_function(f"{PLAY}:from_vector"),
        hindsight=find_function(f"{PLAY}:hindsight"),
    )
    assert len(data) >= 3
    assert all(item.outcome == "success" and item.has_controls for item in data)
    rules = learn_rules(sum(summaries(data, data.domain), Summary()).traces, data.domain)
    assert {rule.action.name for rule in rules} >= {"place", "pick"}
