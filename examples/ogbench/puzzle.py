"""OGBench's puzzle, which is Lights Out: a button that is pressed switches its own light and those of its neighbours.

Which buttons to press is a matter of search: no rule says it from what is seen, and none is learned. A planner is the
high level, `--method det-replan --planner search`; what is learned, with nine buttons, is how to press one. The domain
is in ADL, as a light goes on where it was off and off where it was on.

`task_id=1` to `task_id=5` are OGBench's own tasks, `task_id=0` are random ones to learn from.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np
from arm import HAND, SeededArm, hand, make
from ogbench.manipspace.envs.puzzle_env import PuzzleEnv

import bilevel
from bilevel import Action, Atom, BadInput, Expert, LabelOnly, Position, Scalar, Scene, Spec, Task, read_adl_domain

BOARDS = {9: "3x3", 16: "4x4", 20: "4x5", 24: "4x6"}
SWITCHES = -0.02  # how far down a button switches
PRESSES = 4  # at most, from which random starts and goals are apart
HIGH, DEPTH, APART = (
    0.09,
    0.04,
    0.12,
)  # above a button, where the hand crosses; how deep it presses; neighbours are nearer


class Puzzle(SeededArm, PuzzleEnv):  # type: ignore[misc]
    """OGBench's puzzle with a task of its own or a random one, and `info` that tells the goal."""

    def __init__(self, task_id: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.task_id = task_id

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.task_id:
            return super().reset(seed=seed, options={"task_id": self.task_id})
        rng = np.random.default_rng(seed)
        lights = rng.integers(2, size=(self._num_rows + 2, self._num_cols + 2))  # with a rim, for buttons at the edge
        start = lights[1:-1, 1:-1].flatten()
        for button in rng.choice(start.size, rng.integers(1, PRESSES + 1), replace=False):
            row, column = divmod(button, self._num_cols)
            lights[row + 1, column : column + 3] ^= 1
            lights[[row, row + 2], column + 1] ^= 1
        goal = lights[1:-1, 1:-1].flatten()
        task = {"task_name": "random", "init_button_states": start, "goal_button_states": goal}
        return super().reset(seed=seed, options={"task_info": task})

    def add_object_info(self, ob_info: dict[str, Any]) -> None:
        super().add_object_info(ob_info)
        ob_info["goal/button_states"] = self._target_button_states.copy()
        ob_info["privileged/button_tops"] = self._data.site_xpos[self._button_site_ids].copy()


def make_env(objects: int, task_id: int = 0, render_mode: str | None = None) -> Any:
    if objects not in BOARDS:
        raise BadInput(f"OGBench's puzzles have {', '.join(map(str, BOARDS))} buttons, not {objects}")
    return make(f"puzzle-{BOARDS[objects]}-v0", Puzzle, task_id=task_id, render_mode=render_mode)


BUTTON: dict[str, Any] = {"x": Position, "y": Position, "z": Position, "down": Scalar}
BUTTON |= {"lit": LabelOnly, "goal_lit": LabelOnly}
SPEC = Spec(HAND, {"button": BUTTON})


def perceive(observation: Any, info: dict[str, Any], env: Any) -> Scene:
    """What is seen: the hand, and the buttons with their lights."""
    buttons = {}
    for number, lit in enumerate(info["button_states"]):
        down = info[f"privileged/button_{number}_pos"] / SWITCHES
        features = *info["privileged/button_tops"][number], *down, lit, info["goal/button_states"][number]
        buttons[f"button{number:02}"] = dict(zip(BUTTON, map(float, features), strict=True))
    return Scene(SPEC, hand(info), {"button": buttons})


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    buttons = list(scene.of_type("button"))
    for button in buttons:
        yield Atom("lit" if button.lit else "dark", (button.name,))
        for other in buttons:
            if hypot(button.x - other.x, button.y - other.y) < APART:
                yield Atom("reaches", (button.name, other.name))


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("lit" if button.goal_lit else "dark", (button.name,)) for button in scene.of_type("button"))


@lru_cache
def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: the first step of a plan."""
    buttons = {fact.terms[0]: "button" for fact in goal}
    problem = bilevel.Problem("lights-out", DOMAIN.name, buttons, state, goal)
    steps = bilevel.plan(DOMAIN, problem, planner="search").plan
    return Action("press", steps[0].arguments) if steps else None


def control(scene: Scene, action: Action) -> Any:
    """How it does it: rise, cross above the buttons, and press."""
    agent, button = scene.agent, scene[action.arguments[0]]
    x, y, z = button.x - agent.x, button.y - agent.y, button.z - agent.z
    beside = np.clip((hypot(x, y) - 0.01) / 0.02, 0, 1)
    z += DEPTH if button.down > 1 else -DEPTH  # one that is down already has to come up first
    rise = z + beside * (HIGH + DEPTH)
    across = np.clip(1 - rise / 0.04, 0, 1)
    return np.clip([across * x / 0.03, across * y / 0.03, rise / 0.03, 0, 1], -1, 1).astype(np.float32)


DOMAIN = read_adl_domain(Path(__file__).with_name("puzzle.pddl"))
OPTIONS: dict[str, Any] = {"max_objects": 24, "switches": [4], "packages": ["ogbench", "mujoco"]}
task = Task("ogbench-puzzle", DOMAIN, make_env, SPEC, perceive, label, goal, Expert(choose, control), **OPTIONS)
