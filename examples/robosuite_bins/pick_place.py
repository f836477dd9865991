"""robosuite's PickPlace: a Panda arm brings milk, bread, cereal and a can, all or some of them, to a bin each.

robosuite needs versions of its own, so it has a Python environment of its own: see requirements.txt beside this file.
"""

from collections.abc import Iterator
from math import atan2, copysign, hypot, pi
from pathlib import Path
from typing import Any

import numpy as np
import robosuite
from robosuite.utils.transform_utils import quat2mat
from robosuite.wrappers import GymWrapper

from bilevel import Action, Angle, Atom, Expert, LabelOnly, Position, Scalar, Scene, Spec, Task, read_domain

KINDS = ("Milk", "Bread", "Cereal", "Can")  # in robosuite's order
# Of several actions that rules propose, the first by name is done. The tallest thing comes first: beside what is lower
# than itself, a hand can go down.
NAMES = {"Cereal": "1-cereal", "Milk": "2-milk", "Can": "3-can", "Bread": "4-bread"}
GRIP = {"Milk": 0.045, "Bread": 0.005, "Cereal": 0.045, "Can": 0.01}  # how far above its middle it is gripped
TURN = {"Milk": pi / 2, "Bread": pi / 2, "Cereal": pi, "Can": 1e-6}  # after which it looks the same to a gripper
# Where it is let go: in its bin, but nearer to the robot than the middle, for which the arm would have to be straight.
SPOT = {"Milk": (0.0, 0.15), "Bread": (0.16, 0.15), "Cereal": (0.0, 0.36), "Can": (0.14, 0.325)}
TRAVEL, RELEASE = 1.12, 0.96  # heights of the hand when it moves across, and when it lets go


class PickPlace(GymWrapper):  # type: ignore[misc]
    """PickPlace as it is registered, in robosuite's own wrapper for Gymnasium, but with seeds and success.

    With fewer than four objects, each episode draws some of the `kinds`, and the others are put out of the way by the
    function that does so in robosuite's own single-object mode.
    """

    def __init__(self, objects: int, kinds: str = ",".join(KINDS), render_mode: str | None = None) -> None:
        self.drawn, self.kinds, self.render_mode = objects, kinds.split(","), render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
        pictures = {"use_camera_obs": False, "has_offscreen_renderer": render_mode is not None}
        env = robosuite.make("PickPlace", "Panda", hard_reset=False, **pictures)  # the model is the same at each reset
        keys = [f"{kind}_{what}" for kind in KINDS for what in ("pos", "quat")]
        keys += [f"robot0_{what}" for what in ("eef_pos", "eef_quat", "gripper_qpos", "gripper_qvel")]
        super().__init__(env, keys, flatten_obs=False)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.env.rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        self.env.reset()
        self.used = self.env.rng.choice(self.kinds, self.drawn, replace=False).tolist()
        self.env.clear_objects([kind for kind in KINDS if kind not in self.used])
        self.env.sim.forward()
        return self._filter_obs(self.env._get_observations(force_update=True)), {"used": self.used}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, is_over, _, _ = super().step(action)
        success = all(self.env.objects_in_bins[KINDS.index(kind)] for kind in self.used)
        return observation, reward, False, is_over, {"used": self.used, "success": success}

    def render(self) -> Any:
        return self.env.sim.render(640, 480, camera_name="agentview")[::-1]


PLACE: dict[str, Any] = {"x": Position, "y": Position, "z": Position}
FINGERS = {"opening": Scalar, "speed": LabelOnly}
HAND = PLACE | {"z": Position(absolute=True), "yaw": Angle, "tilt_x": Scalar, "tilt_y": Scalar} | FINGERS
SPEC = Spec(HAND, {"item": PLACE | {"yaw": Angle, "middle": LabelOnly}, "bin": PLACE})


