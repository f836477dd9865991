"""OGBench's scene: a cube, a drawer and a window, and two buttons that lock and unlock them.

`task_id=1` to `task_id=5` are OGBench's own tasks, `task_id=0` are random ones to learn from.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import hypot, pi
from pathlib import Path
from typing import Any

import numpy as np
from arm import HAND, SeededArm, hand, make, side
from ogbench.manipspace.envs.scene_env import SceneEnv

import bilevel
from bilevel import Action, Atom, Expert, LabelOnly, Position, Scalar, Scene, Spec, Task, read_domain

NEAR, CLOSED, HIGH = 0.035, 0.45, 0.3  # what touches; a hand around a cube; above everything
DOORS = {"drawer": -0.16, "window": 0.2}  # the position of each where it is open; closed it is 0
SWITCHES, AT_REST = -0.02, 0.25  # where a button switches; the speed of a door that stays where it is
TOLERANCE = 0.12  # of how far a door is open, some 2 cm; OGBench's is 4 cm
FRONT, INSIDE = (0.33, -0.356, 0.066), 0.13  # where a cube shall be in a closed drawer; behind the handle of any


class LockedScene(SeededArm, SceneEnv):  # type: ignore[misc]
    """OGBench's scene with a task of its own or a random one, and `info` that tells the goal."""

    def __init__(self, task_id: int, **arguments: Any) -> None:
        super().__init__(terminate_at_goal=task_id > 0, **arguments)
        self.task_id = task_id

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.task_id:
            return super().reset(seed=seed, options={"task_id": self.task_id})
        rng = np.random.default_rng(seed)
        task = {"task_name": "random", "init": layout(rng, True), "goal": layout(rng, False)}
        return super().reset(seed=seed, options={"task_info": task})

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        if not self.task_id:
            del info["success"]  # OGBench's holds while the cube is still in the hand: nobody would see it let go
        return observation, reward, terminated, truncated, info

    def add_object_info(self, ob_info: dict[str, Any]) -> None:
        super().add_object_info(ob_info)
        ob_info["goal/block_0_pos"] = self._data.mocap_pos[self._cube_target_mocap_ids[0]].copy()
        ob_info["goal/button_states"] = self._target_button_states.copy()
        ob_info["goal/drawer_pos"], ob_info["goal/window_pos"] = self._target_drawer_pos, self._target_window_pos
        ob_info["privileged/button_tops"] = self._data.site_xpos[self._button_site_ids].copy()


def layout(rng: np.random.Generator, is_start: bool) -> dict[str, Any]:
    """Locks, doors and the cube at random; at the start it lies on the table."""
    drawer, window = rng.integers(2, size=2)
    inside = FRONT + np.array([0, -drawer * DOORS["drawer"], 0])
    cube = (*rng.uniform([0.3, -0.07], [0.45, 0.16]), 0.02) if is_start or rng.random() < 0.5 else inside
    doors = {"drawer_pos": drawer * DOORS["drawer"], "window_pos": window * DOORS["window"]}
    return {"block_xyzs": np.array([cube]), "button_states": rng.integers(2, size=2), **doors}


def make_env(objects: int, task_id: int = 0, render_mode: str | None = None) -> Any:
    return make("scene-v0", LockedScene, task_id=task_id, render_mode=render_mode)


PLACE: dict[str, Any] = {"x": Position, "y": Position, "z": Position, "yaw": Position}  # yaw: of a hand that is there
DOOR = PLACE | dict.fromkeys(("open", "speed", "locked", "goal_open", "goal_locked"), LabelOnly)  # open: from 0 to 1
BUTTON = PLACE | {"down": Scalar}  # 1 where it switches
SPEC = Spec(HAND, {"cube": PLACE, "spot": PLACE, "table": PLACE, "button": BUTTON, "drawer": DOOR, "window": DOOR})


def perceive(observation: Any, info: dict[str, Any], env: Any) -> Scene:
    """What is seen: the hand, the cube, where it shall lie and where else there is room, the buttons, the handles.

    The fingers are to the left and right of a cube, as far as can be: in the drawer and at the window is room for that.
    """
    objects = dict[str, dict[str, Any]]()
    for number, (name, wide) in enumerate(DOORS.items()):
        door = place(info[f"privileged/{name}_handle_pos"], yaw=0 if name == "drawer" else pi / 2)
        door |= {"open": float(info[f"privileged/{name}_pos"][0]) / wide, "goal_open": info[f"goal/{name}_pos"] / wide}
        door |= {"speed": float(info[f"privileged/{name}_vel"][0]) / wide, "locked": 1 - info["button_states"][number]}
        objects[name] = {name: door | {"goal_locked": 1 - info["goal/button_states"][number]}}
    goal, yaw = info["goal/block_0_pos"], side(info["privileged/block_0_quat"])
    cube = place(info["privileged/block_0_pos"], (yaw - pi / 4) % (pi / 2) + pi / 4)
    room = max(((0.37, 0.14, 0.02), (0.37, -0.03, 0.02)), key=lambda spot: abs(spot[1] - goal[1]))
    objects |= {"cube": {"cube": cube}, "table": {"table": place(room)}}
    objects["spot"] = {"spot": place(goal)} if goal[2] < 0.04 else {}  # else it is in the drawer
    for number, top in enumerate(info["privileged/button_tops"]):
        down = float(info[f"privileged/button_{number}_pos"][0]) / SWITCHES
        objects.setdefault("button", {})[f"button{number}"] = place(top) | {"down": down}
    return Scene(SPEC, hand(info), objects)


