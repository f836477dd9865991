"""What OGBench's tasks with the arm share: environments that their seeds decide, and what is seen of the hand."""

from dataclasses import replace
from math import pi
from typing import Any

import gymnasium
import numpy as np
import ogbench  # noqa: F401  (registers the environments)
from gymnasium.spaces import Box
from ogbench.manipspace.lie import SO3

from bilevel import Position, Scalar

HAND: dict[str, Any] = {"x": Position, "y": Position, "z": Position(absolute=True), "yaw": Position}
HAND |= {"closed": Scalar}  # from 0, wide open, to 1
CENTRE, SCALE, ARM_SIZE = (0.425, 0.0, 0.0), 10.0, 19  # of OGBench's observations: the arm's 19 numbers go first


class SeededArm:
    """To go before one of OGBench's environments: its seed decides everything, and `info` always has the goal.

    OGBench itself also draws from NumPy's global generator and from an action space that is made anew each time, and
    tells the goal only when it resets.
    """

    action_space = Box(-1, 1, (5,), np.float32)  # x, y, z, yaw, close

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.action_space.seed(seed)
        np.random.seed(None if seed is None else seed % 2**32)
        result: tuple[Any, dict[str, Any]] = super().reset(seed=seed, options=options)  # type: ignore[misc]
        return result

    def get_step_info(self) -> dict[str, Any]:
        return super().get_step_info() | {"goal": np.copy(self._cur_goal_ob)}  # type: ignore[misc, attr-defined, no-any-return]


def make(name: str, kind: Any, **arguments: Any) -> gymnasium.Env[Any, Any]:
    """The environment that OGBench registers under a name, with its step limit, as an environment of this kind."""
    return gymnasium.make(replace(gymnasium.spec(name), entry_point=kind), width=480, height=480, **arguments)


def hand(info: dict[str, Any]) -> dict[str, float]:
    """What is seen of the hand. Its yaw is that of its joints, and not modulo a turn, for the wrist has an end."""
    joints, closed = info["proprio/joint_pos"], info["proprio/gripper_opening"]  # which grows as the hand closes
    return dict(zip(HAND, (*info["proprio/effector_pos"], joints[0] - joints[5] + pi / 2, *closed), strict=True))


def side(quaternion: Any) -> float:
    """The yaw of a cube's side. OGBench's own is of no use for one that has tipped over."""
    x, y, _ = SO3(quaternion).as_matrix()
    level = np.argmax(x**2 + y**2)
    return float(np.arctan2(y[level], x[level]))
