"""The examples of worlds of one's own. That of the tutorial is run by its test, the other one here."""

from __future__ import annotations

from pathlib import Path

import pytest

import bilevel
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.learn import LearningConfig
from bilevel.lowlevel.training import TrainingConfig

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = LearningConfig(training=TrainingConfig(epochs=30), dagger=DaggerConfig(rounds=0))


@pytest.mark.parametrize("name", ["own_world/own_world.py", "minigrid/minigrid_sorting.py"])
def test_an_example_is_at_most_a_hundred_lines(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) <= 100


def test_from_a_check_of_a_minigrid_to_an_evaluation_at_three_times_the_size(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    task = bilevel.find_task(f"{EXAMPLES / 'minigrid/minigrid_sorting.py'}:task")
    assert bilevel.check_task(task) == []
    demonstrations = bilevel.collect(task, tmp_path / "demonstrations", objects=3, episodes=40)
    learned = bilevel.learn(demonstrations, tmp_path / "policy", task=task, config=QUICK)
    assert [rule.action.name for rule in learned.rules] == ["put", "unblock", "take", "take"]
    records = bilevel.evaluate(tmp_path / "policy", task, objects=[3, 9], episodes=4)
    assert sum(record.success for record in records) >= 6
