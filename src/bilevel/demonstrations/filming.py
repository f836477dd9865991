"""A film of a demonstration: it is executed again, and drawn."""

from __future__ import annotations

from pathlib import Path

from bilevel.demonstrations.checking import replay
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.name_tags import NameTags
from bilevel.policies.pictures import frame_rate, take_picture
from bilevel.policies.rollout import Transition
from bilevel.tasks.scene_env import SceneEnv
from bilevel.video import Video


def film(demonstration: Demonstration, env: SceneEnv, path: Path, *, names: bool = False) -> str | None:
    """Replay a demonstration and write a video, with what the expert was doing as its caption.

    Return where the episode first differs from what was recorded, if it does, as `replay` does. With `names`, these are
    written over the things in the pictures.
    """
    tags, rate = NameTags() if names else None, frame_rate(env)
    env.reset(demonstration.seed)
    take_picture(env, tags)  # where that is impossible, it is said before a file is begun
    with Video(path, fps=rate.fps) as video:

        def shoot(transition: Transition) -> None:
            if env.steps % rate.every == 0:
                action = demonstration.actions[env.steps]
                video.add(take_picture(env, tags), str(action) if action else "")

        found = replay(demonstration, env, shoot)
        picture = take_picture(env, tags)
        for _ in range(round(video.fps)):
            video.add(picture, demonstration.outcome)
    return found
