"""The figures: what findings show, as charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from bilevel.experiments.report.charts import Axis, Figure, Mark, Panel, Series, log_axis
from bilevel.experiments.report.scores import Costs, Results, Score, is_in_paper
from bilevel.experiments.report.wording import COSTS, SOLVERS, Cost, interval, mebibytes, plural, rate, seconds
from bilevel.experiments.reproduction.large_problems import NO_MODEL, Scaling
from bilevel.experiments.reproduction.variants import Variant
from bilevel.methods.methods import EXPERT

# What is shown

RATES = Axis("success rate", -0.08, 1.08, {tick: f"{tick:g}" for tick in (0.0, 0.25, 0.5, 0.75, 1.0)})
MANY = 6  # numbers of objects on an axis, from which only every second is named


def figures(results: Results) -> dict[str, Figure]:
    """Return all figures that there is something to show for, by name."""
    makers = (by_objects, variants_by_objects, against_costs, causes_of_failure)
    found = [make(results) for make in makers] if results.findings.rows else []
    if results.findings.scaling:
        found.append(solving_time(results))
    return {figure.name: figure for figure in found if figure.panels or figure.bars}


# Curves of success rates


def rate_panel(title: str, x: Axis, curves: Mapping[Variant, Mapping[float, Score]]) -> Panel:
    """Return a curve for each method along an axis, with the band of its intervals; the expert is the ceiling."""
    series = [_rate_series(variant, scores) for variant, scores in curves.items() if scores]
    return Panel(title, x, RATES, series)


def _rate_series(variant: Variant, scores: Mapping[float, Score]) -> Series:
    marks = [_rate_mark(x, scores[x]) for x in sorted(scores)]
    return Series(variant.name, variant.title, marks, is_ceiling=variant.method == EXPERT)


def _rate_mark(x: float, score: Score) -> Mark:
    seeds = f"; seeds {interval(score.seed_range)}" if score.seed_range[0] < score.seed_range[1] else ""
    told = f"{score.successes} of {score.episodes}; {interval(score.interval)}{seeds}"
    return Mark(x, score.rate, f"{rate(score.rate)} ({told})", score.interval)


def by_objects(results: Results) -> Figure:
    """Return a panel for each task with a curve for each method of the paper's table along the number of objects."""
    return Figure("success-by-objects", _along_objects(results, [one for one in results.variants if is_in_paper(one)]))


def variants_by_objects(results: Results) -> Figure:
    """Return the same for the rows that the paper's table does not have."""
    others = [variant for variant in results.variants if not is_in_paper(variant)]
    return Figure("variants-by-objects", _along_objects(results, others))


def _along_objects(results: Results, variants: Sequence[Variant]) -> list[Panel]:
    sizes = results.sizes
    named = [size for size in sizes if len(sizes) <= MANY or size % 2 == sizes[-1] % 2 or size == sizes[0]]
    ticks = {float(size): str(size) for size in named}
    x = Axis("number of objects", min(sizes) - 0.4, max(sizes) + 0.4, ticks, name=_objects)
    panels = [
        rate_panel(task, x, {variant: _along(results.by_size(variant, task)) for variant in variants})
        for task in results.tasks
    ]
    return [panel for panel in panels if panel.series]


def _along(scores: Mapping[int, Score]) -> dict[float, Score]:
    return {float(size): score for size, score in scores.items()}


def _objects(value: float) -> str:
    return plural(round(value), "object")


# Success against what it costs


def against_costs(results: Results) -> Figure:
    """Return a panel for each cost: a large mark for each method, the median over tasks, and a faint one for each."""
    panels = [_cost_panel(results, cost) for cost in COSTS]
    return Figure("success-against-costs", [panel for panel in panels if panel.series], size="wide")


def _cost_panel(results: Results, cost: Cost) -> Panel:
    found = [(task, one) for task in (*results.tasks, None) for one in results.costs(task)]
    series = []
    for variant in filter(is_in_paper, results.variants):
        marks = [_cost_mark(cost, one, task) for task, one in found if one.variant == variant]
        if known := [mark for mark in marks if mark]:
            series.append(Series(variant.name, variant.title, known))
    objects = f", {max(results.sizes)} objects" if cost.largest else ""
    title = cost.title[0].upper() + cost.title[1:] + objects
    x = log_axis(cost.title, [mark.x for one in series for mark in one.marks], cost.show)
    return Panel(title, x, RATES, series, joined=False)


def _cost_mark(cost: Cost, costs: Costs, task: str | None) -> Mark | None:
    value, score = costs.measured[cost.name], costs.largest if cost.largest else costs.score
    if not value or score is None:
        return None
    how = "" if cost.largest else costs.trained_how
    tip = (
        f"{costs.variant.title}, {task or 'all tasks, median'}\n{cost.title}\t{cost.show(value)}{how}\n"
        f"success\t{rate(score.rate)} ({interval(score.interval)})\nepisodes\t{score.episodes:,}"
    )
    return Mark(value, score.rate, tip, faint=task is not None)


# Rules against planners, as problems grow


def solving_time(results: Results) -> Figure:
    """Return a panel for each task with the time that rules and planners take; there is no mark without a model."""
    tried = [one for one in results.findings.scaling if one.failure != NO_MODEL]
    x = replace(log_axis("number of objects", [one.objects for one in tried], "{:,.0f}".format), name=_objects)
    limit = results.findings.about.experiment.lama_seconds
    y = log_axis("time to solve", [_time(one, limit) for one in tried], seconds)
    panels: dict[str, list[Series]] = {}
    for (task, solver), by_size in results.large_problems.items():
        marks = [_time_mark(found, limit) for found in by_size.values() if all(one in tried for one in found)]
        if marks:
            panels.setdefault(task, []).append(Series(solver, SOLVERS[solver], marks))
    return Figure("solving-time", [Panel(task, x, y, series) for task, series in panels.items()], size="wide")


def _time(found: Scaling, limit: float) -> float:
    """Return the seconds that it took: all that it had, where it was stopped, as nobody counted its CPU time then."""
    return max(found.seconds, limit) if found.timed_out else found.seconds


def _time_mark(found: Sequence[Scaling], limit: float) -> Mark:
    """Return the median, where a problem was solved more than once."""
    time = median(_time(one, limit) for one in found)
    failures = [one.failure for one in found if one.failure]
    actions, memory = max(one.actions for one in found), max(one.peak_mebibytes for one in found)
    solved = f"{seconds(time)} ({actions:,} actions, {mebibytes(memory)})"
    told = f"{failures[0]} after {seconds(time)}" if failures else solved
    return Mark(found[0].objects, time, told, gave_up=bool(failures))


# Causes of failure


def causes_of_failure(results: Results) -> Figure:
    """Return a bar for each method: for all tasks together, then for each of them."""
    tasks: dict[str, str | None] = {"all tasks": None, **{task: task for task in results.tasks}}
    bars = {}
    for title, task in tasks.items():
        found = {variant: results.outcomes(variant, task) for variant in results.variants}
        bars[title] = {variant: counts for variant, counts in found.items() if counts.total()}
    return Figure("causes-of-failure", bars=bars)
