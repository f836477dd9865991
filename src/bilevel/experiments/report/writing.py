"""Reports: what they are made from, and everything that they consist of, written to files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bilevel.experiments.hard.curves import (
    CURVE_BEGINNING,
    CURVES,
    Curves,
    curve_problems,
    read_curves,
    summarise_curves,
)
from bilevel.experiments.hard.selection import ASKED
from bilevel.experiments.paper import in_order
from bilevel.experiments.report.charts import Figure
from bilevel.experiments.report.drawing import figure_bytes
from bilevel.experiments.report.figures import figures
from bilevel.experiments.report.hard_figures import hard_figures
from bilevel.experiments.report.hard_page import hard_page_html
from bilevel.experiments.report.hard_results import HardResults
from bilevel.experiments.report.hard_tables import hard_tables
from bilevel.experiments.report.page import page_html
from bilevel.experiments.report.scores import Results
from bilevel.experiments.report.tables import FORMATS, Table, tables
from bilevel.experiments.report.wording import SOLVERS
from bilevel.experiments.reproduction.films import Timeline, read_timeline
from bilevel.experiments.reproduction.findings import Findings, Size, read_findings
from bilevel.experiments.reproduction.folder import EXPERIMENT, FINDINGS, ExperimentFolder, read_experiment
from bilevel.experiments.reproduction.summary import summarise
from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.files import write_atomically
from bilevel.json_files import read_bytes
from bilevel.policies.episode import REASONS
from bilevel.symbolic.domain import BadInput

FILMS = "films"
PICTURES = ("pdf", "png")


class NothingFound(BadInput):
    """There is nothing yet to report on."""


def write_report(source: Path, output: Path, folder: Path | None) -> list[str]:
    """Write the pages about a folder or a file of `bilevel reproduce` or `bilevel benchmark hard`.

    Where both have worked in a folder, the page about the hard suite is beside the other, with `-hard` in its name.
    Tables and figures go to `folder`; return their names there. Without a folder there are none.
    """
    if not has_curves(source):
        return write_table_report(source, output, folder)
    if not has_table(source):
        return write_hard_report(source, output, folder)
    hard = output.with_name(f"{output.stem}-hard{output.suffix}")
    written = write_table_report(source, output, folder, hard.name)
    return written + write_hard_report(source, hard, folder, output.name)


def write_table_report(source: Path, output: Path, folder: Path | None, other_page: str | None = None) -> list[str]:
    """Write the page about the paper's table; `other_page` is the name of the one about the hard suite, if any."""
    findings = read_source(source)
    films = read_films(source / FILMS) if source.is_dir() else None
    page = page_html(findings, films, _beside(folder), other_page, _curves_beside(source))
    results = Results(findings)
    return _write(output, page, folder, tables(results), figures(results).values())


def write_hard_report(source: Path, output: Path, folder: Path | None, other_page: str | None = None) -> list[str]:
    """Write the page about the hard suite; `other_page` is the name of the one about the paper's table, if any."""
    curves = read_hard_source(source)
    page = hard_page_html(curves, _beside(folder), other_page)
    results = HardResults(curves)
    return _write(output, page, folder, hard_tables(results).values(), hard_figures(results).values())


PAGES = {"report.html": write_table_report, "hard.html": write_hard_report}  # that runs write into their folders


def _beside(folder: Path | None) -> str | None:
    return os.fsencode(folder.name).decode(errors="replace") if folder else None  # a name need not be UTF-8


def _write(
    output: Path, page: str, folder: Path | None, tables: Iterable[Table], figures: Iterable[Figure]
) -> list[str]:
    contents = dict(report_files(tables, figures)) if folder else {}
    for name, content in contents.items():
        write_atomically((folder or output.parent) / name, content)
    write_atomically(output, page)
    return list(contents)


def report_files(tables: Iterable[Table], figures: Iterable[Figure]) -> Iterator[tuple[str, str | bytes]]:
    """Yield the tables in each format and the figures in each, by the names of their files."""
    for table in tables:
        for suffix, text_of in FORMATS.items():
            yield f"{table.name}.{suffix}", text_of(table)
    for figure in figures:
        for suffix in PICTURES:
            yield f"{figure.name}.{suffix}", figure_bytes(figure, suffix)


