"""An episode in pictures: what a video shows, and where names stand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from bilevel.policies.film import (
    INK,
    SENTENCE,
    Box,
    EpisodeCamera,
    Image,
    Video,
    captioned,
    free_boxes,
    take_picture,
    with_names,
)
from bilevel.policies.narration import caption
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from drawn_task import DRAWN
from tiny_policies import moving_as_the_expert, still_policy

RED, BLUE = (200, 30, 40), (30, 60, 190)
GREY = np.full((480, 640, 3), 128, np.uint8)


def plain(colour: tuple[int, int, int], height: int = 96, width: int = 128) -> Image:
    return np.full((height, width, 3), colour, np.uint8)


def write_video(path: Path, pictures: list[Image], fps: float = 25) -> None:
    with Video(path, fps) as video:
        for picture in pictures:
            video.add(picture)


def frames(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


# Videos


def test_a_video_is_what_browsers_play_with_pictures_in_their_order_and_colours(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "http: a test.mp4"
    write_video(path, [plain(RED, 95, 127), plain(RED, 95, 127), plain(BLUE, 95, 127)], fps=40)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height, stream.frames, stream.average_rate) == (128, 96, 3, 40)  # even sizes
    for frame, colour in zip(frames(path), (RED, RED, BLUE), strict=True):
        assert np.abs(frame.mean((0, 1)) - colour).max() < 8


def test_a_video_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    path.write_text("an older one")
    with suppress(KeyboardInterrupt), Video(path, fps=25) as video:
        video.add(plain(RED))
        raise KeyboardInterrupt
    assert [file.name for file in tmp_path.iterdir()] == ["out.mp4"]
    assert path.read_text() == "an older one"


def test_a_caption_is_written_below_and_ends_within_the_picture() -> None:
    picture = plain(BLUE, 480, 640)
    one, four = (captioned(picture, "place(block1, place1) " * 6, lines) for lines in (1, 4))
    assert (one[:480] == picture).all()
    assert 480 < len(one) < len(four)
    columns = np.flatnonzero((np.abs(one[480:].astype(int) - INK).max(axis=2) < 60).any(axis=0))
    assert columns.min() > 10
    assert 500 < columns.max() < 630


# Films of episodes


class FakeVideo:
    """Notes what is shown."""

    fps = 40.0

    def __init__(self) -> None:
        self.shown: list[tuple[bytes, str, int]] = []

    def add(self, picture: Any, caption: str = "", lines: int = 1) -> None:
        self.shown.append((picture.tobytes(), caption, lines))


def filmed(explain: bool = False) -> tuple[FakeVideo, list[str]]:
    """The video of an episode, and the actions of all its steps."""
    env, video, actions = SceneEnv(DRAWN, 1, render_mode="rgb_array"), FakeVideo(), list[str]()
    env.env.metadata = {"render_fps": 60}
    with moving_as_the_expert():
        policy = still_policy().bind(env.labels) if explain else expert_policy(env)
    camera = EpisodeCamera(env, cast(Video, video))

    def callback(transition: Transition) -> None:
        actions.append(caption(transition.episode))
        camera(transition)

    camera.end(rollout(env, policy, 1, callback=callback, explain=explain))
    return video, actions


def test_every_second_step_is_shown_with_its_action_and_the_end_for_a_second() -> None:
    video, actions = filmed()
    assert [caption for _, caption, _ in video.shown] == actions[::2] + ["success"] * 40
    assert {lines for *_, lines in video.shown} == {1}
    assert len({picture for picture, *_ in video.shown}) > 5


def test_sentences_have_room_below() -> None:
    video, actions = filmed(explain=True)
    assert {lines for *_, lines in video.shown} == {SENTENCE}
    assert video.shown[0][1] == actions[0]
    assert "Because" in " ".join(actions[0].splitlines())


def test_an_environment_without_pictures_or_places_says_so() -> None:
    with pytest.raises(BadInput, match="the environment of 'drawn' gives no pictures: does make_env take render_mode"):
        SceneEnv(DRAWN, 1).render()
    env = SceneEnv(DRAWN, 1, render_mode="rgb_array")
    env.reset(1)
    with pytest.raises(BadInput, match="no names in pictures: the task 'drawn' does not say where things are"):
        take_picture(env, names=True)


# Names over things


def boxes(points: dict[str, tuple[float, float]]) -> dict[str, Box]:
    return free_boxes(points, dict.fromkeys(points, (68.0, 17.0)), (0, 0, 640, 480))


def test_names_are_written_over_things() -> None:
    def located(scene: Any, env: Any) -> dict[str, tuple[float, float]]:
        return {name: (0.25 if name.startswith("parcel") else 0.75, 0.5) for name in scene.objects}

    env = SceneEnv(replace(DRAWN, locate=located), 1, render_mode="rgb_array")
    env.reset(1)
    differing = (take_picture(env) != take_picture(env, names=True)).any(axis=2)
    for half in (differing[:, :80], differing[:, 80:]):
        assert half.sum() > 200
    assert np.array_equal(with_names(GREY, {"left": (-0.1, 0.5), "nowhere": (np.nan, np.nan)}), GREY)


def test_tags_do_not_cover_each_other_where_there_is_room_and_stay_in_the_picture() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        crowd = {f"block{number}": tuple(rng.uniform((190, 140), (450, 340))) for number in range(15)}
        tags = boxes(crowd)
        assert len(tags) == 15
        for one, other in combinations(tags.values(), 2):
            across, down = (min(one[end + 2], other[end + 2]) - max(one[end], other[end]) for end in (0, 1))
            assert min(across, down) < 1
    corners = {"a-long-name": (0.0, 0.0), "another": (639.0, 0.0), "third": (0.0, 479.0), "fourth": (639.0, 479.0)}
    for left, top, right, bottom in boxes(corners).values():
        assert min(left, top, 640 - right, 480 - bottom) >= -1
