"""The tables of a report: what results come to in numbers, for people and, as CSV, for programs."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from bilevel.experiments.axes import AXES, Axis
from bilevel.experiments.rows import PAPER_TASKS, ROWS, Row, paper_rate
from bilevel.experiments.statistics import Counts, Interval, is_better, rate_interval
from bilevel.experiments.table import Results
from bilevel.methods.methods import EXPERT
from bilevel.policies.episode import REASONS

NOTHING, TOTAL = "–", "total"
SOLVERS = {"rules": "Rules (BISON)", "lama": "LAMA", "search": "built-in search"}
WHOSE = "Worlds, experts and how often things teleport are ours; the paper's figures are of other worlds."
INTERVALS = (
    "Intervals (95%) are those of the method over training seeds, by a beta-binomial model; with one policy alone, as "
    "the expert is, that of this policy (Wilson)."
)
BEST = (
    "Set off are the best rate of each column and all that cannot be told from it, the expert and rows in other worlds "
    "aside."
)


# Numbers as people read them


def rate(value: float) -> str:
    """Return 0.97; only where all succeed it is 1.00, and only where none does 0.00."""
    text = f"{value:.2f}"
    return ">0.99" if text == "1.00" and value < 1 else "<0.01" if text == "0.00" and value > 0 else text


def interval(bounds: Interval) -> str:
    """Return 0.57–0.68."""
    return f"{bounds[0]:.2f}–{bounds[1]:.2f}"


def seconds(value: float) -> str:
    """Return 110 µs, 40 ms, 3.2 s, 12 min or 3.4 h."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 3600:.3g} h"


def mebibytes(value: float) -> str:
    """Return 400 MiB or 1.2 GiB."""
    return f"{value:.0f} MiB" if value < 1023.5 else f"{value / 1024:,.3g} GiB"


def plural(number: int, noun: str) -> str:
    """Return `1 task` or `1,000 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ranges(numbers: Iterable[int]) -> str:
    """Return 1–10, or 1, 3, 6."""
    known = sorted(set(numbers))
    is_run = len(known) > 2 and known == list(range(known[0], known[-1] + 1))
    return f"{known[0]}–{known[-1]}" if is_run else ", ".join(map(str, known))


# Scores


class Score(NamedTuple):
    """How many of some episodes were successes, and the counts of each policy that was run."""

    successes: int
    episodes: int
    policies: tuple[Counts, ...]
    interval: Interval

    @property
    def rate(self) -> float:
        """The part of the episodes that succeeded."""
        return self.successes / self.episodes


def score(frame: pd.DataFrame) -> Score | None:
    """Return the score of the episodes of a row; `None` without any."""
    if frame.empty:
        return None
    by_seed = frame.groupby("seed")[["successes", "episodes"]].sum()
    policies = tuple((int(won), int(all_)) for won, all_ in by_seed.itertuples(index=False))
    successes, episodes = sum(won for won, _ in policies), sum(all_ for _, all_ in policies)
    if not ROWS[frame["row"].iloc[0]].learned:
        policies = ((successes, episodes),)  # whatever the seed
    return Score(successes, episodes, policies, rate_interval(policies))


@dataclass(frozen=True)
class Cell:
    """A row on a task, or on all together, beside what the paper has."""

    row: Row
    task: str | None
    score: Score | None
    paper: float | None
    is_best: bool = False  # or not to be told from the best


def cells(results: Results) -> list[list[Cell]]:
    """Return a line for each row: a cell for each task, then for all of them."""
    frame, tasks = results.episodes, tasks_of(results)
    columns = []
    for task in (*tasks, None):
        column = []
        for row in rows_of(results):
            found = frame[(frame["row"] == row.name) & ((frame["task"] == task) if task else True)]
            is_whole = task is not None or found["task"].nunique() == len(tasks)
            is_papers = task is not None or tasks == list(PAPER_TASKS)
            column.append(
                Cell(row, task, score(found) if is_whole else None, paper_rate(row, task) if is_papers else None)
            )
        columns.append(_with_best(column))
    return [list(line) for line in zip(*columns, strict=True)]


def _with_best(column: Sequence[Cell]) -> list[Cell]:
    """Note the best rate and those that cannot be told from it; nothing where the best has never succeeded."""
    rivals = [cell for cell in column if cell.score and cell.row.method != EXPERT and not cell.row.world]
    best = max((cell.score for cell in rivals if cell.score), key=lambda found: found.rate, default=None)
    if best is None or not best.successes:
        return list(column)
    equal = [cell for cell in rivals if cell.score is best or not is_better(best.policies, _policies(cell))]
    return [Cell(cell.row, cell.task, cell.score, cell.paper, cell in equal) for cell in column]


def _policies(cell: Cell) -> tuple[Counts, ...]:
    return cell.score.policies if cell.score else ()


def rows_of(results: Results) -> list[Row]:
    """Return the rows that were measured, in their order."""
    return [ROWS[name] for name in results.episodes["row"].cat.categories]


def tasks_of(results: Results) -> list[str]:
    """Return the tasks that were measured: the paper's in its order, then others."""
    return list(results.episodes["task"].cat.categories)


