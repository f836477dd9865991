"""The figures: what findings show, as charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bilevel.experiments.report.charts import (
    Axis,
    Bar,
    Figure,
    Mark,
    Panel,
    Part,
    Series,
    Stack,
    linear,
    of_numbers,
    of_seconds,
)
from bilevel.experiments.report.scores import (
    Costs,
    Score,
    causes,
    costs,
    entrants_in,
    rows_of,
    score,
    sizes_in,
    tasks_in,
)
from bilevel.experiments.report.styles import SUCCESS
from bilevel.experiments.report.wording import interval, mebibytes, microseconds, per_cent, plural, rate, seconds
from bilevel.experiments.reproduction.rows import Findings, Row, Scaling
from bilevel.experiments.reproduction.settings import Entrant
from bilevel.policies.failures import REASONS
from bilevel.tabletop.tasks import TASKS

RATE_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
SOLVERS = {"rules": "Rules (BISON)", "lama": "LAMA"}
MANY = 6  # numbers of objects on an axis, from which only every second is named


def rate_axis(title: str) -> Axis:
    return Axis(title, -0.08, 1.08, [(tick, f"{tick:g}") for tick in RATE_TICKS])


def shown_objects(findings: Findings) -> str:
    return plural(findings.about.experiment.get("shown", 3), "object")


# Success against number of objects


def by_objects(findings: Findings) -> Figure:
    sizes = sizes_in(findings)
    named = [size for size in sizes if len(sizes) <= MANY or size % 2 == sizes[-1] % 2 or size == sizes[0]]
    x = linear("number of objects", min(sizes) - 0.4, max(sizes) + 0.4, named)
    panels = [Panel(task, x, rate_axis("success rate"), _curves(findings, task, sizes)) for task in tasks_in(findings)]
    caption = (
        "The line is the median over seeds, the band reaches from the worst seed to the best. Lines that coincide are "
        f"drawn next to each other. Demonstrations showed {shown_objects(findings)}."
    )
    return Figure("success-by-objects", "Success against number of objects", caption, panels)


def _curves(findings: Findings, task: str, sizes: Sequence[int]) -> list[Series]:
    found = []
    for entrant in entrants_in(findings):
        rows = rows_of(findings, entrant, task)
        scores = [(size, score(rows, size)) for size in sizes]
        marks = [_rate_mark(size, score) for size, score in scores if score]
        if marks:
            found.append(Series(entrant.name, entrant.title, marks))
    return found


def _rate_mark(size: int, score: Score) -> Mark:
    low, high = min(score.by_seed), max(score.by_seed)
    spread = f", seeds {interval((low, high))}" if low < high else ""
    tip = f"{rate(median(score.by_seed))} ({score.successes} of {score.episodes}{spread})"
    return Mark(size, median(score.by_seed), tip, low, high)


# Success against what it costs


@dataclass(frozen=True)
class Cost:
    """One of the things that it costs, along the axis of a panel."""

    title: str
    value: Callable[[Costs], float | None]
    show: Callable[[float], str]
    axis: Callable[[str, Sequence[float]], Axis]
    largest: bool  # whether it is about the largest number of objects, as is then the success rate

    def score(self, costs: Costs) -> Score | None:
        return costs.largest if self.largest else costs.score


COSTS = (
    Cost("training time", lambda costs: costs.training_seconds, seconds, of_seconds, False),
    Cost(
        "inference time per step",
        lambda costs: costs.policy_microseconds,
        microseconds,
        lambda title, values: of_numbers(title, values, " µs"),
        True,
    ),
    Cost(
        "peak memory in training",
        lambda costs: costs.training_mebibytes,
        mebibytes,
        lambda title, values: of_numbers(title, values, " MiB"),
        False,
    ),
    Cost(
        "peak memory in inference",
        lambda costs: costs.peak_mebibytes,
        mebibytes,
        lambda title, values: of_numbers(title, values, " MiB"),
        True,
    ),
)


def against_costs(findings: Findings) -> Figure:
    """A large mark for each method, the median over tasks, and a faint one for each task."""
    panels = [panel for cost in COSTS if (panel := _cost_panel(findings, cost))]
    largest = max(sizes_in(findings))
    caption = (
        "Training: against success over all sizes; networks that were trained side by side share the time. "
        f"Inference: with {largest} objects, labels and all planning included, against success with as many. A large "
        "mark is the median over tasks and seeds, a faint one a single task. Methods that plan run on the network of "
        "BISON in the paper's setting, so they share its training. The left is cheaper, the top is better."
    )
    return Figure("success-against-costs", "Success against time and memory", caption, panels)


def _cost_panel(findings: Findings, cost: Cost) -> Panel | None:
    totals = {found.entrant: found for found in costs(findings)}
    by_task = [(task, found) for task in tasks_in(findings) for found in costs(findings, task)]
    series = []
    for entrant, total in totals.items():
        faint = [_cost_mark(cost, found, task) for task, found in by_task if found.entrant == entrant]
        marks = [mark for mark in (*faint, _cost_mark(cost, total, None)) if mark]
        if marks:
            series.append(Series(entrant.name, entrant.title, marks))
    values = [mark.x for each in series for mark in each.marks]
    if not values:
        return None
    objects = f", {max(sizes_in(findings))} objects" if cost.largest else ""
    title = cost.title[0].upper() + cost.title[1:] + objects
    x = cost.axis(cost.title, values)
    return Panel(title, x, rate_axis("success rate"), series, joined=False, kind="wide")


def _cost_mark(cost: Cost, costs: Costs, task: str | None) -> Mark | None:
    value, score = cost.value(costs), cost.score(costs)
    if value is None or value <= 0 or score is None:
        return None
    where = task or "all tasks, median"
    how = "" if cost.largest else trained_how(costs)
    tip = (
        f"{costs.entrant.title}, {where}\n{cost.title}\t{cost.show(value)}{how}\n"
        f"success\t{rate(score.rate)} ({interval(score.interval)})\nepisodes\t{score.episodes:,}"
    )
    return Mark(value, score.rate, tip, faint=task is not None)


def trained_how(costs: Costs) -> str:
    """` on cpu, 3 networks side by side`: who shares a time has to be said with it."""
    many = [str(number) for number in costs.networks if number > 1]
    beside = f", {' or '.join(many)} networks side by side" if many else ""
    return f" on {' and '.join(costs.devices)}{beside}" if costs.devices else ""


# Rules against LAMA


def scaling(findings: Findings) -> Figure:
    tasks = [task for task in TASKS if any(one.task == task for one in findings.scaling)]
    numbers = [one.objects for one in findings.scaling]
    times = [one.seconds for one in findings.scaling]
    x, y = of_numbers("number of objects", numbers), of_seconds("time to solve", times)
    panels = [Panel(task, x, y, _solvers(findings.scaling, task), kind="wide") for task in tasks]
    caption = (
        "Problems of symbols alone, on one core: how long until the last action is known. A cross is where a solver "
        "ran out of time. Both axes are logarithmic."
    )
    return Figure("solving-time", "Solving time against number of objects", caption, panels)


def _solvers(found: Sequence[Scaling], task: str) -> list[Series]:
    series = []
    for solver, title in SOLVERS.items():
        mine = [one for one in found if (one.task, one.solver) == (task, solver)]
        sizes = sorted({one.objects for one in mine})
        marks = [_time_mark([one for one in mine if one.objects == size]) for size in sizes]
        if marks:
            series.append(Series(solver, title, marks))
    return series


def _time_mark(found: Sequence[Scaling]) -> Mark:
    """The median, where a problem was solved more than once."""
    time = median(one.seconds for one in found)
    gave_up = any(one.timed_out or not one.solved for one in found)
    told = f"out of time after {seconds(time)}" if any(one.timed_out for one in found) else f"unsolved, {seconds(time)}"
    actions = max(one.actions for one in found)
    solved = f"{seconds(time)} ({actions:,} actions, {mebibytes(max(one.peak_mebibytes for one in found))})"
    return Mark(found[0].objects, time, told if gave_up else solved, gave_up=gave_up)


# Causes of failure


def causes_of_failure(findings: Findings) -> Figure:
    """All tasks together, then each of them."""
    everything: tuple[str | None, ...] = (None, *tasks_in(findings))
    stacks = [Stack(task or "all tasks", _bars(findings, task)) for task in everything]
    caption = "All episodes of each method, by how they went; each failure has one cause, the first that fits."
    return Figure("causes-of-failure", "Causes of failure", caption, stacks=stacks)


def _bars(findings: Findings, task: str | None) -> list[Bar]:
    bars = []
    for entrant in entrants_in(findings):
        rows = rows_of(findings, entrant, task)
        if parts := _parts(entrant, rows):
            bars.append(Bar(entrant.name, entrant.title, parts))
    return bars


def _parts(entrant: Entrant, rows: Sequence[Row]) -> list[Part]:
    found, episodes = causes(rows), sum(row.episodes for row in rows)
    counts = {SUCCESS: sum(row.successes for row in rows), **{reason: found[reason] for reason in REASONS}}
    return [
        Part(
            cause,
            number,
            f"{entrant.title}\n{cause}\t{number:,} of {episodes:,} ({per_cent(number / episodes)})",
        )
        for cause, number in counts.items()
        if number
    ]


def figures(findings: Findings) -> dict[str, Figure]:
    """All that there is something to show for, by name."""
    measured, large = bool(findings.rows), bool(findings.scaling)
    makers = {by_objects: measured, against_costs: measured, scaling: large, causes_of_failure: measured}
    found = [make(findings) for make, has_something in makers.items() if has_something]
    return {figure.name: figure for figure in found}
