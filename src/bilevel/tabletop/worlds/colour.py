"""Colour: brown blocks get a random colour on a pink platform when its button is pressed, and belong on trays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop import furniture, layout, skills, trays
from bilevel.tabletop import observation as obs
from bilevel.tabletop.furniture import Furnishing
from bilevel.tabletop.measurements import Indices, holds, near, spot_aside, stands, stands_on
from bilevel.tabletop.observation import POSITION, Bools, Observation, numbered
from bilevel.tabletop.problems import shipped_domain
from bilevel.tabletop.tabletop import YAW, Options
from bilevel.tabletop.trays import NO_COLOUR, TrayState, TrayWorld
from bilevel.tabletop.world_tasks import Relations, by_predicate, gripper, remembering, twins
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Spec

_SEEN = {"tray": obs.TRAY, "block": obs.COLOURED, "colour": obs.COLOUR}
_FIXED = {"table": obs.PLACED, "platform": obs.PLACED, "button": obs.MOVING}
SPEC = Spec(obs.HAND, {**_SEEN, **_FIXED}, symmetries=obs.SYMMETRIES)
COLOURS = (3, 2, 1)  # how many there may be: a tray of ten spots takes a row of its own
COLUMNS = layout.COLUMNS[:8]  # where blocks may lie: left of the platform
LEFT_END = -0.4  # of the part of the table for trays


class Colour(TrayWorld):
    """n brown blocks, a tray for each of a few colours, a platform, a button.

    Which colour a block gets is drawn uniformly, so a tray has a spot for each block. What is seen of a tray is where
    its first spot is, or with another `tray_position` its next free one, and from where to where its spots go; what is
    seen of the table is where the next block can be put aside.
    """

    scene_spec = SPEC
    instruction = (
        "Put the {n} brown blocks on the pink platform one by one, press the button to colour each, "
        "and take it to the tray of its colour."
    )
    state_type = TrayState
    pitch = 0.055
    options: ClassVar[Options] = {"colours": COLOURS, "tray_position": trays.TRAY_POSITIONS}

    def _middles(self, trays: layout.Floats) -> layout.Floats:
        return np.add(trays, (self.tray_length / 2, 0.0))

    def name_objects(self) -> dict[str, list[str]]:
        self.spots = self.count
        single = {name: [name] for name in ("table", "platform", "button")}
        return {"block": numbered("block", self.count), **super().name_objects(), **single}

    def furnish(self) -> Furnishing:
        trays, platform = self.paint_trays(), furniture.spot("platform", colour=furniture.PINK)
        return Furnishing(
            [*map(furniture.block, self._block_names), *trays, platform, furniture.button()],
            blocks=self._block_names,
            spots=[*self._tray_names, "platform"],
            fixtures=["button-housing"],
            joints=["button"],
            excluded_contacts=[("button-housing", "button")],
        )

    def arrange(self, rng: np.random.Generator) -> TrayState:
        button = (0.38 + rng.uniform(-0.02, 0.02), rng.uniform(0.42, 0.60))
        self.simulation.reset({0: button})
        self.simulation.move_spot("platform", rng.uniform(0.24, 0.28), rng.uniform(0.36, 0.66))
        length = self.tray_length
        right_end = COLUMNS[-1] - length
        starts = LEFT_END + rng.random(self.colours) * max(0.0, right_end - LEFT_END)
        rows = rng.permutation(layout.ROWS)[: self.colours]
        trays = layout.jittered(np.stack([starts, rows], axis=1), rng)
        for name, (x, y) in zip(self._tray_names, trays, strict=True):
            self.simulation.move_spot(name, x + length / 2, y)
        middles = self._middles(trays)
        places = layout.clear_of(layout.jittered(layout.grid(COLUMNS), rng), middles, length / 2)
        for block, (x, y) in enumerate(rng.permutation(places)[: self.count]):
            self.simulation.put(block, (x, y, furniture.BLOCK), rng.uniform(-YAW, YAW))
        return TrayState(np.ones(len(self.slots), bool), np.full(self.count, NO_COLOUR), trays)

    def describe(self, features: Array) -> None:
        super().describe(features)
        features[self.slots.row["platform"], POSITION] = self.simulation.spot("platform")
        features[self._button, POSITION] = self.simulation.fixture(0)
        trays = self._middles(self.state.trays)
        self._aside = layout.spots_aside(layout.grid(COLUMNS), trays, self.tray_length / 2)

    def look(self, features: Array, agent: Array) -> None:
        super().look(features, agent)
        features[self.slots.row["table"], POSITION] = spot_aside(self._aside, features[self._blocks, POSITION], agent)

    def achieved(self, observation: Observation) -> Bools:
        return np.asarray(self.on_own_tray(observation).any(axis=1))

    def react(self, observation: Observation) -> bool:
        changed = self.is_pressed(observation) and self._press(observation)
        changed |= self.move(self.strayed(observation), "return")
        return changed | (bool(self.teleport_rate) and self.teleport(self.achieved(observation)))

    def _press(self, observation: Observation) -> bool:
        """The button is down: brown blocks on the platform get a colour; whether there were any."""
        blocks, held = self.blocks_and_held(observation)
        platform = observation["objects"][self.slots.row["platform"], POSITION]
        brown = self.state.colours == NO_COLOUR
        waiting = np.flatnonzero(brown & stands(blocks, held) & near(blocks, platform))
        self.state.colours[waiting] = self.np_random.integers(self.colours, size=len(waiting))
        return len(waiting) > 0

    def vacancy(self) -> layout.Floats:
        lying, trays = self.simulation.blocks()[:, :2], self._middles(self.state.trays)
        widths = np.repeat([0.0, self.tray_length / 2], [len(lying), len(trays)])
        return self.free_place(layout.stack(lying, trays), widths, layout.grid(COLUMNS))


# What is said of it


def _relations(scene: Scene) -> Relations:
    """held, on the platform, on its own tray, colour: (blocks,) each; colour: (trays,)"""
    blocks, platform = (scene.features[scene.roster.rows(kind), POSITION] for kind in ("block", "platform"))
    held = holds(scene.values, blocks)
    standing = stands(blocks, held)
    on_platform = np.asarray(stands_on(blocks, standing, platform).any(axis=1))  # none if it is not seen
    return held, on_platform, *trays.tray_relations(scene, held)


def _facts(
    scene: Scene, held: Bools, on_platform: Bools, home: Bools, colours: Indices, tray_colours: Indices
) -> Iterator[Atom]:
    """A block that is not held is on its tray, on the platform, or on the table."""
    blocks, colour_names = scene.roster.of_type("block"), scene.roster.of_type("colour")
    yield from gripper(blocks, held)
    yield from trays.tray_facts(scene, tray_colours)
    if "table" in scene:
        yield Atom("free", ("table",))  # there is always room
    if "platform" in scene and not on_platform.any():
        yield Atom("free", ("platform",))
    for index, block in enumerate(blocks):
        colour = int(colours[index])
        yield Atom("unknown", (block,)) if colour < 0 else Atom("colour-of", (block, colour_names[colour]))
        if home[index]:
            yield Atom("achieved-goal", (block,))
        elif not held[index] and (surface := "platform" if on_platform[index] else "table") in scene:
            yield Atom("on", (block, surface))


def _wanted(scene: Scene) -> Iterator[Atom]:
    return (Atom("achieved-goal", (block,)) for block in scene.roster.of_type("block"))


label = remembering(_relations, _facts)
goal = remembering(lambda scene: (), _wanted)


# What an expert does


def choose(state: Facts, goal: Facts) -> Action | None:
    """Finish with the block on the platform; else bring home one that has a colour; else colour another.

    One that has no colour yet is put aside while another is on the platform.
    """
    now = by_predicate(state)
    wanted = {block for (block,) in by_predicate(goal - state)["achieved-goal"]}
    colours, tray_of = trays.colours_and_trays(now)
    free_platforms = [surface for (surface,) in now["free"] if surface != "table"]
    for (held,) in now["holding"]:
        if held in colours:
            tray = tray_of.get(colours[held])  # none while it is not seen
            return Action("place-goal", (held, tray, colours[held])) if tray else None
        return Action("place", (held, free_platforms[0])) if free_platforms else Action("put-aside", (held, "table"))
    lying = [(block, surface) for block, surface in now["on"] if block in wanted]
    lying.sort(key=lambda pair: (pair[1] == "table", pair[0] not in colours))
    for block, surface in lying:
        if block in colours or (surface == "table" and free_platforms):
            return Action("pick", (block, surface))
        if surface != "table":
            return Action("press", (block, "button", surface))
    return None


SKILLS: dict[str, skills.Skill] = {
    "pick": lambda hand, block, surface: skills.pick(hand, block),
    "place": skills.place,
    "put-aside": skills.place,
    "press": lambda hand, block, button, platform: skills.press(hand, button),
    "place-goal": lambda hand, block, tray, colour: skills.place(hand, block, tray),
}

task, noisy = twins(
    Colour, shipped_domain("colour"), label, goal, choose, trays.putting_where_there_is_room(SKILLS, Colour.pitch)
)
