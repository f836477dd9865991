"""MiniGrid: put every ball before the wall of its colour. Where a box is in the way, open it, and it is gone."""

from collections.abc import Iterator
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from minigrid.core.actions import Actions
from minigrid.core.constants import DIR_TO_VEC
from minigrid.core.world_object import Ball, Box, Wall
from minigrid.envs import EmptyEnv

from bilevel import Action, Angle, Atom, Expert, LabelOnly, Position, Scene, Spec, Task, read_domain


class SortingEnv(EmptyEnv):
    def __init__(self, objects: int, render_mode: str | None = None) -> None:
        self.objects = objects
        super().__init__(size=10 + objects // 2, render_mode=render_mode)

    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)
        self.grid.set(width - 2, height - 2, None)  # where the goal of its own was
        self.place_agent((2, 2), (width - 4, height - 4))
        self.things: dict[str, Any] = {}  # all at the walls, so an agent that keeps one step off them has its way free
        edge = [cell for i in range(2, width - 2) for cell in ((1, i), (width - 2, i), (i, 1), (i, height - 2))]
        cells = self._rand_subset(edge, 2 * self.objects)
        for number, (cell, spot) in enumerate(zip(cells[::2], cells[1::2], strict=True)):
            colour = ("red", "green", "blue", "purple", "yellow")[number % 5]
            placed = [(Ball(colour), cell), (Wall(colour), spot + DIR_TO_VEC[self.side(spot)])]
            placed += [(Box(colour), spot)] if self._rand_bool() else []
            for thing, place in placed:
                self.put_obj(thing, *place)
                self.things[f"{thing.type}{number}"] = thing

    def side(self, cell: Any) -> int:
        """The direction in which the nearest wall is."""
        (x, y), last = cell, self.width - 1
        return int(np.argmin([last - x, last - y, x, y]))


PLACE: dict[str, Any] = {"x": Position, "y": Position, "heading": Angle}
SPEC = Spec(PLACE, {kind: PLACE | {"held": LabelOnly} for kind in ("ball", "box", "wall")}, ("x", "y", "heading"))


def perceive(observation: Any, info: dict[str, Any], env: SortingEnv) -> Scene:
    """What is seen of each thing is where to stand, and which way to look, to have it in front."""
    agent = dict(zip(PLACE, (*env.agent_pos, env.agent_dir * pi / 2), strict=True))
    seen: dict[str, dict[str, dict[str, float]]] = {"ball": {}, "box": {}, "wall": {}}
    for name, thing in env.things.items():
        if thing is env.carrying:
            seen[thing.type][name] = agent | {"held": 1}
        elif env.grid.get(*thing.cur_pos) is thing:  # a box that was opened is gone
            x, y = np.clip(thing.cur_pos, 2, env.width - 3)
            seen[thing.type][name] = {"x": x, "y": y, "heading": env.side(thing.cur_pos) * pi / 2, "held": 0}
    return Scene(SPEC, agent, seen)


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold; a thing is before a wall if one looks at both from the same place."""
    walls = {(wall.x, wall.y, wall.heading): wall.name for wall in scene.of_type("wall")}
    if not any(scene[name].held for name in scene.objects):
        yield Atom("free")
    for thing in (*scene.of_type("ball"), *scene.of_type("box")):
        wall = None if thing.held else walls.pop((thing.x, thing.y, thing.heading), None)
        if wall:
            yield Atom("at" if thing.type == "ball" else "blocks", (thing.name, wall))
        elif thing.type == "ball":
            yield Atom("holding" if thing.held else "lying", (thing.name,))
    yield from (Atom("clear", (wall,)) for wall in walls.values())


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("at", (ball.name, ball.name.replace("ball", "wall"))) for ball in scene.of_type("ball"))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it makes way for the ball that it holds and puts it down, else it takes one."""
    for ball, wall in (fact.terms for fact in goal if Atom("holding", fact.terms[:1]) in state):
        boxes = [fact.terms for fact in state if fact.predicate == "blocks" and fact.terms[1] == wall]
        return Action("unblock", boxes[0]) if boxes else Action("put", (ball, wall))
    return next((Action("take", fact.terms[:1]) for fact in sorted(goal - state)), None)


def control(scene: Scene, action: Action) -> Any:
    """How it does it: forward if that leads nearer, else turn; where it has to stand, turn to the thing and act."""
    agent, target = scene.agent, scene[action.arguments[-1]]
    x, y, angle = target.x - agent.x, target.y - agent.y, target.heading - agent.heading
    ahead, right = (round(cos(agent.heading) * a + sin(agent.heading) * b) for a, b in ((x, y), (y, -x)))
    if ahead > 0:
        return Actions.forward
    if ahead == right == 0 and round(cos(angle)) == 1:
        return {"take": Actions.pickup, "unblock": Actions.toggle, "put": Actions.drop}[action.name]
    return Actions.right if right > 0 or (ahead == right == 0 and sin(angle) > 0) else Actions.left


DOMAIN = read_domain(Path(__file__).with_name("sorting.pddl"))
EXPERT = Expert(choose, control)
task = Task("minigrid-sorting", DOMAIN, SortingEnv, SPEC, perceive, label, goal, EXPERT, packages=["minigrid"])
