"""Replays: the same bit for bit, or the first difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bilevel.demonstrations.checking import replay
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import Recorder, collection_settings
from bilevel.tasks.registry import find_task
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_task import TINY, TINY_DISCRETE


def replayed(demonstration: Demonstration) -> str | None:
    return replay(demonstration, SceneEnv(TINY, 3, slip_rate=0.02))


@pytest.mark.parametrize("task", [TINY_DISCRETE, replace(TINY, save=None), *map(find_task, ("factory", "gacha-noisy"))])
def test_a_recorded_episode_is_reproduced(task: Task) -> None:
    settings = collection_settings(task, 1, seed=3, noise=0.5)
    assert replay(Recorder(task, settings).record(0), SceneEnv(task, **settings.arguments)) is None


def test_events_and_perturbations_are_reproduced(eventful: Demonstration) -> None:
    assert replayed(eventful) is None


def test_another_control_makes_a_difference_at_the_next_step(eventful: Demonstration) -> None:
    executed = eventful.executed.copy()
    executed[10] = -executed[10]
    found = replayed(replace(eventful, executed=executed))
    assert (found or "").startswith("first differs at step 11: 'agent' by ")


def test_the_smallest_difference_of_what_is_seen_is_found(eventful: Demonstration) -> None:
    features = eventful.features.copy()
    features[20, 0, 0] = np.nextafter(features[20, 0, 0], np.float32(1))
    what, _, amount = (replayed(replace(eventful, features=features)) or "").rpartition(" by ")
    assert what == "first differs at step 20: 'features'"
    assert 0 < float(amount) < 1e-6


def test_another_simulator_is_found_at_its_keyframe(eventful: Demonstration) -> None:
    spots = eventful.snapshots["spots"].copy()
    spots[2, 0] += 1e-9
    found = replayed(replace(eventful, snapshots={**eventful.snapshots, "spots": spots}))
    assert (found or "").startswith("first differs at step 128: 'snapshot.spots' by ")


def test_another_story_is_found(eventful: Demonstration) -> None:
    invisible = eventful.visible.copy()
    invisible[7, -1] = not invisible[7, -1]
    changes: dict[str, dict[str, Any]] = {
        "the events": {"events": ()},
        "the outcome": {"outcome": "step limit"},
        "the goal": {"goals": eventful.goals[:1]},
        "the objects": {"visible": invisible},
    }
    for what, change in changes.items():
        found = replayed(replace(eventful, **change))
        assert (found or "").endswith(f": {what}")


def test_a_replay_that_ends_early_or_late_is_another_outcome(eventful: Demonstration) -> None:
    early, late = SceneEnv(TINY, 3, slip_rate=0.02), SceneEnv(TINY, 3, slip_rate=0.02)
    early.step_limit = 50
    object.__setattr__(late, "_succeeded", lambda: False)
    assert replay(eventful, early) == "first differs at step 50: the outcome"
    assert replay(eventful, late) == f"first differs at step {eventful.steps}: the outcome"
