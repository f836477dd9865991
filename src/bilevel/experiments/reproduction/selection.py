"""What is asked for, and the units of work that make it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from bilevel.experiments.methods import METHODS, missing
from bilevel.experiments.paper import TASKS as PAPERS_TASKS
from bilevel.experiments.reproduction.completeness import Asked
from bilevel.experiments.reproduction.folder import FINDINGS, ExperimentFolder
from bilevel.experiments.reproduction.large_problems import (
    LAMA,
    PLANNERS,
    PLANNERS_SIZES,
    RULES,
    SCALED,
    SIZES,
    Scale,
)
from bilevel.experiments.reproduction.measurements import Evaluate, Film, MeasureMemory
from bilevel.experiments.reproduction.recipes import OUR_RECIPE, USUAL_WORLD
from bilevel.experiments.reproduction.summary import write_findings
from bilevel.experiments.reproduction.units import Train, Unit
from bilevel.experiments.reproduction.variants import USUAL, VARIANTS, Variant
from bilevel.policies.folder import BISON
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS


@dataclass(frozen=True)
class Request:
    """What a run is asked for: units of work, each once and after those that it needs, and what is made of them."""

    units: Sequence[Unit]
    left_out: Sequence[str]  # what a user may have expected to be among them, a line each
    page: str | None  # the file for the report, of those that `report.writing` can write
    findings: str = FINDINGS  # the file for what was found
    write_findings: Callable[[ExperimentFolder], None] = write_findings
    note: Callable[[ExperimentFolder], None] = lambda folder: None  # keep in the folder what was asked for


@dataclass(frozen=True)
class Selection:
    """What is asked for; all of it must fit the experiment of the folder that it goes into."""

    tasks: Sequence[str] = PAPERS_TASKS
    variants: Sequence[Variant] = tuple(VARIANTS[name] for name in USUAL)
    objects: Sequence[int] = tuple(range(1, 11))
    episodes: int = 10  # for each number of objects
    seeds: Sequence[int] = (0, 1, 2)  # a network each, and worlds of its own
    parts: Sequence[str] = ("table", "memory", "scaling", "films")

    def sizes(self, task: str) -> list[int]:
        """Return the numbers of objects that the task has room for."""
        return [objects for objects in self.objects if objects <= room(task)]


def room(task: str) -> int:
    """Return how many objects a task has room for."""
    most = TASKS[task].max_objects
    assert most is not None, "every table is small"
    return most


def find_task_names(names: Sequence[str]) -> list[str]:
    """Return these tasks, each once, or without any the paper's; `BadInput` for one that there is not."""
    for name in names:
        if name not in TASKS:
            raise BadInput(f"unknown task '{name}'; tasks that can be reproduced: {', '.join(TASKS)}")
    return list(dict.fromkeys(names or PAPERS_TASKS))


def request(selection: Selection) -> Request:
    """Return what a run has to do; `BadInput` for a method that lacks something here, before any work is done."""
    require_methods(selection.variants)
    units, page = select_units(selection), "report.html" if "report" in selection.parts else None
    return Request(units, left_out(selection), page, note=asked_for(units).note)


def asked_for(units: Iterable[Unit]) -> Asked:
    """Return what findings must have to be complete."""
    rows: dict[str, dict[str, None]] = {}  # in their order, each once
    memory: dict[str, dict[str, None]] = {}
    sizes: dict[str, dict[int, None]] = {}
    problems: dict[str, dict[str, list[int]]] = {}
    seeds, episodes = set(), 0
    for unit in units:
        if isinstance(unit, Evaluate):
            rows.setdefault(unit.task, {})[unit.variant.name] = None
            sizes.setdefault(unit.task, {})[unit.objects] = None
            seeds.add(unit.seed)
            episodes = max(episodes, unit.episodes)
        elif isinstance(unit, MeasureMemory):
            memory.setdefault(unit.task, {})[unit.variant.name] = None
        elif isinstance(unit, Scale):
            problems.setdefault(unit.task, {}).setdefault(unit.solver, []).append(unit.objects)
    return Asked(
        rows={task: list(names) for task, names in rows.items()},
        sizes={task: list(numbers) for task, numbers in sizes.items()},
        episodes=episodes,
        seeds=sorted(seeds),
        memory={task: list(names) for task, names in memory.items()},
        problems=problems,
    )


