"""Labels: any scene at all gives proper facts; the conformance tests compare them with the simulator."""

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
