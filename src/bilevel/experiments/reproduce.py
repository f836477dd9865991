"""The whole experiment: data sets, policies learned from them, episodes of these, films, and a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from bilevel.experiments.films import make_film
from bilevel.experiments.jobs import (
    QUICK,
    REPORT,
    Cell,
    Job,
    Network,
    Outcome,
    Phase,
    Settings,
    choose_settings,
    episode_phases,
    learning_phases,
    measure_memory,
    open_folder,
    run_phases,
)
from bilevel.experiments.problems import measure_planner, measure_rules, planner_problems, rule_problems
from bilevel.experiments.report import write_pages
from bilevel.experiments.rows import (
    PAPER_ROWS,
    PAPER_TASKS,
    ROWS,
    USUAL_ROWS,
    Row,
    find_rows,
    find_tasks,
    room,
)
from bilevel.policies.folder import BISON
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS

PARTS = ("table", "memory", "scaling", "films", "report")


def reproduce(
    output: Path | str,
    *,
    tasks: Sequence[str] = (),
    methods: Sequence[str] = (),
    objects: Iterable[int] | None = None,
    episodes: int | None = None,
    seeds: int | None = None,
    quick: bool = False,
    parts: Sequence[str] = PARTS,
    workers: int | None = None,
    cluster: str | None = None,
    callback: Callback = silent,
    **settings: float | None,
) -> Outcome:
    """Run the paper's experiment in a folder, or whatever of it is not there yet, and write its report.

    By default, that is every usual row of the table on the paper's tasks, with 1 to 10 objects, 10 episodes of each
    size, and 3 seeds; a `quick` one is smaller. Among `settings` are `epochs`, `updates`, `learning_rate`,
    `dagger_episodes` and `demonstrations`. A `cluster` is the address of a Ray cluster that sees the folder.
    """
    for part in parts:
        if part not in PARTS:
            raise BadInput(f"unknown part '{part}'; there are: {', '.join(PARTS)}")
    names = find_tasks(tasks, TASKS, PAPER_TASKS)
    rows = find_rows(methods, PAPER_ROWS if quick else USUAL_ROWS)
    sizes = list(objects or ((1, 3, 6) if quick else range(1, 11)))
    networks = range(seeds or (1 if quick else 3))
    chosen = choose_settings(QUICK if quick else Settings(), settings)
    cells = [
        Cell(task, row.name, seed, number, episodes or (3 if quick else 10))
        for task, row, seed, number in product(names, rows, networks, sizes)
        if row.is_for(task) and number <= room(task)
    ]
    folder = open_folder(Path(output), chosen)
    phases = [] if "table" not in parts else episode_phases(folder, cells)
    further, left_out = _further_phases(folder, names, rows, cells, parts)
    if too_many := sorted({number for number in sizes for task in names if number > room(task)}):
        left_out.append(f"{', '.join(map(str, too_many))} objects, where a task has no room for them")
    outcome = run_phases(folder, chosen, [*phases, *further], workers, cluster, callback)
    if "report" in parts:
        callback(Progress("writing the report", 0, 1))
        outcome = replace(outcome, report=write_pages(folder, folder / REPORT))
        callback(Progress("writing the report", 1, 1))
    return replace(outcome, left_out=left_out)


def _further_phases(
    folder: Path,
    tasks: Sequence[str],
    rows: Sequence[Row],
    cells: Sequence[Cell],
    parts: Sequence[str],
) -> tuple[list[Phase], list[str]]:
    """Return the phases for memory, large problems and films, and what of these cannot be made."""
    phases, left_out = list[Phase](), list[str]()
    if "memory" in parts:
        largest = {}
        for cell in sorted((cell for cell in cells if cell.seed == 0), key=lambda cell: cell.objects):
            largest[cell.task, cell.row] = replace(cell, episodes=1)
        phases += learning_phases(folder, [cell.network for cell in largest.values()])
        jobs = [Job(f"memory/{task}/{row}.json", measure_memory, cell) for (task, row), cell in largest.items()]
        phases.append(Phase("memory", jobs))
    shown = [row for row in rows if row.method == BISON and not row.world]
    if not shown and {"films", "scaling"}.intersection(parts):
        left_out.append("films and large problems: they are made with policies of BISON, which is not among --methods")
    elif shown:
        best = ROWS[BISON] if ROWS[BISON] in shown else shown[-1]
        networks = {task: Network(task, best.name, 0) for task in tasks}
        if "scaling" in parts:
            rules, planners = rule_problems(networks), planner_problems(tasks)
            jobs = [Job(file, measure_rules, subject) for file, subject in rules.items()]
            jobs += [Job(file, measure_planner, subject) for file, subject in planners.items()]
            phases += learning_phases(folder, [network for network, _ in rules.values()])
            phases.append(Phase("large problems", jobs))
        if "films" in parts:
            phases += learning_phases(folder, networks.values())
            phases.append(Phase("films", [Job(f"films/{task}.json", make_film, networks[task]) for task in tasks]))
    return phases, left_out
