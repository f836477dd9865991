"""Settings that decide what is learned from: recorded actions or labels alone, and a network that is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.traces import explain, label
from bilevel.learning.learn import learn, learn_bilevel
from bilevel.learning.networks import LearningOptions, Progress
from bilevel.symbolic.domain import BadInput
from tiny_demonstrations import QUICK, WITH_DAGGER, shown
from tiny_task import TINY


def test_steps_that_labels_do_not_explain_are_left_out_unless_recorded_actions_may_be_used(tmp_path: Path) -> None:
    """Those are the steps before something slipped away; what rules are learned from is the same."""
    data = collect(TINY, tmp_path / "data", objects=2, episodes=3, slip_rate=0.05)
    explained = [explain(each, data.domain, *label(each), use_recorded=False).actions for each in data]
    known = sum(action is not None for actions in explained for action in actions)
    assert known < sum(each.steps for each in data)
    without, with_them = (
        learn(data, tmp_path / str(use), task=TINY, config=msgspec.structs.replace(QUICK, recorded_actions=use))
        for use in (False, True)
    )
    assert without.card.summary["samples"] == known
    assert with_them.card.summary["samples"] == sum(each.steps for each in data)
    assert without.rules == with_them.rules


def test_rules_are_learned_above_a_network_that_is_kept(tmp_path: Path) -> None:
    network = learn(shown(), tmp_path / "network", task=TINY, config=QUICK, seed=3)
    completing = msgspec.structs.replace(QUICK, complete=True)
    told: list[Progress] = []
    options = LearningOptions(TINY, config=completing, seed=3, network=network, callback=told.append)
    learned = learn_bilevel(shown(), tmp_path / "both", options)
    again = learn(shown(), tmp_path / "again", task=TINY, config=completing, seed=3, preset=options.preset)
    assert (learned.digest, learned.card) == (again.digest, again.card)
    assert len(learned.rules) > len(network.rules)
    assert "training" not in {progress.stage for progress in told}
    strange = replace(network, card=msgspec.structs.replace(network.card, encoding={}))
    for message, other in {
        "trained with other symbols": replace(options, network=strange),
        "there can be no DAgger": replace(options, config=WITH_DAGGER),
    }.items():
        with pytest.raises(BadInput, match=message):
            learn_bilevel(shown(), tmp_path / "refused", other)


def test_rules_of_the_printed_algorithm_stay_as_they_are(tmp_path: Path) -> None:
    printed = msgspec.structs.replace(QUICK, algorithm="printed")
    learned = learn(shown(), tmp_path / "printed", task=TINY, config=printed)
    assert all(len(rule.goal_condition) > 1 for rule in learned.rules if not rule.state_condition & rule.goal_condition)
    assert learned.card.settings["algorithm"] == "printed"
    for further in ({"complete": True}, {"dagger": WITH_DAGGER.dagger}):
        with pytest.raises(BadInput, match="without completion and without DAgger"):
            learn(shown(), tmp_path / "more", task=TINY, config=msgspec.structs.replace(printed, **further))
