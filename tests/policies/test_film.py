"""An episode in pictures: what a video shows, and where names stand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from bilevel.policies.film import (
    INK,
    Box,
    Film,
    Image,
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


def drawn_env() -> SceneEnv:
    env = SceneEnv(DRAWN, 1, render_mode="rgb_array")
    env.env.metadata = {"render_fps": 60}
    env.reset(1)
    return env


def write_video(path: Path, pictures: list[Image]) -> None:
    with Film(path, drawn_env()) as video:
        for picture in pictures:
            video.add(picture)


def frames(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


# Videos


def test_a_video_is_what_browsers_play_with_pictures_in_their_order_and_colours(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "http: a test.mp4"
    write_video(path, [plain(RED, 95, 127), plain(RED, 95, 127), plain(BLUE, 95, 127)])
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height, stream.frames, stream.average_rate) == (128, 96, 3, 30)  # even sizes
    for frame, colour in zip(frames(path), (RED, RED, BLUE), strict=True):
        assert np.abs(frame.mean((0, 1)) - colour).max() < 8


def test_a_video_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    path.write_text("an older one")
    with suppress(KeyboardInterrupt), Film(path, drawn_env()) as video:
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


def filmed(path: Path, explain: bool = False) -> tuple[list[NDArray[np.uint8]], list[str]]:
    """The pictures of an episode, and the captions of all its steps."""
    env, captions = drawn_env(), list[str]()
    with moving_as_the_expert():
        policy = still_policy().bind(env.labels) if explain else expert_policy(env)

    with Film(path, env) as film:

        def callback(transition: Transition) -> None:
            captions.append(caption(transition.episode))
            film(transition)

        film.end(rollout(env, policy, 1, callback=callback, explain=explain))
    return frames(path), captions


def test_every_second_step_is_shown_and_the_end_for_a_second_with_room_for_reasons_below(tmp_path: Path) -> None:
    shown, captions = filmed(tmp_path / "plain.mp4")
    assert len(shown) == len(captions[::2]) + 30
    assert np.abs(shown[-1].astype(int) - shown[-30]).max() < 20
    explained, reasons = filmed(tmp_path / "explained.mp4", explain=True)
    assert len(explained[0]) > len(shown[0]) > len(drawn_env().render())
    assert "Because" in " ".join(reasons[0].splitlines())


def test_an_environment_without_pictures_or_places_says_so() -> None:
    with pytest.raises(BadInput, match="the environment of 'drawn' gives no pictures: does make_env take render_mode"):
        SceneEnv(DRAWN, 1).render()
    env = SceneEnv(DRAWN, 1, render_mode="rgb_array")
    env.reset(1)
    with pytest.raises(BadInput, match="no names in pictures: the task 'drawn' does not say where things are"):
        take_picture(env, names=True)


# Names over things


def boxes(points: dict[str, tuple[float, float]]) -> dict[str, Box]:
    return free_boxes(points, dict.fromkeys(points, 68.0), 12.0, 640)


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
        crowd = {f"block{number}": tuple(rng.uniform((100, 140), (540, 340))) for number in range(10)}
        tags = boxes(crowd)
        assert len(tags) == 10
        for one, other in combinations(tags.values(), 2):
            across, down = (min(one[end + 2], other[end + 2]) - max(one[end], other[end]) for end in (0, 1))
            assert min(across, down) <= 0
    for left, _, right, _ in boxes({"a-long-name": (0.0, 100.0), "another": (639.0, 100.0)}).values():
        assert min(left, 640 - right) >= 0
