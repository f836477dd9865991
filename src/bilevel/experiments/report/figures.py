"""The figures: what findings show, as charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bilevel.experiments.report.charts import Axis, Bar, Figure, Mark, Panel, Series, log_axis
from bilevel.experiments.report.scores import Costs, Results, Score
from bilevel.experiments.report.styles import CAUSES
from bilevel.experiments.report.wording import SOLVERS, interval, mebibytes, microseconds, rate, seconds
from bilevel.experiments.reproduction.rows import Scaling

RATES = Axis("success rate", -0.08, 1.08, {tick: f"{tick:g}" for tick in (0.0, 0.25, 0.5, 0.75, 1.0)})
MANY = 6  # numbers of objects on an axis, from which only every second is named


def figures(results: Results) -> dict[str, Figure]:
    """Return all figures that there is something to show for, by name."""
    found = [by_objects(results), against_costs(results), causes_of_failure(results)] if results.findings.rows else []
    if results.findings.scaling:
        found.append(solving_time(results))
    return {figure.name: figure for figure in found if figure.panels or figure.bars}


# Success against number of objects


def by_objects(results: Results) -> Figure:
    """Return a panel for each task with a curve for each method."""
    sizes = results.sizes
    named = [size for size in sizes if len(sizes) <= MANY or size % 2 == sizes[-1] % 2 or size == sizes[0]]
    x = Axis("number of objects", min(sizes) - 0.4, max(sizes) + 0.4, {size: str(size) for size in named})
    panels = [Panel(task, x, RATES, _curves(results, task)) for task in results.tasks]
    return Figure("success-by-objects", panels)


def _curves(results: Results, task: str) -> list[Series]:
    found = []
    for variant in results.variants:
        if scores := results.by_size(variant, task):
            marks = [_rate_mark(size, score) for size, score in scores.items()]
            found.append(Series(variant.name, variant.title, marks))
    return found


def _rate_mark(size: int, score: Score) -> Mark:
    low, high = score.seed_range
    spread = f", seeds {interval((low, high))}" if low < high else ""
    middle = median(score.by_seed)
    return Mark(size, middle, f"{rate(middle)} ({score.successes} of {score.episodes}{spread})", (low, high))


# Success against what it costs


@dataclass(frozen=True)
class Cost:
    """One of the things that a method costs, along the axis of a panel."""

    title: str
    value: Callable[[Costs], float | None]
    show: Callable[[float], str]
    largest: bool  # whether it is about the largest number of objects, as is then the success rate


COSTS = (
    Cost("training time", lambda costs: costs.training_seconds, seconds, False),
    Cost("inference time per step", lambda costs: costs.policy_microseconds, microseconds, True),
    Cost("peak memory in training", lambda costs: costs.training_mebibytes, mebibytes, False),
    Cost("peak memory in inference", lambda costs: costs.peak_mebibytes, mebibytes, True),
)


def against_costs(results: Results) -> Figure:
    """Return a panel for each cost: a large mark for each method, the median over tasks, and a faint one for each."""
    panels = [_cost_panel(results, cost) for cost in COSTS]
    return Figure("success-against-costs", [panel for panel in panels if panel.series], size="wide")


def _cost_panel(results: Results, cost: Cost) -> Panel:
    found = [(task, one) for task in (*results.tasks, None) for one in results.costs(task)]
    series = []
    for variant in results.variants:
        marks = [_cost_mark(cost, one, task) for task, one in found if one.variant == variant]
        if known := [mark for mark in marks if mark]:
            series.append(Series(variant.name, variant.title, known))
    objects = f", {max(results.sizes)} objects" if cost.largest else ""
    title = cost.title[0].upper() + cost.title[1:] + objects
    x = log_axis(cost.title, [mark.x for one in series for mark in one.marks], cost.show, cost.show is seconds)
    return Panel(title, x, RATES, series, joined=False)


def _cost_mark(cost: Cost, costs: Costs, task: str | None) -> Mark | None:
    value, score = cost.value(costs), costs.largest if cost.largest else costs.score
    if not value or score is None:
        return None
    how = "" if cost.largest else costs.trained_how
    tip = (
        f"{costs.variant.title}, {task or 'all tasks, median'}\n{cost.title}\t{cost.show(value)}{how}\n"
        f"success\t{rate(score.rate)} ({interval(score.interval)})\nepisodes\t{score.episodes:,}"
    )
    return Mark(value, score.rate, tip, faint=task is not None)


# Rules against LAMA


def solving_time(results: Results) -> Figure:
    """Return a panel for each task with the time that rules and LAMA take as problems grow."""
    x = log_axis("number of objects", [one.objects for one in results.findings.scaling], "{:,.0f}".format)
    y = log_axis("time to solve", [one.seconds for one in results.findings.scaling], seconds, of_times=True)
    tasks = dict.fromkeys(one.task for one in results.findings.scaling)
    panels = [
        Panel(task, x, y, _solvers([one for one in results.findings.scaling if one.task == task])) for task in tasks
    ]
    return Figure("solving-time", panels, size="wide")


def _solvers(found: Sequence[Scaling]) -> list[Series]:
    series = []
    for solver, title in SOLVERS.items():
        mine = [one for one in found if one.solver == solver]
        sizes = sorted({one.objects for one in mine})
        if marks := [_time_mark([one for one in mine if one.objects == size]) for size in sizes]:
            series.append(Series(solver, title, marks))
    return series


def _time_mark(found: Sequence[Scaling]) -> Mark:
    """Return the median, where a problem was solved more than once."""
    time = median(one.seconds for one in found)
    gave_up = any(one.timed_out or not one.solved for one in found)
    told = f"out of time after {seconds(time)}" if any(one.timed_out for one in found) else f"unsolved, {seconds(time)}"
    actions, memory = max(one.actions for one in found), max(one.peak_mebibytes for one in found)
    solved = f"{seconds(time)} ({actions:,} actions, {mebibytes(memory)})"
    return Mark(found[0].objects, time, told if gave_up else solved, gave_up=gave_up)


# Causes of failure


def causes_of_failure(results: Results) -> Figure:
    """Return a bar for each method: for all tasks together, then for each of them."""
    tasks: dict[str, str | None] = {"all tasks": None, **{task: task for task in results.tasks}}
    bars = {title: _bars(results, task) for title, task in tasks.items()}
    return Figure("causes-of-failure", bars=bars)


def _bars(results: Results, task: str | None) -> list[Bar]:
    found = [(variant, results.outcomes(variant, task)) for variant in results.variants]
    return [
        Bar(variant.name, variant.title, {cause: counts[cause] for cause in CAUSES if counts[cause]})
        for variant, counts in found
        if counts.total()
    ]
