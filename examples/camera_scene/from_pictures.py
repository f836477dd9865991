"""Blocks and Colour as pictures show them; of itself, the robot knows its hand's pose and opening.

Between two pictures a scene has the hand alone: where the rest is, and what the hand carries, is estimated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
import torch
from detector import SIZE, Array, Detector
from safetensors.torch import load_file

from bilevel import Scene, Task, find_task
from bilevel.tabletop import layout
from bilevel.tabletop.furniture import BLOCK, BROWN, BUTTON_TOP, PALETTE, SPOT
from bilevel.tabletop.measurements import holds
from bilevel.tabletop.rendering import Canvas

ASIDE = np.random.default_rng(0).permutation(layout.grid())  # where things are put aside: the first place that is free
ARM, BELOW = 0.05, 0.1  # parts of a picture, beside the hand and below it, in which the arm hides things
LARGE = (576, 384)
LOOKING = 14  # steps
NEAR = 0.06  # what is seen as near as this to where something was may be the same
RGB = ("red", "green", "blue")


@dataclass(frozen=True)
class Recipe:
    """What there is to see of a task, and how to look at it."""

    task: Task  # with the poses of its simulator
    kinds: Mapping[str, float]  # of things, with the heights at which they rest
    classes: Mapping[str, Any]  # of things, with their colours
    simulator: Callable[[Any], tuple[Any, Any]]  # from an environment to its model and data
    hand: Callable[[Any, Any], Array]  # from observation and `info` to what the robot knows of itself
    view: Mapping[str, Any]  # from where the camera looks
    aside: Sequence[float]  # a control that moves the arm out of the way
    quality: str = "fast"
    every: int = 8  # steps from a picture to the next, a tenth of a second
    sizes: Sequence[int] = range(1, 7)  # numbers of objects in the scenes that the detector learns from

    def __call__(
        self,
        objects: int = 3,
        every: int = 0,
        weights: str = "",
        remembers: bool = False,
        render_mode: str | None = None,
    ) -> "Seen":
        """Return the environment as pictures show it, every so many steps; this is the task's `make_env`."""
        weights = weights or f"build/camera/{self.task.name}.safetensors"
        return Seen(self.task.make_env(objects=objects), self, weights, every or self.every, remembers)

    def detector(self) -> Detector:
        """Return a new one."""
        return Detector(len(self.kinds), len(self.classes), len(self.task.spec.agent))

    def rows(self, scene: Scene) -> Array:
        """Return the things in a scene as the detector has them."""
        rows, kinds, classes, colours = list[Any](), [*self.kinds], [*self.classes], np.array([*self.classes.values()])
        for thing in map(scene.__getitem__, scene.objects):
            if thing.type in kinds:
                colour = [thing[part] for part in RGB] if hasattr(thing, "red") else colours[0]
                is_numbered, nearest = thing.name[-1] in classes, int(np.abs(colours - colour).sum(1).argmin())
                number = classes.index(thing.name[-1]) if is_numbered else nearest
                yaw = 4 * getattr(thing, "yaw", 0.0)  # a cube has four sides
                rows.append((kinds.index(thing.type), number, thing.x, thing.y, thing.z, np.cos(yaw), np.sin(yaw)))
                if thing.type == "tray":
                    rows.append((kinds.index("end"), number, thing.end, *rows[-1][3:]))
        return np.array(rows)


