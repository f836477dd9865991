"""Whether a policy could be learned from a data set: yes, no, or doubtful, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstration, Manifest
from bilevel.demonstrations.traces import labelled
from bilevel.learning.diagnosis import Diagnosis, diagnose, diagnose_episodes
from bilevel.symbolic.domain import Atom
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task
from tiny_demonstrations import shown
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE, label


def diagnosis(demonstrations: Sequence[Demonstration], task: Task = TINY, label_by: Task | None = None) -> Diagnosis:
    """That of demonstrations like the ones that are shown, but changed."""
    manifest = shown(task).manifest
    assert isinstance(manifest, Manifest)
    episodes = (labelled(number, each, task.domain, label_by) for number, each in enumerate(demonstrations))
    return diagnose_episodes(manifest, task.domain, episodes)


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE, TINY_ACTING], ids=lambda task: task.name)
def test_both_levels_can_be_learned_from_an_expert(task: Task, tmp_path: Path) -> None:
    collect(task, tmp_path, objects=2, episodes=5)
    problems, found = diagnose(tmp_path)
    assert problems == []
    assert (found.for_rules.answer, found.for_network.answer) == ("yes", "yes")
    assert "at 20 of 20 decisions" in str(found.for_rules)


def never_carrying(scene: Scene) -> Iterator[Atom]:
    return (fact for fact in label(scene) if fact.predicate != "carrying")


def test_without_goals_or_effects_of_actions_there_are_no_rules() -> None:
    found = diagnosis([replace(each, goals=((0, frozenset()),)) for each in shown()])
    assert str(found.for_rules).startswith("no: no episode has a goal")
    found = diagnosis(list(shown(TINY_ACTING)), label_by=replace(TINY, label=never_carrying))
    assert str(found.for_rules).startswith("no: no change of the labels is the effect of an action")
    assert str(found.for_network).startswith("no: no step has an action")


def sometimes_forgetful(scene: Scene) -> Iterator[Atom]:
    """Labels that forget, for the second parcel, that it is carried."""
    return (fact for fact in label(scene) if fact != Atom("carrying", ("parcel2",)))


def test_changes_that_no_action_explains_cast_doubt() -> None:
    found = diagnosis(list(shown(TINY_ACTING)), label_by=replace(TINY, label=sometimes_forgetful))
    assert (found.for_rules.answer, found.for_network.answer) == ("doubtful", "yes")
    assert "3 of 6 goal facts came true without an action's effects" in str(found.for_rules)


def test_controls_that_are_not_those_of_what_is_seen_cast_doubt(tmp_path: Path) -> None:
    def mixed(demonstration: Demonstration) -> Demonstration:
        order = np.random.default_rng(0).permutation(demonstration.steps)
        return replace(demonstration, controls=demonstration.controls[order])

    data = collect(TINY, tmp_path, objects=2, episodes=5)
    assert diagnosis(list(data)).for_network.answer == "yes"
    found = diagnosis(list(map(mixed, data)))
    assert "what is seen does not tell the controls of 'pick', 'put'" in str(found.for_network)


def test_what_a_network_cannot_be_trained_on_is_noticed() -> None:
    def blind(demonstration: Demonstration) -> Demonstration:
        visible = demonstration.visible.copy()
        visible[:, 0] = False
        return replace(demonstration, visible=visible)

    found = diagnosis(list(map(blind, shown())))
    assert str(found.for_network).startswith("no: an action is about something that cannot be seen: episode 0: ")
    found = diagnosis([replace(shown()[0], has_controls=False), *list(shown())[1:]])
    assert str(found.for_network) == "no: no controls were recorded in 1 of 3 episodes"
    assert found.for_rules.answer == "yes"


def test_what_strikes_about_single_numbers_is_noted() -> None:
    def spoilt(demonstration: Demonstration) -> Demonstration:
        controls = demonstration.controls.copy()
        controls[:, 0], controls[::4, 1] = 0.05, 0.2
        return replace(demonstration, controls=controls, executed=controls)

    found = diagnosis(list(map(spoilt, shown())))
    assert found.constant == {0: pytest.approx(0.05, abs=1e-6)}
    assert "controls leave their bounds" in str(found.for_network)