def require_methods(variants: Sequence[Variant]) -> None:
    """`BadInput` for a method that lacks something here."""
    for variant in variants:
        if lacking := missing(METHODS[variant.method]):
            raise BadInput(f"{variant.name}: {lacking}; or leave it out of --methods")


def left_out(selection: Selection) -> list[str]:
    """Return what is asked for and not among the units, a line each."""
    return [*_too_many_objects(selection), *_not_shown(selection)]


def _too_many_objects(selection: Selection) -> Iterator[str]:
    rooms = sorted(set(map(room, selection.tasks))) if "table" in selection.parts else []
    for most in rooms:
        if more := [str(objects) for objects in selection.objects if objects > most]:
            tasks = [task for task in selection.tasks if room(task) == most]
            yield f"{', '.join(more)} objects in {', '.join(tasks)}: there is room for {most}"


def _not_shown(selection: Selection) -> Iterator[str]:
    parts = {"films": "films", "scaling": "large problems"}
    asked, scaling = [parts[part] for part in parts if part in selection.parts], "scaling" in selection.parts
    if asked and not any(map(_is_shown, selection.variants)):
        yield f"{' and '.join(asked)}: they are made with policies of BISON, which is not among --methods"
    elif scaling and not set(SCALED).intersection(selection.tasks):
        yield f"large problems: they are those of {', '.join(SCALED)}, none of which is among --tasks"
    elif scaling and (lacking := missing(METHODS[LAMA])):
        yield f"LAMA on large problems: {lacking}"


def select_units(selection: Selection) -> list[Unit]:
    """Return what is to be done, each thing once."""
    results = [*_measurements(selection), *_showpieces(selection)]
    rows = product(selection.tasks, selection.variants, selection.seeds)
    return with_training(results, [variant.training(task, seed) for task, variant, seed in rows])


def with_training(results: Sequence[Unit], networks: Iterable[Train | None]) -> list[Unit]:
    """Return units after those of these that train what they need, and what collects the demonstrations for that."""
    needed = {name for unit in results for name in unit.inputs}
    wanted = [unit for unit in networks if unit and needed.intersection(unit.outputs)]
    trainings = list(dict.fromkeys(each for unit in wanted for each in (unit.network, unit)))
    return [*dict.fromkeys(unit.collection for unit in trainings), *trainings, *results]


def _measurements(selection: Selection) -> Iterator[Unit]:
    """Yield the episodes of each row of the table, then an episode with the most objects to measure memory."""
    rows = [(task, variant) for task in selection.tasks for variant in selection.variants if variant.is_for(task)]
    for task, variant in rows if "table" in selection.parts else ():
        for seed in selection.seeds:
            for objects in selection.sizes(task):
                yield Evaluate(task, variant, seed, objects, selection.episodes)
    for task, variant in rows if "memory" in selection.parts else ():
        if sizes := selection.sizes(task):
            yield MeasureMemory(task, variant, selection.seeds[0], max(sizes))


def _showpieces(selection: Selection) -> Iterator[Unit]:
    """Yield what is made of BISON's policies besides: films, and large problems for their rules.

    They are those of our preset, or else of the last row of BISON in the usual world.
    """
    shown = [variant for variant in selection.variants if _is_shown(variant)]
    if not shown:
        return
    variant = next((variant for variant in shown if variant.recipe == OUR_RECIPE), shown[-1])
    seed = selection.seeds[0]
    for task in selection.tasks:
        if "films" in selection.parts:
            yield Film(task, variant, seed)
        if "scaling" in selection.parts and task in SCALED:
            yield from _large_problems(task, variant.training(task, seed))


def _is_shown(variant: Variant) -> bool:
    return variant.method == BISON and variant.world == USUAL_WORLD


def _large_problems(task: str, training: Train | None) -> Iterator[Scale]:
    yield from (Scale(task, RULES, size, training) for size in SIZES)
    planners = [planner for planner in PLANNERS if planner != LAMA or missing(METHODS[LAMA]) is None]
    yield from (Scale(task, planner, size) for planner in planners for size in PLANNERS_SIZES)
