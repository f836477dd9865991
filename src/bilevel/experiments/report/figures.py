"""The figures: what findings show, as charts that `drawing` draws; and how methods and causes look there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from bilevel.experiments.report.scores import Costs, Results, Score
from bilevel.experiments.report.wording import COSTS, SOLVERS, Cost, interval, mebibytes, rate, seconds
from bilevel.experiments.reproduction.measurements import Scaling
from bilevel.experiments.reproduction.units import Variant
from bilevel.tasks.scene_env import SUCCESS

# Looks: a colour for each family, told apart by marker and line too. The hues are those of Okabe and Ito, which
# colour-blind people can tell apart.


@dataclass(frozen=True)
class Style:
    """A look: the colour on light and on dark ground, the marker of a series, and whether marker and line are full."""

    light: str
    dark: str
    marker: str = "o"  # as matplotlib names it
    full: bool = True


SERIES: Mapping[str, Style] = {
    "bison-paper": Style("#4a9bd1", "#9ad2f5", full=False),
    "bison": Style("#0072b2", "#56b4e9"),
    "expert": Style("#6b7280", "#a3abb8", "+", full=False),
    "det-plan": Style("#e08a2e", "#f6b26b", "^", full=False),
    "det-replan": Style("#c8500a", "#ff8a3d", "^"),
    "ndt-plan": Style("#35b78f", "#7fe0c0", "s", full=False),
    "ndt-replan": Style("#00805c", "#2cc795", "s"),
    "pddl-nn": Style("#a2447f", "#e387bf", "D"),
    "pddl-nn-practised": Style("#6f2b86", "#c79bea", "*"),
    "pure-nn": Style("#cc79a7", "#f2b3d6", "D", full=False),
    "pure-nn-practised": Style("#9b72c9", "#d9c2f2", "*", full=False),
    "smolvla": Style("#8a6d3b", "#cfb27a", "v", full=False),
    "smolvla-metaworld": Style("#8a6d3b", "#cfb27a", "v"),
    "rules": Style("#0072b2", "#56b4e9"),
    "lama": Style("#c8500a", "#ff8a3d", "^", full=False),
}


@dataclass(frozen=True)
class Cause:
    """How an episode may have ended: its colour on light and on dark ground, and what it means."""

    light: str
    dark: str
    meaning: str


CAUSES: Mapping[str, Cause] = {
    SUCCESS: Cause("#cfe3d8", "#28453a", "all goals were achieved in time"),
    "no rule": Cause("#56b4e9", "#56b4e9", "the policy did not know what to do: no rule applied"),
    "no model": Cause("#8d99ae", "#7d889c", "the planner cannot express what may happen, such as objects to come"),
    "no plan": Cause("#4c5a73", "#a9b4c8", "the planner found no plan, or none in time"),
    "plan broken": Cause("#e69f00", "#e8a91c", "what happened is not in the plan, and planning again is not allowed"),
    "unseen": Cause("#44aa99", "#5fbfae", "an object that it needed was not seen"),
    "physics": Cause("#222222", "#f5f5f5", "the simulation became unstable"),
    "terminated": Cause("#882255", "#b8527f", "the environment ended the episode, for a reason of its own"),
    "label": Cause("#f0e442", "#f0e442", "the labels flickered: changes of the symbolic state were undone at once"),
    "control": Cause("#b3de69", "#b3de69", "its control was unsteady: things moved to and fro"),
    "stall": Cause("#cc79a7", "#d583b2", "stuck: nothing that it did had an effect any more"),
    "drop": Cause("#d55e00", "#e56a10", "it kept losing what it held or needed"),
    "collision": Cause("#8c2d04", "#b5501f", "it kept upsetting things that it had nothing to do with"),
    "time": Cause("#0072b2", "#3a8fc4", "it was still making progress when the steps were up"),
}  # fmt: skip


def palette(dark: bool) -> str:
    """Return the colours as CSS variables."""
    named = [(f"series-{key}", style.light, style.dark) for key, style in SERIES.items()]
    named += [(f"cause-{key.replace(' ', '-')}", cause.light, cause.dark) for key, cause in CAUSES.items()]
    return "".join(f"--{name}:{at_night if dark else by_day};" for name, by_day, at_night in named)


# Charts


@dataclass(frozen=True)
class Axis:
    """What is shown along it, from where to where, with ticks and their texts."""

    title: str
    low: float
    high: float
    ticks: Mapping[float, str]
    log: bool = False


@dataclass(frozen=True)
class Mark:
    """A point, with what is to be said about it; maybe with a range, or as a place at which something gave up."""

    x: float
    y: float
    tip: str
    range: tuple[float, float] | None = None
    gave_up: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Series:
    """Points that belong together; their style is that of `key`."""

    key: str
    title: str
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Panel:
    """A chart with two axes; its points are joined by lines, or they are not."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    joined: bool = True