def place(position: Any, yaw: float = pi / 2) -> dict[str, float]:
    return dict(zip(PLACE, (*map(float, position), yaw), strict=True))


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    agent, cube, drawer = scene.agent, scene["cube"], scene["drawer"]
    apart = hypot(cube.x - agent.x, cube.y - agent.y, cube.z - agent.z)
    is_held = apart < NEAR and agent.closed > CLOSED
    yield Atom("holding", ("cube",)) if is_held else Atom("free")
    if not is_held and -0.27 < cube.y - drawer.y < -0.07 and 0.03 < cube.z < 0.15:
        yield Atom("in", ("cube", "drawer"))
    elif not is_held:
        spots = [spot.name for spot in scene.of_type("spot") if hypot(cube.x - spot.x, cube.y - spot.y) < NEAR]
        yield Atom("on", ("cube", *(spots or ["table"])))
    for button, door in zip(("button0", "button1"), (drawer, scene["window"]), strict=True):
        yield Atom("locks", (button, door.name))
        yield Atom("locked" if door.locked else "unlocked", (door.name,))
        is_still = abs(door.speed) < AT_REST  # one that moves is still what it was, and bounces if it is let go
        is_open, is_closed = door.open > 1 - TOLERANCE, door.open < TOLERANCE
        yield Atom("open" if (is_open if is_still else door.speed < 0) else "unopened", (door.name,))
        yield Atom("closed" if (is_closed if is_still else door.speed > 0) else "unclosed", (door.name,))


def goal(scene: Scene) -> Iterator[Atom]:
    yield Atom("on", ("cube", "spot")) if "spot" in scene else Atom("in", ("cube", "drawer"))
    for door in (scene["drawer"], scene["window"]):
        yield Atom("open" if door.goal_open > 0.5 else "closed", (door.name,))
        yield Atom("locked" if door.goal_locked else "unlocked", (door.name,))


OBJECTS = {"cube": "cube", "table": "table", "button0": "button", "button1": "button"} | {name: name for name in DOORS}


@lru_cache
def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: a step of the shortest plan for the cube, then for the doors, then for the locks."""
    if goal <= state:
        return None
    order = ["in", "on", "open", "closed", "locked", "unlocked"]
    wanted = min(goal - state, key=lambda fact: (order.index(fact.predicate), fact))
    objects = OBJECTS | {fact.terms[1]: fact.terms[1] for fact in goal if fact.predicate == "on"}
    problem = bilevel.Problem("next", DOMAIN.name, objects, state, frozenset({wanted}))
    steps = bilevel.plan(DOMAIN, problem, planner="search").plan
    return steps[0] if steps else None


PUSHES = {"pull-open": (0, 1), "push-closed": (0, -1), "slide-open": (1, 0), "slide-closed": (-1, 0)}  # along x, y
SLACK = 0.035  # between fingers and bar


def control(scene: Scene, action: Action) -> Any:
    """How it does it: rise, cross high above everything, go straight down, and there grip, let go, press or push.

    The bar of a handle is between the open fingers. Yaws are from 0 to 3/4 pi, as the wrist has an end.
    """
    agent, cube, target = scene.agent, scene["cube"], scene[action.arguments[-1]]
    takes, puts, presses = (action.name in names for names in (("pick", "take"), ("place", "put"), ("lock", "unlock")))
    target, tool = cube if takes else target, cube if puts else agent  # the tool is what has to get to the target
    push_x, push_y = PUSHES.get(action.name, (0, 0))
    x, y, z = target.x - tool.x, target.y - tool.y, target.z - tool.z
    if action.name == "put":
        y, z = y - INSIDE, FRONT[2] - cube.z
    elif presses:
        z += 0.05 if target.down > 1 else -0.04  # one that is down already has to come up first
    yaw = target.yaw - agent.yaw if action.name != "put" else pi / 2 - agent.yaw
    low = np.clip(2 - abs(z) / 0.015, 0, 1)  # then the bar is between the fingers, and need not be in the middle
    off = hypot(max(abs(x) - low * SLACK * abs(push_x), 0), max(abs(y) - low * SLACK * abs(push_y), 0))
    beside = np.clip((off + 0.05 * abs(yaw) - 0.015) / 0.03, 0, 1)
    rise = z + beside * (HIGH - agent.z - z)  # up to where it crosses, or down to the target
    across = np.clip(1 - rise / 0.04, 0, 1)
    pushing = low * (1 - beside) if push_x or push_y else 0
    near = 1 - hypot(x, y, z) / 0.015 if takes else 1 - hypot(x / 2, y / 2, z) / 0.015
    grip = 3 * near if takes else 1 - 4 * max(near, 0) if puts else 1 - off / 0.05 if presses else -1
    velocity = [(1 - pushing) * across * v / 0.03 + pushing * push for v, push in ((x, push_x), (y, push_y))]
    return np.clip([*velocity, rise / 0.03, 2 * yaw, grip], -1, 1).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("scene.pddl"))
OPTIONS: dict[str, Any] = {"max_objects": 1, "switches": [4], "packages": ["ogbench", "mujoco"]}
task = Task("ogbench-scene", DOMAIN, make_env, SPEC, perceive, label, goal, Expert(choose, control), **OPTIONS)
