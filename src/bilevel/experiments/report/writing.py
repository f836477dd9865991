"""Everything that a report consists of, written to files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bilevel.experiments.report.drawing import figure_bytes
from bilevel.experiments.report.figures import figures
from bilevel.experiments.report.page import page_html
from bilevel.experiments.report.scores import Results
from bilevel.experiments.report.sources import read_source
from bilevel.experiments.report.table_formats import FORMATS
from bilevel.experiments.report.tables import tables
from bilevel.files import write_atomically

PICTURES = ("pdf", "png")


@dataclass(frozen=True)
class Written:
    """What there is now."""

    page: Path
    folder: Path | None  # of tables and figures
    files: tuple[str, ...]  # in it


def write_report(source: Path, output: Path, folder: Path | None = None, with_files: bool = True) -> Written:
    """Write a page about a folder of `bilevel reproduce`, or about its findings.

    Tables and figures go into a folder, which is beside the page and has its name unless another is given.
    """
    read = read_source(source)
    folder = (folder or output.with_name(f"{output.stem}-files")) if with_files else None
    page = page_html(read, folder.name if folder else None)
    contents = dict(report_files(Results(read.findings))) if folder else {}
    for name, content in contents.items():
        write_atomically((folder or output.parent) / name, content)
    write_atomically(output, page)
    return Written(output, folder, tuple(contents))


def report_files(results: Results) -> Iterator[tuple[str, str | bytes]]:
    """Yield the tables in each format and the figures in each, by the names of their files."""
    for table in tables(results):
        for suffix, text_of in FORMATS.items():
            yield f"{table.name}.{suffix}", text_of(table)
    for figure in figures(results).values():
        for suffix in PICTURES:
            yield f"{figure.name}.{suffix}", figure_bytes(figure, suffix)
