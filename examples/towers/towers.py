"""Towers on the package's table: blocks belong on places and on each other, up to eight high; learned with three.

    bilevel collect examples/towers/towers.py:task --objects 3 --episodes 200 --output build/towers-data
    bilevel learn build/towers-data --task examples/towers/towers.py:task --output build/towers
    bilevel evaluate examples/towers/towers.py:task --policy build/towers --objects 1-8

The hand takes hold of a block beside its middle. So what has to be steered over the tower is the block, not the hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel import read_domain
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop import furniture, layout
from bilevel.tabletop.furniture import BLOCK, Furnishing
from bilevel.tabletop.measurements import holds, spot_aside
from bilevel.tabletop.observation import COLOURED, PLACED, POSITION, RGB, SYMMETRIES, Bools, Observation, numbered
from bilevel.tabletop.skills import GAIN, above, control, funnel, skilled
from bilevel.tabletop.tabletop import YAW, Options, State, Tabletop
from bilevel.tabletop.world_tasks import Relations, by_predicate, gripper, remembering, twins
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Features, LabelOnly, Position, Scalar, Spec

# The network is not told how high the hand is above the table, so that a tower's eighth block is put on as its second.
HAND: Features = {"x": Position, "y": Position, "z": Position, "opening": Scalar}
BELONGING = {**COLOURED, "level": LabelOnly}  # a block belongs in the tower of its colour; the lowest level is 1
SPEC = Spec(HAND, {"block": BELONGING, "place": COLOURED, "table": PLACED}, symmetries=SYMMETRIES[:2])
LEVEL = SPEC.column["level"]

BACK = layout.grid(np.linspace(-0.3, 0.3, 4), np.array([0.64]))  # where towers are
FRONT = layout.grid(rows=layout.ROWS[:3])  # where blocks lie at first, and where they can be put aside
FALLEN = 0.55  # y from which on a block that stands on nothing has fallen off a tower
UPRIGHT = 0.012  # metres by which a block may be higher or lower than by its size above what it stands on

GRASP = 0.043  # how far above a block's middle the hand takes hold of it: the fingers do not touch the one below
OFF_CENTRE = 0.008  # and how far beside it along x
CRUISE = 0.33  # how far above a grasp the hand travels: higher than all towers, and so than the one it comes from
CEILING = 0.393  # and no higher than this
LEVEL_WITH = (0.01, 0.025)  # how far below that height it begins to move sideways
CARRY = 0.06  # how far above its place a block is brought there
EXACT = 0.007  # how near that place it is let go


@dataclass
class TowersState(State):
    """What Towers remembers besides the physics."""

    order: NDArray[np.int64]  # (blocks,): all blocks, the lowest of each tower first, then those above them, and so on
    colours: NDArray[np.int64]  # (towers,): as rows of furniture.COLOURS


class Towers(Tabletop):
    """n blocks, and a place for each of some towers, which get one block after the other in turn.

    What is seen of the table is where the next block can be put aside. The height that is seen of table and places is
    that of a block under the one that comes there.
    """

    scene_spec = SPEC
    instruction = "Stack the {n} blocks on the spots of their colours, the darkest ones at the bottom."
    disturbance = "A block on top may jump elsewhere."
    max_objects: ClassVar[int] = 8
    state_type: ClassVar[type[State]] = TowersState
    state: TowersState
    options: ClassVar[Options] = {"towers": (1, 2, 3, 4)}
    towers: int

    def name_objects(self) -> dict[str, list[str]]:
        return {"block": numbered("block", self.count), "place": numbered("place", self.towers), "table": ["table"]}

    def furnish(self) -> Furnishing:
        self._places, self._place_names = self.slots.rows("place"), self.slots.of_type("place")
        bodies = [*map(furniture.block, self._block_names), *map(furniture.spot, self._place_names)]
        return Furnishing(bodies, self._block_names, self._place_names, sparse=self.count > 4)

    def arrange(self, rng: np.random.Generator) -> TowersState:
        self.simulation.reset()
        for name, (x, y) in zip(self._place_names, layout.jittered(rng.permutation(BACK), rng), strict=False):
            self.simulation.move_spot(name, x, y)
        for block, (x, y) in enumerate(layout.jittered(rng.permutation(FRONT)[: self.count], rng)):
            self.simulation.put(block, (x, y, BLOCK), rng.uniform(-YAW, YAW))
        colours = rng.permutation(len(furniture.COLOURS))[: self.towers]
        return TowersState(np.ones(len(self.slots), bool), rng.permutation(self.count), colours)

    def describe(self, features: Array) -> None:
        level, tower = np.divmod(np.argsort(self.state.order), self.towers)
        colours = furniture.COLOURS[self.state.colours]
        features[self._blocks, RGB], features[self._places, RGB] = colours[tower], colours
        features[self._blocks, LEVEL] = level + 1
        features[self._places, POSITION] = [self.simulation.spot(name) for name in self._place_names]
        features[self._places, 2] = -BLOCK
        share = (level / max(level.max(), 1))[:, None]  # from dark to light
        shades = 0.5 * (1 - share) * colours[tower] + share * (0.4 * colours[tower] + 0.6)
        for name, colour in zip((*self._block_names, *self._place_names), [*shades, *colours], strict=True):
            self.simulation.paint(name, colour)
        self._aside = layout.spots_aside(FRONT, features[self._places, :2].astype(float))

    def look(self, features: Array, agent: Array) -> None:
        x, y, _ = spot_aside(self._aside, features[self._blocks, POSITION], agent)
        features[self.slots.row["table"], POSITION] = x, y, -BLOCK

    def _standing(self, observation: Observation) -> tuple[Bools, Bools]:
        """(blocks,), (blocks, blocks and places): which blocks are held, and which stand on what."""
        blocks, held = self.blocks_and_held(observation)
        return held, stands_on(blocks, held, observation["objects"][self._places, POSITION])

    def achieved(self, observation: Observation) -> Bools:
        _, on = self._standing(observation)
        rank = np.argsort(self.state.order)
        below = np.where(rank < self.towers, self.count + rank, self.state.order[rank - self.towers])
        return on[np.arange(self.count), below]

    def within_reach(self, observation: Observation) -> Bools:
        """Without those that lie around a tower: the hand would knock it over."""
        _, on = self._standing(observation)
        fallen = ~on.any(axis=1) & (observation["objects"][self._blocks, 1] > FALLEN)
        return super().within_reach(observation) & ~fallen

    def react(self, observation: Observation) -> bool:
        moved = self.move(self.strayed(observation), "return")
        if not self.teleport_rate:
            return moved
        covered = np.asarray(self._standing(observation)[1].any(axis=0))
        return self.teleport(self.achieved(observation) & ~covered[: self.count]) or moved

    def vacancy(self) -> layout.Floats:
        return self.free_place(self.simulation.blocks()[:, :2], places=FRONT)


# What is said of it


def stands_on(blocks: Array, held: Bools, places: Array) -> Bools:
    """(blocks, blocks and places): which of the blocks stands on what: its middle is above that."""
    apart = blocks[:, None] - np.concatenate([blocks, places])
    above = (np.hypot(apart[..., 0], apart[..., 1]) < BLOCK) & (np.abs(apart[..., 2] - 2 * BLOCK) < UPRIGHT)
    return np.asarray(above & ~held[:, None])


def _relations(scene: Scene) -> Relations:
    """held (blocks,), on (blocks, blocks and places)"""
    blocks, places = (scene.features[scene.roster.rows(kind), POSITION] for kind in ("block", "place"))
    held = holds(scene.values, blocks)
    return held, stands_on(blocks, held, places)


def _facts(scene: Scene, held: Bools, on: Bools) -> Iterator[Atom]:
    blocks = scene.roster.of_type("block")
    supports = (*blocks, *scene.roster.of_type("place"))
    yield from gripper(blocks, held)
    yield from (Atom("on", (blocks[block], supports[below])) for block, below in np.argwhere(on))
    yield from (Atom("on", (blocks[block], "table")) for block in np.flatnonzero(~held & ~on.any(axis=1)))
    covered = on.any(axis=0) | np.append(held, [False] * (len(supports) - len(blocks)))
    yield from (Atom("clear", (supports[support],)) for support in np.flatnonzero(~covered))
    yield Atom("clear", ("table",))  # there is always room


def _wanted(scene: Scene, colours: Array, levels: Array) -> Iterator[Atom]:
    """The blocks of a place's colour belong on it, one on the other, in the order of their levels."""
    rows = scene.roster.row
    for place in scene.roster.of_type("place"):
        own = [block for block in scene.roster.of_type("block") if (colours[rows[block]] == colours[rows[place]]).all()]
        tower = [place, *sorted(own, key=lambda block: levels[rows[block]])]
        yield from (Atom("on", pair) for pair in zip(tower[1:], tower, strict=False))


