"""A table as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
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
    """For people: a header and rows of texts. For programs: records of plain values, which CSV has."""

    name: str  # of its files
    title: str
    caption: str
    header: Sequence[str]
    lines: Sequence[Sequence[Text]]
    records: Sequence[Mapping[str, Value]]


def as_csv(table: Table) -> str:
    """The records, with all digits."""
    text = io.StringIO()
    names = list(table.records[0]) if table.records else []
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.records)
    return text.getvalue()


def as_markdown(table: Table) -> str:
    """What it is about, and the table below that."""
    about = f"**{_in_markdown(table.title)}.** {_in_markdown(table.caption)}"
    filled = textwrap.fill(about, 120, break_long_words=False, break_on_hyphens=False)
    return f"{filled}\n\n{markdown_grid(table)}\n"


def markdown_grid(table: Table) -> str:
    """The table alone, for a page that says itself what it is about."""
    rule = "|---|" + "---:|" * (len(table.header) - 1)
    header = [_in_markdown(name) for name in table.header]
    lines = [[_markdown(cell) for cell in line] for line in table.lines]
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *lines))
    return "\n".join((first, rule, *others))


def _markdown(cell: Text) -> str:
    main = f"**{_in_markdown(cell.main)}**" if cell.strong else _in_markdown(cell.main)
    aside = f"*{_in_markdown(cell.aside)}*" if cell.aside else ""
    return " ".join(part for part in (main, _in_markdown(cell.more), aside) if part)


def _in_markdown(text: str) -> str:
    for character in "\\`*_<|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def as_latex(table: Table) -> str:
    """A `table` for a document that uses the packages booktabs and graphicx."""
    lines = [[_latex(cell) for cell in line] for line in table.lines]
    body = [" & ".join(cells) + r" \\" for cells in lines]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs, graphicx}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_in_latex(f'{table.title}. {table.caption}')}}}",
            rf"\label{{tab:{table.name}}}",
            r"\resizebox{\textwidth}{!}{%",
            r"\begin{tabular}{l" + "r" * (len(table.header) - 1) + "}",
            r"\toprule",
            " & ".join(map(_in_latex, table.header)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def _latex(cell: Text) -> str:
    main = rf"\textbf{{{_in_latex(cell.main)}}}" if cell.strong else _in_latex(cell.main)
    more = rf"{{\scriptsize {_in_latex(cell.more)}}}" if cell.more else ""
    aside = rf"\textit{{{_in_latex(cell.aside)}}}" if cell.aside else ""
    return " ".join(part for part in (main, more, aside) if part)


def _in_latex(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)


FORMATS: Mapping[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
