"""The tables of a report: what results come to, in numbers as people read them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bilevel.experiments.axes import AXES, NUMBER, Axis
from bilevel.experiments.results import Results
from bilevel.experiments.rows import PAPER_TASKS, ROWS, TITLES, TOTAL, paper_rate
from bilevel.experiments.statistics import is_better, rate_interval
from bilevel.methods.methods import EXPERT
from bilevel.policies.episode import REASONS

NOTHING, ALL_TASKS = "–", "all tasks"


# Numbers as people read them


def rate(value: float) -> str:
    """Return 0.97; only where all succeed it is 1.00, and only where none does 0.00."""
    text = f"{value:.2f}"
    return ">0.99" if text == "1.00" and value < 1 else "<0.01" if text == "0.00" and value > 0 else text


def seconds(value: float) -> str:
    """Return 110 µs, 40 ms, 3.2 s, 12 min or 3.4 h."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 3600:.3g} h"


def plural(number: int, noun: str) -> str:
    """Return `1 task` or `1,000 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ranges(numbers: Iterable[int]) -> str:
    """Return 1–10, or 1, 3, 6."""
    known = sorted(set(numbers))
    is_run = len(known) > 2 and known == list(range(known[0], known[-1] + 1))
    return f"{known[0]}–{known[-1]}" if is_run else ", ".join(map(str, known))


def scope(frame: pd.DataFrame) -> str:
    """Return what was run: `8 tasks, 1–10 objects, 10 episodes of each size with each of 3 seeds`."""
    networks, noun = frame["seed"].nunique(), "episodes" if frame["episodes"].max() > 1 else "episode"
    each = f"{ranges(frame['episodes'])} {noun} of each size with {f'each of {networks}' if networks > 1 else 'a'} seed"
    size = f"{ranges(frame['objects'])} objects"
    return f"{plural(frame['task'].nunique(), 'task')}, {size}, {each}{'s' if networks > 1 else ''}"


# Scores


def scores(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the success rate of each group, with its interval and the counts of each policy that was run."""
    lines = []
    for key, part in frame.groupby(by, observed=True):
        counts = part.groupby("seed")[["successes", "episodes"]].sum()
        successes, episodes = map(int, counts.sum())
        learned = ROWS[part["row"].iloc[0]].learned  # else policies are the same whatever the seed
        policies = tuple(counts.itertuples(index=False, name=None)) if learned else ((successes, episodes),)
        low, high = rate_interval(policies)
        rates = {"successes": successes, "episodes": episodes, "rate": successes / episodes, "low": low, "high": high}
        lines.append({**dict(zip(by, key, strict=True)), **rates, "policies": policies})
    found: pd.DataFrame = pd.DataFrame(lines)
    return found


def success(results: Results) -> pd.DataFrame:
    """Return the scores of all rows on each task and in total, with the paper's, and which are best on their task."""
    frame = results.of("")
    total, tasks = scores(frame, ["row"]), list(frame["task"].cat.categories)
    whole = frame.groupby("row", observed=True)["task"].nunique() == len(tasks)
    total = total.loc[[bool(whole[row]) for row in total["row"]]].assign(task=TOTAL)
    columns = []
    for task, column in pd.concat([scores(frame, ["row", "task"]), total]).groupby("task", sort=False):
        of_paper = task != TOTAL or tasks == list(PAPER_TASKS)
        paper = [paper_rate(row, str(task)) if of_paper else None for row in column["row"]]
        columns.append(column.assign(paper=np.array(paper, float), best=_is_best(column)))
    found: pd.DataFrame = pd.concat(columns, ignore_index=True)
    return found


def _is_best(column: pd.DataFrame) -> list[bool]:
    """Return which rates are the best, or cannot be told from it: none where nothing has succeeded."""
    rivals = [ROWS[row].method != EXPERT for row in column["row"]]
    if not any(rivals) or not column[rivals]["successes"].any():
        return [False] * len(column)
    best = column.loc[column[rivals]["rate"].idxmax(), "policies"]
    known = zip(rivals, column["policies"], strict=True)
    return [is_rival and (policies == best or not is_better(best, policies)) for is_rival, policies in known]