def perceive(observation: Any, info: dict[str, Any], env: PickPlace) -> Scene:
    """What is seen: the hand; where to grip each thing, with the hand turned how; where above its bin to let go."""
    seen = {what: observation[f"robot0_{what}"] for what in ("eef_pos", "gripper_qpos", "gripper_qvel")}
    turned = quat2mat(observation["robot0_eef_quat"])
    fingers = seen["gripper_qpos"] @ [1, -1], seen["gripper_qvel"] @ [1, -1]
    hand = (*seen["eef_pos"], atan2(turned[1, 0], turned[0, 0]), turned[0, 2], turned[1, 2], *fingers)
    items, bins = {}, {}
    for kind in sorted(info["used"], key=NAMES.__getitem__):
        turned, middle = quat2mat(observation[f"{kind}_quat"]), observation[f"{kind}_pos"]
        yaw = atan2(turned[1, 0], turned[0, 0])
        yaw -= TURN[kind] * round(yaw / TURN[kind])
        x, y, z = middle + GRIP[kind] * turned[:, 2]
        items[NAMES[kind]] = {"x": x, "y": y, "z": z, "yaw": yaw, "middle": middle[2]}
        bins[f"{NAMES[kind]}-bin"] = {"x": SPOT[kind][0], "y": SPOT[kind][1], "z": RELEASE}
    return Scene(SPEC, dict(zip(HAND, hand, strict=True)), {"item": items, "bin": bins})


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold. A thing is held if the fingers about it are neither open nor closed nor closing."""
    hand, held = scene.agent, False
    for item in scene.of_type("item"):
        own = scene[f"{item.name}-bin"]
        x, y = item.x - 0.1, item.y - 0.28  # from where the four bins meet
        is_in = 0 < copysign(x, x * (own.x - 0.1)) < 0.195 and 0 < copysign(y, y * (own.y - 0.28)) < 0.245
        near = hypot(item.x - hand.x, item.y - hand.y, item.z - hand.z) < 0.03
        yield Atom("bin-of", (item.name, own.name))
        if near and 0.02 < hand.opening < 0.06 and hand.speed > -0.03:
            held = True
            yield Atom("holding", (item.name,))
        elif is_in and item.middle < 0.9:
            yield Atom("in", (item.name, own.name))
        else:
            yield Atom("lying", (item.name,))
    if not held:
        yield Atom("free")


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("in", (item.name, f"{item.name}-bin")) for item in scene.of_type("item"))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it places what it holds, else it picks the tallest thing."""
    for fact in goal:
        if Atom("holding", fact.terms[:1]) in state:
            return Action("place", fact.terms)
    return next((Action("pick", fact.terms[:1]) for fact in sorted(goal - state)), None)


def control(scene: Scene, action: Action) -> Any:
    """How it does it: up, across, down in a steep cone above the target, and grip or let go at its tip."""
    hand, target = scene.agent, scene[action.arguments[-1]]
    x, y, z = target.x - hand.x, target.y - hand.y, target.z - hand.z
    turn = (target.yaw if action.name == "pick" else 0.0) - hand.yaw
    turn -= 2 * pi * round(turn / (2 * pi))
    off = hypot(x, y) + 0.1 * max(abs(turn) - 0.1, 0)
    rise = min(z - 0.01 + 8 * max(off - 0.015, 0), TRAVEL - hand.z)  # it presses on where it arrives
    across = min(max(1 - rise / 0.05, 0), 1)  # only where it is high enough
    grip = (0.02 - hypot(off, 0.7 * z)) * (100 if action.name == "pick" else -100)
    move = 30 * x * across, 30 * y * across, 20 * rise, -2 * hand.tilt_y, 2 * hand.tilt_x, 2 * turn * across, grip
    return np.clip(move, -1, 1).astype(np.float32)


task = Task(
    "robosuite-pick-place",
    read_domain(Path(__file__).with_name("pick_place.pddl")),
    PickPlace,
    SPEC,
    perceive,
    label,
    goal,
    Expert(choose, control),
    steps_per_object=250,  # its own horizon is 1000
    max_objects=len(KINDS),
    switches=[6],
    packages=["robosuite", "mujoco"],
)
