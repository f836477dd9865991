"""Gacha: a box makes blocks of random colours, and every target colour wants one on its tray."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop import furniture, layout, skills, trays
from bilevel.tabletop import observation as obs
from bilevel.tabletop.furniture import Furnishing
from bilevel.tabletop.measurements import LID_SHUT, Indices, holds, inside, is_open
from bilevel.tabletop.observation import POSITION, Bools, Observation, numbered
from bilevel.tabletop.problems import shipped_domain
from bilevel.tabletop.tabletop import ARM_CLEARANCE, Options, teleporting
from bilevel.tabletop.trays import NO_COLOUR, TrayState, TrayWorld
from bilevel.tabletop.world_tasks import Relations, by_predicate, gripper, remembering, twins
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Spec

_FIXED = {"tray": obs.TRAY, "box": obs.MOVING, "button": obs.MOVING}
SPEC = Spec(obs.HAND, {**_FIXED, "colour": obs.TARGET, "block": obs.NUMBERED}, symmetries=obs.SYMMETRIES)
SPARE_COLOURS = 2  # that come up and are not wanted
SPARE_BLOCKS = 3  # bodies besides one per tray: in the box, in the hand, lost
TRAYS = layout.grid(np.array([-0.37, -0.22, -0.07]), layout.ROWS)  # where trays may be
TRAY_JITTER = (0.012, 0.006)  # metres
IN_BOX_JITTER = 0.008
YAW = 0.2  # radians
UNDISTURBED = 10  # steps that the box must have been free before a block comes back to it
DRAWS = ("uniform", "empty")  # among all colours; among those whose trays are empty


@dataclass
class GachaState(TrayState):
    """What Gacha remembers besides the physics."""

    serials: NDArray[np.int64]  # (blocks,): which block of the episode this is, from 1; 0 while out of play
    wanted: Bools  # (trays,)
    crowded: Bools  # (trays,): which trays held more than one block of their colour at the last step
    made: NDArray[np.int64]  # (): how many blocks the box has made
    struck: Bools  # (blocks,): which blocks will teleport
    waited: NDArray[np.int64]  # (): for how many steps the box has been free for them


class Gacha(TrayWorld):
    """n target colours, a tray for each of them and for two colours more, a box with a lid, a button.

    The button makes a block when the box is empty and closed. A block of any colour belongs on the tray of its colour,
    where it replaces the one before. `draw` says among which colours nature draws: all, or those whose trays are empty.
    What is seen of a tray is where its first spot is, or with another `tray_position` its next free one.
    """

    scene_spec = SPEC
    instruction = (
        "Put blocks of {n} target colours on their trays. "
        "While the box is closed, its button makes a block of a random colour inside."
    )
    disturbance = "Blocks on trays may return to the box."
    state_type = GachaState
    state: GachaState
    spots = 2  # so that a second block can be put down before the first is taken away
    pitch = 0.05
    options: ClassVar[Options] = {"draw": DRAWS, "tray_position": trays.TRAY_POSITIONS}
    draw: str

    def name_objects(self) -> dict[str, list[str]]:
        self.colours = self.count + SPARE_COLOURS
        blocks = numbered("unmade", self.colours + SPARE_BLOCKS)
        return {"block": blocks, **super().name_objects(), "box": ["box"], "button": ["button"]}

    def furnish(self) -> Furnishing:
        self._box = self.slots.row["box"]
        trays = self.paint_trays()
        return Furnishing(
            [*map(furniture.block, self._block_names), *trays, furniture.box(), furniture.button()],
            blocks=self._block_names,
            spots=self._tray_names,
            fixtures=["box", "button-housing"],
            joints=["box-lid", "button"],
            excluded_contacts=[("box", "box-lid"), ("button-housing", "button")],
        )

    def arrange(self, rng: np.random.Generator) -> GachaState:
        box = (0.27 + rng.uniform(-0.04, 0.04), rng.uniform(0.42, 0.60))
        button = (0.11 + rng.uniform(-0.03, 0.03), rng.uniform(0.42, 0.62))
        self.simulation.reset({0: box, 1: button})
        self.simulation.set_joint("box-lid", furniture.LID_TRAVEL * rng.integers(2))
        middles = layout.jittered(rng.permutation(TRAYS)[: self.colours], rng, TRAY_JITTER)
        for name, (x, y) in zip(self._tray_names, middles, strict=True):
            self.simulation.move_spot(name, x, y)
        blocks = len(self._block_names)
        visible = np.arange(len(self.slots)) >= blocks
        return GachaState(
            visible=visible,
            colours=np.full(blocks, NO_COLOUR),
            serials=np.zeros(blocks, np.int64),
            trays=np.subtract(middles, (self.pitch / 2, 0.0)),
            wanted=rng.permutation(self.colours) < self.count,
            crowded=np.zeros(self.colours, bool),
            made=np.zeros((), np.int64),
            struck=np.zeros(blocks, bool),
            waited=np.zeros((), np.int64),
        )

    def describe(self, features: Array) -> None:
        super().describe(features)
        features[self.slots.rows("colour"), obs.WANTED] = self.state.wanted
        features[self._blocks, obs.SERIAL] = self.state.serials
        features[self._box, POSITION] = self.simulation.fixture(0)
        features[self._box, 2] = furniture.KNOB_HEIGHT
        features[self._button, POSITION] = self.simulation.fixture(1)

    def look(self, features: Array, agent: Array) -> None:
        super().look(features, agent)
        lid = self.simulation.joint("box-lid")
        features[self._box, 0] += lid
        features[self._box, obs.TRAVEL] = lid

    def achieved(self, observation: Observation) -> Bools:
        filled = np.asarray(self.on_own_tray(observation).any(axis=0))
        return filled[self.state.wanted]

    def react(self, observation: Observation) -> bool:
        self._snap_lid()
        home = self.on_own_tray(observation)
        rolled = self.is_pressed(observation) and self._roll(observation, home)
        replaced = self._replace(home)
        teleported = bool(self.teleport_rate) and not rolled and self._teleport(observation, home)
        return rolled or replaced or teleported

    def _snap_lid(self) -> None:
        """A detent at both ends of the lid's way, or it would bounce off and creep back."""
        lid = self.simulation.joint("box-lid")
        outwards = min(1.0, max(0.0, (lid - 0.065) / 0.005))
        inwards = min(1.0, max(0.0, (0.02 - lid) / 0.005))
        arrived = lid < 0.001 or lid > furniture.LID_TRAVEL - 0.001  # there its friction holds it, and it may sleep
        self.simulation.push("box-lid", 0.0 if arrived else furniture.LID_DETENT * (outwards - inwards))

    def _roll(self, observation: Observation, home: Bools) -> bool:
        """The button is down: if the box is empty and closed it makes a block."""
        if self.simulation.joint("box-lid") > LID_SHUT or self._in_box(observation).any():
            return False
        rng = self.np_random
        empty = np.flatnonzero(~home.any(axis=0)) if self.draw == "empty" else np.arange(self.colours)
        block = self._spare_body(observation, np.asarray(home.any(axis=1)))
        self.state.made += 1
        self.state.serials[block] = self.state.made
        self.state.colours[block] = rng.choice(empty if len(empty) else self.colours)
        self.state.visible[self._blocks.start + block] = True
        self._put_in_box(block)
        return True

    def _in_box(self, observation: Observation) -> Bools:
        """(blocks,): which blocks are in the box."""
        blocks, held = self.blocks_and_held(observation)
        return inside(blocks, held, self.simulation.fixture(0).astype(np.float32)) & (self.state.serials > 0)

    def _put_in_box(self, block: int) -> None:
        x, y = self.simulation.fixture(0)[:2] + self.np_random.uniform(-IN_BOX_JITTER, IN_BOX_JITTER, 2)
        self.simulation.put(block, (x, y, furniture.BLOCK), self.np_random.uniform(-YAW, YAW))

    def _spare_body(self, observation: Observation, home: Bools) -> int:
        """A body for a new block: one that is out of play, else the oldest that was lost on the way to its tray."""
        _, held = self.blocks_and_held(observation)
        candidates = np.flatnonzero(~home & ~held)
        oldest = int(candidates[np.argmin(self.state.serials[candidates])])
        if self.state.serials[oldest]:
            self.happened(f"lost block{self.state.serials[oldest]}")
        return oldest

    def _replace(self, home: Bools) -> bool:
        """Take the older of two blocks of one colour off their tray, at the step after the second was put down."""
        crowded = home.sum(axis=0) > 1
        leaving = np.flatnonzero(crowded & self.state.crowded) if crowded.any() else ()
        for tray in leaving:
            blocks = np.flatnonzero(home[:, tray])
            block = int(blocks[np.argmin(self.state.serials[blocks])])
            self.happened(f"replaced block{self.state.serials[block]}")
            self.state.serials[block], self.state.colours[block] = 0, NO_COLOUR
            self.state.visible[self._blocks.start + block] = False
            self.simulation.park(block)
        self.state.crowded = crowded
        return len(leaving) > 0

    def _teleport(self, observation: Observation, home: Bools) -> bool:
        """Back into the box, as soon as that has been empty, and the hand away from it, for some steps.

        A block that is being carried keeps the box occupied; waiting keeps a teleport apart from what was done last.
        """
        state, at_goal = self.state, np.asarray((home & self.state.wanted).any(axis=1))
        state.struck[teleporting(self.np_random, at_goal, self.teleport_rate)] = True
        state.struck &= at_goal
        if not state.struck.any():
            return False
        _, held = self.blocks_and_held(observation)
        busy = self._in_box(observation).any() or held.any() or self._hand_at_box(observation)
        state.waited = np.zeros_like(state.waited) if busy else state.waited + 1
        if state.waited < UNDISTURBED:
            return False
        block = int(state.struck.argmax())
        state.struck[block], state.waited = False, np.zeros_like(state.waited)
        self._put_in_box(block)
        self.happened(f"teleport block{state.serials[block]}")
        return True

    def _hand_at_box(self, observation: Observation) -> bool:
        """Whether the hand is above the box or its lid, so that a block may not appear there."""
        box = observation["objects"][self._box, POSITION]
        x, y, _ = observation["agent"][:3] - box
        lid = observation["objects"][self._box, obs.TRAVEL]
        return bool(-ARM_CLEARANCE - lid < x < ARM_CLEARANCE and abs(y) < ARM_CLEARANCE)


