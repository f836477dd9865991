"""The arm and what lies on its table, as MuJoCo moves them. No task, no goal, no randomness."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.furniture import BLOCK, FLOOR, Colour, Furnishing
from bilevel.tabletop.layout import Floats
from bilevel.tabletop.opengl import mujoco

SUBSTEPS = 5  # simulation steps per control, so a control lasts 12.5 ms
REACH = 0.018  # metres that a control of 1 moves the hand's target
LOWEST = (-0.5, 0.29, 0.045)  # where the hand's target may be
HIGHEST = (0.5, 0.85, 0.4)
HOME = (0.0, 0.6, 0.2)
POINTING_DOWN = (1.0, 0.0, 1.0, 0.0)

# Weak springs (N m / rad) towards 0: without them the elbow wanders over a long episode until it locks at its limit.
POSTURE = {"right_j2": 20.0, "right_j4": 5.0}

# MuJoCo's own way with warnings is a log file in the working directory.
mujoco.set_mju_user_warning(logging.getLogger("mujoco").warning)

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
# Who sleeps is not part of MuJoCo's own state, though the next step depends on it.
_SLEEP_ARRAYS = ("tree_asleep", "tree_awake", "body_awake", "body_awake_ind", "parent_awake_ind", "dof_awake_ind")
_SLEEP_COUNTS = ("ntree_awake", "nbody_awake", "nparent_awake", "nv_awake")
_UNSTABLE = [mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC]


class Simulation:
    """A furnished table, compiled."""

    PARTS = ("physics", "sleep", "fixtures")  # of what is saved

    def __init__(self, furnishing: Furnishing) -> None:
        blocks, spots, joints = furnishing.blocks, furnishing.spots, furnishing.joints
        self.model = model = mujoco.MjModel.from_xml_string(furnishing.xml())
        self.data = mujoco.MjData(model)
        self._warnings = [self.data.warning[kind] for kind in _UNSTABLE]
        self._positions = np.array([model.joint(name).qposadr[0] for name in blocks], int)[:, None] + np.arange(3)
        self._velocities = np.array([model.joint(name).dofadr[0] for name in blocks], int)[:, None] + np.arange(6)
        self._geoms = {name: model.geom(name).id for name in (*blocks, *spots)}
        self._spots = {name: int(model.body(name).mocapid[0]) for name in spots}
        self._joints = {name: int(model.joint(name).qposadr[0]) for name in joints}
        self._forces = {name: int(model.joint(name).dofadr[0]) for name in joints}
        self._fixtures = np.array([model.body(name).id for name in furnishing.fixtures], int)
        self._watch_the_arm()
        for joint, stiffness in POSTURE.items():
            model.jnt_stiffness[model.joint(joint).id] = stiffness
            model.qpos_spring[model.joint(joint).qposadr[0]] = 0.0
        self._resting = self._at_home()

    def _watch_the_arm(self) -> None:
        """Views of what is read and written at every step; MuJoCo never moves its arrays."""
        where = [self.data.xpos[self.model.body(name).id] for name in ("hand", "leftclaw", "rightclaw")]
        self._hand, self._left, self._right = where
        self._target = int(self.model.body("mocap").mocapid[0])
        self._aim: Floats = self.data.mocap_pos[self._target]
        self._fingers: Floats = self.data.ctrl[:2]
        self._joint_positions: Floats = self.data.qpos

    def _at_home(self) -> Floats:
        """All joints when the hand has come to rest above the table, with every block parked."""
        self._begin()
        for block in range(len(self._positions)):
            self.park(block)
        for _ in range(500):
            mujoco.mj_step(self.model, self.data)
        joints: Floats = self.data.qpos.copy()
        return joints

    def _begin(self) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self._aim[:] = HOME
        self.data.mocap_quat[self._target] = POINTING_DOWN
        self._fingers[:] = -1.0, 1.0

    def reset(self, fixtures: Mapping[int, Sequence[float]] | None = None) -> None:
        """The hand at home, fingers open, every block parked; fixtures, by index, where they are wanted."""
        for fixture, position in (fixtures or {}).items():
            self.model.body_pos[self._fixtures[fixture], : len(position)] = position
        self._begin()
        self.data.qpos[:] = self._resting

    def settle(self) -> None:
        """Compute all that follows from the joints, once everything is put where it belongs."""
        mujoco.mj_forward(self.model, self.data)

    def step(self, control: Sequence[float]) -> None:
        """Move the hand's target by the first three numbers, close (1) or open (-1) the fingers by the fourth."""
        axes = zip(self._aim.tolist(), control, LOWEST, HIGHEST, strict=False)
        self._aim[:] = [min(max(here + REACH * move, low), high) for here, move, low, high in axes]
        self._fingers[:] = control[3], -control[3]
        mujoco.mj_step(self.model, self.data, SUBSTEPS)
        mujoco.mj_kinematics(self.model, self.data)  # else bodies lag one substep behind the joints

    @property
    def stable(self) -> bool:
        """Whether MuJoCo has warned of nothing: no number is infinite or absurdly large."""
        return not any(warning.number for warning in self._warnings)

    # What is measured

    def hand(self) -> Floats:
        """(4,): the position of the hand, and the opening between its fingers, 1 when wide open."""
        result = np.empty(4)
        result[:3] = self._hand
        result[3] = 10.0 * abs(self._right[1] - self._left[1])
        return result

    def blocks(self) -> Floats:
        """(blocks, 3): the centres of all blocks."""
        return self._joint_positions[self._positions]

    def spot(self, name: str) -> Floats:
        """Return the position of a mark on the table, which can be changed in place."""
        position: Floats = self.data.mocap_pos[self._spots[name]]
        return position

    def fixture(self, index: int) -> Floats:
        """Return the position of a fixed thing, which can be changed in place."""
        position: Floats = self.model.body_pos[self._fixtures[index]]
        return position

    def joint(self, name: str) -> float:
        """Return the position of a joint."""
        return float(self.data.qpos[self._joints[name]])

    # What a world may change

    def set_joint(self, name: str, position: float) -> None:
        """Put a joint at a position."""
        self.data.qpos[self._joints[name]] = position

    def push(self, name: str, force: float) -> None:
        """Push a joint, from now on, with a force in newtons."""
        self.data.qfrc_applied[self._forces[name]] = force

    def put(self, block: int, position: Sequence[float] | Floats, yaw: float = 0.0) -> None:
        """Put a block somewhere, turned by some radians and at rest."""
        start = self._positions[block, 0]
        self.data.qpos[start : start + 3] = position
        self.data.qpos[start + 3 : start + 7] = np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)
        self.data.qvel[self._velocities[block]] = 0.0

    def park(self, block: int) -> None:
        """Out of play, on the floor behind the robot."""
        self.put(block, (-1.5 + 0.1 * block, -1.5, FLOOR + BLOCK))

    def move_spot(self, name: str, x: float, y: float) -> None:
        """Move a mark on the table."""
        self.data.mocap_pos[self._spots[name]] = x, y, 0.001

    def hide_spot(self, name: str) -> None:
        """Move a mark below the floor, out of sight."""
        self.data.mocap_pos[self._spots[name]] = 0.0, -1.5, FLOOR - 0.1

    def paint(self, name: str, colour: Colour | NDArray[np.float32]) -> None:
        """Give a block or a spot a colour."""
        self.model.geom_rgba[self._geoms[name], :3] = colour

    # The whole state

    def save(self) -> dict[str, NDArray[Any]]:
        """All that the future depends on; plain arrays, whose shapes depend on the scene alone."""
        mujoco.mj_kinematics(self.model, self.data)  # wakes the blocks that were put elsewhere in their sleep
        physics = np.empty(mujoco.mj_stateSize(self.model, _STATE))
        mujoco.mj_getState(self.model, self.data, physics, _STATE)
        sleep = [np.array(getattr(self.data, name)) for name in _SLEEP_ARRAYS + _SLEEP_COUNTS]
        fixtures = self.model.body_pos[self._fixtures].copy()
        parts = physics, np.concatenate([part.ravel() for part in sleep]), fixtures
        return dict(zip(self.PARTS, parts, strict=True))

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Go on, bit for bit, from where `save` was called."""
        if "physics" not in saved or saved["physics"].shape != (mujoco.mj_stateSize(self.model, _STATE),):
            raise BadInput("the snapshot is of another world, or of one with another number of objects")
        self.model.body_pos[self._fixtures] = saved["fixtures"]
        self._begin()
        mujoco.mj_setState(self.model, self.data, saved["physics"], _STATE)
        mujoco.mj_forward(self.model, self.data)
        mujoco.mj_setState(self.model, self.data, saved["physics"], _STATE)  # also what mj_forward has warmed up
        rest = saved["sleep"]
        for name in _SLEEP_ARRAYS:
            array = getattr(self.data, name)
            array[:], rest = rest[: array.size], rest[array.size :]
        for name, count in zip(_SLEEP_COUNTS, rest, strict=True):
            setattr(self.data, name, int(count))
        mujoco.mj_kinematics(self.model, self.data)