class Seen(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds to `info` the `hand`, and what is `seen` in a picture at every n-th step and the last; `None` at others."""

    def __init__(self, env: Any, recipe: Recipe, weights: str, every: int, remembers: bool) -> None:
        super().__init__(env)
        torch.set_num_threads(1)
        model, self._data = recipe.simulator(env)
        self._canvas, self._detector = Canvas(model, recipe.quality, size=SIZE), recipe.detector().eval()
        self._detector.load_state_dict(load_file(weights))
        self.recipe, self._every, self.remembers = recipe, every, remembers

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Begin, and move the arm aside at once, so that nothing remains hidden behind it."""
        observation, info = self.env.reset(**arguments)
        self.steps, self.known, self.last = 0, dict[str, Array](), np.zeros(3)
        before = self._look(observation, info, False)["seen"]
        for _ in range(LOOKING):
            observation, _, _, _, info = self.env.step(np.array(self.recipe.aside, np.float32))
        info = self._look(observation, info, False)
        info["seen"] = np.concatenate([info["seen"], before[~self.in_view(before, info["hand"])]])
        return observation, info

    def step(self, control: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(control)
        self.steps += 1
        return observation, reward, terminated, truncated, self._look(observation, info, terminated or truncated)

    def _look(self, observation: Any, info: dict[str, Any], is_last: bool) -> dict[str, Any]:
        task, info = self.recipe.task, info | {"hand": self.recipe.hand(observation, info), "seen": None}
        self.truth = task.perceive(observation, info, self.env)
        if task.success is not None:
            info["success"] = task.success(self.truth, info)  # by what is there, not by what is seen
        if self.steps % self._every == 0 or is_last or info.get("success"):
            picture, resting = self._canvas.draw(self._data, **self.recipe.view), [*self.recipe.kinds.values()]
            rows = self._detector.detect(picture, info["hand"], self._canvas, resting)
            info["seen"] = rows[self.in_view(rows, info["hand"])]
        return info

    def render(self) -> Any:
        """Return a picture to look at, from the same camera."""
        model, data = self.recipe.simulator(self.env)
        self._large = getattr(self, "_large", None) or Canvas(model, self.recipe.quality, size=LARGE)
        return self._large.draw(data, **self.recipe.view)

    def locate(self, points: Array) -> Array:
        """Return (points, 2): where in the last such picture these points are."""
        return self._large.locate(points)

    def in_view(self, rows: Array, hand: Array) -> Array:
        """(things,): what is not near the hand, or behind the arm, which is above it in the picture."""
        x, y = (self._canvas.locate(rows[:, 2:5]) - self._canvas.locate(hand[None, :3])).T
        return (np.abs(x) > ARM) | (y > BELOW)


def perceive(observation: Any, info: dict[str, Any], env: Seen) -> Scene:
    """Return the scene that a picture shows, or the hand alone where there is no new one, or all that is remembered."""
    recipe, spec, seen = env.recipe, env.recipe.task.spec, info["seen"]
    objects, shown = {kind: dict[str, dict[str, float]]() for kind in spec.objects}, list[str]()
    follow(env, info["hand"])
    for name, row in () if seen is None else named(env, seen):
        last, env.known[name] = env.known.get(name), row
        if env.steps == 0 or (last is not None and np.linalg.norm(row[2:5] - last[2:5]) < NEAR):  # it is seen twice
            shown.append(name)
    for name in env.known if env.remembers else shown:
        row, end = env.known[name], env.known.get(name.replace("tray", "end"))
        kind, colour = [*recipe.kinds][int(row[0])], [*recipe.classes.values()][int(row[1])]
        if kind in objects and end is not None:
            features = dict(zip(("x", "y", "z", *RGB), (*row[2:5], *colour), strict=True))
            features |= {"yaw": np.arctan2(row[6], row[5]) / 4, "travel": BUTTON_TOP - row[4]}
            features |= {"start": row[2], "end": end[2]}
            objects[kind][name] = {feature: features[feature] for feature in spec.objects[kind]}
    if "table" in objects and (env.remembers or seen is not None):
        free = layout.clear_of(ASIDE, np.array([row[2:4] for row in env.known.values()]).reshape(-1, 2))
        objects["table"]["table"] = dict(zip("xyz", (*(free if len(free) else ASIDE)[0], SPOT), strict=True))
    for name, colour in recipe.classes.items():
        if "colour" in objects and name:
            objects["colour"][name] = dict(zip(RGB, colour, strict=True))
    return Scene(spec, dict(zip(spec.agent, info["hand"], strict=True)), objects)


def named(env: Seen, rows: Array) -> list[tuple[str, Array]]:
    """Return the things with their names: after kind and class, but blocks that look alike after where they were."""
    kinds, classes, found = [*env.recipe.kinds], [*env.recipe.classes], dict[str, Array]()
    for row in rows:
        name = f"{kinds[int(row[0])]}-{classes[int(row[1])]}".strip("-")
        if name.startswith("block") and "" in classes:
            blocks = {name for name in (*env.known, *found) if name.startswith("block")}
            gaps = {block: np.linalg.norm(row[2:5] - env.known[block][2:5]) for block in blocks - {*found}}
            name = min(sorted(gaps), key=lambda block: gaps[block], default="")
            if not name or gaps[name] > NEAR:
                name = f"block{len(blocks) + 1}"
        found.setdefault(name, row)
    return sorted(found.items())


def follow(env: Seen, hand: Array) -> None:
    """Keep in mind where a block is that is carried, which may be hidden: it moves as the hand does."""
    blocks = [row for name, row in env.known.items() if name.startswith("block")]
    held = holds(hand, np.array([row[2:5] for row in blocks], np.float32).reshape(-1, 3))
    for index in np.flatnonzero(held):
        blocks[index][2:5] += hand[:3] - env.last[:3]
    env.last = hand


def seen(recipe: Recipe) -> Task:
    """Return the task as pictures show it."""
    task = replace(recipe.task, name=f"{recipe.task.name}-seen", make_env=recipe, perceive=perceive)
    return replace(task, save=None, restore=None, success=None)  # as the simulator has them


def on_table(env: Any) -> tuple[Any, Any]:
    return env.unwrapped.simulation.model, env.unwrapped.simulation.data


def hand_on_table(observation: Any, info: Any) -> Array:
    return observation["agent"]


FRONT = {"lookat": (0.0, 0.52, 0.04), "distance": 1.0, "azimuth": -90.0, "elevation": -51.0}  # facing the robot
HUES = {"": BROWN, **dict(list(PALETTE.items())[:3])}
OF_BLOCKS, FLAT = {"block": BLOCK, "place": SPOT}, dict.fromkeys(("tray", "end", "platform"), SPOT)
OF_COLOUR = {"block": BLOCK, **FLAT, "button": np.nan}
blocks = seen(Recipe(find_task("blocks"), OF_BLOCKS, PALETTE, on_table, hand_on_table, FRONT, (1, 0, 0, -1)))
MORE_OF_ONE = (1, 1, 1, 1, 2, 3, 4, 5, 6)  # as its episodes are short, and its trays look different
colour = seen(
    Recipe(find_task("colour"), OF_COLOUR, HUES, on_table, hand_on_table, FRONT, (1, 0, 0, -1), sizes=MORE_OF_ONE)
)
