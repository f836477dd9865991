"""The report of an experiment: one page that loads nothing, and its tables and figures as files."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from bilevel.experiments import tables as wording
from bilevel.experiments.axes import Axis as HardAxis
from bilevel.experiments.charts import RATES, Axis, Figure, Panel, Series, bars_bytes, figure_bytes, look, panel_source
from bilevel.experiments.films import Timeline, read_timeline
from bilevel.experiments.rows import ADDRESS, PAPER_ROWS, PAPER_TASKS, ROWS, TITLE, USUAL_ROWS, Row, task_order
from bilevel.experiments.table import Results, read_results, write_findings
from bilevel.experiments.tables import (
    COSTS,
    FORMATS,
    MEASURES,
    SOLVERS,
    Cell,
    Table,
    axes_of,
    axis_name,
    cells,
    costs,
    endings,
    plural,
    points_of,
    rate,
    rows_of,
    scope,
    score,
    seconds,
    tables,
    tasks_of,
)
from bilevel.files import write_atomically
from bilevel.json_files import read_bytes
from bilevel.methods.methods import EXPERT
from bilevel.policies.folder import BISON
from bilevel.rules.explanation import sentence, summary
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import BadInput
from bilevel.viewer.live import viewer_asset

# How episodes end: colours, and what it means.
CAUSES: Mapping[str, tuple[str, str]] = {
    "success": ("#cfe3d8", "all goals were achieved in time"),
    "no rule": ("#56b4e9", "the policy did not know what to do: no rule applied"),
    "no model": ("#8d99ae", "the planner cannot express what may happen, such as objects to come"),
    "no plan": ("#4c5a73", "the planner found no plan, or none in time"),
    "plan broken": ("#e69f00", "what happened is not in the plan, and it did not plan again"),
    "unseen": ("#44aa99", "an object that it needed was not seen"),
    "physics": ("#222222", "the simulation became unstable"),
    "terminated": ("#882255", "the environment ended the episode, for a reason of its own"),
    "label": ("#f0e442", "the labels flickered: changes of the symbolic state were undone at once"),
    "control": ("#b3de69", "its control was unsteady: things moved to and fro"),
    "stall": ("#cc79a7", "stuck: nothing that it did had an effect any more"),
    "drop": ("#d55e00", "it kept losing what it held or needed"),
    "collision": ("#8c2d04", "it kept upsetting things that it had nothing to do with"),
    "time": ("#0072b2", "it was still making progress when the steps were up"),
}


def write_report(source: Path, output: Path, folder: Path | None) -> list[str]:
    """Write the page about the folder of an experiment, or a file of findings; `BadInput` for anything else.

    Tables and figures go to `folder`, if there is one; return their names there.
    """
    results = read_results(source)
    films = read_films(source / "films") if source.is_dir() else []
    drawn = figures(results)
    contents: dict[str, str | bytes] = {}
    if folder:
        contents |= {
            f"{table.name}.{suffix}": show(table) for table in tables(results) for suffix, show in FORMATS.items()
        }
        for suffix in ("pdf", "png"):
            contents |= {f"{figure.name}.{suffix}": figure_bytes(figure, suffix) for figure in drawn.values()}
            if len(results.episodes):
                colours = {cause: colour for cause, (colour, _) in CAUSES.items()}
                named = {
                    task: {ROWS[row].title: counts for row, counts in bars.items()}
                    for task, bars in causes(results).items()
                }
                contents[f"causes-of-failure.{suffix}"] = bars_bytes(named, colours, suffix)
        for name, content in contents.items():
            write_atomically(folder / name, content)
    write_atomically(output, page_html(results, drawn, films, folder.name if folder else None))
    return list(contents)


def write_pages(folder: Path, output: Path) -> Path | None:
    """Write the findings and the page of an experiment, as far as it is; `None` if there is nothing to report on."""
    write_findings(folder)
    try:
        write_report(folder, output, folder / "report-files")
    except BadInput:
        return None
    return output


# Figures


def figures(results: Results) -> dict[str, Figure]:
    """Return all figures that there is something to show in, by name."""
    found: list[Figure] = []
    if len(results.episodes):
        papers = [row.name for row in rows_of(results) if row.name in PAPER_ROWS]
        others = [row.name for row in rows_of(results) if row.name not in PAPER_ROWS]
        found += [
            _by_objects(results, "success-by-objects", papers),
            _by_objects(results, "variants-by-objects", others),
        ]
        found.append(_against_costs(results))
    if len(results.scaling):
        found.append(_solving_time(results))
    for axis in axes_of(results):
        found += [_along_axis(results, axis, measure) for measure in axis.measures]
    return {figure.name: figure for figure in found if figure.panels}


def _by_objects(results: Results, name: str, rows: Sequence[str]) -> Figure:
    """Return a panel for each task with a curve for each row along the number of objects."""
    frame, panels = results.episodes[results.episodes["row"].isin(rows)], []
    sizes = sorted(frame["objects"].unique())
    named = [size for size in sizes if len(sizes) <= 6 or size % 2 == sizes[-1] % 2 or size == sizes[0]]
    for task, part in frame.groupby("task", observed=True):
        panels.append(Panel(str(task), Axis("number of objects", ticks=named), RATES, _rate_curves(part, "objects")))
    return Figure(name, panels)


def _rate_curves(frame: pd.DataFrame, along: str) -> list[Series]:
    series = []
    for name, part in frame.groupby("row", observed=True):
        scores = {value: found for value, at in part.groupby(along) if (found := score(at))}
        rates, ranges = [found.rate for found in scores.values()], [found.interval for found in scores.values()]
        series.append(Series(str(name), ROWS[str(name)].title, [float(str(value)) for value in scores], rates, ranges))
    return series


def _against_costs(results: Results) -> Figure:
    """Return a panel for each cost: a large mark for each row, the median over tasks, and a faint one for each."""
    total, by_task = costs(results, ["row"]), costs(results, ["row", "task"]).reset_index("task")
    panels = []
    for name, (title, show) in COSTS.items():
        series, faint = list[Series](), list[Series]()
        for row in (row for row in rows_of(results) if row.name in PAPER_ROWS):
            for frame, kept in ((total, series), (by_task, faint)):
                part = frame[(frame.index == row.name) & frame[name].notna() & (frame[name] > 0)]
                if len(part):
                    kept.append(Series(row.name, row.title, list(part[name]), list(part["rate"])))
        if series and name != "parameters":
            panels.append(Panel(title.capitalize(), Axis("", show, log=True), RATES, series, False, faint))
    return Figure("success-against-costs", panels)


def _solving_time(results: Results) -> Figure:
    """Return a panel for each task with the time that rules and planners take; there is no mark without a model."""
    frame, panels = results.scaling[results.scaling["failure"] != "no model"], []
    for task, of_task in frame.groupby("task", observed=True):
        series = []
        for solver, part in of_task.sort_values("objects").groupby("solver"):
            stopped = [isinstance(failure, str) for failure in part["failure"]]
            key, (x, y) = str(solver), (list(part["objects"]), list(part["seconds"]))
            series.append(Series(key, SOLVERS[key], x, y, gave_up=stopped))
        x_axis = Axis("number of objects", "{:,.0f}".format, log=True)
        panels.append(Panel(str(task), x_axis, Axis("time to solve", seconds, log=True), series))
    return Figure("solving-time", panels)


def _along_axis(results: Results, axis: HardAxis, measure: str) -> Figure:
    """Return a panel for each place with a curve for each row along an axis of the hard suite."""
    frame, time, panels = points_of(results, axis), MEASURES.get(measure), []
    values = sorted(frame["value"].unique())
    named = values if len(values) <= 5 else values[::2]
    x = Axis(axis.title, axis.show, named, log=axis.is_log)
    for where, part in frame.groupby("where", sort=False):
        if time is None:
            panels.append(Panel(str(where), x, RATES, _rate_curves(part, "value")))
            continue
        series = []
        for name, points in part[part[time.column].notna()].groupby("row", observed=True):
            by_value = (points.set_index("value")[time.column].astype(float) * time.factor).groupby(level=0)
            taken, ends = by_value.median(), list(zip(by_value.min(), by_value.max(), strict=True))
            unsolved = points.groupby("value")["successes"].sum() == 0
            gave_up = list(unsolved) if axis.in_symbols else ()
            series.append(Series(str(name), ROWS[str(name)].title, list(taken.index), list(taken), ends, gave_up))
        panels.append(Panel(str(where), x, Axis(time.title, seconds, log=True), series, limit=time.limit))
    return Figure(axis_name(axis, measure), panels)


def causes(results: Results) -> dict[str, dict[str, Counter[str]]]:
    """Return how episodes ended: for all tasks together, then for each, the counts of each row."""
    frame, found = results.episodes, {}
    for task in (None, *tasks_of(results)):
        of_task = frame if task is None else frame[frame["task"] == task]
        groups = of_task.groupby("row", observed=True)
        found[task or "all tasks"] = {str(row): endings(part) for row, part in groups}
    return found


# The page


class Film(NamedTuple):
    """A film with its timeline, ready to be shown."""

    timeline: Timeline
    video: str  # base64
    still: str | None  # base64 of its first picture
    shape: str | None  # width / height of a picture


def read_films(folder: Path) -> list[Film]:
    """Return the films that are whole, with a timeline beside them, in the order of the tasks."""
    names = task_order(path.stem for path in folder.glob("*.mp4") if path.with_suffix(".json").is_file())
    found = []
    for name in names:
        video = read_bytes(folder / f"{name}.mp4")
        found.append(Film(read_timeline(folder / f"{name}.json"), _base64(video), *_first_picture(video)))
    return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _first_picture(video: bytes) -> tuple[str | None, str | None]:
    """Return a JPEG of it, to be seen before the film is loaded, and its shape; `None` where it cannot be read."""
    try:
        import av

        with av.open(io.BytesIO(video)) as film, io.BytesIO() as buffer:
            picture = next(film.decode(video=0)).to_image()
            picture.save(buffer, "JPEG", quality=70)
            return _base64(buffer.getvalue()), f"{picture.width} / {picture.height}"
    except (ImportError, OSError, ValueError, StopIteration):  # some browser may yet play it
        return None, None


def asset(name: str) -> str:
    """Return the text of a file that belongs to the page."""
    return (files("bilevel.experiments") / "templates" / name).read_text(encoding="utf-8")


def page_html(results: Results, drawn: Mapping[str, Figure], films: Sequence[Film], files_folder: str | None) -> str:
    """Return the whole page; `files_folder` is the name of the folder with tables and figures, if there is one."""
    environment = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    has_table = len(results.episodes) > 0
    values = {
        "about": results.about,
        "settings": msgspec.to_builtins(results.settings),
        "asset": lambda name: Markup(asset(name)),
        "viewer_asset": lambda name: Markup(viewer_asset(name)),
        "wording": wording,
        "look": look,
        "panel_source": panel_source,
        "figures": drawn,
        "table_named": {table.name: table for table in tables(results)},
        "grid": _grid,
        "lines": cells(results) if has_table else [],
        "tasks": tasks_of(results) if has_table else [],
        "scope": scope(results) if has_table else "",
        "numbers": list(_numbers(results)) if has_table else [],
        "missing": list(_missing(results, films)),
        "causes": causes(results) if has_table else {},
        "cause_looks": CAUSES,
        "titles": {name: row.title for name, row in ROWS.items()},
        "rule_sets": rule_sets(results.about.rules),
        "rules_summary": summary,
        "sentence": sentence,
        "films": films,
        "axes": [(axis, [axis_name(axis, measure) for measure in axis.measures]) for axis in axes_of(results)],
        "methods": _methods(results),
        "paper": {"title": TITLE, "address": ADDRESS},
        "files_folder": files_folder,
    }
    return environment.get_template("report.html").render(values)


def _grid(table: Table) -> Markup:
    return Markup(table.shown.to_html(index=False, border=0, classes="plainly", justify="right"))


def rule_sets(texts: Mapping[str, str]) -> dict[tuple[Rule, ...], list[str]]:
    """Return the learned rules with the tasks for which they were learned, in the order of the tasks."""
    found: dict[tuple[Rule, ...], list[str]] = {}
    for task in task_order(texts):
        found.setdefault(parse_rules(texts[task], f"the rules of {task}"), []).append(task)
    return found


def _numbers(results: Results) -> Iterator[tuple[str, str]]:
    """Yield what to show large at the top, with what it is."""
    totals = [line[-1] for line in cells(results) if line[-1].score]
    ours = [cell for cell in totals if cell.row.method == BISON]
    rivals = [cell for cell in totals if cell.row.method not in (BISON, EXPERT)]
    best = max(ours, key=_rate, default=None)
    if best:
        yield rate(_rate(best)), f"success of {best.row.title}"
        if best.paper is not None:
            yield rate(best.paper), "BISON in the paper"
    if rivals:
        rival = max(rivals, key=_rate)
        yield rate(_rate(rival)), f"the best rival, {rival.row.title}"
    yield f"{int(results.episodes['episodes'].sum()):,}", f"episodes of {plural(len(tasks_of(results)), 'task')}"


def _rate(cell: Cell) -> float:
    return cell.score.rate if cell.score else 0.0


def _missing(results: Results, films: Sequence[Film]) -> Iterator[str]:
    """Yield what a whole experiment has and these results do not, a sentence each."""
    frame = results.episodes
    if not len(frame):
        return
    if absent := [task for task in PAPER_TASKS if task not in tasks_of(results)]:
        yield f"Tasks that were not run: {', '.join(absent)}."
    if lacking := [ROWS[name].title for name in USUAL_ROWS if ROWS[name] not in rows_of(results)]:
        yield f"Methods that were not run: {'; '.join(lacking)}."
    there = frame.groupby(["row", "task"], observed=True)["episodes"].sum()
    for (row, task), number in there[there < there.max()].items():
        yield f"{ROWS[row].title} on {task}: {number} of {there.max()} episodes."
    if not len(results.scaling):
        yield "Large problems, for which rules and planners are timed, were not run."
    if not films:
        yield "Films: there are none."


def _methods(results: Results) -> dict[str, str]:
    """Return how long each learned row was trained, and on how much."""
    found = {}
    for name, part in results.training.groupby("row", observed=True):
        row: Row = ROWS[str(name)]
        first = part.iloc[0]
        length = plural(int(first["updates"]), "update") if first["updates"] else plural(int(first["epochs"]), "epoch")
        samples = f"{int(median(part['samples'])):,} samples"
        found[row.title] = f"{length}; learning rate {first['learning_rate']:g}; {samples}"
    return found
