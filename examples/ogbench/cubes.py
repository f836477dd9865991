"""OGBench's cubes, one to eight: bring each to its place, swap them, build towers; learned with three.

`task_id=1` to `task_id=5` are OGBench's own tasks, `task_id=0` are random ones to learn from.
"""

from collections.abc import Iterator
from math import hypot, pi
from pathlib import Path
from typing import Any

import numpy as np
from arm import ARM_SIZE, CENTRE, HAND, SCALE, SeededArm, hand, make, side
from ogbench.manipspace.envs.cube_env import CubeEnv

from bilevel import Action, Atom, Expert, LabelOnly, Position, Scene, Spec, Task, read_domain

SIZE, NEAR, HIGH = 0.04, 0.035, 0.25  # a cube; what touches; above all towers
OPEN, CLOSED = 0.25, 0.45  # a hand that fits between cubes; one that holds a cube
NAMES = {1: "single", 2: "double", 3: "triple", 4: "quadruple"}
GRID = np.stack(np.meshgrid(np.linspace(0.3, 0.55, 6), np.linspace(-0.3, 0.3, 13)), -1).reshape(-1, 2)


class Cubes(SeededArm, CubeEnv):  # type: ignore[misc]
    def __init__(self, objects: int, task_id: int, **arguments: Any) -> None:
        super().__init__(terminate_at_goal=task_id > 0, **arguments)
        self._num_cubes, self.task_id = objects, task_id

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.task_id:
            return super().reset(seed=seed, options={"task_id": self.task_id})
        init, goal = layout(np.random.default_rng(seed), self._num_cubes)
        return super().reset(seed=seed, options={"task_info": {"task_name": "", "init_xyzs": init, "goal_xyzs": goal}})

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        if not self.task_id:
            del info["success"]  # which comes while the last cube is still in the hand: here the task's goal decides
        return observation, reward, terminated, truncated, info