@dataclass(frozen=True)
class Figure:
    """Panels that go together, or bars in groups of equal length."""

    name: str  # of its files
    panels: Sequence[Panel] = ()
    bars: Mapping[str, Mapping[Variant, Counter[str]]] | None = None  # how episodes ended, by task and method
    size: Literal["small", "wide"] = "small"  # of its panels

    @property
    def legend(self) -> list[Series]:
        """Each series once, in the order of the styles."""
        found = {series.key: series for panel in self.panels for series in panel.series}
        return [found[key] for key in SERIES if key in found]


# Logarithmic axes

TIMES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0)  # seconds that people know
MORE_TIMES = (*TIMES, 2.0, 5.0, 20.0, 30.0, 120.0, 300.0, 1200.0, 1800.0, 7200.0, 18_000.0)
POWERS_OF_TWO = tuple(2.0**power for power in range(-10, 50))  # mebibytes
# Where ticks may be, by how they are told; the first choice that has enough of them is taken.
FAMILIAR: Mapping[Callable[[float], str], Sequence[Sequence[float]]] = {
    seconds: (TIMES, MORE_TIMES),
    mebibytes: (POWERS_OF_TWO[::2], POWERS_OF_TWO, sorted((*POWERS_OF_TWO, *(1.5 * tick for tick in POWERS_OF_TWO)))),
}
FACTORS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))
LEAST_SPAN = 4.0  # times as much at the end of a logarithmic axis as at its beginning
ENOUGH = 3  # ticks on an axis
APART = 0.15  # of the axis, lest their texts meet


def log_axis(title: str, values: Iterable[float], show: Callable[[float], str]) -> Axis:
    """Return an axis a little longer than what there is, and long enough that no small difference looks large.

    Ticks are at familiar times or sizes, else at powers of ten, and where these are too few at some numbers between.
    """
    known = [value for value in values if value > 0] or [1.0, 10.0]
    span = max(known) / min(known)
    margin = max(span**0.08, math.sqrt(LEAST_SPAN / span))
    low, high = min(known) / margin, max(known) * margin
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    choices = [*FAMILIAR.get(show, ())]
    choices += [[power * factor for power in powers for factor in factors] for factors in FACTORS]
    ticks = next((found for choice in choices if len(found := _spread(choice, low, high)) >= ENOUGH), [])
    return Axis(title, low, high, {tick: show(tick) for tick in ticks}, log=True)


def _spread(choice: Iterable[float], low: float, high: float) -> list[float]:
    """Return those ticks of a choice that are on the axis and far enough from each other."""
    found: list[float] = []
    for tick in sorted(choice):
        near = found and math.log(tick / found[-1]) <= APART * math.log(high / low)
        if low <= tick <= high and not near:
            found.append(tick)
    return found


# What is shown

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


# Rules against LAMA


def solving_time(results: Results) -> Figure:
    """Return a panel for each task with the time that rules and LAMA take as problems grow."""
    x = log_axis("number of objects", [one.objects for one in results.findings.scaling], "{:,.0f}".format)
    y = log_axis("time to solve", [one.seconds for one in results.findings.scaling], seconds)
    panels: dict[str, list[Series]] = {}
    for (task, solver), by_size in results.large_problems.items():
        marks = [_time_mark(found) for found in by_size.values()]
        panels.setdefault(task, []).append(Series(solver, SOLVERS[solver], marks))
    return Figure("solving-time", [Panel(task, x, y, series) for task, series in panels.items()], size="wide")


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
    bars = {}
    for title, task in tasks.items():
        found = {variant: results.outcomes(variant, task) for variant in results.variants}
        bars[title] = {variant: counts for variant, counts in found.items() if counts.total()}
    return Figure("causes-of-failure", bars=bars)
