"""What demonstrations show at the high level: the golden rules, and the right action at every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilevel.demonstrations.collection import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import Recorder, collection_settings
from bilevel.demonstrations.traces import Summary, explain, label, labelled, summaries, summarise
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_file import domain_line, format_rules
from bilevel.tasks.registry import find_task, task_names
from tiny_task import TINY, TINY_ACTING

GOLDEN = Path(__file__).parents[1] / "rules" / "golden"
EPISODES = {"gacha": 6, "swap": 12, "swap-noisy": 12}  # until every kind of roll, and a cycle, has come up


@pytest.mark.parametrize("name", [name for name in task_names() if name != "gacha-noisy"])
def test_a_few_demonstrations_teach_the_golden_rules(name: str, tmp_path: Path) -> None:
    task = find_task(name)
    data = collect(task, tmp_path, objects=2, episodes=EPISODES.get(name, 2))
    found = sum(summaries(data, data.domain), Summary())
    rules = learn_rules(found.traces, data.domain)
    text = format_rules(rules, [domain_line(data.domain.name)])
    assert text == (GOLDEN / f"{data.domain.name}.rules").read_text()
    assert found.ambiguous == 0
    assert found.explained == found.steps or found.events  # before a surprise nothing need be explained
    assert [label(item, task) for item in data] == [label(item) for item in data]  # labelled anew, and as recorded


def test_each_step_has_the_action_that_it_helped_to_bring_about(collected: Path) -> None:
    data = Demonstrations.read(collected)
    for demonstration in data:
        found = explain(demonstration, data.domain, *label(demonstration))
        assert found.actions == demonstration.actions
        assert [step.action.action.name for trace in found.traces for step in trace.steps] == ["pick", "put"]
        assert found.exogenous == 0


def test_a_surprise_ends_a_trace_and_is_counted(eventful: Demonstration) -> None:
    found = explain(eventful, TINY.domain, *label(eventful))
    assert found.exogenous > 0
    assert len(found.traces) > 1
    assert len(found.actions) == eventful.steps
    assert None not in found.actions


def test_labels_alone_explain_an_expert_that_only_acts() -> None:
    demonstration = Recorder(TINY_ACTING, collection_settings(TINY_ACTING, 1)).record(0)
    found = summarise(labelled(0, demonstration, TINY.domain))
    assert (found.explained, found.recorded, found.agreeing) == (found.steps, 0, 0)
    assert found.actions == {"pick": 1, "put": 1}
