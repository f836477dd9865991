"""robosuite's PickPlace: a Panda arm brings milk, bread, cereal and a can, all or some of them, to a bin each."""

from collections.abc import Iterator
from math import atan2, copysign, hypot, pi
from pathlib import Path
from typing import Any

import numpy as np
from robosuite.environments.manipulation.pick_place import PickPlace
from robosuite.utils.transform_utils import quat2mat
from robosuite.wrappers import GymWrapper

from bilevel import Action, Angle, Atom, Expert, LabelOnly, Position, Scalar, Scene, Spec, Task, read_domain

KINDS = ("Milk", "Bread", "Cereal", "Can")
NAMES = {"Cereal": "1-cereal", "Milk": "2-milk", "Can": "3-can", "Bread": "4-bread"}  # by height: see `perceive`
# How far above its middle a thing is gripped, and after which turn it looks the same to a gripper.
GRIP = {"Milk": 0.045, "Bread": 0.005, "Cereal": 0.045, "Can": 0.01}
TURN = {"Milk": pi / 2, "Bread": pi / 2, "Cereal": pi, "Can": 1e-6}
TRAVEL, RELEASE = 1.12, 0.96  # heights of the hand when it moves across, and when it lets go
# Where each thing is let go: in its bin, but nearer to the robot than the middle, which it hardly reaches.
SPOT = {"Milk": (0.0, 0.15), "Bread": (0.16, 0.15), "Cereal": (0.0, 0.36), "Can": (0.14, 0.325)}


class Some(PickPlace):  # type: ignore[misc]
    """PickPlace with some of its objects: the others are put out of the way as in its own single-object mode."""

    def __init__(self, objects: int, kinds: str, **settings: Any) -> None:
        self.objects_drawn, self.kinds = objects, kinds.split(",")
        super().__init__(**settings)

    def _reset_internal(self) -> None:
        super()._reset_internal()
        self.used = sorted(self.rng.permutation(self.kinds)[: self.objects_drawn], key=KINDS.index)
        self.clear_objects([kind for kind in KINDS if kind not in self.used])


class PickPlaceEnv(GymWrapper):  # type: ignore[misc]
    """robosuite's own wrapper for Gymnasium, with seeds and success."""

    def __init__(self, objects: int, kinds: str = ",".join(KINDS), render_mode: str | None = None) -> None:
        env = Some(objects, kinds, robots="Panda", use_camera_obs=False, has_offscreen_renderer=False, hard_reset=False)
        keys = [f"{kind}_{what}" for kind in KINDS for what in ("pos", "quat")]
        super().__init__(env, [*keys, "robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos", "robot0_gripper_qvel"], flatten_obs=False)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.env.rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        return super().reset()[0], {"used": self.env.used}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, late, _, _ = super().step(action)
        done = {kind for kind, is_in in zip(KINDS, self.env.objects_in_bins, strict=True) if is_in}
        return observation, reward, False, late, {"used": self.env.used, "success": done >= set(self.env.used)}


PLACE: dict[str, Any] = {"x": Position, "y": Position, "z": Position}
HAND = PLACE | {"z": Position(absolute=True), "yaw": Angle, "tilt_x": Scalar, "tilt_y": Scalar, "opening": Scalar, "closing": LabelOnly}
SPEC = Spec(HAND, {"item": PLACE | {"yaw": Angle, "height": LabelOnly}, "bin": PLACE})


def perceive(observation: Any, info: dict[str, Any], env: PickPlaceEnv) -> Scene:
    """What is seen: the hand; where to grip each thing, and how to turn the hand for it; and where to let it go."""
    (x, y, z), turn = observation["robot0_eef_pos"], quat2mat(observation["robot0_eef_quat"])
    hand = {"x": x, "y": y, "z": z, "yaw": atan2(turn[1, 0], turn[0, 0]), "tilt_x": turn[0, 2], "tilt_y": turn[1, 2]}
    hand["opening"], hand["closing"] = (observation[f"robot0_gripper_{q}"] @ [1, -1] for q in ("qpos", "qvel"))
    items, bins = {}, {}
    for kind in info["used"]:
        (x, y, z), turn = observation[f"{kind}_pos"], quat2mat(observation[f"{kind}_quat"])
        yaw = atan2(turn[1, 0], turn[0, 0])
        yaw -= TURN[kind] * round(yaw / TURN[kind])
        x, y, grip = np.array([x, y, z]) + GRIP[kind] * turn[:, 2]
        items[NAMES[kind]] = {"x": x, "y": y, "z": grip, "yaw": yaw, "height": z}
        bins[f"{NAMES[kind]}-bin"] = {"x": SPOT[kind][0], "y": SPOT[kind][1], "z": RELEASE}
    return Scene(SPEC, hand, {"item": items, "bin": bins})


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold; a thing is held if it is between fingers that are neither open nor closed."""
    hand, free = scene.agent, True
    for item in scene.of_type("item"):
        near = hypot(item.x - hand.x, item.y - hand.y, item.z - hand.z) < 0.03
        own = scene[f"{item.name}-bin"]
        x, y = item.x - 0.1, item.y - 0.28  # from where the four bins meet
        is_in = 0 < x * copysign(1, own.x - 0.1) < 0.195 and 0 < y * copysign(1, own.y - 0.28) < 0.245
        if near and 0.02 < hand.opening < 0.06 and abs(hand.closing) < 0.03:
            free = False
            yield Atom("holding", (item.name,))
        elif is_in and 0.8 < item.height < 0.9:
            yield Atom("in", (item.name, own.name))
        else:
            yield Atom("lying", (item.name,))
    if free:
        yield Atom("free")


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("in", (item.name, f"{item.name}-bin")) for item in scene.of_type("item"))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it places what it holds, else it picks something."""
    for fact in goal:
        if Atom("holding", fact.terms[:1]) in state:
            return Action("place", fact.terms)
    return next((Action("pick", fact.terms[:1]) for fact in sorted(goal - state)), None)


def control(scene: Scene, action: Action) -> Any:
    """How it does it: up, across, down within a steep cone above the target, and grip or let go at its tip."""
    hand, target = scene.agent, scene[action.arguments[-1]]
    turn = (target.yaw if action.name == "pick" else 0.0) - hand.yaw
    turn -= 2 * pi * round(turn / (2 * pi))
    x, y, z = target.x - hand.x, target.y - hand.y, target.z - hand.z
    off = hypot(x, y) + 0.1 * max(abs(turn) - 0.1, 0)
    rise = min(z + 8 * max(off - 0.01, 0), TRAVEL - hand.z)
    across = min(max(1 - rise / 0.05, 0), 1)
    at = (0.015 - hypot(off, 0.7 * z)) / 0.01
    grip = at if action.name == "pick" else -at
    move = np.array([x * across, y * across, rise, -hand.tilt_y / 10, hand.tilt_x / 10, turn * across / 10, grip / 20])
    return np.clip(20 * move, -1, 1).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("pick_place.pddl"))
task = Task(
    "pick-place",
    DOMAIN,
    PickPlaceEnv,
    SPEC,
    perceive,
    label,
    goal,
    Expert(choose, control),
    steps_per_object=250,
    max_objects=len(KINDS),
    switches=[6],
    packages=["robosuite", "mujoco"],
)
