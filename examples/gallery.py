"""The four worlds in one picture, each in the middle of an expert's episode: `make gallery`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image as PillowImage

from bilevel.symbolic.domain import Action, BadInput
from bilevel.tabletop.rendering import Image
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.tasks import Task, find_task
from bilevel.video import captioned

TARGET = Path(__file__).parents[1] / "docs" / "images" / "worlds.jpg"
OBJECTS = 5
SEED = 1
SIZE = (720, 540)  # pixels of each world
GAP = 8  # pixels, white
JPEG_QUALITY = 85


class Moment(NamedTuple):
    """What to show: a task, some steps into the expert's n-th action of a kind, and what to say about it."""

    task: str
    action: str
    number: int
    steps: int
    caption: str


MOMENTS = (
    Moment("blocks", "place", 4, 25, "Blocks: every block belongs on the place of its colour"),
    Moment("factory", "pick", 6, 25, "Factory: each block that is placed brings a new one"),
    Moment("colour", "press", 3, 18, "Colour: the button colours the block on the platform"),
    Moment("gacha", "open", 3, 40, "Gacha: the button rolls a new block into the box"),
)


def main() -> None:
    pictures = [shown(moment) for moment in MOMENTS]
    rows = [beside(pictures[:2], axis=1), beside(pictures[2:], axis=1)]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    PillowImage.fromarray(beside(rows, axis=0)).save(TARGET, quality=JPEG_QUALITY, optimize=True, progressive=True)
    print(f"{TARGET}: {TARGET.stat().st_size // 1000} kB")


def shown(moment: Moment) -> Image:
    """(height, width, 3): the world at that moment, with its caption."""
    task = find_task(moment.task)
    environment = task.make(OBJECTS, render_mode="rgb_array", quality="good")
    number, steps, last = 0, 0, None
    for action in expert_actions(task, environment):
        steps = steps + 1 if action == last else 0
        number += action != last and action.name == moment.action
        last = action
        if (action.name, number, steps) == (moment.action, moment.number, moment.steps):
            break
    else:
        raise BadInput(f"in {moment.task} there is no moment {moment.steps} steps into {moment.action} {moment.number}")
    picture = PillowImage.fromarray(environment.render()).resize(SIZE, PillowImage.Resampling.LANCZOS)
    environment.close()
    return captioned(np.asarray(picture), moment.caption)


def expert_actions(task: Task, environment: Tabletop) -> Iterator[Action]:
    """Run an episode; after each of its steps, what the expert was doing."""
    observation, _ = environment.reset(seed=SEED)
    expert = task.expert(environment.slots)
    expert.reset(observation)
    over = False
    while not over and (control := expert.act(observation)) is not None:
        observation, _, terminated, truncated, _ = environment.step(control)
        over = terminated or truncated
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
