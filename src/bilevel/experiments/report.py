"""The report of an experiment: one page that loads nothing, and its tables and figures as files."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from bilevel.experiments.figures import MEASURES, Figure, figure_bytes, figures, look, panel_source
from bilevel.experiments.results import SUCCESS, Results, measured, read_results
from bilevel.experiments.rows import NUMBER, PAPER_TASKS, TITLES, TOTAL, paper_rate, task_order
from bilevel.files import read_bytes, write_atomically
from bilevel.json_files import decode
from bilevel.methods.methods import EXPERT
from bilevel.policies.episode import REASONS
from bilevel.policies.folder import BISON
from bilevel.rules.explanation import sentence, summary
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.viewer.live import viewer_asset

NOTHING, ALL_TASKS = "–", "all tasks"

COLOURS = (  # of successes, then of the reasons of failures
    "#cfe3d8", "#56b4e9", "#8d99ae", "#4c5a73", "#e69f00", "#44aa99", "#222222", "#882255", "#b4bac4", "#f0e442",
    "#b3de69", "#cc79a7", "#d55e00", "#8c2d04", "#0072b2",
)  # fmt: skip
ENDINGS = {
    SUCCESS: "all goals are achieved in time",
    **{name: text.partition(":")[0] for name, text in REASONS.items()},
}


def write_report(source: Path, output: Path, folder: Path | None) -> list[str]:
    """Write the page about the folder of an experiment, or a file of findings; `BadInput` for anything else.

    Tables and figures go to `folder`, if there is one; return their names there.
    """
    results = read_results(source)
    drawn = list(figures(results))
    made = list(tables(results, drawn))
    contents: dict[str, str | bytes] = {}
    if folder:
        contents |= {f"{table.name}.{suffix}": show(table) for table in made for suffix, show in FORMATS.items()}
        contents |= {f"{one.name}.{suffix}": figure_bytes(one, suffix) for one in drawn for suffix in ("pdf", "png")}
        for name, content in contents.items():
            write_atomically(folder / name, content)
    films = list(read_films(source / "films"))
    write_atomically(output, page_html(results, made, drawn, films, folder.name if folder else None))
    return list(contents)


# Tables


class ReportTable(NamedTuple):
    """Lines of text below a header; the numbers with all digits are in the findings."""

    name: str  # of its files
    title: str
    caption: str
    shown: pd.DataFrame


def tables(results: Results, drawn: Sequence[Figure]) -> Iterator[ReportTable]:
    """Yield all tables that there is something to put in."""
    frame = results.along(NUMBER)
    if len(frame):
        rates = success(frame)
        rates["text"] += ["" if pd.isna(paper) else f", paper {rate(paper)}" for paper in rates["paper"]]
        shown = _pivot(rates, ["row"], "task")
        yield ReportTable("success", "Success rates", "Successes of episodes, then the paper's rate.", shown)
    for figure in drawn:
        shown = _pivot(measured(figure.frame, ["where", "row", "value"], figure.measure), ["where", "row"], "value")
        title = f"{MEASURES[figure.measure].capitalize()} by {figure.axis.title}"
        caption = "Successes of episodes." if figure.measure == SUCCESS else "Medians over seeds."
        shown = shown.rename(columns={value: figure.axis.show(value) for value in figure.frame["value"]})
        yield ReportTable(figure.name, title, caption, shown)


def _pivot(frame: pd.DataFrame, lines: list[str], columns: str) -> pd.DataFrame:
    """Return a table of texts, with a line for each group, named by titles, and a column for each value of a key."""
    shown = frame.pivot_table("text", lines, columns, "first", observed=True, sort=False).fillna(NOTHING)
    titled = shown.rename(index=TITLES).rename_axis(columns=None).rename_axis(index={"row": "method", "where": "task"})
    found: pd.DataFrame = titled.reset_index()
    return found


def success(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the success rates of all rows on each task and in total, with the paper's, and which are best.

    The best are the highest rate of a task, the expert's aside, and all whose interval holds that.
    """
    tasks = list(frame["task"].cat.categories)
    total = measured(frame[frame.groupby("row", observed=True)["task"].transform("nunique") == len(tasks)], ["row"])
    found: pd.DataFrame = pd.concat([measured(frame, ["task", "row"]), total.assign(task=TOTAL)], ignore_index=True)
    keys = zip(found["row"], found["task"], strict=True)
    papers = [paper_rate(row, task) if task != TOTAL or tasks == list(PAPER_TASKS) else None for row, task in keys]
    highest = found["middle"].where(found["row"] != EXPERT, 0.0).groupby(found["task"]).transform("max")
    best = (found["row"] != EXPERT) & (found["high"] >= highest) & (highest > 0)
    found["paper"], found["best"] = pd.Series(papers, dtype=float), best
    return found


