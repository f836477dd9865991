"""A bilevel policy labels, chooses and controls, and chooses again only when something has changed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bilevel.policies.policy import BilevelPolicy, HighLevelPolicy
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from tiny_task import SPEC, TINY

UP = np.array([0, 0.1, 0], np.float32)
PICK, PUT = Action("pick", ("parcel1",)), Action("put", ("parcel1", "spot1"))


class Chooser(HighLevelPolicy):
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

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        self.told.append(action)
        return UP


def scene(held: float = 0.0, parcels: int = 1) -> Scene:
    def numbered(name: str, **features: float) -> dict[str, dict[str, float]]:
        return {f"{name}{number + 1}": {**features, "y": number} for number in range(parcels)}

    objects = {"parcel": numbered("parcel", x=-1.0, held=held), "spot": numbered("spot", x=1.0, radius=0.1)}
    return Scene(SPEC, {"x": 0.0, "y": 0.0, "closed": held}, objects)


def test_it_goes_on_while_nothing_changes_and_chooses_anew_when_something_does() -> None:
    high, low = Chooser(PICK, PUT), Riser()
    policy = BilevelPolicy(TINY.labels, high, low)
    policy.reset(scene())
    for _ in range(3):
        assert policy.act(scene()) is UP  # equal, but not the very same
    assert (policy.action, policy.goal) == (PICK, frozenset({Atom("at", ("parcel1", "spot1"))}))
    assert policy.act(scene(held=1.0)) is UP
    assert low.told == [PICK] * 3 + [PUT]
    assert policy.state == {Atom("carrying", ("parcel1",)), Atom("empty", ("spot1",))}
    assert len(high.asked) == 2
    assert high.declared == [{"parcel1": "parcel", "spot1": "spot"}] * 2


def test_what_appears_is_declared_before_it_is_chosen_from() -> None:
    high = Chooser(PICK, PICK)
    policy = BilevelPolicy(TINY.labels, high, Riser())
    policy.reset(scene())
    policy.act(scene(parcels=2))
    assert high.declared[1] == {"parcel1": "parcel", "parcel2": "parcel", "spot1": "spot", "spot2": "spot"}
    assert len(policy.goal) == 2


def test_where_nothing_is_to_be_done_nothing_is_done() -> None:
    low = Riser()
    policy = BilevelPolicy(TINY.labels, Chooser(None), low)
    policy.reset(scene())
    assert policy.act(scene()) is None
    assert (policy.action, low.told) == (None, [])


def test_an_episode_that_nobody_began_is_begun() -> None:
    high = Chooser(PICK)
    policy = BilevelPolicy(TINY.labels, high, Riser())
    for _ in range(3):
        assert policy.act(scene()) is UP
    assert (len(high.asked), len(high.declared)) == (1, 1)


def test_a_reset_policy_knows_nothing_of_the_last_episode() -> None:
    policy = BilevelPolicy(TINY.labels, Chooser(PICK, PUT), Riser())
    policy.reset(scene())
    policy.reset(scene())
    assert policy.action == PUT


def test_it_chooses_anew_though_nothing_has_changed_where_it_is_asked_to_reconsider() -> None:
    high = Chooser(PICK, PUT)
    policy = BilevelPolicy(TINY.labels, high, Riser())
    policy.reset(scene())
    policy.act(scene())
    policy.reconsider()
    policy.act(scene())
    assert policy.action == PUT
    policy.act(scene())
    assert len(high.asked) == 2
