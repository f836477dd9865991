"""What tells an unsteady network from labels that flicker: whether anything moved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from bilevel.policies.episode_run import EpisodeRun, run_episode
from bilevel.policies.policy import expert_policy
from bilevel.symbolic.domain import Action, Atom
from bilevel.tasks.controls import Control
from bilevel.tasks.perception import read_perception
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_task import TINY, choose, control, label

STILL = np.zeros(3, np.float32)


def episode(task: Task, perception: str = "") -> EpisodeRun:
    env = SceneEnv(task, 1, perception=read_perception(perception))
    return run_episode(env, expert_policy(env), seed=1)


def letting_go(scene: Scene, action: Action) -> Control:
    """Pick as the expert does, and open the fingers at once instead of carrying anything anywhere."""
    return control(scene, action) if action.name == "pick" else STILL


def trembling(scene: Scene) -> Iterator[Atom]:
    """Once in four times, the parcel seems to be carried, wherever it is."""
    if next(CALLS) % 4:
        yield from label(scene)
    else:
        yield from (Atom("carrying", ("parcel1",)), Atom("empty", ("spot1",)))


def by_place(scene: Scene) -> list[Atom]:
    return [Atom("lying" if scene["parcel1"].x < -0.5 else "carrying", ("parcel1",))]


CALLS = count()


def test_where_things_move_to_and_fro_it_is_the_control_that_is_unsteady() -> None:
    run = episode(replace(TINY, expert=Expert(choose, letting_go)))
    assert run.changes.flicker > 50
    assert (run.outcome, run.reason) == ("step limit", "control")


def test_where_nothing_moves_it_is_the_labels() -> None:
    still = Expert(choose, lambda scene, action: STILL)
    run = episode(replace(TINY, label=trembling, expert=still))
    assert run.changes.flicker > 50
    assert (run.outcome, run.reason) == ("step limit", "label")


def test_what_only_seems_to_move_does_not() -> None:
    """The sensor is so noisy that the parcel seems to be now here, now there."""
    still = Expert(lambda state, goal: Action("pick", ("parcel1",)), lambda scene, action: STILL)
    run = episode(replace(TINY, label=by_place, expert=still), "noise=0.5")
    assert (run.outcome, run.reason) == ("step limit", "label")
