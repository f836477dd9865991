"""What demonstrations show at the high level: the golden rules, and the right action at every step."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_datasets import collect

from bilevel.demonstrations.dataset import read_dataset
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import Recorder, make_recipe
from bilevel.demonstrations.traces import Summary, abstract, abstractions, summaries
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_file import domain_line, format_rules
from bilevel.tabletop.tasks import TASKS, find_task

GOLDEN = Path(__file__).parents[1] / "rules" / "golden"
EPISODES = {"gacha": 6}  # until every kind of roll has come up


@pytest.mark.parametrize("name", TASKS)
def test_a_few_demonstrations_teach_the_golden_rules(name: str, tmp_path: Path) -> None:
    task = find_task(name)
    collect(tmp_path, name, EPISODES.get(task.domain_name, 2), objects=2)
    found = sum(summaries(read_dataset(tmp_path)), Summary())
    rules = learn_rules(found.traces, task.domain)
    text = format_rules(rules, [domain_line(task.domain_name)])
    assert text == (GOLDEN / f"{task.domain_name}.rules").read_text()
    assert found.ambiguous == 0
    assert found.explained == found.steps or found.events  # before a surprise nothing need be explained


def test_each_step_has_the_action_that_it_helped_to_bring_about(collected: Path) -> None:
    dataset = read_dataset(collected)
    for demonstration, found in zip(dataset, abstractions(dataset), strict=True):
        assert found.actions == demonstration.actions
        assert [step.action.action.name for trace in found.traces for step in trace.steps] == ["pick", "place"]
        assert found.exogenous == 0


def test_a_teleport_ends_a_trace_and_is_counted(eventful: Demonstration) -> None:
    task = find_task("blocks")
    _, slots = make_recipe("blocks", 3)
    found = abstract(eventful, task.labels(slots), task.domain)
    assert found.exogenous > 0
    assert len(found.traces) > 1
    assert len(found.actions) == eventful.steps
    assert None not in found.actions


def test_the_goal_that_is_seen_is_the_goal_that_is_recorded() -> None:
    for name in ("factory", "colour", "gacha"):
        recipe, slots = make_recipe(name, 1)
        demonstration = Recorder(recipe).record(0)
        labels = find_task(name).labels(slots)
        seen = [labels.goal(observation) for observation in demonstration.observations()]
        changes = [(k, goal) for k, goal in enumerate(seen) if k == 0 or goal != seen[k - 1]]
        assert tuple(changes) == demonstration.goals
