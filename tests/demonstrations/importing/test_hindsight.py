"""What a demonstrator brought about is what it wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.symbolic.domain import Atom, BadInput
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task
from recorded_episodes import import_arrays, raw
from tiny_task import SPEC, TINY


def without_spots(scenes: Sequence[Scene]) -> list[Scene]:
    """What play looks like: nobody sees where a parcel shall go."""
    return [with_spots(scene, {}) for scene in scenes]


def with_spots(scene: Scene, spots: dict[str, dict[str, float]]) -> Scene:
    parcels = {thing.name: {name: thing[name] for name in SPEC.objects["parcel"]} for thing in scene.of_type("parcel")}
    agent = {name: scene.agent[name] for name in SPEC.agent}
    return Scene(SPEC, agent, {"parcel": parcels, "spot": spots})


def resting_places(scenes: Sequence[Scene]) -> Iterator[tuple[int, int, list[Scene]]]:
    """Where a parcel is let go was its spot."""
    start = 0
    for now in range(1, len(scenes)):
        for parcel in scenes[now].of_type("parcel"):
            if parcel.name in scenes[now - 1] and scenes[now - 1][parcel.name].held and not parcel.held:
                spot = {parcel.name.replace("parcel", "spot"): {"x": parcel.x, "y": parcel.y, "radius": 0.08}}
                yield start, now, [with_spots(scene, spot) for scene in scenes[start : now + 1]]
                start = now


def wanted(scene: Scene) -> Iterator[Atom]:
    return (Atom("at", (spot.name.replace("spot", "parcel"), spot.name)) for spot in scene.of_type("spot"))


PLAY = replace(TINY, goal=wanted)


def imported(hindsight: Any, task: Task = PLAY, play: bool = True) -> Demonstrations:
    scenes = without_spots(raw(0).scenes) if play else raw(0).scenes
    return import_arrays([scenes], [raw(0).actions], task=task, hindsight=hindsight)


def test_a_function_cuts_an_episode_and_adds_what_was_wanted() -> None:
    data = imported(resting_places)
    assert len(data) == 2
    assert sum(item.steps for item in data) == len(raw(0).actions)
    for item, spot in zip(data, ("spot1", "spot2"), strict=True):
        assert [name for name, kind in item.objects.items() if kind == "spot"] == [spot]
        assert item.goals == ((0, frozenset([Atom("at", (spot.replace("spot", "parcel"), spot))])),)
        assert (item.outcome, item.own_goals) == ("success", False)
    assert (data[1].controls == raw(0).actions[data[0].steps :]).all()


def test_the_final_facts_were_wanted() -> None:
    (found,) = imported("final", task=TINY, play=False)
    assert found.own_goals
    assert found.goals[-1][1] == {Atom("at", ("parcel1", "spot1")), Atom("at", ("parcel2", "spot2"))}
    assert found.goals[0][1] == {Atom("at", ("parcel1", "spot1"))}, "the other parcel has not arrived yet"


def test_each_fact_that_came_true_was_wanted() -> None:
    first, second = imported("each", task=TINY, play=False)
    assert first.goals[-1][1] == {Atom("at", ("parcel1", "spot1"))}
    assert second.goals[-1][1] == {Atom("at", ("parcel2", "spot2"))}
    assert first.own_goals
    assert first.steps + second.steps == len(raw(0).actions)


def test_facts_that_a_function_wants_need_not_be_those_of_the_task() -> None:
    def first_pick(scenes: Sequence[Scene]) -> Any:
        now = next(now for now, scene in enumerate(scenes) if scene["parcel1"].held)
        return [(0, now, [Atom("carrying", ("parcel1",))])]

    (found,) = imported(first_pick)
    assert found.goals == ((0, frozenset([Atom("carrying", ("parcel1",))])),)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([(0, 5)], "must give start, end, and scenes or facts, but gave tuple (0, 5)"),
        ([(5, 5, [])], "gave timesteps 5 to 5, but the episode has 0 to"),
        ([(0, 9999, [])], "gave timesteps 0 to 9999"),
        ([(0, 5, ["at"])], "gave neither scenes nor facts, but 'at'"),
        ([(0, 5, raw(0).scenes[:5])], "gave 5 scenes for timesteps 0 to 5, both included"),
        ([(0, 5, [Atom("at", ("parcel1", "spot1"))])], "1 in which what hindsight wants is not achieved"),
        ([(0, 5, [Atom("lying", ("parcel1",))])], "1 in which nothing was achieved"),
        ([(0, 5, [])], "1 without a goal"),
        ([], "1 in which hindsight found nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(given: Any, reason: str) -> None:
    with pytest.raises(BadInput, match=re.escape(reason)):
        imported(lambda scenes: given, task=TINY, play=False)


def test_errors_of_the_function_are_one_line() -> None:
    with pytest.raises(BadInput, match=r"^episode 0: hindsight\(scenes\) raised KeyError: .*nothing.*line \d+\)$"):
        imported(lambda scenes: scenes[0]["nothing"])


def test_the_facts_of_a_task_without_goals_are_not_known() -> None:
    aimless = replace(TINY, goal=lambda scene: [])
    with pytest.raises(BadInput, match=r"^--hindsight final needs goals: goal\(scene\) gave no facts"):
        imported("final", task=aimless, play=False)
    with pytest.raises(BadInput, match=r"^'last' names no function; name one as file\.py:function"):
        imported("last")