# What is said of it


def _relations(scene: Scene) -> Relations:
    """held, in the box, on its own tray, colour: (blocks,) each; colour: (trays,); lid open: ()

    Nothing is in a box that is not seen.
    """
    blocks = scene.features[scene.roster.rows("block"), POSITION]
    held = holds(scene.values, blocks)
    in_box, opened = np.zeros(len(blocks), bool), np.array(False)
    for box in scene.features[scene.roster.rows("box")]:
        in_box = inside(blocks, held, box_centre(box))
        opened = np.array(is_open(float(box[obs.TRAVEL]), bool(in_box.any())))
    return held, in_box, *trays.tray_relations(scene, held), opened


def box_centre(box: Array) -> Array:
    """(3,): where a box stands on the table: its knob is seen, and that moves with the lid along x."""
    centre: Array = box[POSITION].copy()
    centre[0] -= box[obs.TRAVEL]
    centre[2] = 0.0
    return centre


def _facts(
    scene: Scene, held: Bools, in_box: Bools, home: Bools, colours: Indices, tray_colours: Indices, opened: Bools
) -> Iterator[Atom]:
    """A block is in the box, held, or out."""
    blocks, colour_names = scene.roster.of_type("block"), scene.roster.of_type("colour")
    yield from gripper(blocks, held)
    yield from trays.tray_facts(scene, tray_colours)
    if "box" in scene:
        yield Atom("opened" if opened else "closed", ("box",))
        if not in_box.any():
            yield Atom("clear", ("box",))
    for index, block in enumerate(blocks):
        colour = colour_names[colours[index]]
        yield Atom("colour-of", (block, colour))
        if in_box[index]:
            yield Atom("in", (block, "box"))
        if home[index]:
            yield Atom("achieved-goal", (colour,))


