"""An episode in pictures: a video with captions, and a contact sheet of its decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bilevel.name_tags import ON_A_SHEET, NameTags
from bilevel.policies.episode import Episode
from bilevel.policies.narration import caption
from bilevel.policies.rollout import Transition
from bilevel.tasks.scene_env import SceneEnv
from bilevel.video import PICTURES, Image, Tile, Video, contact_sheet, thinned

USUAL_RATE = 30.0  # steps per second, for environments that do not say it
MAX_RATE = 30.0  # pictures per second: about what an eye can see
LINES_BELOW = 4  # for the action and its sentence
MAX_SHOTS = 1000  # kept while an episode goes on; so many that thinning them does not show


@dataclass(frozen=True)
class FrameRate:
    """How many steps a second has, and of which steps a picture is taken."""

    steps_per_second: float
    every: int

    @property
    def fps(self) -> float:
        """How many pictures are taken of a second."""
        return self.steps_per_second / self.every


def frame_rate(env: SceneEnv, most: float = MAX_RATE) -> FrameRate:
    """By the environment's own account, thinned to about so many pictures a second at most."""
    rate = float((getattr(env.env, "metadata", None) or {}).get("render_fps") or USUAL_RATE)
    return FrameRate(rate, max(1, round(rate / most)))


def take_picture(env: SceneEnv, tags: NameTags | None = None) -> Image:
    """Draw what is there, with the names of things where there are tags to write them on."""
    picture: Image = env.render()
    return tags.draw(picture, env.locate()) if tags else picture


@dataclass(frozen=True)
class Shot:
    """A step to be shown on a contact sheet: a snapshot to be drawn later, or the picture itself."""

    step: int
    text: str
    snapshot: Mapping[str, Any] | None
    picture: Any = None


class Camera:
    """Films what is logged: every second step, say, in a video, and each decision, later, on a contact sheet."""

    def __init__(
        self,
        env: SceneEnv,
        video: Video | None,
        sheet: bool = False,
        *,
        names: bool = False,
        rate: FrameRate | None = None,
    ) -> None:
        """With `names`, these are written over the things in all pictures; the rate is that of the video."""
        self._env, self._video, self._sheet = env, video, sheet
        self._tags = NameTags() if names else None
        self._sheet_tags = NameTags(ON_A_SHEET) if names else None
        self._rate = rate or frame_rate(env)
        self._last: object = None  # the action that was shot last
        self.shots: list[Shot] = []

    def __call__(self, transition: Transition) -> None:
        episode, step, entry = transition.episode, transition.episode.steps, transition.episode.entries[-1]
        if self._sheet and entry.action is not None and entry.action != self._last:
            self._last = entry.action
            self._shoot(step, str(entry.action))
        if self._video and step % self._rate.every == 0:
            self._video.add(take_picture(self._env, self._tags), caption(episode), _lines_below(episode))

    def end(self, episode: Episode) -> None:
        """Show for a second how it ended."""
        if self._sheet:
            self._shoot(episode.steps, episode.outcome)
        if self._video:
            picture = take_picture(self._env, self._tags)
            for _ in range(round(self._video.fps)):
                self._video.add(picture, episode.outcome, _lines_below(episode))

    def _shoot(self, step: int, text: str) -> None:
        if len(self.shots) >= MAX_SHOTS:
            del self.shots[1::2]
        snapshot = self._env.save() if self._env.can_save else None
        picture = None if snapshot else take_picture(self._env, self._sheet_tags)
        self.shots.append(Shot(step, text, snapshot, picture))


def _lines_below(episode: Episode) -> int:
    """Return how many lines are kept free below pictures: only explanations are that long."""
    return LINES_BELOW if episode.explain and episode.rules else 0


def draw_sheet(env: SceneEnv, shots: Sequence[Shot], headline: str, details: str, *, names: bool = False) -> bytes:
    """A PNG of some of the shots; snapshots are drawn by this environment, as well as it can."""
    tiles, tags = [], NameTags(ON_A_SHEET) if names else None
    for shot in thinned(shots, PICTURES):
        picture = shot.picture
        if shot.snapshot is not None:
            env.restore(shot.snapshot)
            picture = take_picture(env, tags)
        tiles.append(Tile(picture, f"step {shot.step}", shot.text))
    return contact_sheet(headline, details, tiles)
