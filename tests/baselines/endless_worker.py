"""Runs episodes with a fake SmolVLA for ever, in worker processes: `python endless_worker.py MODEL`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

sys.path.append(str(Path(__file__).parents[1]))  # where the tiny task is

from bilevel.baselines.vla import VlaPolicy, VlaSettings
from bilevel.policies.rollout import rollout
from bilevel.processes import spread
from bilevel.tasks.scene_env import SceneEnv
from drawn_task import DRAWN

FAKE = Path(__file__).with_name("fake_vla_server.py")


def start(model: str) -> Callable[[int], NoReturn]:
    env = SceneEnv(DRAWN, 1, render_mode="rgb_array")
    policy = VlaPolicy(VlaSettings(sys.executable, model, "none", server=str(FAKE)), env, "Deliver.")

    def work(number: int) -> NoReturn:
        if number > 0:  # with one item alone there would be no worker
            time.sleep(600)
        print(os.getpid(), flush=True)
        while True:
            rollout(env, policy, seed=3)

    return work


if __name__ == "__main__":
    list(spread(partial(start, sys.argv[1]), range(2), workers=2))