def endings(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how episodes ended, for all tasks together and for each: successes and reasons of failures."""
    counts = (
        pd.DataFrame(list(frame["reasons"]), index=frame.index).reindex(columns=list(ENDINGS)).fillna(0).astype(int)
    )
    counts[SUCCESS] = frame["successes"]
    counts = counts.loc[:, counts.any()].assign(row=frame["row"])
    parts = {ALL_TASKS: counts, **{task: counts[frame["task"] == task] for task in frame["task"].cat.categories}}
    found: pd.DataFrame = pd.concat({task: part.groupby("row", observed=True).sum() for task, part in parts.items()})
    return found


def rate(value: float) -> str:
    """Return 0.97; only where all succeed it is 1.00, and only where none does 0.00."""
    text = f"{value:.2f}"
    return ">0.99" if text == "1.00" and value < 1 else "<0.01" if text == "0.00" and value > 0 else text


def plural(number: int, noun: str) -> str:
    """Return `1 task` or `1,000 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


FORMATS: Mapping[str, Callable[[ReportTable], Any]] = {
    "csv": lambda table: table.shown.to_csv(index=False),
    "tex": lambda table: table.shown.map(str).style.hide(axis="index").format(escape="latex").to_latex(hrules=True),
}


# Films


def read_films(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the films that are whole, with the timelines beside them, in the order of the tasks."""
    for name in task_order(path.stem for path in folder.glob("*.json") if path.with_suffix(".mp4").is_file()):
        video, text = read_bytes(folder / f"{name}.mp4"), read_bytes(folder / f"{name}.json")
        timeline = decode(text, dict[str, Any], f"{folder / name}.json: not the timeline of a film")
        yield {"timeline": timeline, "text": text.decode(), "video": base64.b64encode(video).decode()}


# The page


def asset(name: str) -> str:
    """Return the text of a file that belongs to the page."""
    return (files("bilevel.experiments") / "templates" / name).read_text(encoding="utf-8")


def page_html(
    results: Results,
    made: Sequence[ReportTable],
    drawn: Sequence[Figure],
    films: Sequence[Mapping[str, Any]],
    files_folder: str | None,
) -> str:
    """Return the whole page; `files_folder` is the name of the folder with tables and figures, if there is one."""
    environment = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(look=look, plural=plural, rate=rate, sentence=sentence, rules_summary=summary)
    frame = results.along(NUMBER)
    return environment.get_template("report.html").render(
        about=results.about,
        settings=msgspec.to_builtins(results.about.experiment),
        asset=lambda name: Markup(asset(name)),
        viewer_asset=lambda name: Markup(viewer_asset(name)),
        grid=lambda table: Markup(table.shown.to_html(index=False, border=0, classes="plainly", justify="right")),
        panel_source=panel_source,
        figures={figure.name: figure for figure in drawn},
        axes={figure.axis.name: figure.axis for figure in drawn if figure.axis is not NUMBER},
        table_named={table.name: table for table in made},
        titles=TITLES,
        rule_sets=rule_sets(results.about.rules),
        films=films,
        files_folder=files_folder,
        **(_of_success(frame) if len(frame) else {"rows": [], "numbers": [], "scope": ""}),
    )


def _of_success(frame: pd.DataFrame) -> dict[str, Any]:
    """Return what the page says of success on the tasks."""
    rates, ends = success(frame), endings(frame)
    totals = rates[rates["task"] == TOTAL].set_index("row")["middle"]
    return {
        "rows": [str(row) for row in frame["row"].cat.categories],
        "tasks": [*frame["task"].cat.categories, TOTAL],
        "cells": {(one["row"], one["task"]): one for one in rates.to_dict("records")},
        "scope": f"{plural(int(frame['episodes'].sum()), 'episode')} of {plural(frame['task'].nunique(), 'task')}",
        "numbers": [(rate(totals[row]), TITLES[row]) for row in (BISON, "bison-paper", EXPERT) if row in totals],
        "causes": {task: ends.loc[task].to_dict("index") for task in ends.index.unique(0)},
        "endings": {name: (colour, ENDINGS[name]) for name, colour in zip(ENDINGS, COLOURS, strict=True)},
    }


def rule_sets(texts: Mapping[str, str]) -> dict[tuple[Rule, ...], list[str]]:
    """Return the learned rules with the tasks for which they were learned, in the order of the tasks."""
    found: dict[tuple[Rule, ...], list[str]] = {}
    for task in task_order(texts):
        found.setdefault(parse_rules(texts[task], f"the rules of {task}"), []).append(task)
    return found
