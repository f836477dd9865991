"""OGBench's cubes as pictures show them; a spot is drawn as a cube that can be seen through, of its cube's colour."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(f"{Path(__file__).parents[1]}/camera_scene")
import first_cubes
from from_pictures import Recipe, seen

HIGH = 0.02  # metres; the middle of a cube on the table
VIEW = {"lookat": (0.42, 0.0, 0.03), "distance": 0.75, "azimuth": 180.0, "elevation": -50.0}  # facing the robot
PROPRIOCEPTION = ("effector_pos", "effector_yaw", "gripper_opening")


def simulator(env: Any) -> tuple[Any, Any]:
    return env.unwrapped._model, env.unwrapped._data


def hand(observation: Any, info: dict[str, Any]) -> Any:
    return np.concatenate([info[f"proprio/{name}"] for name in PROPRIOCEPTION])


cubes = seen(
    Recipe(
        first_cubes.task,
        {"cube": HIGH, "spot": HIGH},
        dict.fromkeys("01234567", (0, 0, 0)),  # whose colours no scene tells
        simulator,
        hand,
        VIEW,
        (0, 1, 0, 0, -1),
        quality="metaworld",
        every=2,
        sizes=(1, 3, 8),  # a colour that it has not seen, the detector cannot know
    )
)
