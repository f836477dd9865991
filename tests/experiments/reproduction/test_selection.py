"""What is wanted is taken apart into units, each of them once, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from bilevel.experiments.paper import TASKS
from bilevel.experiments.reproduction import selection
from bilevel.experiments.reproduction.folder import QUICK, Experiment
from bilevel.experiments.reproduction.forecast import Forecast
from bilevel.experiments.reproduction.large_problems import PLANNERS, PLANNERS_SIZES, SCALED, SIZES, Scale
from bilevel.experiments.reproduction.measurements import Evaluate, Film, MeasureMemory
from bilevel.experiments.reproduction.recipes import (
    AS_PRINTED,
    OUR_RECIPE,
    PAPERS_RECIPE,
    RECORDED,
    WITHOUT_DAGGER,
)
from bilevel.experiments.reproduction.selection import (
    Selection,
    asked_for,
    left_out,
    require_methods,
    room,
    select_units,
)
from bilevel.experiments.reproduction.units import Collect, Train
from bilevel.experiments.reproduction.variants import USUAL, VARIANTS, find_variant
from bilevel.symbolic.domain import BadInput

ALL = Selection()


def wanted(*names: str, parts: Sequence[str] = ("table",)) -> Selection:
    variants = [VARIANTS[name] for name in names]
    return Selection(tasks=["blocks", "gacha"], variants=variants, objects=[1, 10], seeds=[0, 1], parts=parts)


def names(unit_type: type, given: Selection) -> list[str]:
    return [unit.name for unit in select_units(given) if isinstance(unit, unit_type)]


def test_the_whole_experiment() -> None:
    units = select_units(ALL)
    kinds = Counter(unit.kind for unit in units)
    with_trays = [task for task in TASKS if VARIANTS["bison-fixed-trays"].is_for(task)]
    assert kinds["collect"] == len(TASKS) + len(with_trays)
    assert kinds["train"] == 3 * (9 * len(TASKS) + 2 * len(with_trays))  # five times bison, the rivals twice
    sizes = {task: min(10, room(task)) for task in TASKS}
    rows = [(name, task) for name in USUAL for task in TASKS if VARIANTS[name].is_for(task)]
    assert len(rows) == (len(USUAL) - 4) * len(TASKS) + 3 * len(with_trays) + 2  # LAMA alone is for Gacha
    assert kinds["evaluate"] == 3 * sum(sizes[task] for _, task in rows)
    assert kinds["film"] == len(TASKS)
    assert kinds["scale"] == len(SCALED) * (len(SIZES) + len(PLANNERS) * len(PLANNERS_SIZES))
    assert len(set(units)) == len(units) == len({unit.name for unit in units})
    assert len({name for unit in units for name in unit.outputs}) == sum(len(unit.outputs) for unit in units)


def test_everything_that_is_needed_is_made_before_and_nothing_else() -> None:
    for given in (ALL, wanted("det-plan", "expert"), wanted("bison", parts=["films"])):
        known: set[str] = set()
        needed = {need for unit in select_units(given) for need in unit.inputs}
        for unit in select_units(given):
            assert known.issuperset(unit.inputs)
            known.update(unit.outputs)
            if isinstance(unit, Collect | Train):
                assert needed.intersection(unit.outputs)


def test_rows_share_networks() -> None:
    given = wanted("bison-paper", "det-plan", "det-replan", "ndt-replan")
    assert names(Train, given) == [
        "train blocks/bison-paper-0",
        "train blocks/bison-paper-1",
        "train gacha/bison-paper-0",
        "train gacha/bison-paper-1",
    ]
    alone = wanted("det-plan")
    assert names(Train, alone) == names(Train, given)


def test_no_more_objects_than_a_world_has_room_for() -> None:
    for unit in select_units(ALL):
        if isinstance(unit, Evaluate):
            assert 1 <= unit.objects <= room(unit.task)


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_out(ALL) == []
    many = Selection(tasks=["blocks", "factory", "gacha"], objects=[1, 10, 11, 20])
    assert left_out(many) == ["11, 20 objects in factory, gacha: there is room for 10"]
    said = "they are made with policies of BISON, which is not among --methods"
    assert left_out(wanted("expert")) == []
    assert left_out(wanted("expert", parts=["films"])) == [f"films: {said}"]
    assert left_out(wanted("expert", parts=["films", "scaling"])) == [f"films and large problems: {said}"]
    (line,) = left_out(Selection(tasks=["factory"]))
    assert line == "large problems: they are those of blocks, colour, gacha, none of which is among --tasks"
    monkeypatch.setattr(selection, "missing", lambda method: "no planner")
    assert left_out(ALL) == ["LAMA on large problems: no planner"]
    assert left_out(wanted("bison")) == []
    assert {unit.solver for unit in select_units(ALL) if isinstance(unit, Scale)} == {"rules", "search"}


def test_what_findings_must_have_is_that_of_the_units() -> None:
    asked = asked_for(select_units(wanted("bison", "det-replan-lama", parts=["table", "memory", "scaling"])))
    assert asked.rows == {"blocks": ["bison"], "gacha": ["bison", "det-replan-lama"]} == asked.memory
    assert (asked.sizes["gacha"], asked.episodes, list(asked.seeds)) == ([1, 10], 10, [0, 1])
    assert asked.problems["gacha"]["rules"] == list(SIZES)
    assert set(asked.problems["blocks"]) == {"rules", "lama", "search"}


def test_memory_of_each_row_is_measured_once_with_as_many_objects_as_it_is_measured_with() -> None:
    assert names(MeasureMemory, wanted("bison", "expert", parts=["memory"])) == [
        "memory blocks/bison",
        "memory blocks/expert",
        "memory gacha/bison",
        "memory gacha/expert",
    ]
    units = select_units(Selection(tasks=["blocks", "factory"], objects=[1, 10, 11, 20]))
    measured = {(unit.task, unit.objects) for unit in units if isinstance(unit, MeasureMemory)}
    assert measured == {("blocks", 20), ("factory", 10)}
    assert not [
        unit for unit in select_units(Selection(tasks=["factory"], objects=[20])) if isinstance(unit, MeasureMemory)
    ]


def test_who_needs_no_network_needs_no_demonstrations() -> None:
    assert {unit.kind for unit in select_units(wanted("expert"))} == {"evaluate"}


def test_parts_that_are_not_wanted_are_not_made() -> None:
    nothing = wanted("bison", "expert", parts=[])
    assert select_units(nothing) == []
    films = wanted("bison-paper", "bison", "pddl-nn", parts=["films"])
    assert [unit.name for unit in select_units(films)] == [
        "collect blocks",
        "collect gacha",
        "train blocks/bison-best-0",
        "train gacha/bison-best-0",
        "film blocks",
        "film gacha",
    ]
    assert select_units(wanted("expert", parts=["films", "scaling"])) == []


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (["bison", "bison-paper", "expert"], "bison"),
        (["bison-paper", "bison-recorded"], "bison-recorded"),
        (["bison-paper", "bison-missing-draws"], "bison-paper"),
    ],
)
def test_films_and_rules_are_of_our_preset_or_the_last_row_of_bison(rows: list[str], shown: str) -> None:
    units = select_units(wanted(*rows, parts=["films", "scaling"]))
    assert {unit.variant.name for unit in units if isinstance(unit, Film)} == {shown}
    recipes = {unit.training.recipe for unit in units if isinstance(unit, Scale) and unit.training}
    assert recipes == {VARIANTS[shown].recipe}


def test_a_row_in_a_changed_world_is_learned_and_run_in_it_where_a_task_has_it() -> None:
    units = select_units(wanted("bison-missing-draws", "expert-missing-draws"))
    assert {unit.task for unit in units} == {"gacha"}  # blocks knows nothing of draws
    assert names(Collect, wanted("bison-missing-draws")) == ["collect gacha-missing-draws"]
    assert names(Train, wanted("bison-missing-draws")) == [
        "train gacha/bison-best-missing-draws-0",
        "train gacha/bison-best-missing-draws-1",
    ]


def test_a_row_that_takes_the_network_of_another_has_it_trained_once() -> None:
    both = wanted("bison-paper", "bison-printed")
    assert [name for name in names(Train, both) if "blocks" in name] == [
        "train blocks/bison-paper-0",
        "train blocks/bison-paper-1",
        "train blocks/bison-printed-0",
        "train blocks/bison-printed-1",
    ]
    assert sorted(names(Train, wanted("bison-printed"))) == sorted(names(Train, both))


def test_an_unknown_method_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(BadInput, match=r"unknown method 'bizon'; what can be reproduced: bison-printed, bison-paper, "):
        find_variant("bizon")


def test_a_method_that_cannot_be_run_here_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    require_methods(wanted("bison", "expert").variants)
    monkeypatch.setattr(selection, "missing", lambda method: "no planner")
    with pytest.raises(BadInput, match=r"^det-plan: no planner; or leave it out of --methods$"):
        require_methods(wanted("det-plan").variants)


@pytest.mark.parametrize("experiment", [Experiment(), QUICK])
def test_every_unit_takes_some_time(experiment: Experiment) -> None:
    forecast, with_gpu = Forecast(experiment), Forecast(experiment, gpu=True)
    for unit in select_units(ALL):
        assert 0 < with_gpu.guess(unit) <= forecast.guess(unit) < 24 * 3600
    ranked = sorted(select_units(ALL), key=forecast.rank)
    assert [unit.kind for unit in ranked[: len(TASKS)]] == ["collect"] * len(TASKS)
    assert ranked[-1].kind == "evaluate"


# Rows of the table


def test_rows_of_bison_differ_in_what_they_say() -> None:
    experiment = Experiment(epochs=7, dagger_episodes=5)
    recipes = PAPERS_RECIPE, AS_PRINTED, RECORDED, WITHOUT_DAGGER, OUR_RECIPE
    paper, printed, recorded, without, ours = (msgspec.to_builtins(experiment.config(recipe)) for recipe in recipes)
    assert printed == {**paper, "algorithm": "printed"}
    assert recorded == {**paper, "recorded_actions": True}
    assert ours == {**without, "dagger": {**without["dagger"], "rounds": 2}}
    assert ours["dagger"]["episodes"] == 5
    assert paper["training"]["epochs"] == 7 != ours["training"]["epochs"]
    assert paper["training"]["updates"] == 0
    longer = msgspec.structs.replace(experiment, updates=900)
    assert longer.config(PAPERS_RECIPE).training.updates == 900
    assert longer.config(OUR_RECIPE) == experiment.config(OUR_RECIPE)


def test_rivals_learn_as_bison_does_for_as_many_epochs_and_rollouts() -> None:
    experiment = Experiment(epochs=7, updates=300, learning_rate=0.005)
    for rival in ("pddl-nn", "pure-nn"):
        for ending, bison in (("", "bison-paper"), ("-dagger", "bison")):
            recipe, ours = VARIANTS[rival + ending].recipe, VARIANTS[bison].recipe
            assert recipe is not None
            assert ours is not None
            assert experiment.config(recipe) == experiment.config(ours)
            assert experiment.config(recipe).training.learning_rate == 0.005


def test_what_is_as_in_the_paper_runs_without_what_the_paper_has_not() -> None:
    """No recovery, which may plan where no rule applies, and no state estimation."""
    told = {name: (variant.recovery, variant.estimation) for name, variant in VARIANTS.items()}
    assert told["bison-paper"] == told["bison-recorded"] == told["bison-paper-fixed-trays"] == ("off", "off")
    assert told["bison"] == told["bison-without-dagger"] == told["bison-fixed-trays"] == (None, None)
    assert told["det-replan"] == (None, "off")
    assert told["det-replan-dagger"] == told["pddl-nn"] == told["pddl-nn-dagger"] == told["expert"] == (None, None)