def _curves_beside(source: Path) -> Curves | None:
    """Return what is there of the hard suite beside the table; `None` where that is nothing yet."""
    try:
        return read_hard_source(source) if has_curves(source) else None
    except NothingFound:
        return None


# What a report is made from


def has_curves(path: Path) -> bool:
    """Whether a folder, or a file of findings, is about the hard suite, maybe among other things."""
    if path.is_dir():
        return (path / ASKED).is_dir() or (path / CURVES).is_file()
    return path.is_file() and any(line.startswith(CURVE_BEGINNING) for line in read_bytes(path).splitlines())


def has_table(path: Path) -> bool:
    """Whether `bilevel reproduce` has worked in a folder."""
    return path.is_dir() and (path / FINDINGS).is_file()


def read_hard_source(path: Path) -> Curves:
    """Read curves from a folder or a file; `BadInput` for anything that `bilevel benchmark hard` has not made."""
    if (path / EXPERIMENT).is_file():
        folder = ExperimentFolder(path, read_experiment(path))
        try:
            command = read_curves(path / CURVES).about.command
        except BadInput:
            command = f"bilevel benchmark hard --output {path}"
        curves = summarise_curves(folder, command)
    else:
        curves = read_curves(path / CURVES if path.is_dir() else path)
    if not curves.curves:
        raise NothingFound(f"{path}: there are no results in it yet; `bilevel benchmark hard` makes them")
    for problem in curve_problems(curves):
        raise BadInput(f"{path}: {problem}; `bilevel benchmark hard` writes no such curves")
    return curves


def read_source(path: Path) -> Findings:
    """Read findings from a folder or a file; `BadInput` for anything that `bilevel reproduce` has not made."""
    file = path / FINDINGS if path.is_dir() else path
    if (path / EXPERIMENT).is_file():
        findings = _so_far(path)
    elif file.is_file():
        findings = read_findings(file)
    else:
        missing = f"no {FINDINGS} in this folder" if path.is_dir() else "no such file or folder"
        raise BadInput(f"{path}: {missing}; `bilevel reproduce --output DIR` makes a folder to report on")
    if not (findings.rows or findings.scaling):
        raise NothingFound(f"{path}: there are no results in it yet; `bilevel reproduce` makes them")
    for problem in _problems(findings):
        raise BadInput(f"{path}: {problem}; `bilevel reproduce` writes no such findings")
    return findings


def _so_far(folder: Path) -> Findings:
    """Return what is there now: a run may be at work, or have been killed before it wrote its findings."""
    try:
        command = read_findings(folder / FINDINGS).about.command
    except BadInput:
        command = f"bilevel reproduce --output {folder}"
    return summarise(ExperimentFolder(folder, read_experiment(folder)), command)


def read_films(folder: Path) -> list[tuple[Timeline, bytes]]:
    """Return the films that are whole, with a timeline beside them, in the order of the tasks."""
    tasks = in_order(path.stem for path in folder.glob("*.mp4") if path.with_suffix(".json").is_file())
    return [(read_timeline(folder / f"{task}.json"), read_bytes(folder / f"{task}.mp4")) for task in tasks]


def _problems(findings: Findings) -> Iterator[str]:
    """Yield what is wrong with findings, beside lines of the wrong form; the first is enough."""
    seen: set[tuple[str, str, int]] = set()
    for row in findings.rows:
        where = f"{row.variant} on {row.task} with seed {row.seed}"
        if row.variant not in VARIANTS:
            yield f"unknown method '{row.variant}'"
        if not all(map(_adds_up, row.sizes)):
            yield f"odd numbers in the line for {where}"
        if (row.task, row.variant, row.seed) in seen:
            yield f"two lines for {where}"
        seen.add((row.task, row.variant, row.seed))
    for solver in {one.solver for one in findings.scaling} - SOLVERS.keys():
        yield f"unknown solver '{solver}'"


def _adds_up(size: Size) -> bool:
    """Whether each episode was a success or failed for a reason that there is."""
    counts = (size.successes, *size.reasons.values())
    return set(size.reasons) <= set(REASONS) and min(counts) >= 0 and sum(counts) == size.episodes and size.objects > 0
