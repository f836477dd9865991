"""Thresholds of labels: who is given them, and which are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from bilevel.symbolic.domain import Atom, BadInput
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import TaskError
from tiny_task import REACH, SPEC, TINY, TINY_MEASURED

AT, LYING = Atom("at", ("parcel1", "spot1")), Atom("lying", ("parcel1",))


def scene(off: float) -> Scene:
    """A parcel so far off a spot."""
    parcel, spot = {"x": 0.3 + off, "y": 0.0, "held": 0.0}, {"x": 0.3, "y": 0.0, "radius": REACH}
    return Scene(SPEC, {"x": 0.0, "y": 0.0, "closed": 0.0}, {"parcel": {"parcel1": parcel}, "spot": {"spot1": spot}})


def test_labels_are_given_the_thresholds_of_the_task() -> None:
    near, far = scene(0.9 * REACH), scene(1.1 * REACH)
    assert AT in TINY_MEASURED.labels.state(near)
    assert LYING in TINY_MEASURED.labels.state(far)
    wider = replace(TINY_MEASURED, thresholds={"near": 2 * REACH}).labels
    assert AT in wider.state(far)
    assert wider.goal(far) == TINY_MEASURED.labels.goal(far) == {AT}


def test_labels_without_thresholds_are_given_the_scene_alone() -> None:
    assert not TINY.thresholds
    assert AT in TINY.labels.state(scene(0.9 * REACH))


def test_the_same_labels_can_have_other_thresholds() -> None:
    labels, far = TINY_MEASURED.labels, scene(1.1 * REACH)
    assert LYING in labels.state(far)
    assert AT in labels.with_thresholds({"near": 2 * REACH}).state(far)
    assert LYING in labels.state(far)
    assert labels.thresholds == {"near": REACH}
    assert labels.with_thresholds({}) is labels


def test_unknown_thresholds_are_refused() -> None:
    with pytest.raises(BadInput, match="the labels have no threshold 'far'; theirs are: near"):
        TINY_MEASURED.labels.with_thresholds({"far": 1.0})
    with pytest.raises(BadInput, match="theirs are: none"):
        TINY.labels.with_thresholds({"near": 1.0})


@pytest.mark.parametrize("value", [0.0, -0.1, math.inf, math.nan, "0.1"])
def test_a_threshold_is_more_than_nothing(value: Any) -> None:
    with pytest.raises(BadInput, match="the threshold 'near' must be a number more than 0"):
        replace(TINY_MEASURED, thresholds={"near": value})


def test_labels_that_want_others_fail_in_one_line() -> None:
    labels = replace(TINY_MEASURED, thresholds={"far": 1.0}).labels
    with pytest.raises(TaskError, match=r"^label\(scene, thresholds\) raised KeyError: 'near' \(.*, line \d+\)$"):
        labels.state(scene(0.0))
