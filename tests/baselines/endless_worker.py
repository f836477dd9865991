"""Runs episodes with a fake SmolVLA for ever, in a worker process: `python endless_worker.py MODEL`."""

from __future__ import annotations

import sys
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bilevel.baselines import vla
from bilevel.environments.rendering import Image
from bilevel.execution.rollout import rollout
from bilevel.tasks import find_task

FAKE = Path(__file__).with_name("fake_vla_server.py")


class Darkness:
    """A picture that can be drawn everywhere."""

    def __init__(self, *_: object) -> None: ...

    def draw(self, data: object) -> Image:
        return np.zeros((480, 640, 3), np.uint8)


def work(model: str) -> None:
    vars(vla)["Picture"] = Darkness
    task = find_task("blocks")
    world = task.make(1)
    policy = vla.make_policy(vla.VlaSettings(sys.executable, model, "none", server=str(FAKE)), task, world)
    while True:
        rollout(world, policy, seed=3)


if __name__ == "__main__":
    worker = get_context("spawn").Process(target=work, args=(sys.argv[1],))
    worker.start()
    print(worker.pid, flush=True)
    worker.join()
