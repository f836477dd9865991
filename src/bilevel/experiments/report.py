"""The report of an experiment: one page that loads nothing, and its tables and figures as files."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from bilevel.experiments import tables as wording
from bilevel.experiments.axes import AXES
from bilevel.experiments.figures import CAUSES, figure_bytes, figures, look, panel_source
from bilevel.experiments.films import Timeline
from bilevel.experiments.results import Results, read_results, write_findings
from bilevel.experiments.rows import ADDRESS, ROWS, TITLE, TITLES, TOTAL, task_order
from bilevel.experiments.tables import FORMATS, axis_name, endings, plural, rate, scope, success, tables
from bilevel.files import write_atomically
from bilevel.json_files import decode, encode, read_bytes
from bilevel.methods.methods import EXPERT
from bilevel.policies.folder import BISON
from bilevel.rules.explanation import sentence, summary
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import BadInput
from bilevel.viewer.live import viewer_asset


def write_report(source: Path, output: Path, folder: Path | None) -> list[str]:
    """Write the page about the folder of an experiment, or a file of findings; `BadInput` for anything else.

    Tables and figures go to `folder`, if there is one; return their names there.
    """
    results = read_results(source)
    contents = dict(_files(results)) if folder else {}
    for name, content in contents.items():
        write_atomically(Path(folder or "") / name, content)
    films = read_films(source / "films") if source.is_dir() else []
    write_atomically(output, page_html(results, films, folder.name if folder else None))
    return list(contents)


def write_pages(folder: Path, output: Path) -> Path | None:
    """Write the findings and the page of an experiment, as far as it is; `None` if there is nothing to report on."""
    write_findings(folder)
    try:
        write_report(folder, output, folder / "report-files")
    except BadInput:
        return None
    return output


def _files(results: Results) -> Iterator[tuple[str, str | bytes]]:
    """Yield the tables and the figures as files, each with its name."""
    for table in tables(results):
        yield from ((f"{table.name}.{suffix}", show(table)) for suffix, show in FORMATS.items())
    for suffix in ("pdf", "png"):
        for figure in figures(results):
            if figure.panels:
                yield f"{figure.name}.{suffix}", figure_bytes(figure, suffix)


# The page


class Film(NamedTuple):
    """A film with its timeline, ready to be shown."""

    timeline: Timeline
    text: str  # of the timeline, for the page's program
    video: str  # base64
    still: str | None  # base64 of its first picture
    shape: str | None  # width / height of a picture


def read_films(folder: Path) -> list[Film]:
    """Return the films that are whole, with a timeline beside them, in the order of the tasks."""
    names = task_order(path.stem for path in folder.glob("*.mp4") if path.with_suffix(".json").is_file())
    found = []
    for name in names:
        video, file = read_bytes(folder / f"{name}.mp4"), folder / f"{name}.json"
        what = f"{file}: not the timeline of a film; remove it to have it made again"
        timeline = decode(read_bytes(file), Timeline, what)
        found.append(Film(timeline, encode(timeline, indent=0), _base64(video), *_first_picture(video)))
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


def page_html(results: Results, films: Sequence[Film], files_folder: str | None) -> str:
    """Return the whole page; `files_folder` is the name of the folder with tables and figures, if there is one."""
    environment = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    frame, known = results.of(""), set(results.table["axis"])
    scored = success(results) if len(frame) else pd.DataFrame(columns=["row", "task"])
    values = {
        "about": results.about,
        "settings": msgspec.to_builtins(results.about.experiment),
        "asset": lambda name: Markup(asset(name)),
        "viewer_asset": lambda name: Markup(viewer_asset(name)),
        "wording": wording,
        "look": look,
        "panel_source": panel_source,
        "figures": {figure.name: figure for figure in figures(results) if figure.panels},
        "table_named": {table.name: table for table in tables(results)},
        "grid": lambda table: Markup(table.shown.to_html(index=False, border=0, classes="plainly", justify="right")),
        "cells": {(one["row"], one["task"]): one for one in scored.to_dict("records")},
        "rows": list(dict.fromkeys(scored["row"])),
        "tasks": list(dict.fromkeys(scored["task"])),
        "scope": scope(frame) if len(frame) else "",
        "numbers": list(_numbers(frame, scored)) if len(frame) else [],
        "causes": _causes(frame) if len(frame) else {},
        "cause_looks": CAUSES,
        "titles": TITLES,
        "rule_sets": rule_sets(results.about.rules),
        "rules_summary": summary,
        "sentence": sentence,
        "films": films,
        "axes": [
            (axis, [axis_name(axis, measure) for measure in axis.measures])
            for axis in AXES.values()
            if axis.name in known
        ],
        "methods": _methods(frame),
        "paper": {"title": TITLE, "address": ADDRESS},
        "files_folder": files_folder,
    }
    return environment.get_template("report.html").render(values)


def rule_sets(texts: Mapping[str, str]) -> dict[tuple[Rule, ...], list[str]]:
    """Return the learned rules with the tasks for which they were learned, in the order of the tasks."""
    found: dict[tuple[Rule, ...], list[str]] = {}
    for task in task_order(texts):
        found.setdefault(parse_rules(texts[task], f"the rules of {task}"), []).append(task)
    return found


def _causes(frame: pd.DataFrame) -> dict[str, dict[str, dict[str, int]]]:
    """Return how episodes ended, by task and row."""
    found = endings(frame)
    return {task: found.loc[task].to_dict("index") for task in found.index.unique("task")}


def _numbers(frame: pd.DataFrame, scored: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield what to show large at the top, with what it is."""
    totals = scored[scored["task"] == TOTAL].sort_values("rate", ascending=False, kind="stable").to_dict("records")
    ours = [one for one in totals if ROWS[one["row"]].method == BISON]
    rivals = [one for one in totals if ROWS[one["row"]].method not in (BISON, EXPERT)]
    for best in ours[:1]:
        yield rate(best["rate"]), f"success of {TITLES[best['row']]}"
        if not pd.isna(best["paper"]):
            yield rate(best["paper"]), "BISON in the paper"
    for best in rivals[:1]:
        yield rate(best["rate"]), f"the best rival, {TITLES[best['row']]}"
    yield f"{int(frame['episodes'].sum()):,}", f"episodes of {plural(frame['task'].nunique(), 'task')}"


def _methods(frame: pd.DataFrame) -> dict[str, str]:
    """Return how long each learned row was trained, and on how much."""
    found = {}
    for row, part in frame[frame["samples"].notna()].groupby("row", observed=True):
        first = part.iloc[0]
        length = (
            plural(int(first["epochs"]), "epoch")
            if pd.notna(first["epochs"])
            else plural(int(first["updates"]), "update")
        )
        found[TITLES[str(row)]] = f"{length}; {int(part['samples'].median()):,} samples"
    return found
