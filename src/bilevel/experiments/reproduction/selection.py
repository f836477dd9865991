"""What is asked for, and the units of work that make it up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bilevel.experiments.methods import METHODS
from bilevel.experiments.reproduction.measurements import LAMA, RULES
from bilevel.experiments.reproduction.settings import BISON, USUAL, VARIANTS, Network, Variant
from bilevel.experiments.reproduction.unit import Unit
from bilevel.experiments.reproduction.units import Collect, Evaluate, Film, MeasureMemory, Scale, Train
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import TASKS

SCALED = ("blocks", "colour", "gacha")  # the tasks whose domains differ
SIZES = (3, 10, 30, 100, 300, 1000, 3000, 10_000)
LAMAS_SIZES = tuple(size for size in SIZES if size <= 300)  # it does not get beyond
LAMAS_TASKS = ("blocks", "colour")  # of Gacha, whose blocks come into being, it has no model


@dataclass(frozen=True)
class Selection:
    """What is asked for; all of it must fit the experiment of the folder that it goes into."""

    tasks: Sequence[str] = tuple(TASKS)
    variants: Sequence[Variant] = tuple(VARIANTS[name] for name in USUAL)
    objects: Sequence[int] = tuple(range(1, 11))
    episodes: int = 10  # for each number of objects
    seeds: Sequence[int] = (0, 1, 2)  # a network each, and worlds of its own
    parts: Sequence[str] = ("table", "memory", "scaling", "films")

    def sizes(self, task: str) -> list[int]:
        """Return the numbers of objects that the task has room for."""
        return [objects for objects in self.objects if objects <= TASKS[task].most_objects]


def require_methods(selection: Selection) -> None:
    """`BadInput` for a method that lacks something here, before any work is done."""
    for variant in selection.variants:
        if missing := METHODS[variant.method].missing():
            raise BadInput(f"{variant.name}: {missing}; or leave it out of --methods")


def left_out(selection: Selection) -> list[str]:
    """Return what is asked for and not among the units, a line each."""
    return [*_too_many_objects(selection), *_not_shown(selection)]


def _too_many_objects(selection: Selection) -> Iterator[str]:
    rooms = sorted({TASKS[task].most_objects for task in selection.tasks}) if "table" in selection.parts else []
    for room in rooms:
        if more := [str(objects) for objects in selection.objects if objects > room]:
            tasks = [task for task in selection.tasks if TASKS[task].most_objects == room]
            yield f"{', '.join(more)} objects in {', '.join(tasks)}: there is room for {room}"


def _not_shown(selection: Selection) -> Iterator[str]:
    parts = {"films": "films", "scaling": "large problems"}
    asked, scaling = [parts[part] for part in parts if part in selection.parts], "scaling" in selection.parts
    if asked and not any(variant.method == BISON for variant in selection.variants):
        yield f"{' and '.join(asked)}: they are made with policies of BISON, which is not among --methods"
    elif scaling and not set(SCALED).intersection(selection.tasks):
        yield f"large problems: they are those of {', '.join(SCALED)}, none of which is among --tasks"
    elif scaling and set(LAMAS_TASKS) & set(selection.tasks) and (missing := METHODS[LAMA].missing()):
        yield f"LAMA on large problems: {missing}"


def select_units(selection: Selection, side_by_side: bool = False) -> list[Unit]:
    """Return what is to be done, each thing once; networks of a kind can be trained side by side, for a GPU."""
    results = [*_measurements(selection), *_showpieces(selection)]
    needed = {name for unit in results for name in unit.inputs}
    trainings = [unit for unit in _trainings(selection, side_by_side) if needed.intersection(unit.outputs)]
    learned = {unit.task for unit in trainings}
    return [*(Collect(task) for task in selection.tasks if task in learned), *trainings, *results]


def _measurements(selection: Selection) -> Iterator[Unit]:
    """Yield the episodes of each row of the table, then an episode with the most objects to measure memory."""
    rows = [(task, variant) for task in selection.tasks for variant in selection.variants]
    for task, variant in rows if "table" in selection.parts else ():
        for seed in selection.seeds:
            for objects in selection.sizes(task):
                yield Evaluate(task, variant, seed, objects, selection.episodes)
    for task, variant in rows if "memory" in selection.parts else ():
        if sizes := selection.sizes(task):
            yield MeasureMemory(task, variant, selection.seeds[0], max(sizes))


def _trainings(selection: Selection, side_by_side: bool) -> Iterator[Train]:
    seeds = tuple(selection.seeds)
    for task in selection.tasks:
        networks = [variant.network(task, seeds[0]) for variant in selection.variants]
        for network in filter(None, dict.fromkeys(networks)):  # in their order, each once
            together = Train(task, network.learner, network.recipe, seeds)
            apart = [Train(task, network.learner, network.recipe, (seed,)) for seed in seeds]
            yield from [together] if side_by_side and together.uses_gpu else apart


def _showpieces(selection: Selection) -> Iterator[Unit]:
    """Yield what is made of BISON's policies besides, its last row's: films, and large problems for their rules."""
    shown = [variant for variant in selection.variants if variant.method == BISON]
    if not shown:
        return
    variant, seed = shown[-1], selection.seeds[0]
    for task in selection.tasks:
        if "films" in selection.parts:
            yield Film(task, variant, seed)
        if "scaling" in selection.parts and task in SCALED:
            yield from _large_problems(task, variant.network(task, seed))


def _large_problems(task: str, network: Network | None) -> Iterator[Scale]:
    yield from (Scale(task, RULES, size, network) for size in SIZES)
    if task in LAMAS_TASKS and METHODS[LAMA].missing() is None:
        yield from (Scale(task, LAMA, size) for size in LAMAS_SIZES)
