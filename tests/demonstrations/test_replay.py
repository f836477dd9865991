"""Living through a demonstration again: bit for bit the same, or where it first differs, and why that may be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from bilevel.demonstrations.collect import Recorder, causes, collect, collection_settings, replay, replay_episode
from bilevel.demonstrations.dataset import MANIFEST, Demonstration, Demonstrations
from bilevel.progress import Progress
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_task import TINY, TINY_DISCRETE


def replayed(demonstration: Demonstration) -> str:
    return replay_episode(demonstration, SceneEnv(TINY, 3, slip_rate=0.02)) or ""


@pytest.mark.parametrize("task", [TINY_DISCRETE, replace(TINY, save=None)])
def test_a_recorded_episode_is_reproduced(task: Task) -> None:
    settings = collection_settings(task, 1, seed=3, noise=0.5)
    assert replay_episode(Recorder(task, settings).record(0)[0], SceneEnv(task, **settings.arguments)) is None


def test_what_was_seen_wrongly_is_seen_so_again(tmp_path: Path) -> None:
    data = collect(TINY, tmp_path, objects=2, episodes=2, perception="noise=0.002,missed=0.01")
    assert replay(data, TINY) == {0: None, 1: None}


def test_the_first_difference_is_found_whatever_it_is(eventful: Demonstration) -> None:
    assert not replayed(eventful)
    executed, features, invisible = eventful.executed.copy(), eventful.features.copy(), eventful.visible.copy()
    executed[10] = -executed[10]
    assert replayed(replace(eventful, executed=executed)).startswith("first differs at step 11: ")
    features[20, 0, 0] = np.nextafter(features[20, 0, 0], np.float32(1))
    what, _, amount = replayed(replace(eventful, features=features)).rpartition(" differs by ")
    assert what.startswith("first differs at step 20: ")
    assert 0 < float(amount) < 1e-6
    spots = eventful.snapshots["spots"].copy()
    spots[2, 0] += 1e-9
    found = replayed(replace(eventful, snapshots={**eventful.snapshots, "spots": spots}))
    assert found == "first differs at step 128: 'snapshot.spots'"
    invisible[7, -1] = not invisible[7, -1]
    changes: dict[str, dict[str, Any]] = {
        "the events": {"events": ()},
        "the outcome": {"outcome": "step limit"},
        "the goal": {"goals": eventful.goals[:1]},
        "other objects are seen": {"visible": invisible},
    }
    for what, change in changes.items():
        assert replayed(replace(eventful, **change)).endswith(f": {what}")


class Remembering(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A simulator that keeps something from one episode to the next."""

    episodes = 0

    def step(self, action: Any) -> Any:
        return self.env.step(action * (1 - 0.001 * self.episodes))

    def reset(self, **arguments: Any) -> Any:
        self.episodes += 1
        return self.env.reset(**arguments)


def test_both_causes_of_a_difference_are_named(tmp_path: Path) -> None:
    remembering = replace(TINY, make_env=lambda objects: Remembering(TINY.make_env(objects=objects)), save=None)
    data = collect(remembering, tmp_path / "set", objects=1, episodes=3)
    assert replay(data, remembering) == dict.fromkeys(range(3))  # in the same order, nothing differs
    progress: list[Progress] = []
    found = replay(data, remembering, episode=2, callback=progress.append)
    assert (found[2] or "").startswith("first differs at step 1: agent.")
    assert progress == [Progress("replaying", 1, 1, {"different": 1})]
    assert "or the simulator keeps something from one episode to the next: make it anew at each" in causes(data)[-1]
    manifest = tmp_path / "set" / MANIFEST
    manifest.write_text(manifest.read_text().replace('"numpy": "', '"numpy": "1.'))
    assert causes(Demonstrations.read(tmp_path / "set"))[0].startswith("the data set was made with numpy 1.")
    with pytest.raises(BadInput, match="there is no episode 3: they are counted from 0 to 2"):
        replay(data, remembering, episode=3)