def endings(frame: pd.DataFrame) -> Counter[str]:
    """Return how episodes ended: how many were a `success`, and how many failed for each reason."""
    found = Counter({"success": int(frame["successes"].sum())})
    for reasons in frame["reasons"]:
        found.update(reasons)
    return found


def scope(results: Results) -> str:
    """Return what was run: `8 tasks, 1–10 objects, 10 episodes of each size with each of 3 seeds`."""
    frame, seeds = results.episodes, results.episodes["seed"].nunique()
    noun = "episodes" if frame["episodes"].max() > 1 else "episode"
    each = f"{ranges(frame['episodes'])} {noun} of each size with {f'each of {seeds} seeds' if seeds > 1 else 'a seed'}"
    return f"{plural(frame['task'].nunique(), 'task')}, {ranges(frame['objects'])} objects, {each}"


# Tables


@dataclass(frozen=True)
class Table:
    """For people: lines of text below a header. For programs: values with all digits."""

    name: str  # of its files
    title: str
    caption: str
    shown: pd.DataFrame
    values: pd.DataFrame


def tables(results: Results) -> list[Table]:
    """Return all tables that there is something to put in."""
    makers = [success_table, size_table, cost_table, cause_table] if len(results.episodes) else []
    found = [make(results) for make in makers]
    if len(results.scaling):
        found.append(scaling_table(results))
    for axis in axes_of(results):
        found += [axis_table(results, axis, measure) for measure in axis.measures]
    return found


def success_table(results: Results) -> Table:
    """Return the success rates of all rows on all tasks, with the paper's."""
    lines, values = [], []
    for line in cells(results):
        lines.append([line[0].row.title, *(_shown(cell) for cell in line)])
        values += [
            {"method": cell.row.name, "task": cell.task or TOTAL, **_record(cell.score), "paper": cell.paper}
            for cell in line
        ]
    header = ["method", *tasks_of(results), TOTAL]
    caption = f"{scope(results)}. In brackets the interval, then what the paper reports. {WHOSE} {INTERVALS}"
    return Table("success", "Success rates", caption, pd.DataFrame(lines, columns=header), pd.DataFrame(values))


def _shown(cell: Cell) -> str:
    paper = "" if cell.paper is None else f" paper {rate(cell.paper)}"
    return f"{rate(cell.score.rate)} ({interval(cell.score.interval)}){paper}" if cell.score else NOTHING + paper


def _record(found: Score | None) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys(("successes", "episodes", "rate", "low", "high"))
    low, high = found.interval
    return {"successes": found.successes, "episodes": found.episodes, "rate": found.rate, "low": low, "high": high}


def size_table(results: Results) -> Table:
    """Return the successes with each number of objects."""
    frame = results.episodes.groupby(["task", "row", "objects"], observed=True)[["successes", "episodes"]].sum()
    text = frame["successes"].astype(str) + "/" + frame["episodes"].astype(str)
    shown = text.unstack("objects").fillna(NOTHING).reset_index()
    shown.insert(
        0,
        "task, method",
        [f"{task}, {ROWS[row].title}" for task, row in zip(shown.pop("task"), shown.pop("row"), strict=True)],
    )
    shown.columns = pd.Index([f"n = {name}" if isinstance(name, int) else name for name in shown.columns])
    caption = f"{scope(results)}: successes of as many episodes."
    return Table("success-by-objects", "Success by number of objects", caption, shown, frame.reset_index())


