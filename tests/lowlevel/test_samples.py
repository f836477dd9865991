"""Samples: every step that has an action, each encoded as if it were the only one."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from tiny_data import EPISODES, architecture, dataset, samples, studied

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import Recorder, make_recipe
from bilevel.lowlevel.encoding import Encoding, encoding_of
from bilevel.lowlevel.samples import Samples, Situation, encode_episode, together
from bilevel.symbolic.domain import Atom
from bilevel.tabletop.observation import COLUMN, FEATURES_OF, SERIAL, Observation, Slots, features, object_name
from bilevel.tabletop.tasks import TASKS, find_task

TASK_OF = {task.domain_name: task.name for task in TASKS.values() if not task.noisy}


def encode_step(
    encoding: Encoding, slots: Slots, seen: Observation, situation: Situation
) -> tuple[list[float], list[list[float]]]:
    """The numbers of the global node and of the object nodes at one step, the slow and obvious way."""
    state, goal, action = situation
    assert action is not None
    hand = seen["agent"]
    nullary = [float(Atom(name) in facts) for facts in (state, goal) for name in encoding.nullary]
    objects = []
    for position, name in enumerate(action.arguments):
        row = next(row for row, slot in enumerate(slots) if object_name(slot, seen["objects"][row]) == name)
        numbers = seen["objects"][row]
        has_place = "x" in FEATURES_OF[slots[row].type]
        node = [10 * (numbers[COLUMN[axis]] - hand[i]) if has_place else 0.0 for i, axis in enumerate("xyz")]
        node.append(10 * features(slots, seen, name).get("travel", 0.0))
        node += [float(Atom(p, (name,)) in facts) for facts in (state, goal) for p in encoding.unary]
        node += [float(index == position) for index in range(encoding.arity)]
        objects.append(node)
    while len(objects) < encoding.arity:
        objects.append(objects[-1])
    return [10 * hand[2], 2 * hand[3], *nullary], objects


def situations_of(demonstration: Demonstration, slots: Slots) -> list[Situation]:
    """With what the expert was doing; every fifth step is taken for one that nothing explains."""
    labels = find_task(demonstration.recipe.task).labels(slots)
    return [
        (labels.state(seen), labels.goal(seen), action if number % 5 else None)
        for number, (seen, action) in enumerate(zip(demonstration.observations(), demonstration.actions, strict=False))
    ]


def check(demonstration: Demonstration, slots: Slots) -> None:
    """The episode at once is what its steps are one by one."""
    encoding = encoding_of(find_task(demonstration.recipe.task).domain)
    seen, situations = demonstration.observations()[:-1], situations_of(demonstration, slots)
    found = encode_episode(encoding, slots, seen, situations, demonstration.controls, 7)
    kept = [number for number, (_, _, action) in enumerate(situations) if action is not None]
    assert 0 < len(kept) < demonstration.steps
    assert len(found) == len(kept)
    assert found.episodes.tolist() == [7] * len(kept)
    assert np.array_equal(found.controls, demonstration.controls[kept])
    assert [encoding.schemas[index] for index in found.schemas] == [demonstration.actions[n].name for n in kept]
    for row, number in enumerate(kept):
        global_, objects = encode_step(encoding, slots, seen[number], situations[number])
        assert found.globals[row] == pytest.approx(global_, abs=1e-5)
        assert found.objects[row] == pytest.approx(np.array(objects), abs=1e-5)


@pytest.mark.parametrize("task", TASK_OF.values(), ids=TASK_OF.keys())
def test_an_episode_is_encoded_as_its_steps_are_one_by_one(task: str) -> None:
    for number in range(2):
        check(dataset(task)[number], dataset(task).manifest.slots)


def test_blocks_that_a_machine_made_are_found_wherever_they_are() -> None:
    """With all colours to draw from, blocks replace others, and later ones are seen in rows of earlier ones."""
    recipe, slots = make_recipe("gacha", 1, draw="uniform", seed=4)
    demonstration = Recorder(recipe).record(0)
    first_row = slots.rows("block").start
    assert len(set(demonstration.objects[:, first_row, SERIAL].tolist()) - {0}) > 1
    check(demonstration, slots)


def test_a_study_holds_every_step_that_is_explained() -> None:
    found = studied()
    explained = [sum(action is not None for action in a.actions) for a in found.abstractions]
    assert np.bincount(found.samples.episodes).tolist() == explained
    assert len(explained) == EPISODES
    assert all(count > 0 for count in explained)


def test_an_episode_without_steps_has_no_samples() -> None:
    """Such is one in which a learner does not know what to do at first."""
    empty = encode_episode(
        architecture().encoding, dataset().manifest.slots, [], [], np.zeros((0, 4), np.float32), number=3
    )
    assert len(empty) == 0
    both = together([samples(), empty])
    for field in fields(Samples):
        ours, theirs = getattr(samples(), field.name), getattr(both, field.name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


def test_an_episode_in_which_nothing_is_explained_has_no_samples() -> None:
    demonstration = dataset()[0]
    seen = demonstration.observations()[:-1]
    situations: list[Situation] = [(frozenset(), frozenset(), None)] * len(seen)
    found = encode_episode(
        architecture().encoding, dataset().manifest.slots, seen, situations, demonstration.controls, number=0
    )
    assert len(found) == 0


def test_parts_are_put_together_and_chosen_from() -> None:
    first = samples()
    both = together([first, first])
    assert len(both) == 2 * len(first)
    assert np.array_equal(both.where(np.arange(len(both)) >= len(first)).objects, first.objects)
    assert len(both.where(np.zeros(len(both), bool))) == 0
