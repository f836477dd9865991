"""An episode in pictures: which steps are filmed with which captions, and which are on the contact sheet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from bilevel.name_tags import NameTags
from bilevel.policies import pictures
from bilevel.policies.episode import Episode
from bilevel.policies.narration import caption
from bilevel.policies.pictures import LINES_BELOW, Camera, Shot, draw_sheet, frame_rate, take_picture
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.video import Video
from drawn_task import DRAWN
from tiny_policies import moving_as_the_expert, still_policy
from tiny_task import TINY


class FakeVideo:
    """Notes what is shown."""

    fps = 40.0

    def __init__(self) -> None:
        self.shown: list[tuple[bytes, str, int]] = []

    def add(self, picture: Any, caption: str = "", below: int = 0) -> None:
        self.shown.append((picture.tobytes(), caption, below))


def filmed(
    fps: float = 80.0, sheet: bool = False, explain: bool = False, **task: Any
) -> tuple[Camera, FakeVideo, Episode, list[str]]:
    """An episode with its camera and video, and the actions of all steps."""
    env, video, actions = SceneEnv(replace(DRAWN, **task), 1, render_mode="rgb_array"), FakeVideo(), list[str]()
    env.env.metadata = {"render_fps": fps}
    with moving_as_the_expert():
        policy = still_policy().bind(env.labels) if explain else expert_policy(env)
    camera = Camera(env, cast(Video, video), sheet)

    def callback(transition: Transition) -> None:
        actions.append(caption(transition.episode))
        camera(transition)

    episode = rollout(env, policy, 1, callback=callback, explain=explain)
    camera.end(episode)
    return camera, video, episode, actions


def test_every_second_step_is_shown_with_its_action_and_the_end_for_a_second() -> None:
    _, video, _, actions = filmed(fps=60)
    assert [caption for _, caption, _ in video.shown] == actions[::2] + ["success"] * 40
    assert {below for *_, below in video.shown} == {0}
    assert len({picture for picture, *_ in video.shown}) > 5


def test_sentences_have_room_below() -> None:
    _, video, _, actions = filmed(explain=True)
    assert {below for *_, below in video.shown} == {LINES_BELOW}
    assert video.shown[0][1] == actions[0]
    assert "Because" in " ".join(actions[0].splitlines())


@pytest.mark.parametrize(("fps", "every", "shown"), [(60, 2, 30), (80, 3, 80 / 3), (20, 1, 20), (None, 1, 30)])
def test_so_many_pictures_are_taken_as_an_eye_can_see(fps: float | None, every: int, shown: float) -> None:
    env = SceneEnv(TINY, 1)
    env.env.metadata = {"render_fps": fps}
    rate = frame_rate(env)
    assert (rate.every, rate.fps) == (every, shown)


@pytest.mark.parametrize("can_restore", [True, False])
def test_a_sheet_shows_each_decision_and_the_end(can_restore: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """From snapshots that are drawn later, or where there are none from pictures taken at the time."""
    how: dict[str, Any] = {} if can_restore else {"save": None, "restore": None}
    camera, _, episode, actions = filmed(sheet=True, **how)
    first, second, last = camera.shots
    assert [shot.text for shot in camera.shots] == ["pick(parcel1)", "put(parcel1, spot1)", "success"]
    assert (first.step, second.step, last.step) == (0, actions.index("put(parcel1, spot1)"), episode.steps)
    assert all((shot.snapshot is not None) == can_restore == (shot.picture is None) for shot in camera.shots)

    tiles: list[Any] = []

    def noted(headline: str, details: str, drawn: list[Any]) -> bytes:
        tiles.extend(drawn)
        return b"sheet"

    monkeypatch.setattr(pictures, "contact_sheet", noted)
    env = SceneEnv(DRAWN, 1, render_mode="rgb_array")
    assert draw_sheet(env, camera.shots, "headline", "details") == b"sheet"
    assert [(tile.when, tile.text) for tile in tiles] == [(f"step {shot.step}", shot.text) for shot in camera.shots]
    assert len({tile.picture.tobytes() for tile in tiles}) == 3


def test_a_sheet_is_a_png_of_a_dozen_pictures() -> None:
    shots = [Shot(step, "pick", None, np.full((20, 30, 3), step, np.uint8)) for step in range(50)]
    assert draw_sheet(SceneEnv(DRAWN, 1), shots, "headline", "details").startswith(b"\x89PNG")


def test_a_long_episode_keeps_the_first_and_the_last_shot_among_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_SHOTS", 4)
    env = SceneEnv(DRAWN, 6, render_mode="rgb_array")
    camera = Camera(env, None, sheet=True)
    episode = rollout(env, expert_policy(env), 1, callback=camera)
    camera.end(episode)
    steps = [shot.step for shot in camera.shots]
    assert len(steps) <= 4
    assert (steps[0], steps[-1]) == (0, episode.steps)
    assert steps == sorted(set(steps))


def located(scene: Any, env: Any) -> dict[str, tuple[float, float]]:
    """Parcels in the left half of the picture, spots in the right."""
    return {name: (0.25 if name.startswith("parcel") else 0.75, 0.5) for name in scene.objects}


def test_names_are_written_over_things_in_films_and_on_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(DRAWN, locate=located)
    env = SceneEnv(task, 1, render_mode="rgb_array")
    env.reset(1)
    plain, named = take_picture(env), take_picture(env, NameTags())
    differing = (plain != named).any(axis=2)
    for half in (differing[:, :80], differing[:, 80:]):
        assert half.sum() > 200
    monkeypatch.setattr(pictures, "contact_sheet", lambda headline, details, tiles: tiles[0].picture.tobytes())
    shots = [Shot(0, "pick", env.save())]
    assert draw_sheet(env, shots, "headline", "details", names=True) != draw_sheet(env, shots, "headline", "details")


def test_a_task_that_does_not_locate_things_says_so() -> None:
    env = SceneEnv(DRAWN, 1, render_mode="rgb_array")
    env.reset(1)
    with pytest.raises(BadInput, match="no names in pictures: the task 'drawn' does not say where things are"):
        take_picture(env, NameTags())


def test_an_environment_without_pictures_says_so() -> None:
    with pytest.raises(BadInput, match="the environment of 'drawn' gives no pictures: does make_env take render_mode"):
        SceneEnv(DRAWN, 1).render()
