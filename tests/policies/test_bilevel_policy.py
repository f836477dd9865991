"""A bilevel policy labels, chooses and controls, and chooses again only when something has changed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from bilevel.policies.policies import BilevelPolicy, Control
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop.blocks import Blocks
from bilevel.tabletop.labelling import BlocksLabels
from bilevel.tabletop.observation import Observation

UP = np.array([0, 0, 1, -1], np.float32)


class Chooser:
    """Chooses what it is told to, and notes what it was asked."""

    def __init__(self, *answers: Action | None) -> None:
        self.answers = list(answers)
        self.asked: list[Facts] = []
        self.declared: list[Mapping[str, str]] = []

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        self.declared = [objects]

    def declare(self, objects: Mapping[str, str]) -> None:
        self.declared.append(objects)

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        self.asked.append(state)
        return self.answers.pop(0)


class Riser:
    """Always goes up, and notes why."""

    def __init__(self) -> None:
        self.told: list[Action] = []

    def control(self, observation: Observation, state: Facts, goal: Facts, action: Action) -> Control:
        self.told.append(action)
        return UP


@pytest.fixture(scope="module")
def world() -> Blocks:
    return Blocks(1)


def lifted(observation: Observation) -> Observation:
    """The same, with the block between closed fingers."""
    agent = np.append(observation["objects"][0, :3] + (0, 0, 0.02), 0.47).astype(np.float32)
    return {**observation, "agent": agent}


PICK, PLACE = Action("pick", ("block1",)), Action("place", ("block1", "place1"))


def test_it_goes_on_while_nothing_changes_and_chooses_anew_when_something_does(world: Blocks) -> None:
    high, low = Chooser(PICK, PLACE), Riser()
    policy = BilevelPolicy(BlocksLabels(world.slots), high, low)
    observation, info = world.reset(seed=0)
    policy.reset(observation)
    for _ in range(3):
        assert policy.act(observation) is UP
    assert (policy.action, policy.goal) == (PICK, info["goal"])
    assert policy.act(lifted(observation)) is UP
    assert low.told == [PICK] * 3 + [PLACE]
    assert policy.state == {Atom("holding", ("block1",)), Atom("clear", ("place1",))}
    assert len(high.asked) == 2
    assert high.declared == [{"block1": "block", "place1": "place"}] * 2


def test_where_nothing_is_to_be_done_nothing_is_done(world: Blocks) -> None:
    low = Riser()
    policy = BilevelPolicy(BlocksLabels(world.slots), Chooser(None, PICK), low)
    observation, _ = world.reset(seed=0)
    policy.reset(observation)
    assert policy.act(observation) is None
    assert policy.action is None
    assert low.told == []


def test_a_reset_policy_knows_nothing_of_the_last_episode(world: Blocks) -> None:
    high = Chooser(PICK, PLACE)
    policy = BilevelPolicy(BlocksLabels(world.slots), high, Riser())
    observation, _ = world.reset(seed=0)
    policy.reset(observation)
    policy.reset(observation)
    assert policy.action == PLACE
