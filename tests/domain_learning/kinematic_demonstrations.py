"""Demonstrations without a simulator: a hand carries cubes from place to place, and all else stays where it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.symbolic.domain import NO_FACTS, Domain
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.spec import Angle, Features, LabelOnly, Position, Scalar, Spec

PLACE: Features = {"x": Position, "y": Position, "z": Position}
SEEN: Features = {**PLACE, "hue": LabelOnly, "yaw": Angle(symmetry=4)}
CUBES = Spec({**PLACE, "closed": Scalar}, {"cube": SEEN, "pad": SEEN})
SIZE, SPEED, HIGH = 0.04, 0.02, 0.2
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class Hand:
    """Moves, and notes what is seen at every timestep."""

    def __init__(self, cubes: Floats, rng: np.random.Generator) -> None:
        self.cubes, self.rng = cubes, rng
        self.where, self.closed, self.held = np.array([0.0, 0.0, HIGH]), 0.0, -1
        self.seen: list[tuple[Floats, Floats]] = []
        self.note()

    def note(self) -> None:
        self.seen.append((np.append(self.where, self.closed), self.cubes.copy()))

    def go(self, target: Sequence[float]) -> None:
        """Go straight to a point, with the cube in hand if there is one."""
        way = np.array(target, float) - self.where
        steps = max(1, int(np.ceil(np.linalg.norm(way) / SPEED)))
        for _ in range(steps):
            self.where = self.where + way / steps
            if self.held >= 0:
                self.cubes[self.held] += way / steps
            self.note()

    def grip(self, cube: int) -> None:
        """Close around a cube, or open for -1, within two timesteps; then wait for three."""
        for closed in (0.5, 0.6) if cube >= 0 else (0.3, 0.0):
            self.closed = closed
            self.note()
        self.held = cube
        for _ in range(3):
            self.note()

    def carry(self, cube: int, target: Sequence[float]) -> None:
        """Bring a cube to a point, by the air, and put it down not quite there."""
        x, y, z = self.cubes[cube]
        self.go((x, y, HIGH))
        self.go((x, y, z + 0.01))
        self.grip(cube)
        self.go((x, y, HIGH))
        x, y = np.array(target[:2]) + self.rng.uniform(-0.004, 0.004, 2)
        self.go((x, y, HIGH))
        self.go((x, y, target[2] + 0.01))
        self.grip(-1)
        self.go((x, y, HIGH))


def _demonstration(hand: Hand, pads: Floats, hues: Floats, turns: Floats) -> Demonstration:
    agent = np.array([agent for agent, _ in hand.seen], np.float32)
    cubes = np.array([cubes for _, cubes in hand.seen])
    count, steps = len(pads), len(agent)
    features = np.zeros((steps, 2 * count, 5), np.float32)
    features[:, :count, :3], features[:, count:, :3] = cubes, pads
    features[:, :count, 3] = features[:, count:, 3] = hues
    features[:, :count, 4] = turns
    names = {f"{kind}{number}": kind for kind in ("cube", "pad") for number in range(count)}
    controls = np.zeros((steps - 1, 4), np.float32)
    controls[:, :3] = np.diff(agent[:, :3], axis=0) / SPEED
    visible = np.ones(features.shape[:2], bool)
    nothing = ((0, NO_FACTS),)
    return Demonstration(names, agent, features, visible, controls, controls, (None,) * (steps - 1), nothing, nothing)


def cube_demonstrations(number: int, count: int = 3, tower: bool = False, noise: float = 0.0) -> Demonstrations:
    """Return demonstrations in which each cube is brought to the pad of its hue, or all on top of each other.

    All that is seen of where cubes and pads are has this noise.
    """
    items = []
    for seed in range(number):
        rng = np.random.default_rng(seed)
        where = rng.permutation(16)[: 2 * count]
        points = np.stack([where % 4 * 0.2, where // 4 * 0.2, np.full(2 * count, SIZE / 2)], axis=1)
        points[:, :2] += rng.uniform(-0.03, 0.03, (2 * count, 2))
        pads, hues = points[count:] - [0, 0, SIZE / 2], rng.permutation(count).astype(float)
        hand = Hand(points[:count].copy(), rng)
        for place, cube in enumerate(rng.permutation(count).tolist()):
            x, y, z = pads[0] if tower else pads[cube]
            hand.carry(cube, (x, y, z + SIZE / 2 + (place * SIZE if tower else 0)))
        turns = rng.choice([0.01, np.pi / 2, 0.6], count)  # pads are not turned
        shown = _demonstration(hand, pads, hues, turns)
        shown.features[:, :, :3] += rng.normal(0, noise, shown.features[:, :, :3].shape)
        items.append(shown)
    bounds = [-2.0] * 4, [2.0] * 4
    return Demonstrations(
        items, task="cubes", spec=CUBES, domain=Domain("cubes", {}, {}), controls=BoxControls(*bounds, shape=[4])
    )