label = remembering(_relations, _facts)
goal = remembering(lambda scene: (scene.features[:, RGB], scene.features[:, LEVEL]), _wanted)


# What an expert does


def choose(state: Facts, goal: Facts) -> Action | None:
    """Put what is in hand where it belongs if all below is in place, else aside; fetch the next block of a tower.

    What stands on that block, or where it belongs, is put aside first.
    """
    below, on = ({pair[0]: pair[1] for pair in by_predicate(facts)["on"]} for facts in (goal, state))
    above = {support: block for block, support in on.items() if support != "table"}
    following = {}  # the lowest block of each tower that is not in place, and what it belongs on
    for support in sorted({*below.values()} - below.keys()):
        tower = {lower: block for block, lower in below.items()}
        while support in tower and on.get(tower[support]) == support:
            support = tower[support]
        if support in tower:
            following[tower[support]] = support
    for (held,) in by_predicate(state)["holding"]:
        is_next = held in following and following[held] not in above
        return Action("place", (held, following[held])) if is_next else Action("put-aside", (held, "table"))
    for block, support in following.items():
        top = support if support in above else block
        while top in above:
            top = above[top]
        return Action("pick", (top, on[top]))
    return None


def pick(hand: Array, block: Array, surface: Array) -> Array:
    """Down onto a block from high above, and close the fingers wherever along x they have come down on it."""
    target = above(block, GRASP)
    target[0] = np.clip(hand[0], target[0] - OFF_CENTRE, target[0] + OFF_CENTRE)
    offset = target - hand[:3]
    if np.linalg.norm(offset) < 0.012:
        return control(GAIN * offset, 1.0)
    has_let_go = np.clip((hand[3] - 0.8) / 0.1, 0, 1)
    return control(
        has_let_go * funnel(hand[:3], target, min(float(target[2]) + CRUISE, CEILING), below=LEVEL_WITH), -1.0
    )


def place(hand: Array, block: Array, surface: Array) -> Array:
    """Bring the middle of the block in hand, however it is held, over what it is put on, and do not press it down.

    It comes there from the front, as other towers may stand beside it.
    """
    target = above(surface, 2 * BLOCK)
    is_opening = max(0.0, float(hand[3]) - 0.49)  # who has begun to let go goes on with it
    if np.linalg.norm(target - block[:3]) < EXACT + 0.1 * is_opening:
        return control(np.zeros(3, np.float32), -1.0)
    x, y, _ = target - block[:3]
    target = above(target, -0.004)
    target[1] = block[1] + y * np.clip((0.08 - abs(x)) / 0.05, 0, 1)
    return control(funnel(block[:3], target, float(target[2]) + CARRY, EXACT, 0.03, LEVEL_WITH), 1.0)


SKILLS = {"pick": pick, "place": place, "put-aside": place}

DOMAIN = read_domain(Path(__file__).with_name("towers.pddl"))
# No policy of it comes with the package.
task, noisy = (replace(each, pretrained=None) for each in twins(Towers, DOMAIN, label, goal, choose, skilled(SKILLS)))
