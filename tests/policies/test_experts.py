"""Experts of all kinds act as policies, and what goes wrong in them is told in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bilevel.policies.policy import ActingExpert, BilevelPolicy, expert_policy
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Expert
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE, act, choose, control


def run(expert: Any) -> str:
    env = SceneEnv(replace(TINY, expert=expert), 2)
    return rollout(env, expert_policy(env), 3).outcome


def test_experts_come_as_people_have_them() -> None:
    assert run(Expert(choose, control)) == SUCCESS
    assert run(Expert(act=act)) == SUCCESS
    assert run(lambda env: Expert(choose, control)) == SUCCESS
    env = SceneEnv(TINY_DISCRETE, 2)
    assert rollout(env, expert_policy(env), 3).outcome == SUCCESS


def test_only_one_that_chooses_says_what_it_does() -> None:
    choosing, acting = (expert_policy(SceneEnv(task, 1)) for task in (TINY, TINY_ACTING))
    assert isinstance(choosing, BilevelPolicy)
    assert isinstance(acting, ActingExpert)
    scene = SceneEnv(TINY, 1).reset(0)
    for policy in (choosing, acting):
        policy.reset(scene)
        assert policy.act(scene) is not None
    assert (choosing.state, choosing.goal) == (acting.state, acting.goal)
    assert (choosing.action, acting.action) == (Action("pick", ("parcel1",)), None)


@pytest.mark.parametrize("expert", [None, Expert(control=control)])
def test_without_one_that_can_show_it_nobody_does(expert: Expert | None) -> None:
    with pytest.raises(BadInput, match="the task 'tiny' has no expert that can show it"):
        run(expert)


def broken(*_: object) -> Any:
    raise ValueError("out of\ncheese")


@pytest.mark.parametrize(
    ("expert", "what"),
    [
        (Expert(broken, control), r"the expert's choose\(state, goal\)"),
        (Expert(choose, broken), r"the expert's control\(scene, pick\(parcel1\)\)"),
        (Expert(act=broken), r"the expert's act\(scene\)"),
        (broken, r"expert\(env\)"),
    ],
)
def test_an_error_in_an_expert_is_one_line_with_its_place(expert: Any, what: str) -> None:
    with pytest.raises(BadInput, match=rf"^{what} raised ValueError: out of cheese \(.*test_experts.py, line \d+\)$"):
        run(expert)


def test_bad_input_in_an_expert_stays_what_it_is() -> None:
    def refuse(state: Facts, goal: Facts) -> Action:
        raise BadInput("no such parcel")

    def refuse_scene(scene: Scene, action: Action | None = None) -> Any:
        raise BadInput("no such parcel")

    for expert in (Expert(refuse, control), Expert(choose, refuse_scene), Expert(act=refuse_scene)):
        with pytest.raises(BadInput, match=r"^no such parcel$"):
            run(expert)