def endings(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how episodes ended, by task and row, and for all tasks together: successes and each reason of failure."""
    counts = pd.DataFrame(
        [{"success": won, **why} for won, why in zip(frame["successes"], frame["reasons"], strict=True)]
    )
    names = ["success", *(reason for reason in REASONS if reason in counts)]
    counts = counts[names].fillna(0).astype(int).assign(task=list(frame["task"]), row=list(frame["row"]))
    both = pd.concat([counts.assign(task=ALL_TASKS), counts])
    both["row"] = pd.Categorical(both["row"], frame["row"].cat.categories, ordered=True)
    both["task"] = pd.Categorical(both["task"], [ALL_TASKS, *frame["task"].cat.categories], ordered=True)
    found: pd.DataFrame = both.groupby(["task", "row"], observed=True)[names].sum()
    return found


# Tables


class ReportTable(NamedTuple):
    """Lines of text below a header; the numbers with all digits are in the findings."""

    name: str  # of its files
    title: str
    caption: str
    shown: pd.DataFrame


def tables(results: Results) -> Iterator[ReportTable]:
    """Yield all tables that there is something to put in."""
    known = set(results.table["axis"])
    if "" in known:
        yield from (success_table(results), axis_table(results, NUMBER, "success"))
        yield from (cost_table(results), cause_table(results))
    for axis in AXES.values():
        if axis.name in known:
            yield from (axis_table(results, axis, measure) for measure in axis.measures)


def success_table(results: Results) -> ReportTable:
    """Return the success rates of all rows on all tasks, with the paper's."""
    found = success(results)
    text = [
        f"{rate(one['rate'])} ({one['low']:.2f}–{one['high']:.2f})"
        + ("" if pd.isna(one["paper"]) else f" paper {rate(one['paper'])}")
        for one in found.to_dict("records")
    ]
    shown = _lines(found.assign(text=text), "text", ["row"], "task")
    caption = f"{scope(results.of(''))}. In brackets the interval, then what the paper reports."
    return ReportTable("success", "Success rates", caption, shown[["method", *dict.fromkeys(found["task"])]])


def _lines(frame: pd.DataFrame, text: str, lines: list[str], columns: str) -> pd.DataFrame:
    """Return a table for people: a line for each group, named by its titles, and a column for each value of a key."""
    shown = frame.pivot_table(text, lines, columns, "first", observed=True, sort=False).fillna(NOTHING)
    keys = [(key,) if isinstance(key, str) else key for key in shown.index]
    names = [", ".join(TITLES.get(part, part) for part in key) for key in keys]
    shown.insert(0, ", ".join(["task", "method"][-len(lines) :]), names)
    found: pd.DataFrame = shown.reset_index(drop=True)
    return found


def _fractions(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the successes and the episodes of each group, and both as a text."""
    found: pd.DataFrame = frame.groupby(by, observed=True)[["successes", "episodes"]].sum().reset_index()
    found["text"] = [f"{won}/{all_}" for won, all_ in zip(found["successes"], found["episodes"], strict=True)]
    return found


COSTS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "training_seconds": ("training time", seconds),
    "policy_seconds": ("time to decide, for each step", seconds),
    "parameters": ("parameters", "{:,.0f}".format),
}


def costs(results: Results, by: list[str]) -> pd.DataFrame:
    """Return what each row takes, maybe on each task: medians over the rest, inference with the most objects."""
    frame = results.of("")
    largest = frame[frame["objects"] == frame["objects"].max()]
    found: pd.DataFrame = frame.groupby(by, observed=True)[["successes", "episodes"]].sum()
    found["rate"] = found["successes"] / found["episodes"]
    for part, names in (
        (frame, ["training_seconds", "parameters"]),
        (largest.assign(policy_seconds=largest["policy_microseconds"].astype(float) / 1e6), ["policy_seconds"]),
    ):
        found = found.join(part.astype(dict.fromkeys(names, float)).groupby(by, observed=True)[names].median())
    return found


def cost_table(results: Results) -> ReportTable:
    """Return what each row takes: medians over tasks and seeds."""
    found = costs(results, ["row"])
    shown = pd.DataFrame({"method": [TITLES[row] for row in found.index], "success": list(map(rate, found["rate"]))})
    for name, (title, show) in COSTS.items():
        shown[title] = [NOTHING if pd.isna(value) else show(value) for value in found[name]]
    most = results.of("")["objects"].max()
    caption = f"Medians over tasks and seeds; inference with {most} objects, labels and planning included."
    return ReportTable("costs", "Time", caption, shown)


def cause_table(results: Results) -> ReportTable:
    """Return how many episodes failed for each reason."""
    frame = results.of("")
    found = endings(frame)
    shown = found.loc[ALL_TASKS].astype(object).where(lambda counts: counts > 0, NOTHING).reset_index()
    shown.insert(0, "method", [TITLES[row] for row in shown.pop("row")])
    caption = f"{scope(frame)}, all tasks together; each failure has one cause."
    return ReportTable("causes", "Causes of failure", caption, shown)


# The hard suite


class Measure(NamedTuple):
    """A time in seconds that is measured along an axis, and how much is too much."""

    title: str
    column: str  # of the table
    limit: tuple[float, str] | None = None


MEASURES = {
    "pause": Measure("longest pause", "pause_seconds", limit=(1.0, "1 s")),
    "seconds": Measure("time to solve", "seconds"),
}


def places(results: Results, axis: Axis) -> Any:
    """Return the lines of an axis, with the title of the place where curves are to be compared."""
    frame: Any = results.of(axis.name)
    several = frame["place"].nunique() > 1
    titles = [
        f"{task}, {place:g} objects" if several else task
        for task, place in zip(frame["task"], frame["place"], strict=True)
    ]
    return frame.assign(where=titles, value=frame["value"] if axis.name else frame["objects"])


def axis_table(results: Results, axis: Axis, measure: str) -> ReportTable:
    """Return a line for each row at each place, and a column for each value of the axis."""
    frame, time = places(results, axis), MEASURES.get(measure)
    if time:
        taken = frame.astype({time.column: float}).groupby(["where", "row", "value"], observed=True)[time.column]
        found = taken.median().rename("seconds").dropna().reset_index()
        found["text"] = found["seconds"].map(seconds)
    else:
        found = _fractions(frame, ["where", "row", "value"])
    shown = _lines(found, "text", ["where", "row"], "value")
    shown = shown.rename(columns={value: axis.show(value) for value in axis.values})
    about = f"{time.title.capitalize()}, medians over seeds" if time else f"{axis.about} Successes of as many episodes"
    title = f"{time.title.capitalize() if time else 'Success'} by {axis.title}"
    return ReportTable(axis_name(axis, measure), title, f"{about}, by {axis.title}.", shown)


def axis_name(axis: Axis, measure: str) -> str:
    """Return the name of the files of a figure and of a table."""
    return f"hard-{axis.name}{'' if measure == 'success' else f'-{measure}'}" if axis.name else "success-by-objects"


# Formats


def as_markdown(table: ReportTable) -> str:
    """Return what the table is about, and the table below that."""
    rows = [list(table.shown.columns), *table.shown.itertuples(index=False)]
    first, *others = (f"| {' | '.join(str(text).replace('|', '/') for text in row)} |" for row in rows)
    rule = "|---|" + "---:|" * (table.shown.shape[1] - 1)
    about = textwrap.fill(f"**{table.title}.** {table.caption}", 120)
    return "\n".join((about, "", first, rule, *others, ""))


FORMATS: Mapping[str, Callable[[ReportTable], Any]] = {
    "csv": lambda table: table.shown.to_csv(index=False),
    "md": as_markdown,
    "tex": lambda table: table.shown.map(str).style.hide(axis="index").format(escape="latex").to_latex(hrules=True),
}
