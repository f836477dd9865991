"""Makes the LeRobot data sets in demonstrations/data with LeRobot's own writer, which knows nothing of this package.

    PYTHONPATH=src:tests python tests/lerobot_recordings.py tests/demonstrations/data/lerobot-v3.0

lerobot 0.4.4 wrote the one of v3.0, lerobot 0.3.3 the one of v2.1. What they recorded is the plain environment of the
tiny task.
"""

from __future__ import annotations

import shutil
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

from tiny_task import Delivery, act, perceive

PARCELS, EPISODES, AFTERWARDS = 2, 2, 3
FEATURES = {
    "observation.state": {"dtype": "float32", "shape": (3,), "names": ["x", "y", "closed"]},
    "observation.environment_state": {"dtype": "float32", "shape": (5 * PARCELS,), "names": None},
    "observation.arrived": {"dtype": "int64", "shape": (1,), "names": None},
    "observation.image": {"dtype": "image", "shape": (4, 4, 3), "names": ["height", "width", "channel"]},
    "action": {"dtype": "float32", "shape": (3,), "names": ["dx", "dy", "closed"]},
    "next.reward": {"dtype": "float32", "shape": (1,), "names": None},
    "next.success": {"dtype": "bool", "shape": (1,), "names": None},
}


def frame(observation: dict[str, Any], control: Any, info: dict[str, Any]) -> dict[str, Any]:
    """One frame: what was seen, what was done, and what came of it."""
    return {
        "observation.state": observation["agent"],
        "observation.environment_state": np.concatenate([observation[part].ravel() for part in ("parcels", "spots")]),
        "observation.arrived": np.array([observation["arrived"]], np.int64),
        "observation.image": np.full((4, 4, 3), 255 * int(observation["agent"][2]), np.uint8),
        "action": control,
        "next.reward": np.array([info["success"]], np.float32),
        "next.success": np.array([info["success"]]),
    }


def add(dataset: Any, values: dict[str, Any], text: str) -> None:
    """Add a frame; where its task goes has changed between the versions."""
    if "task" in signature(dataset.add_frame).parameters:
        dataset.add_frame(values, task=text)
    else:
        dataset.add_frame({**values, "task": text})


def main(folder: Path) -> None:
    dataset = LeRobotDataset.create("tiny/delivery", fps=20, features=FEATURES, root=folder, use_videos=False)
    for seed in range(EPISODES):
        env = Delivery(PARCELS, slip_rate=0.0, discrete=False)
        observation, info = env.reset(seed=seed)
        left = AFTERWARDS  # steps after the last parcel was put down: the end is on record, too
        while left:
            done = info["success"]
            left -= done
            control = np.zeros(3, np.float32) if done else act(perceive(observation, info, env))
            after, _, _, _, info = env.step(control)
            add(dataset, frame(observation, control, info), "Bring each parcel to its spot")
            observation = after
        dataset.save_episode()
    if hasattr(dataset, "finalize"):
        dataset.finalize()
    shutil.rmtree(folder / "images", ignore_errors=True)  # they are in the tables, too


if __name__ == "__main__":
    main(Path(sys.argv[1]))
