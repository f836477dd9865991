"""Labels from one scene: what each world's facts mean, and that any scene at all gives proper facts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bilevel.symbolic.domain import Atom, Domain
from bilevel.tabletop import TASKS
from bilevel.tabletop.observation import POSITION, RGB, SERIAL, Observation
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.worlds import blocks, colour, gacha, swap
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Spec

RED, BLUE, BROWN = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.4, 0.3, 0.2)
OPEN_HAND = (0.0, 0.6, 0.2, 1.0)


def atoms(text: str) -> set[Atom]:
    """`on a b, clear a` as facts."""
    return {Atom(name, tuple(terms)) for name, *terms in (fact.split() for fact in text.split(","))}


Point = tuple[float, float, float]


def look(spec: Spec, agent: tuple[float, ...] = OPEN_HAND, **seen: dict[str, dict[str, Any]]) -> Scene:
    """A scene: for each type what is seen of its objects, "xyz", "rgb" and all that has a name; the rest is 0."""
    objects = {
        kind: {name: {**dict.fromkeys(spec.objects[kind], 0.0), **_spread(given)} for name, given in members.items()}
        for kind, members in seen.items()
    }
    return Scene(spec, dict(zip(spec.agent, agent, strict=True)), objects)


def _spread(given: dict[str, Any]) -> dict[str, float]:
    names = {"xyz": ("x", "y", "z"), "rgb": ("red", "green", "blue"), "span": ("start", "end")}
    found: dict[str, float] = {}
    for name, value in given.items():
        found.update(zip(names[name], value, strict=True) if name in names else [(name, value)])
    return found


def holding(x: float, y: float, z: float) -> tuple[float, ...]:
    return (x, y, z + 0.02, 0.47)


# Blocks and Factory


def blocks_scene(where: Point, agent: tuple[float, ...] = OPEN_HAND) -> Scene:
    """A red block somewhere, and its place."""
    return look(
        blocks.SPEC,
        agent,
        block={"block1": {"xyz": where, "rgb": RED}},
        place={"place1": {"xyz": (0.1, 0.5, 0), "rgb": RED}},
    )


@pytest.mark.parametrize(
    ("where", "agent", "facts"),
    [
        ((0.3, 0.5, 0.02), OPEN_HAND, "gripper-free, clear block1, clear place1"),
        ((0.11, 0.5, 0.02), OPEN_HAND, "gripper-free, at block1 place1"),
        ((0.1, 0.5, 0.05), OPEN_HAND, "gripper-free, clear block1, clear place1"),
        ((0.1, 0.5, 0.02), holding(0.1, 0.5, 0.02), "holding block1, clear place1"),
        ((0.3, 0.5, 0.02), (0.1, 0.5, 0.2, 0.3), "gripper-free, clear block1, clear place1"),
    ],
)
def test_blocks(where: Point, agent: tuple[float, ...], facts: str) -> None:
    scene = blocks_scene(where, agent)
    assert blocks.label(scene) == atoms(facts)
    assert blocks.goal(scene) == atoms("at block1 place1")


# Swap


@pytest.mark.parametrize(
    ("where", "agent", "facts"),
    [
        ((0.3, 0.5, 0.02), OPEN_HAND, "gripper-free, at block1 table, free place1, free table"),
        ((0.11, 0.5, 0.02), OPEN_HAND, "gripper-free, at block1 place1, free table"),
        ((0.1, 0.5, 0.02), holding(0.1, 0.5, 0.02), "holding block1, free place1, free table"),
    ],
)
def test_swap(where: Point, agent: tuple[float, ...], facts: str) -> None:
    pair = {"rgb": RED, "xyz": (0.1, 0.5, 0)}
    seen = look(
        blocks.SPEC, agent, block={"block1": {**pair, "xyz": where}}, place={"place1": pair}, table={"table": {}}
    )
    assert swap.label(seen) == atoms(facts)


# Colour

FURNITURE = "tray-colour tray1 red, tray-colour tray2 blue, free table"
TWO_COLOURS = {"red": {"rgb": RED}, "blue": {"rgb": BLUE}}


def two_trays(end: float) -> dict[str, Any]:
    span = (end - 0.1, end)
    return {
        "tray1": {"xyz": (-0.2, 0.4, 0), "rgb": RED, "span": span},
        "tray2": {"xyz": (-0.2, 0.6, 0), "rgb": BLUE, "span": span},
    }


def colour_scene(where: Point, rgb: tuple[float, ...], agent: tuple[float, ...] = OPEN_HAND) -> Scene:
    return look(
        colour.SPEC,
        agent,
        block={"block1": {"xyz": where, "rgb": rgb}},
        tray=two_trays(end=-0.1),
        colour=TWO_COLOURS,
        table={"table": {}},
        platform={"platform": {"xyz": (0.3, 0.5, 0)}},
        button={"button": {}},
    )


@pytest.mark.parametrize(
    ("where", "rgb", "facts"),
    [
        ((0.0, 0.5, 0.02), BROWN, "gripper-free, unknown block1, on block1 table, free platform"),
        ((0.31, 0.5, 0.02), BROWN, "gripper-free, unknown block1, on block1 platform"),
        ((0.31, 0.5, 0.02), RED, "gripper-free, colour-of block1 red, on block1 platform"),
        ((-0.11, 0.4, 0.02), RED, "gripper-free, colour-of block1 red, achieved-goal block1, free platform"),
        ((-0.11, 0.6, 0.02), RED, "gripper-free, colour-of block1 red, on block1 table, free platform"),
        ((-0.11, 0.4, 0.02), BROWN, "gripper-free, unknown block1, on block1 table, free platform"),
    ],
)
def test_colour(where: Point, rgb: tuple[float, ...], facts: str) -> None:
    assert colour.label(colour_scene(where, rgb)) == atoms(f"{FURNITURE}, {facts}")
    assert colour.goal(colour_scene(where, rgb)) == atoms("achieved-goal block1")


# Gacha

TRAYS = "tray-colour tray1 red, tray-colour tray2 blue"
IN_BOX, AT_HOME, LOST = (0.3, 0.5, 0.02), (-0.2, 0.4, 0.02), (0.0, 0.4, 0.02)


def gacha_scene(lid: float, where: Point | None, agent: tuple[float, ...] = OPEN_HAND) -> Scene:
    """The knob moves with the lid; the fifth block that was made is red, and somewhere."""
    return look(
        gacha.SPEC,
        agent,
        block={"block5": {"xyz": where, "rgb": RED, "serial": 5}} if where else {},
        tray=two_trays(end=-0.15),
        colour={"red": {"rgb": RED}, "blue": {"rgb": BLUE, "wanted": 1}},
        box={"box": {"xyz": (0.3 + lid, 0.5, 0.08), "travel": lid}},
        button={"button": {}},
    )


@pytest.mark.parametrize(
    ("lid", "where", "facts"),
    [
        (0.0, None, "gripper-free, closed box, clear box"),
        (0.04, None, "gripper-free, opened box, clear box"),
        (0.0, IN_BOX, "gripper-free, closed box, in block5 box, colour-of block5 red"),
        (0.04, IN_BOX, "gripper-free, closed box, in block5 box, colour-of block5 red"),
        (0.08, IN_BOX, "gripper-free, opened box, in block5 box, colour-of block5 red"),
        (0.08, AT_HOME, "gripper-free, opened box, clear box, colour-of block5 red, achieved-goal red"),
        (0.0, LOST, "gripper-free, closed box, clear box, colour-of block5 red"),
    ],
)
def test_gacha(lid: float, where: Point | None, facts: str) -> None:
    assert gacha.label(gacha_scene(lid, where)) == atoms(f"{TRAYS}, {facts}")
    assert gacha.goal(gacha_scene(lid, where)) == atoms("achieved-goal blue")


# Any scene at all


@cache
def made(task: str) -> tuple[Tabletop, Observation]:
    """A world, and where a random observation begins: with colours and types as they are."""
    environment: Tabletop = TASKS[task].make_env(2)
    return environment, environment.reset(seed=0)[0]


def conforms(fact: Atom, domain: Domain, objects: dict[str, str]) -> bool:
    declared = domain.predicates[fact.predicate].parameters
    pairs = zip(fact.terms, declared, strict=True)
    return all(domain.is_subtype(objects[term], parameter.type) for term, parameter in pairs)


@pytest.mark.parametrize("name", [name for name in TASKS if not name.endswith("-noisy")])
def test_any_positions_give_facts_that_conform(name: str) -> None:
    task, (environment, start) = TASKS[name], made(name)
    slots = environment.slots
    blocks = slots.rows("block")

    @settings(max_examples=40, deadline=None)
    @given(
        arrays(np.float32, (len(slots), 3), elements=st.floats(-0.5, 0.75, width=32)),
        arrays(np.float32, 4, elements=st.floats(-0.5, 1, width=32)),
        arrays(np.int8, blocks.stop, elements=st.integers(0, 1)),
    )
    def check(where: Any, agent: Any, visible: Any) -> None:
        objects = start["objects"].copy()
        objects[:, POSITION] = where
        shown = start["visible"].copy()
        if name == "gacha":
            shown[blocks] = visible
            objects[blocks, SERIAL] = visible * np.arange(1, blocks.stop + 1)
            objects[blocks, RGB] = objects[slots.rows("colour"), RGB][0] * visible[:, None]
        scene = slots.scene({"agent": agent, "objects": objects, "visible": shown})
        state, objects_before = task.label(scene), objects.copy()
        assert all(conforms(fact, task.domain, scene.objects) for fact in (*state, *task.goal(scene)))
        assert sum(fact.predicate in ("holding", "gripper-free") for fact in state) == 1
        assert np.array_equal(objects, objects_before)  # labels do not change what they look at

    check()


# Memory