COSTS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "training_seconds": ("training time", seconds),
    "training_mebibytes": ("memory in training", mebibytes),
    "policy_seconds": ("time to decide, for each step", seconds),
    "peak_mebibytes": ("memory in inference", mebibytes),
    "parameters": ("parameters", "{:,.0f}".format),
}


def costs(results: Results, by: list[str]) -> pd.DataFrame:
    """Return what each row takes, maybe on each task: medians over the rest, inference with the most objects."""
    frame, training = results.episodes, results.training
    largest = frame[frame["objects"] == frame["objects"].max()]
    trained = training.rename(columns={"seconds": "training_seconds", "peak_mebibytes": "training_mebibytes"})
    found: pd.DataFrame = frame.groupby(by, observed=True)[["successes", "episodes"]].sum()
    parts = [
        _medians(trained, by, ["training_seconds", "training_mebibytes", "parameters"]),
        _medians(largest, by, ["policy_microseconds", "peak_mebibytes"]),
    ]
    for part in parts:
        found = found.join(part)
    found["rate"] = found["successes"] / found["episodes"]
    found["policy_seconds"] = found.pop("policy_microseconds") / 1e6
    return found


def _medians(frame: pd.DataFrame, by: list[str], names: list[str]) -> pd.DataFrame:
    numbers = frame.assign(**{name: pd.to_numeric(frame[name]) for name in names})
    found: pd.DataFrame = numbers.groupby(by, observed=True)[names].median()
    return found


def cost_table(results: Results) -> Table:
    """Return what each row takes: medians over tasks and seeds."""
    found = costs(results, ["row"])
    shown = pd.DataFrame(
        {"method": [ROWS[name].title for name in found.index], "success": list(map(rate, found["rate"]))}
    )
    for name, (title, show) in COSTS.items():
        shown[title] = [NOTHING if pd.isna(value) else show(value) for value in found[name]]
    caption = (
        f"Medians over tasks and seeds; inference with {results.episodes['objects'].max()} objects, labels and "
        "planning included. Methods that plan run on the network of BISON."
    )
    values = pd.concat([found.assign(task=TOTAL).reset_index(), costs(results, ["row", "task"]).reset_index()])
    return Table("costs", "Time and memory", caption, shown, values)


def cause_table(results: Results) -> Table:
    """Return how many episodes failed for each reason."""
    frame = results.episodes
    found = {row: endings(frame[frame["row"] == row.name]) for row in rows_of(results)}
    reasons = [reason for reason in REASONS if any(counts[reason] for counts in found.values())]
    lines = [
        [
            row.title,
            f"{counts['success']:,}/{counts.total():,}",
            *(f"{counts[one]:,}" if counts[one] else NOTHING for one in reasons),
        ]
        for row, counts in found.items()
    ]
    values = [
        {"method": row, "task": task, "episodes": (counts := endings(part)).total(), "success": counts["success"]}
        | {reason: counts[reason] for reason in REASONS}
        for (row, task), part in frame.groupby(["row", "task"], observed=True)
    ]
    shown = pd.DataFrame(lines, columns=["method", "successes", *reasons])
    caption = f"{scope(results)}, all tasks together; each failure has one cause."
    return Table("causes", "Causes of failure", caption, shown, pd.DataFrame(values))


def scaling_table(results: Results) -> Table:
    """Return how long rules and planners take as problems grow."""
    frame = results.scaling.sort_values(["task", "solver", "objects"])
    known = zip(frame["failure"], frame["seconds"], strict=True)
    text = [failure if isinstance(failure, str) else seconds(taken) for failure, taken in known]
    shown = frame.assign(text=text).pivot_table("text", ["task", "solver"], "objects", "first", observed=True)
    shown = shown.fillna("not run").reset_index()
    names = [f"{task}, {SOLVERS[solver]}" for task, solver in zip(shown.pop("task"), shown.pop("solver"), strict=True)]
    shown.insert(0, "task, solver", names)
    caption = (
        "CPU time to solve problems of symbols alone, by number of objects, on one core. A planner is out of time "
        f"after {results.settings.lama_seconds:g} s, and has no model where it cannot express what may happen."
    )
    values = frame[["task", "solver", "objects", "seconds", "actions", "failure"]]
    return Table("solving-time", "Solving time", caption, shown, values)


