"""Labels from one observation: what each world's facts mean, and that any observation at all gives proper facts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bilevel.symbolic.domain import Atom, Domain, Facts
from bilevel.tabletop import labelling
from bilevel.tabletop.labelling import BlocksLabels, ColourLabels, GachaLabels, Labels, box_centre
from bilevel.tabletop.observation import (
    COLUMN,
    FEATURES,
    POSITION,
    RGB,
    SERIAL,
    SPAN,
    TRAVEL,
    WANTED,
    Observation,
    Slots,
    numbered,
    slots,
)
from bilevel.tabletop.tasks import TASKS

RED, BLUE, BROWN = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.4, 0.3, 0.2)
OPEN_HAND = (0.0, 0.6, 0.2, 1.0)


def atoms(text: str) -> set[Atom]:
    """`on a b, clear a` as facts."""
    return {Atom(name, tuple(terms)) for name, *terms in (fact.split() for fact in text.split(","))}


COLUMNS: dict[str, int | slice] = {
    "where": POSITION,
    "rgb": RGB,
    "span": SPAN,
    "travel": TRAVEL,
    "wanted": WANTED,
    "serial": SERIAL,
}


def look(known: Slots, agent: tuple[float, ...] = OPEN_HAND, **seen: dict[str, Any]) -> Observation:
    """What is seen: for each visible object, by the name of its slot, its features."""
    objects = np.zeros((len(known), len(FEATURES)), np.float32)
    visible = np.zeros(len(known), np.int8)
    for slot, columns in seen.items():
        row = known.names.index(slot)
        visible[row] = 1
        for name, value in columns.items():
            objects[row, COLUMNS[name]] = value
    return {"agent": np.array(agent, np.float32), "objects": objects, "visible": visible}


def holding(x: float, y: float, z: float) -> tuple[float, ...]:
    return (x, y, z + 0.02, 0.47)


# Blocks and Factory

BLOCKS = slots({"block": numbered("block", 2), "place": numbered("place", 2)})


def blocks(where: tuple[float, float, float], agent: tuple[float, ...] = OPEN_HAND) -> Observation:
    """A red block somewhere, and its place; a blue pair is not visible yet."""
    return look(BLOCKS, agent, block1={"where": where, "rgb": RED}, place1={"where": (0.1, 0.5, 0), "rgb": RED})


@pytest.mark.parametrize(
    ("where", "agent", "facts"),
    [
        ((0.3, 0.5, 0.02), OPEN_HAND, "gripper-free, clear block1, clear place1"),
        ((0.11, 0.5, 0.02), OPEN_HAND, "gripper-free, clear block1, at block1 place1"),
        ((0.1, 0.5, 0.05), OPEN_HAND, "gripper-free, clear block1, clear place1"),
        ((0.1, 0.5, 0.02), holding(0.1, 0.5, 0.02), "holding block1, clear place1"),
        ((0.3, 0.5, 0.02), (0.1, 0.5, 0.2, 0.3), "gripper-free, clear block1, clear place1"),
    ],
)
def test_blocks(where: tuple[float, float, float], agent: tuple[float, ...], facts: str) -> None:
    labels = BlocksLabels(BLOCKS)
    assert labels.state(blocks(where, agent)) == atoms(facts)
    assert labels.goal(blocks(where, agent)) == atoms("at block1 place1")
    assert labels.objects(blocks(where, agent)) == {"block1": "block", "place1": "place"}


def test_newcomers_join_the_goal_when_they_are_seen() -> None:
    pair = {"rgb": BLUE, "where": (-0.2, 0.4, 0.02)}
    seen = look(BLOCKS, block1={"rgb": RED}, place1={"rgb": RED, "where": (0.1, 0.5, 0)}, block2=pair, place2=pair)
    assert BlocksLabels(BLOCKS).goal(seen) == atoms("at block1 place1, at block2 place2")


# Colour

COLOUR = slots(
    {
        "block": ["block1"],
        "tray": ["tray1", "tray2"],
        "colour": ["red", "blue"],
        "table": ["table"],
        "platform": ["platform"],
        "button": ["button"],
    }
)
FURNITURE = "tray-colour tray1 red, tray-colour tray2 blue, free table"


def colour(
    where: tuple[float, float, float], rgb: tuple[float, ...], agent: tuple[float, ...] = OPEN_HAND
) -> Observation:
    return look(
        COLOUR,
        agent,
        block1={"where": where, "rgb": rgb},
        tray1={"where": (-0.2, 0.4, 0), "rgb": RED, "span": (-0.3, -0.1)},
        tray2={"where": (-0.2, 0.6, 0), "rgb": BLUE, "span": (-0.3, -0.1)},
        red={"rgb": RED},
        blue={"rgb": BLUE},
        table={},
        platform={"where": (0.3, 0.5, 0)},
        button={},
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
def test_colour(where: tuple[float, float, float], rgb: tuple[float, ...], facts: str) -> None:
    labels = ColourLabels(COLOUR)
    assert labels.state(colour(where, rgb)) == atoms(f"{FURNITURE}, {facts}")
    assert labels.goal(colour(where, rgb)) == atoms("achieved-goal block1")


def test_a_held_block_is_on_nothing() -> None:
    seen = colour((0.3, 0.5, 0.02), RED, holding(0.3, 0.5, 0.02))
    facts = "holding block1, colour-of block1 red, free platform"
    assert ColourLabels(COLOUR).state(seen) == atoms(f"{FURNITURE}, {facts}")


# Gacha

GACHA = slots(
    {
        "block": numbered("unmade", 2),
        "tray": ["tray1", "tray2"],
        "colour": ["red", "blue"],
        "box": ["box"],
        "button": ["button"],
    }
)
TRAYS = "tray-colour tray1 red, tray-colour tray2 blue"
IN_BOX, AT_HOME, LOST = (0.3, 0.5, 0.02), (-0.2, 0.4, 0.02), (0.0, 0.4, 0.02)


def gacha(lid: float, where: tuple[float, float, float] | None, agent: tuple[float, ...] = OPEN_HAND) -> Observation:
    """The knob moves with the lid; the fifth block that was made is red, and somewhere."""
    made = {"unmade2": {"where": where, "rgb": RED, "serial": 5}} if where else {}
    return look(
        GACHA,
        agent,
        **made,
        tray1={"where": (-0.2, 0.4, 0), "rgb": RED, "span": (-0.2, -0.15)},
        tray2={"where": (-0.2, 0.6, 0), "rgb": BLUE, "span": (-0.2, -0.15)},
        red={"rgb": RED, "wanted": 0},
        blue={"rgb": BLUE, "wanted": 1},
        box={"where": (0.3 + lid, 0.5, 0.08), "travel": lid},
        button={},
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
def test_gacha(lid: float, where: tuple[float, float, float] | None, facts: str) -> None:
    labels = GachaLabels(GACHA)
    assert labels.state(gacha(lid, where)) == atoms(f"{TRAYS}, {facts}")
    assert labels.goal(gacha(lid, where)) == atoms("achieved-goal blue")


def test_a_block_leaves_the_box_when_it_is_held() -> None:
    seen = gacha(0.08, IN_BOX, holding(*IN_BOX))
    assert GachaLabels(GACHA).state(seen) == atoms(
        f"{TRAYS}, holding block5, opened box, clear box, colour-of block5 red"
    )


def test_the_box_is_found_below_its_knob() -> None:
    knob = gacha(0.08, None)["objects"][GACHA.names.index("box")]
    assert np.allclose(box_centre(knob)[:2], (0.3, 0.5))
    assert knob[COLUMN["x"]] == np.float32(0.38)  # left as it was


# Any observation at all


@cache
def rows(task: str) -> tuple[Slots, Labels]:
    environment = TASKS[task].make(2)
    return environment.slots, TASKS[task].labels(environment.slots)


def conforms(fact: Atom, domain: Domain, objects: dict[str, str]) -> bool:
    declared = domain.predicates[fact.predicate].parameters
    pairs = zip(fact.terms, declared, strict=True)
    return all(domain.is_subtype(objects[term], parameter.type) for term, parameter in pairs)


def reality(task: str) -> Observation:
    """Where a random observation begins: with colours and types as they are."""
    environment = TASKS[task].make(2)
    return environment.reset(seed=0)[0]


@pytest.mark.parametrize("task", ["blocks", "factory", "colour", "gacha"])
def test_any_positions_give_facts_that_conform(task: str) -> None:
    known, labels = rows(task)
    start = reality(task)
    made = known.rows("block")

    @settings(max_examples=40, deadline=None)
    @given(
        arrays(np.float32, (len(known), 3), elements=st.floats(-0.5, 0.75, width=32)),
        arrays(np.float32, 4, elements=st.floats(-0.5, 1, width=32)),
        arrays(np.int8, made.stop, elements=st.integers(0, 1)),
    )
    def check(where: Any, agent: Any, visible: Any) -> None:
        objects = start["objects"].copy()
        objects[:, POSITION] = where
        shown = start["visible"].copy()
        if task == "gacha":
            shown[made] = visible
            objects[made, SERIAL] = visible * np.arange(1, made.stop + 1)
            objects[made, RGB] = objects[known.rows("colour"), RGB][0] * visible[:, None]
        observation: Observation = {"agent": agent, "objects": objects, "visible": shown}
        state, names = labels.state(observation), labels.objects(observation)
        assert all(conforms(fact, TASKS[task].domain, names) for fact in state | labels.goal(observation))
        assert sum(fact.predicate in ("holding", "gripper-free") for fact in state) == 1

    check()


# Memory


def test_what_is_remembered_is_what_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelling, "REMEMBERED", 3)
    labels = BlocksLabels(BLOCKS)
    places = [(0.1 + step / 50, 0.5, height) for step in range(4) for height in (0.02, 0.1)]
    agents = [OPEN_HAND, holding(*places[0]), holding(*places[2])]
    for _ in range(2):
        for where in places:
            for agent in agents:
                expected: Facts = BlocksLabels(BLOCKS).state(blocks(where, agent))
                assert labels.state(blocks(where, agent)) == expected
                assert len(labels._states) <= 3


def test_labels_do_not_change_what_they_look_at() -> None:
    seen = gacha(0.08, IN_BOX)
    labels = GachaLabels(GACHA)
    labels.state(seen), labels.goal(seen), labels.objects(seen)
    for name, array in gacha(0.08, IN_BOX).items():
        assert np.array_equal(seen[name], array)  # type: ignore[literal-required, arg-type]
