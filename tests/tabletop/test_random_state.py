"""A generator goes on as it was saved, whatever it was used for before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bilevel.tabletop.tabletop import random_state, set_random_state

SEEDS = st.integers(0, 2**64)


def draws(rng: np.random.Generator, kinds: list[str]) -> list[float]:
    """Numbers of 32 and of 64 bits: half a draw may be left over."""
    draw: dict[str, Callable[[], Any]] = {
        "integer": lambda: rng.integers(7, dtype=np.int32),
        "float": rng.random,
        "normal": rng.normal,
    }
    return [float(draw[kind]()) for kind in kinds]


KINDS = st.lists(st.sampled_from(["integer", "float", "normal"]), max_size=9)


@given(SEEDS, SEEDS, KINDS, KINDS)
def test_a_generator_goes_on_from_its_state(seed: int, other: int, before: list[str], after: list[str]) -> None:
    rng, copy = np.random.default_rng(seed), np.random.default_rng(other)
    draws(rng, before)
    saved = random_state(rng)
    set_random_state(copy, saved)
    assert saved.dtype == np.uint64
    assert saved.shape == (6,)
    assert np.array_equal(random_state(copy), saved)
    assert draws(copy, after) == draws(rng, after)
