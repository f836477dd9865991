"""The axes are a table: every value of every row is measured by something of its own, or by what is there anyway."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest

from bilevel.experiments.hard.axes import AXES, METHODS, TASKS, Axis, find_axes
from bilevel.experiments.hard.request import hard_request
from bilevel.experiments.hard.selection import HardSelection, left_out, points
from bilevel.experiments.reproduction.folder import Experiment
from bilevel.experiments.reproduction.forecast import Forecast
from bilevel.experiments.reproduction.measurements import Evaluate
from bilevel.experiments.reproduction.selection import room
from bilevel.experiments.reproduction.units import Train
from bilevel.experiments.reproduction.variants import USUAL, VARIANTS
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS as ALL_TASKS

EXPERIMENT = Experiment()
ROWS = list(AXES.values())


def along(*axes: str) -> HardSelection:
    return HardSelection(axes, ["blocks"], ["bison", "expert"], seeds=1)


def units(selection: HardSelection) -> set[str]:
    return {unit.name for unit in hard_request(selection, EXPERIMENT).units}


@pytest.mark.parametrize("axis", ROWS, ids=[axis.name for axis in ROWS])
def test_every_value_of_an_axis_is_a_setting_of_its_own_with_a_text_of_its_own(axis: Axis) -> None:
    assert len({axis.setting(value) for value in axis.values}) == len(axis.values) > 1
    assert len({axis.show(value) for value in axis.values}) == len(axis.values)
    assert list(axis.values) == sorted(axis.values)
    assert not axis.is_log or min(axis.values) > 0
    assert axis.about.endswith(".")
    assert set(axis.tasks) <= set(TASKS)
    assert set(axis.tasks.values()) <= set(ALL_TASKS)
    assert {name for method in METHODS for name in axis.variants(method)} <= set(VARIANTS)


def test_all_axes_together_have_units_with_outputs_of_their_own_after_those_that_they_need() -> None:
    found = hard_request(HardSelection(), EXPERIMENT).units
    assert len(set(found)) == len(found) == len({unit.name for unit in found})
    outputs = Counter(name for unit in found for name in unit.outputs)
    assert set(outputs.values()) == {1}
    known: set[str] = set()
    for unit in found:
        assert known.issuperset(unit.inputs)
        known.update(unit.outputs)
        if isinstance(unit, Evaluate):
            assert 1 <= unit.objects <= room(unit.task)


def test_units_can_be_sent_to_others() -> None:
    found = hard_request(HardSelection(seeds=1), EXPERIMENT).units
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("axis", ROWS, ids=[axis.name for axis in ROWS])
def test_every_axis_has_a_ceiling_but_where_time_is_measured(axis: Axis) -> None:
    variants = {VARIANTS[point.curve.variant].method for point in points(HardSelection(axes=[axis.name]), EXPERIMENT)}
    assert ("expert" in variants) == (axis.name not in ("deciding", "symbols"))
    assert "bison" in variants


def test_what_is_as_usual_is_shared_among_axes_and_with_the_table() -> None:
    for name in ("control-noise", "budget", "shown"):
        assert {"evaluate blocks/bison-0/10", "train blocks/bison-best-0"} <= units(along(name))
    assert "evaluate blocks-noisy/bison-0/10" in units(along("teleports"))
    assert units(along("objects")) == units(along("deciding", "objects"))


def test_policies_that_learned_from_less_are_others() -> None:
    given = HardSelection(axes=["demonstrations", "shown"], tasks=["blocks"], methods=["bison", "det-replan"], seeds=1)
    found = hard_request(given, EXPERIMENT).units
    trained = {unit.policy.rpartition("/")[2] for unit in found if isinstance(unit, Train)}
    assert {f"bison-{name}{ending}-0" for name in ("best", "paper") for ending in ("", "-shown1", "-shown2")} <= trained
    for name in ("paper", "without-dagger"):
        assert {f"bison-{name}-{number}-0" for number in (1, 2, 5, 10, 20, 50)} <= trained
    assert "bison-best-5-0" not in trained  # since DAgger asks for more than five demonstrations
    evaluated = {unit.outputs[1] for unit in found if isinstance(unit, Evaluate)}
    assert "episodes/blocks/det-replan-demonstrations5-0/10.jsonl" in evaluated
    assert "episodes/blocks/bison-without-dagger-demonstrations5-0/10.jsonl" in evaluated
    assert "episodes/blocks/bison-shown1-0/10.jsonl" in evaluated


def test_what_cannot_be_measured_is_said_and_left_out() -> None:
    assert left_out(HardSelection(axes=["objects"]), EXPERIMENT) == [
        "objects 12, 15, 20 in factory, colour, gacha: there is room for 10 objects"
    ]
    assert left_out(HardSelection(axes=["shown"], tasks=["blocks", "gacha"], objects=[12]), EXPERIMENT) == [
        "shown 1, 2, 3 in gacha: there is room for 10 objects, not for 12"
    ]
    few = Experiment(demonstrations=10)
    asked = HardSelection(axes=["demonstrations"], tasks=["blocks"])
    assert left_out(asked, few) == ["demonstrations 20, 50, 200 in blocks: the experiment has 10 demonstrations"]
    assert {point.value for point in points(asked, few)} == {1, 2, 5, 10}
    assert left_out(HardSelection(axes=["swap"], tasks=["gacha"]), EXPERIMENT) == [
        "swap: its tasks are swap, none of which is among --tasks"
    ]
    nobody = HardSelection(axes=["deciding"], tasks=["blocks"], methods=["pddl-nn"])
    with pytest.raises(BadInput, match="there is nothing to measure: deciding: none of --methods can be measured"):
        hard_request(nobody, EXPERIMENT)
    assert "add expert to --methods" in left_out(HardSelection(axes=["budget"], methods=["bison"]), EXPERIMENT)[0]


def test_a_planner_that_is_taken_anyway_is_not_measured_twice() -> None:
    given = HardSelection(axes=["symbols", "deciding"], tasks=["blocks", "gacha"], methods=["det-replan"])
    found = {(point.curve.task, point.curve.variant) for point in points(given, EXPERIMENT)}
    assert found == {("blocks", "det-replan"), ("blocks", "det-replan-search"), ("gacha", "det-replan")}


def test_planners_on_our_network_can_be_run_with_bad_perception() -> None:
    given = HardSelection(axes=["perception-missed"], tasks=["blocks"], methods=["ndt-replan-dagger"], seeds=1)
    found = list(points(given, EXPERIMENT))
    assert {point.curve.variant for point in found} == {"ndt-replan-dagger"}
    assert {point.curve.objects for point in found} == {5}
    assert "train blocks/bison-best-0" in {unit.name for unit in hard_request(given, EXPERIMENT).units}


def test_names_of_axes() -> None:
    assert find_axes(()) == ROWS
    kinds = ["noise", "missed", "occluded", "delay"]
    found = [axis.name for axis in find_axes(["swap", "perception", "objects"])]
    assert found == [*(f"perception-{kind}" for kind in kinds), "objects", "swap", "swap-circle"]
    with pytest.raises(BadInput, match="unknown axis 'telepots'; there are: teleports, control-noise, "):
        find_axes(["telepots"])


def test_rows_for_single_axes_are_not_in_the_table() -> None:
    assert not {"det-replan-search", "expert-estimating"} & set(USUAL)


def test_harder_conditions_take_longer() -> None:
    given = HardSelection(axes=["teleports"], tasks=["blocks"], methods=["expert"], seeds=1)
    forecast = Forecast(EXPERIMENT)
    guesses = [forecast.guess(point.unit) for point in points(given, EXPERIMENT)]
    assert guesses == sorted(guesses)
    assert guesses[0] < guesses[-1]