def _wanted(scene: Scene, wanted: Array) -> Iterator[Atom]:
    colours = scene.roster.of_type("colour")
    return (Atom("achieved-goal", (colours[index],)) for index in np.flatnonzero(wanted))


label = remembering(_relations, _facts)
goal = remembering(lambda scene: (scene.features[scene.roster.rows("colour"), obs.WANTED],), _wanted)


# What an expert does


def choose(state: Facts, goal: Facts) -> Action | None:
    """Put what is in hand on its tray; else get out what is in the box; else make a new block."""
    now = by_predicate(state)
    if goal <= state:
        return None
    colours, tray_of = trays.colours_and_trays(now)
    for (held,) in now["holding"]:
        tray = tray_of.get(colours[held])  # none while it is not seen
        return Action("place-goal", (held, tray, colours[held])) if tray else None
    for block, box in now["in"]:
        return Action("pick", (block, box)) if now["opened"] else Action("open", (box,))
    for (box,) in now["opened"]:
        return Action("close", (box,))
    return next((Action("roll", (box, "button")) for (box,) in now["closed"]), None)


SKILLS: dict[str, skills.Skill] = {
    "place-goal": lambda hand, block, tray, colour: skills.place(hand, block, tray, skills.HIGH),
    "pick": lambda hand, block, box: skills.pick(hand, block, slope=0.03),
    "open": lambda hand, box: skills.slide(hand, box, 1.0),
    "roll": lambda hand, box, button: skills.press(hand, button),
    "close": lambda hand, box: skills.slide(hand, box, -1.0),
}

task, noisy = twins(
    Gacha, shipped_domain("gacha"), label, goal, choose, trays.putting_where_there_is_room(SKILLS, Gacha.pitch)
)
