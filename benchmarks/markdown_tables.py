"""What all tables have in common: markdown, the order of the tasks, and where the numbers come from."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from bilevel.tabletop.tasks import TASKS

Row = dict[str, Any]
Render = Callable[[Sequence[Row], str], str]  # from rows of results and the name of their file


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    rule = "|---|" + "---:|" * (len(header) - 1)
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    return "\n".join((first, rule, *others))


def tasks(rows: Sequence[Row]) -> list[str]:
    """Those that were measured, in the usual order."""
    return [task for task in TASKS if any(row["task"] == task for row in rows)]


def origin(rows: Sequence[Row], file: str) -> str:
    """Who measured it, where, and where it is written."""
    commands = " and ".join(sorted({f"`{row['command']}`" for row in rows}))
    machines = " and ".join(sorted({f"{row['machine']['cores']} cores ({row['machine']['cpu']})" for row in rows}))
    return f"Measured by {commands} on a machine with {machines}: [`results/{file}`](results/{file})."


def below(text: str, table: str) -> str:
    """A table below what is said about it."""
    return f"{textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)}\n\n{table}"
