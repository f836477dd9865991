"""Replays: the same bit for bit, or the first difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import Recorder, make_recipe
from bilevel.demonstrations.replaying import replay
from bilevel.tabletop.tasks import TASKS


@pytest.mark.parametrize("task", TASKS)
def test_a_recorded_episode_is_reproduced(task: str) -> None:
    recipe, _ = make_recipe(task, 1, seed=3, noise=0.5)
    assert replay(Recorder(recipe).record(0)) is None


def test_events_and_disturbances_are_reproduced(eventful: Demonstration) -> None:
    assert replay(eventful) is None


def test_another_control_makes_a_difference_at_the_next_step(eventful: Demonstration) -> None:
    executed = eventful.executed.copy()
    executed[10] = -executed[10]
    found = replay(replace(eventful, executed=executed))
    assert found is not None
    assert (found.moment, found.what) == (11, "'agent'")
    assert found.amount is not None
    assert str(found) == f"first differs at step 11: 'agent' by {found.amount:.3g}"


def test_the_smallest_difference_of_what_is_seen_is_found(eventful: Demonstration) -> None:
    objects = eventful.objects.copy()
    objects[20, 0, 0] = np.nextafter(objects[20, 0, 0], np.float32(1))
    found = replay(replace(eventful, objects=objects))
    assert found is not None
    assert (found.moment, found.what) == (20, "'objects'")
    assert 0 < (found.amount or 0) < 1e-6


def test_another_state_is_found_at_its_keyframe(eventful: Demonstration) -> None:
    physics = eventful.snapshots["physics"].copy()
    physics[2, 50] += 1e-9
    found = replay(replace(eventful, snapshots={**eventful.snapshots, "physics": physics}))
    assert found is not None
    assert (found.moment, found.what) == (128, "'physics'")


@pytest.mark.parametrize(
    ("change", "what"),
    [({"events": ()}, "the events"), ({"outcome": "step limit"}, "the outcome")],
)
def test_another_story_is_found(eventful: Demonstration, change: dict[str, object], what: str) -> None:
    found = replay(replace(eventful, **change))  # type: ignore[arg-type]
    assert found is not None
    assert found.what == what
