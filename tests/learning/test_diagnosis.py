"""Whether a policy could be learned from a data set: yes, no, or doubtful, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Manifest
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.traces import labelled
from bilevel.learning.diagnosis import Diagnosis, diagnose
from bilevel.symbolic.domain import Atom
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task
from tiny_demonstrations import shown
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE, label


def diagnosis(demonstrations: Sequence[Demonstration], task: Task = TINY, label_by: Task | None = None) -> Diagnosis:
    """That of demonstrations like the ones that are shown, but changed."""
    manifest = shown(task).manifest
    assert isinstance(manifest, Manifest)
    found = Diagnosis(manifest, task.domain)
    for number, demonstration in enumerate(demonstrations):
        found.look(labelled(number, demonstration, task.domain, label_by))
    found.conclude()
    return found


def with_controls(
    demonstration: Demonstration, controls: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> Demonstration:
    return replace(demonstration, controls=controls, executed=controls)


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE, TINY_ACTING], ids=lambda task: task.name)
def test_both_levels_can_be_learned_from_an_expert(task: Task, tmp_path: Path) -> None:
    data = collect(task, tmp_path, objects=2, episodes=5)
    problems, found = diagnose(tmp_path)
    assert problems == []
    assert (found.for_rules.answer, found.for_network.answer) == ("yes", "yes")
    assert str(found.for_rules) == "yes: 2 rules, which do what the demonstrators did at 20 of 20 decisions"
    assert found.controls.told is not None
    assert 0.5 < found.controls.told <= 1
    assert found.controls.steps == sum(each.steps for each in data)
    assert found.controls.with_action > 0.8 * found.controls.steps


# Rules


def test_without_goals_there_are_no_rules() -> None:
    found = diagnosis([replace(each, goals=((0, frozenset()),)) for each in shown()])
    assert str(found.for_rules) == "no: no episode has a goal; `bilevel import` can find goals in hindsight"


def never_carrying(scene: Scene) -> Iterator[Atom]:
    return (fact for fact in label(scene) if fact.predicate != "carrying")


def test_without_effects_of_actions_there_are_no_rules() -> None:
    found = diagnosis(shown(TINY_ACTING), label_by=replace(TINY, label=never_carrying))
    assert str(found.for_rules).startswith("no: no change of the labels is the effect of an action")
    assert str(found.for_network).startswith("no: no step has an action")


def sometimes_forgetful(scene: Scene) -> Iterator[Atom]:
    """Labels that forget, for the second parcel, that it is carried."""
    return (fact for fact in label(scene) if fact != Atom("carrying", ("parcel2",)))


def test_changes_that_no_action_explains_cast_doubt() -> None:
    found = diagnosis(shown(TINY_ACTING), label_by=replace(TINY, label=sometimes_forgetful))
    assert found.for_rules.answer == "doubtful"
    assert "6 of 12 changes are not the effect of an action" in str(found.for_rules)
    assert found.for_network.answer == "doubtful"
    assert "steps have no action and are left out" in str(found.for_network)


# The network


def test_actions_about_what_cannot_be_seen_are_noticed() -> None:
    def blind(demonstration: Demonstration) -> Demonstration:
        visible = demonstration.visible.copy()
        visible[:, 0] = False
        return replace(demonstration, visible=visible)

    found = diagnosis(list(map(blind, shown())))
    assert str(found.for_network).startswith("no: an action is about something that cannot be seen: episode 0: ")


def test_without_controls_there_is_no_network() -> None:
    nothing = [replace(with_controls(each, np.zeros_like(each.controls)), has_controls=False) for each in shown()]
    found = diagnosis([nothing[0], *shown()[1:]])
    assert str(found.for_network) == "no: no controls were recorded in 1 of 3 episodes"
    assert found.for_rules.answer == "yes"


def test_controls_at_random_cast_doubt() -> None:
    rng = np.random.default_rng(0)
    low, high = [-0.1, -0.1, 0], [0.1, 0.1, 1]
    noise = [with_controls(each, rng.uniform(low, high, each.controls.shape).astype(np.float32)) for each in shown()]
    found = diagnosis(noise)
    assert found.controls.told is not None
    assert found.controls.told < 0.1
    assert "what the network is told says little of what was done" in str(found.for_network)


def test_what_strikes_about_single_numbers_is_noted() -> None:
    def spoilt(demonstration: Demonstration) -> Demonstration:
        controls = demonstration.controls.copy()
        controls[:, 0], controls[:3, 1] = 0.05, 0.2
        return with_controls(demonstration, controls)

    diagnosed = diagnosis(list(map(spoilt, shown())))
    found = diagnosed.controls
    assert found.constant == {0: pytest.approx(0.05, abs=1e-6)}
    assert list(found.out_of_bounds) == [1]
    assert "controls leave their bounds" in str(diagnosed.for_network)
