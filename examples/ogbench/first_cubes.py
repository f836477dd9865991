"""OGBench's arm brings each cube to its spot: a first task for somebody else's robot, from nothing."""

from collections.abc import Iterator
from math import hypot, pi
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import ogbench  # noqa: F401  (registers its environments)

from bilevel import Action, Angle, Atom, Expert, Position, Scalar, Scene, Spec, Task, read_domain

NAMES = {1: "single", 2: "double", 3: "triple", 4: "quadruple", 8: "octuple"}
TURN = Angle(symmetry=4)  # a cube looks the same from 4 sides
PLACE: dict[str, Any] = {"x": Position, "y": Position, "z": Position, "yaw": TURN}
HAND: dict[str, Any] = {"x": Position, "y": Position, "z": Position(absolute=True), "yaw": TURN, "closed": Scalar}
SPEC = Spec(HAND, {"cube": PLACE, "spot": PLACE})


class Cubes(gymnasium.Wrapper):
    """OGBench's environment with cubes and spots at random places, as it has only five tasks of its own."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        rng, places, tried = np.random.default_rng(seed), list[Any](), 0
        count = self.unwrapped._num_cubes  # type: ignore[attr-defined]
        while len(places) < 2 * count:
            place, tried = rng.uniform([0.3, -0.3], [0.55, 0.3]), tried + 1
            if tried % 1000 == 0:
                places.clear()  # there was no room left
            if all(hypot(*(place - other[:2])) > 0.08 for other in places):
                places.append(np.array([*place, 0.02]))
        layout = {"init_xyzs": np.array(places[:count]), "goal_xyzs": np.array(places[count:])}
        return self.env.reset(seed=seed, options={"task_info": {"task_name": "random", **layout}})


def make_env(objects: int = 3, render_mode: str | None = None) -> Cubes:
    name = f"cube-{NAMES[objects]}-v0"
    limit = 250 * objects
    return Cubes(gymnasium.make(name, render_mode=render_mode, terminate_at_goal=False, max_episode_steps=limit))


def perceive(observation: Any, info: dict[str, Any], env: Any) -> Scene:
    """What is seen: the hand, the cubes, and the spots, whose places OGBench tells only to those who ask."""
    hand = (*info["proprio/effector_pos"], *info["proprio/effector_yaw"], *info["proprio/gripper_opening"])
    inside = env.unwrapped
    spots = [(*inside._data.mocap_pos[number], 0.0) for number in inside._cube_target_mocap_ids]
    keys = [f"privileged/block_{number}" for number in range(len(spots))]
    cubes = [(*info[f"{key}_pos"], *info[f"{key}_yaw"]) for key in keys]
    return Scene(
        SPEC,
        dict(zip(HAND, hand, strict=True)),
        {
            "cube": {f"cube{i}": dict(zip(PLACE, cube, strict=True)) for i, cube in enumerate(cubes)},
            "spot": {f"spot{i}": dict(zip(PLACE, spot, strict=True)) for i, spot in enumerate(spots)},
        },
    )


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold: a cube is held, on a spot, or lies somewhere else."""
    hand, cubes = scene.agent, list(scene.of_type("cube"))
    nearest = min(cubes, key=lambda cube: hypot(cube.x - hand.x, cube.y - hand.y, cube.z - hand.z))
    is_near = hypot(nearest.x - hand.x, nearest.y - hand.y, nearest.z - hand.z) < 0.035
    held = nearest if is_near and hand.closed > 0.45 else None
    yield Atom("holding", (held.name,)) if held else Atom("free")
    for cube in (cube for cube in cubes if cube is not held):
        on = [spot for spot in scene.of_type("spot") if hypot(cube.x - spot.x, cube.y - spot.y, cube.z - spot.z) < 0.04]
        yield from [Atom("on", (cube.name, spot.name)) for spot in on] or [Atom("lying", (cube.name,))]


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("on", (cube.name, cube.name.replace("cube", "spot"))) for cube in scene.of_type("cube"))


def success(scene: Scene, info: dict[str, Any]) -> bool:
    """OGBench's own success comes while the last cube is still in the hand."""
    return set(goal(scene)) <= set(label(scene))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: place what it holds, else take hold of what is not yet where it belongs."""
    on = {fact.terms[0]: fact.terms for fact in state if fact.predicate == "on"}
    for cube, spot in (fact.terms for fact in sorted(goal)):
        if Atom("holding", (cube,)) in state:
            return Action("place", (cube, spot))
    for cube in (fact.terms[0] for fact in sorted(goal - state)):
        return Action("take", on[cube]) if cube in on else Action("pick", (cube,))
    return None


def control(scene: Scene, action: Action) -> Any:
    """How it does it: rise, cross above everything, go straight down, and close or open the hand there."""
    hand, target = scene.agent, scene[action.arguments[-1 if action.name == "place" else 0]]
    x, y, z = target.x - hand.x, target.y - hand.y, target.z - hand.z
    yaw = (target.yaw - hand.yaw + pi / 4) % (pi / 2) - pi / 4
    beside = np.clip((hypot(x, y) + 0.05 * abs(yaw) - 0.015) / 0.03, 0, 1)  # 0 above the target, 1 elsewhere
    up = z + beside * (0.2 - target.z)  # to where it crosses, or down to the target
    across = np.clip(1 - up / 0.04, 0, 1)
    near = 1 - hypot(x, y, z) / 0.015
    grip = 1 - 4 * max(near, 0) if action.name == "place" else 3 * near
    return np.clip([across * x / 0.03, across * y / 0.03, up / 0.03, yaw, grip], -1, 1).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("first_cubes.pddl"))
EXPERT = Expert(choose, control)
task = Task("first-cubes", DOMAIN, make_env, SPEC, perceive, label, goal, EXPERT, success=success)
