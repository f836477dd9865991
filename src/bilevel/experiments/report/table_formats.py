"""A table as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Value = str | int | float | None

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "µ": r"\textmu{}", "×": r"$\times$",
    "<": r"\textless{}", ">": r"\textgreater{}", "\n": " ",
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """What stands in a cell: something, maybe set off; what belongs to it; and, apart from both, something else."""

    main: str
    more: str = ""
    aside: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """For people: a header and lines of texts. For programs: records of plain values, which CSV has."""

    name: str  # of its files
    title: str
    caption: str
    header: Sequence[str]
    lines: Sequence[Sequence[Text | str]]
    records: Sequence[Mapping[str, Value]]


def as_csv(table: Table) -> str:
    """Return the records, with all digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table.records[0]) if table.records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.records)
    return text.getvalue()


# Markdown


def as_markdown(table: Table) -> str:
    """Return what the table is about, and the table below that."""
    return f"{filled(f'**{_in_markdown(table.title)}.** {_in_markdown(table.caption)}')}\n\n{markdown_grid(table)}\n"


def markdown_grid(table: Table) -> str:
    """Return the table alone, for a page that says itself what it is about."""
    return markdown([*map(_in_markdown, table.header)], [[*map(_markdown, line)] for line in table.lines])


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; the first column is text and the others are numbers."""
    rule = "|---|" + "---:|" * (len(header) - 1)
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    return "\n".join((first, rule, *others))


def filled(text: str) -> str:
    """Return a paragraph in lines of at most 120 characters."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _markdown(cell: Text | str) -> str:
    if isinstance(cell, str):
        return _in_markdown(cell)
    main = f"**{_in_markdown(cell.main)}**" if cell.strong else _in_markdown(cell.main)
    aside = f"*{_in_markdown(cell.aside)}*" if cell.aside else ""
    return " ".join(part for part in (main, _in_markdown(cell.more), aside) if part)


def _in_markdown(text: str) -> str:
    for character in "\\`*_<|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


# LaTeX

_LATEX = r"""% needs \usepackage{booktabs, graphicx}
\begin{table}
\centering
\caption{CAPTION}
\label{tab:NAME}
\resizebox{\textwidth}{!}{%
\begin{tabular}{COLUMNS}
\toprule
HEADER \\
\midrule
BODY
\bottomrule
\end{tabular}}
\end{table}
"""


def as_latex(table: Table) -> str:
    """Return a `table` for a document that uses the packages booktabs and graphicx."""
    parts = {
        "NAME": table.name,
        "COLUMNS": "l" + "r" * (len(table.header) - 1),
        "HEADER": " & ".join(map(_in_latex, table.header)),
        "CAPTION": _in_latex(f"{table.title}. {table.caption}"),
        "BODY": "\n".join(" & ".join(map(_latex, line)) + r" \\" for line in table.lines),
    }
    return re.sub("|".join(parts), lambda found: parts[found[0]], _LATEX)


def _latex(cell: Text | str) -> str:
    if isinstance(cell, str):
        return _in_latex(cell)
    main = rf"\textbf{{{_in_latex(cell.main)}}}" if cell.strong else _in_latex(cell.main)
    more = rf"{{\scriptsize {_in_latex(cell.more)}}}" if cell.more else ""
    aside = rf"\textit{{{_in_latex(cell.aside)}}}" if cell.aside else ""
    return " ".join(part for part in (main, more, aside) if part)


def _in_latex(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)


FORMATS: Mapping[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
