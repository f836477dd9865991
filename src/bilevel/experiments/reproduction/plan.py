"""The units of work that make up what is wanted."""

from __future__ import annotations

from collections.abc import Iterator

from bilevel.experiments.methods import METHODS
from bilevel.experiments.reproduction.settings import BISON, Wanted
from bilevel.experiments.reproduction.unit import Unit
from bilevel.experiments.reproduction.units import LAMA, RULES, Collect, Evaluate, Film, Scale, Train, Weigh
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import TASKS

SCALED = ("blocks", "colour", "gacha")  # the tasks whose domains differ
SIZES = (3, 10, 30, 100, 300, 1000, 3000, 10_000)
LAMAS_SIZES = tuple(size for size in SIZES if size <= 300)  # it does not get beyond
LAMAS_TASKS = ("blocks", "colour")  # of Gacha, whose blocks come into being, it has no model


def require_methods(wanted: Wanted) -> None:
    """`BadInput` for a method that lacks something here, before any work is done."""
    for entrant in wanted.entrants:
        if missing := METHODS[entrant.method].missing():
            raise BadInput(f"{entrant.name}: {missing}; or leave it out of --methods")


def left_out(wanted: Wanted) -> list[str]:
    """What is asked for and not among the units, a line each."""
    return [*_too_many_objects(wanted), *_not_shown(wanted)]


def _too_many_objects(wanted: Wanted) -> Iterator[str]:
    rooms = sorted({TASKS[task].most_objects for task in wanted.tasks}) if wanted.table else []
    for room in rooms:
        if more := [str(objects) for objects in wanted.objects if objects > room]:
            tasks = [task for task in wanted.tasks if TASKS[task].most_objects == room]
            yield f"{', '.join(more)} objects in {', '.join(tasks)}: there is room for {room}"


def _not_shown(wanted: Wanted) -> Iterator[str]:
    parts = {"films": wanted.films, "large problems": wanted.scaling}
    if asked := [part for part, is_wanted in parts.items() if is_wanted]:
        if not any(entrant.method == BISON for entrant in wanted.entrants):
            yield f"{' and '.join(asked)}: they are made with policies of BISON, which is not among --methods"
        elif wanted.scaling and not set(SCALED).intersection(wanted.tasks):
            yield f"large problems: they are those of {', '.join(SCALED)}, none of which is among --tasks"
        elif wanted.scaling and set(LAMAS_TASKS).intersection(wanted.tasks) and (missing := METHODS[LAMA].missing()):
            yield f"LAMA on large problems: {missing}"


def plan_units(wanted: Wanted, side_by_side: bool = False) -> list[Unit]:
    """What is to be done, each thing once. Networks of a kind can be trained side by side, which only a GPU likes."""
    ends = [*_evaluations(wanted), *_weighings(wanted), *_shown(wanted)]
    needed = {name for unit in ends for name in unit.needs}
    trainings = [unit for unit in _trainings(wanted, side_by_side) if needed.intersection(unit.gives)]
    shown = {unit.task for unit in trainings}
    return [*(Collect(task) for task in wanted.tasks if task in shown), *trainings, *ends]


def _evaluations(wanted: Wanted) -> Iterator[Evaluate]:
    for task in wanted.tasks if wanted.table else ():
        for entrant in wanted.entrants:
            for seed in wanted.seeds:
                for objects in wanted.objects:
                    if objects <= TASKS[task].most_objects:
                        yield Evaluate(task, entrant, seed, objects, wanted.episodes)


def _weighings(wanted: Wanted) -> Iterator[Weigh]:
    """One of each row on each task, with as many objects as it is measured with."""
    for task in wanted.tasks if wanted.memory else ():
        for entrant in wanted.entrants:
            fitting = [objects for objects in wanted.objects if objects <= TASKS[task].most_objects]
            if fitting:
                yield Weigh(task, entrant, wanted.seeds[0], max(fitting))


def _trainings(wanted: Wanted, side_by_side: bool) -> Iterator[Train]:
    kinds = {(entrant.learner, entrant.recipe): None for entrant in wanted.entrants}  # in their order, each once
    for task in wanted.tasks:
        for learner, recipe in kinds:
            if learner is not None and recipe is not None:
                together = Train(task, learner, recipe, tuple(wanted.seeds))
                apart = [Train(task, learner, recipe, (seed,)) for seed in wanted.seeds]
                yield from [together] if side_by_side and together.likes_gpu else apart


def _shown(wanted: Wanted) -> Iterator[Unit]:
    """What is made of BISON's policies besides, its last row's: large problems for their rules, and films."""
    shown = [entrant for entrant in wanted.entrants if entrant.method == BISON]
    if not shown:
        return
    entrant, seed = shown[-1], wanted.seeds[0]
    for task in wanted.tasks:
        if wanted.films:
            yield Film(task, entrant, seed)
        if wanted.scaling and task in SCALED:
            assert entrant.learner is not None
            assert entrant.recipe is not None
            rules = Train(task, entrant.learner, entrant.recipe, (seed,))
            yield from (Scale(task, RULES, size, rules) for size in SIZES)
            if task in LAMAS_TASKS and METHODS[LAMA].missing() is None:
                yield from (Scale(task, LAMA, size, None) for size in LAMAS_SIZES)
