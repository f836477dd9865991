"""An episode can be had again: from its seed, and from any point at which it was saved."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from episodes import Control, each_size, each_task, random_controls, world
from numpy.typing import NDArray

from bilevel.policies.policy import expert_policy
from bilevel.tabletop import TASKS
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Snapshot

OFTEN = 1 / 60  # how often objects teleport here, so that nature's draws are seen
LONGEST = 700  # steps of an episode
FOLLOWED = 200  # steps after a snapshot


@dataclass(frozen=True)
class Seen:
    """A step's observation and info, in a form that can be compared bit for bit."""

    arrays: tuple[bytes, ...]
    info: str

    @classmethod
    def of(cls, observation: Observation, info: Mapping[str, Any]) -> Seen:
        arrays = observation["agent"], observation["objects"], observation["visible"]
        return cls(tuple(array.tobytes() for array in arrays), repr(info))


def episode(environment: Tabletop, seed: int, steps: int = 60) -> list[Seen]:
    seen = [Seen.of(*environment.reset(seed=seed))]
    return seen + follow(environment, random_controls(steps))


def follow(environment: Tabletop, controls: Sequence[Control] | Control) -> list[Seen]:
    seen = []
    for control in controls:
        observation, _, terminated, truncated, info = environment.step(control)
        seen.append(Seen.of(observation, info))
        if terminated or truncated:
            break
    return seen


@each_size
def test_a_seed_gives_the_same_episode_again(task: str, objects: int) -> None:
    environment = world(task, objects)
    first = episode(environment, seed=5)
    other = episode(environment, seed=6)
    assert episode(environment, seed=5) == first
    assert episode(TASKS[task].make_env(objects), seed=5) == first
    assert other[0] != first[0]


@each_task
def test_global_random_numbers_are_neither_used_nor_changed(task: str) -> None:
    environment = world(task, 1)
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), repr(np.random.get_state())
    first = episode(environment, seed=5)
    assert (random.getstate(), repr(np.random.get_state())) == before
    random.seed(2)
    np.random.seed(2)
    assert episode(environment, seed=5) == first


# Saving and restoring


def _holding(scene: Scene) -> bool:
    return scene.agent.opening < 0.55 and scene.agent.z > 0.1


def _pressing(scene: Scene) -> bool:
    return any(button.travel > 0.006 for button in scene.of_type("button"))


def _lid_half_open(scene: Scene) -> bool:
    return any(0.03 < box.travel < 0.06 for box in scene.of_type("box"))


def points(task: str) -> list[Callable[[Scene], bool]]:
    """Where an episode is to be saved, as far as there is such a thing in it."""
    kinds = TASKS[task].spec.objects
    return [_holding, *[_pressing] * ("button" in kinds), *[_lid_half_open] * ("box" in kinds)]


@dataclass(frozen=True)
class Recording:
    """An expert's episode with much nature in it, and snapshots from the middle of it, by their steps."""

    controls: tuple[Control, ...]
    seen: tuple[Seen, ...]
    snapshots: Mapping[int, Snapshot]


def lively_arguments(task: str) -> dict[str, Any]:
    return {"teleport_rate": OFTEN} if task.endswith("-noisy") else {}


@cache
def lively_env(task: str) -> SceneEnv:
    return SceneEnv(TASKS[task], 3, **lively_arguments(task))


@cache
def recording(task: str) -> Recording:
    env = lively_env(task)
    expert = expert_policy(env)
    waiting = points(task)
    expert.reset(env.reset(seed=2))
    controls: list[Control] = []
    seen, snapshots = [], {}
    while len(controls) < LONGEST and env.outcome is None:
        here = [point for point in waiting if point(env.scene)]
        waiting = [point for point in waiting if point not in here]
        if here or env.events or len(controls) in (0, 40):
            snapshots[len(controls)] = env.save()
        control = expert.act(env.scene)
        assert control is not None
        controls.append(control)
        env.step(control)
        seen.append(Seen.of(env.env._observation, env.info))
    assert not waiting, "the episode has not come to all the points at which it is to be saved"
    return Recording(tuple(controls), tuple(seen), snapshots)


def restored(environment: Tabletop, task: str, through: Callable[[Snapshot], Snapshot]) -> Iterator[list[Seen]]:
    """What follows from each snapshot, beside what followed when it was taken."""
    record = recording(task)
    for step, snapshot in record.snapshots.items():
        observation, info = environment.restore(through(snapshot))
        if step:
            past, now = record.seen[step - 1], Seen.of(observation, {**info, "events": ()})
            assert now.arrays == past.arrays
        assert follow(environment, record.controls[step : step + FOLLOWED]) == list(record.seen[step : step + FOLLOWED])
        yield list(record.seen[step:])


def _in_a_file(snapshot: Snapshot) -> dict[str, NDArray[Any]]:
    file = BytesIO()
    np.savez(file, **snapshot)  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return dict(loaded)


@each_task
def test_saving_changes_nothing(task: str) -> None:
    record, environment = recording(task), lively_env(task).env
    environment.reset(seed=2)
    assert follow(environment, record.controls) == list(record.seen)


@each_task
def test_a_fresh_world_goes_on_from_a_file_as_the_old_one_did(task: str) -> None:
    assert list(restored(TASKS[task].make_env(3, **lively_arguments(task)), task, _in_a_file))
