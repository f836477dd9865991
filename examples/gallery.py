"""Four worlds in one picture, each in the middle of an expert's episode: `make gallery`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image as PillowImage

from bilevel.policies.film import captioned
from bilevel.policies.policy import expert_policy
from bilevel.symbolic.domain import Action, BadInput
from bilevel.tabletop.rendering import Image
from bilevel.tasks.registry import find_task
from bilevel.tasks.scene_env import SceneEnv

TARGET = Path(__file__).parents[1] / "docs" / "images" / "worlds.jpg"
OBJECTS = 5
SEED = 1
SIZE = (720, 540)  # pixels of each world
GAP = 8  # pixels, white
JPEG_QUALITY = 85


class Shot(NamedTuple):
    """What to show: a task, some steps into the expert's n-th action of a kind, and what to say about it."""

    task: str
    action: str
    number: int
    steps: int
    caption: str


SHOTS = (
    Shot("blocks", "place", 4, 25, "Blocks: every block belongs on the place of its colour"),
    Shot("factory", "pick", 6, 25, "Factory: each block that is placed brings a new one"),
    Shot("colour", "press", 3, 18, "Colour: the button colours the block on the platform"),
    Shot("gacha", "open", 3, 40, "Gacha: the button rolls a new block into the box"),
)


def main() -> None:
    pictures = [shown(shot) for shot in SHOTS]
    rows = [beside(pictures[:2], axis=1), beside(pictures[2:], axis=1)]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    PillowImage.fromarray(beside(rows, axis=0)).save(TARGET, quality=JPEG_QUALITY, optimize=True, progressive=True)
    print(f"{TARGET}: {TARGET.stat().st_size // 1000} kB")


def shown(shot: Shot) -> Image:
    """(height, width, 3): the world at that timestep, with its caption."""
    env = SceneEnv(find_task(shot.task), OBJECTS, render_mode="rgb_array", quality="good")
    number, steps, last = 0, 0, None
    for action in expert_actions(env):
        steps = steps + 1 if action == last else 0
        number += action != last and action.name == shot.action
        last = action
        if (action.name, number, steps) == (shot.action, shot.number, shot.steps):
            break
    else:
        raise BadInput(f"in {shot.task} there is no timestep {shot.steps} steps into {shot.action} {shot.number}")
    picture = PillowImage.fromarray(env.render()).resize(SIZE, PillowImage.Resampling.LANCZOS)
    env.close()
    return captioned(np.asarray(picture), shot.caption)


def expert_actions(env: SceneEnv) -> Iterator[Action]:
    """Run an episode; after each of its steps, what the expert was doing."""
    expert = expert_policy(env)
    expert.reset(env.reset(SEED))
    while not env.outcome and (control := expert.act(env.scene)) is not None:
        env.step(control)
        if expert.action is not None:
            yield expert.action


def beside(pictures: list[Image], axis: int) -> Image:
    """Two pictures with a white gap between them, one beside (1) or above (0) the other."""
    first, second = pictures
    shape = list(first.shape)
    shape[axis] = GAP
    return np.concatenate([first, np.full(shape, 255, np.uint8), second], axis)


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        sys.exit(str(error))
