"""Relevance: arguments that play no part in how an action is done are found, and the others stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilevel.learning.learn import label_demonstrations
from bilevel.lowlevel.encoding import Samples, encoding_of
from bilevel.lowlevel.relevance import irrelevant_arguments, without
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Array
from tiny_demonstrations import labelled, shown
from tiny_task import DOMAIN, SPEC, TINY

PUT = 1  # the number of the schema (put ?p ?s)
ENCODING = encoding_of(DOMAIN, SPEC)
CONTROLS = BoxControls([-1.0] * 2, [1.0] * 2, [2])


def samples_of(targets_from: list[int], episodes: int = 4, steps: int = 12) -> Samples:
    """Random walks of what is seen, and controls that are a smooth function of some arguments."""
    rng, count = np.random.default_rng(0), episodes * steps
    objects = np.zeros((count, ENCODING.arity, ENCODING.object_size), np.float32)
    starts = rng.normal(size=(episodes, 1, 2, 2))
    seen = (starts + 0.2 * rng.normal(size=(episodes, steps, 2, 2))).reshape(count, 2, 2)
    objects[:, :, :2], objects[:, [0, 1], [-2, -1]] = seen, 1
    targets: Array = np.tanh(2 * seen[:, targets_from].sum(axis=1)).astype(np.float32)
    globals_ = np.zeros((count, ENCODING.global_size), np.float32)
    return Samples(targets, np.repeat(np.arange(episodes), steps), globals_, np.full(count, PUT), objects)


@pytest.mark.parametrize(("used", "left_out"), [([0], {1}), ([1], {0}), ([0, 1], set())])
def test_what_plays_no_part_is_found(used: list[int], left_out: set[int]) -> None:
    found = irrelevant_arguments(samples_of(used, episodes=20), ENCODING, CONTROLS)
    assert found == ({"put": left_out} if left_out else {})


def test_of_two_that_go_together_both_stay() -> None:
    """As a block and the box that it lies in: the demonstrations do not say which of them matters."""
    found = samples_of([0], episodes=20)
    shifts = np.random.default_rng(1).normal(size=(len(found), 2)) * 0.01
    found.objects[:, 1, :2] = found.objects[:, 0, :2] + shifts
    assert irrelevant_arguments(found, ENCODING, CONTROLS) == {}


def test_samples_without_an_argument_are_those_that_are_encoded_without_it() -> None:
    spec = replace(SPEC, untold={"put": ("?p",)})
    theirs = label_demonstrations(replace(shown(), spec=spec), TINY).samples
    found = without(labelled().samples, ENCODING, {"put": frozenset([0])})
    assert all(np.array_equal(first, second) for first, second in zip(found.arrays(), theirs.arrays(), strict=True))
