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


class Cubes(SeededArm, CubeEnv):
    def __init__(self, objects: int, task_id: int, **arguments: Any) -> None:
        super().__init__(terminate_at_goal=task_id > 0, **arguments)
        self._num_cubes, self.task_id = objects, task_id

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.task_id:
            return super().reset(seed=seed, options={"task_id": self.task_id})
        init, goal = layout(np.random.default_rng(seed), self._num_cubes)
        task = {"task_name": "random", "init_xyzs": init, "goal_xyzs": goal}
        return super().reset(seed=seed, options={"task_info": task})

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        if not self.task_id:
            del info["success"]  # OGBench's holds while the last cube is still in the hand: nobody would see it let go
        return observation, reward, terminated, truncated, info


def layout(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Where cubes are, and where they shall be: singly or in towers, in two of five cases in each other's places."""
    spots: list[Any] = []
    while len(spots) < 2 * count:
        spot = rng.uniform([0.3, -0.3], [0.55, 0.3])
        if all(np.linalg.norm(spot - other) > 0.085 for other in spots):
            spots.append(spot)

    def towers(spots: list[Any]) -> Any:
        column = np.cumsum(rng.random(count) < rng.choice([0, 0.5, 1])) % count
        height = [list(column[:number]).count(place) for number, place in enumerate(column)]
        return np.array([(*spots[place], SIZE * (level + 0.5)) for place, level in zip(column, height, strict=True)])

    init = towers(spots[:count])
    goal = rng.permutation(init if rng.random() < 0.4 else towers(spots[count:]))
    return (init, goal) if (init != goal).any() else layout(rng, count)


def make_env(objects: int, task_id: int = 0, render_mode: str | None = None) -> Any:
    name = NAMES.get(objects, "octuple")  # five to seven are not registered: eight without some
    limit = {} if task_id else {"max_episode_steps": 400 * objects}
    return make(f"cube-{name}-v0", Cubes, objects=objects, task_id=task_id, render_mode=render_mode, **limit)


PLACE = {"x": Position, "y": Position, "z": Position, "yaw": Position}
CUBE = PLACE | {"goal_x": LabelOnly, "goal_y": LabelOnly, "goal_z": LabelOnly}
SPEC = Spec(HAND, {"cube": CUBE, "spot": PLACE, "table": PLACE})


def perceive(observation: Any, info: dict[str, Any], env: Any) -> Scene:
    """What is seen: the hand, the cubes, a spot for each that belongs on the table, and where there is room on it.

    The yaw is how the hand takes hold there: by the side where the fingers have room. Any place is told by the centre
    of what is under the cube that comes there: of the cube there, or of the one that the table would be.
    """
    agent, count = hand(info), sum(key.endswith("_yaw") for key in info if key.startswith("privileged/block"))
    blocks = [f"privileged/block_{number}" for number in range(count)]
    cubes = np.array([(*info[f"{block}_pos"], side(info[f"{block}_quat"])) for block in blocks])
    goals = info["goal"][ARM_SIZE:].reshape(count, -1)[:, :3] / SCALE + CENTRE
    apart = np.linalg.norm(cubes[:, :3] - [agent["x"], agent["y"], agent["z"]], axis=1)
    around = cubes[(apart > NEAR) | (agent["closed"] < CLOSED)][:, :3]  # what is not in the hand

    def place(x: float, y: float, z: float, yaw: float) -> dict[str, float]:
        others = around[(around[:, 2] > z - SIZE / 2) & (np.hypot(around[:, 0] - x, around[:, 1] - y) > SIZE / 2)]

        def room(turn: float) -> tuple[float, float]:
            fingers = [(x - side * np.sin(turn), y + side * np.cos(turn)) for side in (0.045, -0.045)]
            gaps = [np.hypot(others[:, 0] - a, others[:, 1] - b).min(initial=SIZE) for a, b in fingers]
            return min(gaps), -abs(turn - agent["yaw"])

        yaw = (yaw + pi / 4) % (pi / 2) - pi / 4
        return {"x": x, "y": y, "z": z, "yaw": max(yaw, yaw + pi / 2, yaw - pi / 2, key=room)}

    wanted = [{f"goal_{axis}": value for axis, value in zip("xyz", goal, strict=True)} for goal in goals]
    seen = {f"cube{i}": place(*cube) | wanted[i] for i, cube in enumerate(cubes)}
    spots = {f"spot{i}": place(x, y, -SIZE / 2, 0) for i, (x, y, z) in enumerate(goals) if z < SIZE}
    taken = np.vstack([around[:, :2], goals[:, :2]])
    free = np.linalg.norm(GRID[:, None] - taken, axis=2).min(axis=1, initial=0.09).argmax()
    return Scene(SPEC, agent, {"cube": seen, "spot": spots, "table": {"table": place(*GRID[free], -SIZE / 2, 0)}})


def destination(scene: Scene, cube: Any) -> str:
    """Where a cube belongs: on the cube whose goal is under its own, or else on its spot."""
    for other in scene.of_type("cube"):
        is_under = SIZE / 2 < cube.goal_z - other.goal_z < 1.5 * SIZE
        if is_under and hypot(cube.goal_x - other.goal_x, cube.goal_y - other.goal_y) < NEAR:
            return str(other.name)
    return str(cube.name.replace("cube", "spot"))


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    agent, cubes = scene.agent, list(scene.of_type("cube"))
    apart = {cube: hypot(cube.x - agent.x, cube.y - agent.y, cube.z - agent.z) for cube in cubes}
    nearest = min(cubes, key=lambda cube: apart[cube])
    held = nearest if apart[nearest] < NEAR and agent.closed > CLOSED else None
    yield Atom("holding", (held.name,)) if held else Atom("free")
    home = {cube.name: destination(scene, cube) for cube in cubes}
    under: dict[str, list[str]] = {cube.name: [] for cube in cubes if cube is not held}
    for cube in (cube for cube in cubes if cube is not held):
        for place in (place for place in (*cubes, *scene.of_type("spot")) if place not in (cube, held)):
            reach = NEAR if place.type == "cube" or home[cube.name] == place.name else 0.045
            if hypot(cube.x - place.x, cube.y - place.y) < reach and 0.02 < cube.z - place.z < 0.055:
                under[cube.name].append(place.name)
        yield from (Atom("on", (cube.name, place)) for place in under[cube.name] or ["table"])
    yield from (Atom("belongs", pair) for pair in home.items())
    covered = {place for places in under.values() for place in places}
    yield from (
        Atom("clear", (name,)) for name in scene.objects if name not in covered and name != (held and held.name)
    )
    ready = {spot.name for spot in scene.of_type("spot")}
    for _ in cubes:
        ready |= {name for name, places in under.items() if places == [home[name]] and home[name] in ready}
    yield from (Atom("ready", (name,)) for name in ready)


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("on", (cube.name, destination(scene, cube))) for cube in scene.of_type("cube"))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it brings a cube whose place is free, else it makes way for one."""
    on = {fact.terms[0]: fact.terms[1] for fact in sorted(state) if fact.predicate == "on"}
    above = {place: cube for cube, place in on.items()}
    open_ = [fact.terms for fact in sorted(goal - state) if Atom("ready", fact.terms[1:]) in state]
    free = [(cube, place) for cube, place in open_ if Atom("clear", (place,)) in state]
    for cube in (fact.terms[0] for fact in state if fact.predicate == "holding"):
        return next((Action("place", pair) for pair in free if pair[0] == cube), Action("put-aside", (cube, "table")))
    wanted = [cube for cube, _ in free if Atom("clear", (cube,)) in state]
    for top in wanted + [cube for cube, _ in free] + [place for _, place in open_]:
        while top in above and top != "table":
            top = above[top]
        return Action("pick", (top, on[top]))
    return None


def control(scene: Scene, action: Action) -> Any:
    """How it does it: rise, cross high above everything, go straight down, and close or open the hand there."""
    agent, cube, place = scene.agent, scene[action.arguments[0]], scene[action.arguments[1]]
    is_pick = action.name == "pick"
    target = cube if is_pick else place
    tool = agent if is_pick else cube  # what has to get there
    x, y, z = target.x - tool.x, target.y - tool.y, target.z - tool.z + (0 if is_pick else SIZE)
    yaw = target.yaw - agent.yaw
    beside = np.clip((hypot(x, y) + 0.1 * abs(yaw) - 0.015) / 0.03, 0, 1)
    rise = z + beside * (HIGH - agent.z - z)  # up to where it crosses, or down to the target
    across = np.clip(1 - rise / 0.04, 0, 1)
    near = 1 - hypot(x, y, z) / 0.015
    grip = (3 * near if near > 0 else 3 * (OPEN - agent.closed)) if is_pick else 1 - 4 * max(near, 0)
    return np.clip([across * x / 0.03, across * y / 0.03, rise / 0.03, 3 * yaw, grip], -1, 1).astype(np.float32)


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
