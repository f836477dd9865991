"""Runs episodes with a fake SmolVLA for ever, in worker processes: `python endless_worker.py MODEL`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from bilevel.baselines import vla
from bilevel.policies.rollout import rollout
from bilevel.processes import spread
from bilevel.tabletop.rendering import Image
from bilevel.tabletop.tasks import find_task

FAKE = Path(__file__).with_name("fake_vla_server.py")


class Darkness:
    """A picture that can be drawn everywhere."""

    def __init__(self, *_: object) -> None: ...

    def draw(self, data: object) -> Image:
        return np.zeros((480, 640, 3), np.uint8)


def start(model: str) -> Callable[[int], NoReturn]:
    vars(vla)["Picture"] = Darkness
    task = find_task("blocks")
    world = task.make(1)
    policy = vla.make_policy(vla.VlaSettings(sys.executable, model, "none", server=str(FAKE)), task, world)

    def work(number: int) -> NoReturn:
        if number > 0:  # with one item alone there would be no worker
            time.sleep(600)
        print(os.getpid(), flush=True)
        while True:
            rollout(world, policy, seed=3)

    return work


if __name__ == "__main__":
    list(spread(partial(start, sys.argv[1]), range(2), workers=2))
