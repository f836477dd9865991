"""Teleports and jostling: as often and as strong as said, from their own generators, and nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bilevel.tabletop.noise import Bursts, Jostle, teleporting
from bilevel.tabletop.observation import Array, Bools

CONTROL = np.array([0.5, -0.5, 0.1, 1.0], np.float32)


@given(arrays(bool, 6), st.integers(0, 100))
def test_only_what_is_at_its_goal_teleports(at_goal: Bools, seed: int) -> None:
    assert at_goal[teleporting(np.random.default_rng(seed), at_goal, 0.5)].all()
    assert teleporting(np.random.default_rng(seed), at_goal, 1.0).tolist() == np.flatnonzero(at_goal).tolist()


def test_a_rate_is_a_probability_per_object_and_step() -> None:
    rng = np.random.default_rng(0)
    count = sum(len(teleporting(rng, np.array([True, False, True]), 0.1)) for _ in range(5000))
    assert 900 < count < 1100


def test_where_nothing_teleports_nothing_is_drawn() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert len(teleporting(rng, np.ones(3, bool), 0.0)) == 0
    assert rng.bit_generator.state == before


def jostled(bursts: Bursts, steps: int = 4000, seed: int = 0) -> Array:
    jostle = Jostle(bursts, seed)
    return np.stack([jostle(CONTROL) for _ in range(steps)])


def test_jostling_comes_in_bursts_of_bounded_length() -> None:
    bursts = Bursts(flips=0.0)
    disturbed = (jostled(bursts) != CONTROL).any(axis=1)
    edges = np.flatnonzero(np.diff(disturbed.astype(int), prepend=0, append=0))
    lengths = edges[1::2] - edges[::2]
    assert lengths.min() >= bursts.shortest
    assert 0.1 < disturbed.mean() < 0.35
    assert (jostled(bursts)[:, 3] == CONTROL[3]).all()


def test_a_push_is_constant_and_bounded() -> None:
    pushes = jostled(Bursts(amplitude=0.3, flips=0.0))[:, :3] - CONTROL[:3]
    assert np.abs(pushes).max() <= 0.3 + 1e-6
    assert 10 < len(np.unique(pushes, axis=0)) < 200


def test_fingers_may_do_the_opposite() -> None:
    assert (jostled(Bursts(flips=1.0))[:, 3] == -1).any()


def test_disturbed_controls_stay_in_range_and_depend_on_the_seed_alone() -> None:
    wild = jostled(Bursts(amplitude=5.0))
    assert np.abs(wild).max() <= 1
    assert np.array_equal(wild, jostled(Bursts(amplitude=5.0)))
    assert not np.array_equal(wild, jostled(Bursts(amplitude=5.0), seed=1))
    assert CONTROL.tolist() == np.array([0.5, -0.5, 0.1, 1.0], np.float32).tolist()  # left as it was
