"""A truck with a magnet brings scrap, which falls from the sky, to a bin; what is dirty it washes in a pond first."""

from collections.abc import Iterator
from math import cos, hypot, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Box, Dict

from bilevel import Action, Angle, Atom, Expert, LabelOnly, Position, Scene, Spec, Task, read_domain

SPEED, TURN, REACH = 0.1, 0.5, 0.15  # speed and turn per step; the reach of the magnet, the pond and the bin
POND, BIN = {"x": -1.0, "y": 0.0}, {"x": 1.0, "y": 0.0}
DIRTY, HELD = 2, 3  # columns of the scrap, after x and y


class Scrapyard(Env[Any, Any]):
    def __init__(self, objects: int) -> None:
        self.objects = objects
        self.action_space = Box(-1, 1, (3,))  # forward, turn, magnet
        self.observation_space = Dict(truck=Box(-99, 99, (3,), float), scrap=Box(-99, 99, (objects, 4), float))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.truck = np.array([0, 0, self.np_random.uniform(-pi, pi)])  # x, y, heading
        self.scrap = np.zeros((self.objects, 4))
        self.scrap[:, :2] = self.np_random.uniform(-0.6, 0.6, (self.objects, 2))
        self.scrap[:, DIRTY] = self.np_random.integers(0, 2, self.objects)
        self.seen = 1  # how many pieces have fallen
        return {"truck": self.truck.copy(), "scrap": self.scrap.copy()}, {"seen": self.seen}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        forward, turn, magnet = np.clip(action, -1, 1)
        self.truck[2] += TURN * turn
        self.truck[:2] += SPEED * forward * np.array([cos(self.truck[2]), sin(self.truck[2])])
        here, scrap = self.truck[:2], self.scrap[: self.seen]
        in_bin = np.linalg.norm(scrap[:, :2] - [*BIN.values()], axis=1) < REACH
        if magnet < 0:
            scrap[:, HELD] = 0
        elif not scrap[:, HELD].any():
            distances = np.linalg.norm(scrap[:, :2] - here, axis=1) + in_bin  # nothing leaves the bin
            scrap[distances.argmin(), HELD] = distances.min() < REACH
        held = scrap[:, HELD] == 1
        scrap[held, :2] = here
        scrap[held, DIRTY] *= np.linalg.norm(here - [*POND.values()]) > REACH
        more = self.seen < self.objects and (self.np_random.random() < 0.02 or bool((held | in_bin).all()))
        self.seen += more  # now and then, and as soon as none is lying there
        info = {"seen": self.seen, "events": ["arrival"] * more}
        return {"truck": self.truck.copy(), "scrap": self.scrap.copy()}, 0.0, False, False, info


PLACE = {"x": Position, "y": Position}
SCRAP = PLACE | {"dirty": LabelOnly, "held": LabelOnly}
SPEC = Spec(PLACE | {"heading": Angle}, {"scrap": SCRAP, "pond": PLACE, "bin": PLACE}, frame=("x", "y", "heading"))


def perceive(observation: Any, info: dict[str, Any], env: Scrapyard) -> Scene:
    """What is seen: the truck, and by their types the scrap that has fallen, the pond and the bin."""
    agent = dict(zip(SPEC.agent, observation["truck"], strict=True))
    rows = observation["scrap"][: info["seen"]]
    scrap = {f"scrap{number}": dict(zip(SCRAP, row, strict=True)) for number, row in enumerate(rows)}
    return Scene(SPEC, agent, {"scrap": scrap, "pond": {"pond": POND}, "bin": {"bin": BIN}})


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    if not any(piece.held for piece in scene.of_type("scrap")):
        yield Atom("free")
    for piece in scene.of_type("scrap"):
        in_bin = hypot(piece.x - scene["bin"].x, piece.y - scene["bin"].y) < REACH
        place = Atom("in", (piece.name, "bin")) if in_bin else Atom("lying", (piece.name,))
        yield Atom("holding", (piece.name,)) if piece.held else place
        yield Atom("dirty" if piece.dirty else "clean", (piece.name,))


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("in", (piece.name, "bin")) for piece in scene.of_type("scrap"))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it goes on with the piece that it holds, else it grabs one."""
    for piece, bin_ in (fact.terms for fact in goal if Atom("holding", fact.terms[:1]) in state):
        return Action("drop", (piece, bin_)) if Atom("clean", (piece,)) in state else Action("wash", (piece, "pond"))
    return next((Action("grab", fact.terms[:1]) for fact in sorted(goal - state)), None)


def control(scene: Scene, action: Action) -> Any:
    """How it does it: drive to the last thing that the action names, and switch the magnet there."""
    truck, target = scene.agent, scene[action.arguments[-1]]
    x, y, heading = target.x - truck.x, target.y - truck.y, truck.heading
    ahead, left = cos(heading) * x + sin(heading) * y, cos(heading) * y - sin(heading) * x
    near = 1 - hypot(x, y) / 0.12  # falls smoothly with the distance, for a network has to imitate it
    magnet = {"grab": near, "wash": 1.0, "drop": -near}[action.name]
    return np.clip([ahead / (2 * SPEED), left / (hypot(x, y) + 0.05), magnet], -1, 1).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("scrapyard.pddl"))
task = Task("scrapyard", DOMAIN, Scrapyard, SPEC, perceive, label, goal, Expert(choose, control))