# The hard suite


class Measure(NamedTuple):
    """A time that is measured along an axis, and how much is too much."""

    title: str
    column: str  # of the points
    factor: float = 1.0  # to seconds
    limit: tuple[float, str] | None = None


MEASURES = {
    "decision": Measure("time to decide", "policy_microseconds", 1e-6, (1 / 80, "control period, 1/80 s")),
    "pause": Measure("longest pause", "pause_seconds", limit=(1.0, "1 s")),
    "seconds": Measure("time to solve", "seconds"),
}


def axes_of(results: Results) -> list[Axis]:
    """Return the axes along which something was measured, in their order."""
    known = set(results.points["axis"])
    return [axis for name, axis in AXES.items() if name in known]


def points_of(results: Results, axis: Axis) -> pd.DataFrame:
    """Return the points of an axis, with the title of the place where curves are to be compared."""
    frame = results.points[results.points["axis"] == axis.name]
    several = frame["place"].nunique() > 1
    places = [
        f"{task}, {place} objects" if several else task
        for task, place in zip(frame["task"], frame["place"], strict=True)
    ]
    found: pd.DataFrame = frame.assign(where=places)
    return found


def axis_table(results: Results, axis: Axis, measure: str) -> Table:
    """Return a line for each row at each place, and a column for each value of the axis."""
    frame, time = points_of(results, axis), MEASURES.get(measure)
    by = frame.groupby(["where", "row", "value"], observed=True, sort=False)
    if time:
        taken = by[time.column].median() * time.factor
        text, values = taken.map(seconds, na_action="ignore"), taken.rename("seconds").reset_index()
    else:
        counts = by[["successes", "episodes"]].sum()
        text, values = counts["successes"].astype(str) + "/" + counts["episodes"].astype(str), counts.reset_index()
    shown = text.unstack("value").sort_index(axis=1).fillna(NOTHING).reset_index()
    names = [f"{where}, {ROWS[row].title}" for where, row in zip(shown.pop("where"), shown.pop("row"), strict=True)]
    shown.columns = pd.Index(list(map(axis.show, shown.columns)))
    shown.insert(0, "task, method", names)
    about = f"{time.title.capitalize()}, medians over seeds" if time else f"{axis.about} Successes of as many episodes"
    title = f"{time.title.capitalize() if time else 'Success'}: {axis.name}"
    return Table(axis_name(axis, measure), title, f"{about}, by {axis.title}.", shown, values)


def axis_name(axis: Axis, measure: str) -> str:
    """Return the name of the files of a figure and of a table."""
    return f"hard-{axis.name}" + ("" if measure == "success" else f"-{measure}")


# Formats


def as_markdown(table: Table) -> str:
    """Return what the table is about, and the table below that."""
    rows = [list(table.shown.columns), *table.shown.itertuples(index=False)]
    first, *others = (f"| {' | '.join(str(text).replace('|', '/') for text in row)} |" for row in rows)
    rule = "|---|" + "---:|" * (table.shown.shape[1] - 1)
    about = textwrap.fill(f"**{table.title}.** {table.caption}", 120)
    return "\n".join((about, "", first, rule, *others, ""))


def as_latex(table: Table) -> str:
    """Return a `table` for a document that uses the package booktabs."""
    escaped = table.shown.rename(columns=_in_latex).map(_in_latex)
    caption = _in_latex(f"{table.title}. {table.caption}")
    text: str = escaped.to_latex(index=False, caption=caption, label=f"tab:{table.name}")
    return text


def _in_latex(text: object) -> str:
    special: dict[str, str | int | None] = {character: f"\\{character}" for character in "&%$#_{}"}
    return str(text).translate(str.maketrans({**special, "–": "--", "µ": r"\textmu{}", "<": r"$<$", ">": r"$>$"}))


FORMATS: Mapping[str, Callable[[Table], str]] = {
    "csv": lambda table: table.values.to_csv(index=False),
    "md": as_markdown,
    "tex": as_latex,
}
