"""A bilevel policy labels, chooses and controls, and chooses again only when something has changed; experts act so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bilevel.policies.policy import BilevelPolicy, HighLevelPolicy, expert_policy
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_task import SPEC, TINY, TINY_ACTING, TINY_DISCRETE, choose, control

UP = np.array([0, 0.1, 0], np.float32)
PICK, PUT = Action("pick", ("parcel1",)), Action("put", ("parcel1", "spot1"))


class Chooser(HighLevelPolicy):
    """Chooses what it is told to, and notes what it was told of."""

    def __init__(self, *answers: Action | None) -> None:
        self.answers = list(answers)
        self.declared: list[Mapping[str, str]] = []

    def declare(self, objects: Mapping[str, str]) -> None:
        self.declared.append(objects)

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        return self.answers.pop(0)


class Riser:
    """Always goes up, and notes why."""

    def __init__(self) -> None:
        self.told: list[Action] = []

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        self.told.append(action)
        return UP


def scene(held: float = 0.0, parcels: int = 1) -> Scene:
    def numbered(name: str, **features: float) -> dict[str, dict[str, float]]:
        return {f"{name}{number + 1}": {**features, "y": number} for number in range(parcels)}

    objects = {"parcel": numbered("parcel", x=-1.0, held=held), "spot": numbered("spot", x=1.0, radius=0.1)}
    return Scene(SPEC, {"x": 0.0, "y": 0.0, "closed": held}, objects)


def test_it_goes_on_while_nothing_changes_and_chooses_anew_when_something_does() -> None:
    high, low = Chooser(PICK, PUT, PICK, None), Riser()
    policy = BilevelPolicy(TINY.labels, high, low)
    for _ in range(3):  # also if nobody has begun the episode
        assert policy.act(scene()) is UP  # equal, but not the very same
    assert policy.act(scene(held=1.0)) is UP
    assert low.told == [PICK] * 3 + [PUT]
    assert (policy.state, policy.goal) == (TINY.labels.state(scene(held=1.0)), TINY.labels.goal(scene()))
    policy.reconsider()
    policy.act(scene(held=1.0))
    assert (policy.action, high.answers) == (PICK, [None])
    assert policy.act(scene(parcels=2)) is None
    assert set(high.declared[-1]) == {"parcel1", "parcel2", "spot1", "spot2"}
    assert len(low.told) == 5


# Experts


def run(expert: Any, task: Task = TINY) -> str:
    env = SceneEnv(replace(task, expert=expert), 2)
    return rollout(env, expert_policy(env), 3).outcome


def test_experts_come_as_people_have_them() -> None:
    for expert in (TINY.expert, TINY_ACTING.expert, lambda env: Expert(choose, control)):
        assert run(expert) == SUCCESS
    assert run(TINY_DISCRETE.expert, TINY_DISCRETE) == SUCCESS


@pytest.mark.parametrize("expert", [None, Expert(control=control)])
def test_without_one_that_can_show_it_nobody_does(expert: Expert | None) -> None:
    with pytest.raises(BadInput, match="the task 'tiny' has no expert that can show it"):
        run(expert)


def broken(*_: object) -> Any:
    raise ValueError("out of\ncheese")


def refusing(*_: object) -> Any:
    raise BadInput("no such parcel")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda fail: Expert(fail, control), r"the expert's choose\(state, goal\)"),
        (lambda fail: Expert(choose, fail), r"the expert's control\(scene, pick\(parcel1\)\)"),
        (lambda fail: Expert(act=fail), r"the expert's act\(scene\)"),
        (lambda fail: fail, r"expert\(env\)"),
    ],
)
def test_an_error_in_an_expert_is_one_line_with_its_place(make: Any, what: str) -> None:
    with pytest.raises(BadInput, match=rf"^{what} raised ValueError: out of cheese \(.*test_policy.py, line \d+\)$"):
        run(make(broken))
    with pytest.raises(BadInput, match=r"^no such parcel$"):
        run(make(refusing))