def layout(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Where cubes are, and where they shall be: singly or in towers, in two of five cases in each other's places.

    In one of four cases they begin so near each other that they are thrown apart and tip over.
    """
    spots, tried = list[Any](), 0
    while len(spots) < 2 * count:
        spot, tried = rng.uniform([0.3, -0.3], [0.55, 0.3]), tried + 1
        spots = [] if tried % 1000 == 0 else spots  # there was no room left
        spots += [spot] if all(np.linalg.norm(spot - other) > 0.085 for other in spots) else []

    def towers(spots: list[Any]) -> Any:
        columns = list(np.cumsum(rng.random(count) < rng.choice([0, 0.5, 1])) % count)
        heights = [SIZE * (columns[:number].count(column) + 0.5) for number, column in enumerate(columns)]
        return np.column_stack([np.array(spots)[columns], heights])

    is_crowded = rng.random() < 0.25
    init = towers([spots[0] + 0.05 * np.array(divmod(i, 2)) for i in range(count)] if is_crowded else spots[:count])
    goal = rng.permutation(init if rng.random() < 0.4 and not is_crowded else towers(spots[count:]))
    return (init, goal) if (init != goal).any() else layout(rng, count)


def make_env(objects: int, task_id: int = 0, render_mode: str | None = None) -> Any:
    name = NAMES.get(objects, "octuple")  # five to seven are not registered: eight without some
    limit = {} if task_id else {"max_episode_steps": 400 * objects}
    return make(f"cube-{name}-v0", Cubes, objects=objects, task_id=task_id, render_mode=render_mode, **limit)


PLACE = {"x": Position, "y": Position, "z": Position, "yaw": Position}
CUBE = PLACE | {"held": LabelOnly, "base": LabelOnly}  # the base is the number of the cube that it belongs on, or -1
SPEC = Spec(HAND, {"cube": CUBE, "spot": PLACE, "table": PLACE}, untold={"pick": ("?p",)})  # from where: no matter


def perceive(observation: Any, info: dict[str, Any], env: Any) -> Scene:
    """What is seen: the hand, the cubes, a spot for each that belongs on the table, and where there is room on it.

    A spot is as high as a cube would be under the one that comes there. The yaw is how the hand takes hold there.
    """
    agent, goals = hand(info), info["goal"][ARM_SIZE:].reshape(-1, 9)[:, :3] / SCALE + CENTRE
    blocks = [f"privileged/block_{number}" for number in range(len(goals))]
    cubes = np.array([(*info[f"{block}_pos"], side(info[f"{block}_quat"])) for block in blocks])
    apart = np.linalg.norm(cubes[:, :3] - [agent["x"], agent["y"], agent["z"]], axis=1)
    held = (apart == apart.min()) & (apart < 0.03) & (agent["closed"] > CLOSED)
    others = cubes[~held]

    def place(x: float, y: float, z: float, yaw: float) -> dict[str, float]:
        gaps = np.hypot(others[:, 0] - x, others[:, 1] - y)
        obstacles = others[(gaps > SIZE / 2) & (others[:, 2] > z - SIZE / 2), :2]

        def room(yaw: float) -> tuple[float, float]:  # for both fingers, and then the nearer side is the better one
            finger = 0.045 * np.array([-np.sin(yaw), np.cos(yaw)])
            gaps = np.linalg.norm([obstacles - (x, y) - finger, obstacles - (x, y) + finger], axis=2)
            return gaps.min(initial=SIZE), -abs(yaw - agent["yaw"])

        yaw = (yaw + pi / 4) % (pi / 2) - pi / 4  # the side that is nearest to 0
        return {"x": x, "y": y, "z": z, "yaw": max(yaw, yaw + pi / 2, yaw - pi / 2, key=room)}

    base = [np.flatnonzero(np.linalg.norm(goals - goal + [0, 0, SIZE], axis=1) < SIZE / 2) for goal in goals]
    seen = {
        f"cube{i}": place(*cube) | {"held": held[i], "base": max(base[i], default=-1)} for i, cube in enumerate(cubes)
    }
    spots = {f"spot{i}": place(x, y, z - SIZE, 0) for i, (x, y, z) in enumerate(goals) if not len(base[i])}
    taken = np.vstack([others[:, :2], goals[:, :2]])
    x, y = GRID[np.linalg.norm(GRID[:, None] - taken, axis=2).min(axis=1, initial=0.09).argmax()]
    return Scene(SPEC, agent, {"cube": seen, "spot": spots, "table": {"table": place(x, y, -SIZE / 2, 0)}})


def destination(cube: Any) -> str:
    """Where a cube belongs: on another one, or on its spot."""
    return str(cube.name.replace("cube", "spot") if cube.base < 0 else f"cube{cube.base:.0f}")


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    cubes, spots = list(scene.of_type("cube")), list(scene.of_type("spot"))
    lying = [cube for cube in cubes if not cube.held]
    yield from [Atom("holding", (cube.name,)) for cube in cubes if cube.held] or [Atom("free")]
    yield from (Atom("belongs", (cube.name, destination(cube))) for cube in cubes)
    covered, settled = {cube.name for cube in cubes if cube.held}, {spot.name for spot in spots}
    for cube in sorted(lying, key=lambda cube: cube.z):
        home = destination(cube)
        places = []
        for place in (*lying, *spots):
            reach = (
                NEAR if place.type == "cube" or place.name == home else 0.045
            )  # a spot is taken before it is reached
            if hypot(cube.x - place.x, cube.y - place.y) < reach and SIZE / 2 < cube.z - place.z < 1.4 * SIZE:
                places.append(place.name)
        yield from (Atom("on", (cube.name, place)) for place in places or ["table"])
        covered |= {*places}
        settled |= {cube.name} if places == [home] and home in settled else set()
    yield from (Atom("settled", (name,)) for name in settled)
    yield from (Atom("clear", (name,)) for name in {*scene.objects} - covered)


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("settled", (cube.name,)) for cube in scene.of_type("cube"))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it brings a cube whose place is free, else it makes way for one."""
    on = {fact.terms[0]: fact.terms[1] for fact in sorted(state) if fact.predicate == "on"}
    above = {place: cube for cube, place in on.items() if place != "table"}
    pairs = [fact.terms for fact in sorted(state) if fact.predicate == "belongs"]
    open_ = [pair for pair in pairs if Atom("settled", pair[:1]) in goal - state and Atom("settled", pair[1:]) in state]
    free = [(cube, place) for cube, place in open_ if Atom("clear", (place,)) in state]
    for cube in (fact.terms[0] for fact in state if fact.predicate == "holding"):
        return next((Action("place", pair) for pair in free if pair[0] == cube), Action("put-aside", (cube, "table")))
    tops = [cube for cube, _ in free if cube not in above]
    for top in (*tops, *(cube for cube, _ in free), *(place for _, place in open_)):
        while top in above:
            top = above[top]
        return Action("pick", (top, on[top]))
    return None


def control(scene: Scene, action: Action) -> Any:
    """How it does it: rise, cross high above everything, go straight down, and close or open the hand there."""
    agent, cube, place = scene.agent, *(scene[name] for name in action.arguments)
    is_pick = action.name == "pick"
    tool, target, height, press = (agent, cube, 0.0, 0.0) if is_pick else (cube, place, SIZE, 0.015)  # what comes where
    x, y, z, yaw = target.x - tool.x, target.y - tool.y, target.z + height - tool.z, target.yaw - agent.yaw
    beside = np.clip((hypot(x, y) + 0.1 * abs(yaw) - 0.012) / 0.03, 0, 1)
    rise = z - press + beside * (HIGH - agent.z - z)  # down to the target, or up to where it crosses
    across = np.clip(1 - rise / 0.04, 0, 1) / 0.03
    grasp = 1 - hypot(x, y, 2 * z) / 0.02 + 2 * (agent.closed - OPEN)  # who has begun to close goes on with it
    release = max(1 - hypot(x / 2, y / 2, z) / 0.012, 0)
    grip = 1 - 6 * release if not is_pick else 5 * grasp if grasp > 0 else 3 * (OPEN - agent.closed)
    return np.clip([across * x, across * y, rise / 0.03, 3 * yaw, grip], -1, 1).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("cubes.pddl"))
task = Task(
    "ogbench-cubes",
    DOMAIN,
    make_env,
    SPEC,
    perceive,
    label,
    goal,
    Expert(choose, control),
    max_objects=8,
    steps_per_object=1000,
    switches=[4],
    packages=["ogbench", "mujoco"],
)
