"""What the README says about the worlds in numbers, as markdown, from what was measured:

    python benchmarks/tables.py                              # print it
    python benchmarks/tables.py --write README.md            # put it between the marks in that file

Reads experts.jsonl, world-speed.jsonl and demonstrations.jsonl, which expert_success.py, world_speed.py and
learn_from_demonstrations.py write.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bilevel.files import write_atomically
from bilevel.tasks import TASKS

BEGIN = "<!-- results of the worlds: begin. Made by: python benchmarks/tables.py --write README.md -->\n\n"
END = "\n<!-- results of the worlds: end -->\n"

Row = dict[str, Any]


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


# Experts


def experts(rows: Sequence[Row], file: str) -> str:
    """Successes and steps of each task at each size, and the steps of each of its skills."""
    columns = sorted({(row["objects"], row["noise"]) for row in rows}, key=lambda kind: (kind[1], kind[0]))
    names = [f"n = {objects}" + (", jostled" if noise else "") for objects, noise in columns]
    found = {(row["task"], row["objects"], row["noise"]): row for row in rows}
    size = 3 if (3, 0.0) in columns else columns[0][0]
    lines = [
        [task, *(success(found.get((task, *column))) for column in columns), skills(found.get((task, size, 0.0)))]
        for task in tasks(rows)
    ]
    table = markdown(["task", *names, f"steps of each action, n = {size}"], lines)
    jostled = "*Jostled* hands are pushed about in [bursts](docs/worlds.md#experts)."
    text = f"**Experts**: successes, and mean steps. {jostled} {intervals(rows)} {origin(rows, file)}"
    return below(text, table)


def success(row: Row | None) -> str:
    return f"{row['successes']}/{row['episodes']}, {row['mean_steps']:.0f}" if row else "–"


def skills(row: Row | None) -> str:
    steps = row["mean_steps_per_schema"] if row else {}
    return ", ".join(f"{schema} {mean:.0f}" for schema, mean in steps.items()) or "–"


def intervals(rows: Sequence[Row]) -> str:
    """The 95% interval of each result that came up, the worst first."""
    found = sorted({(row["successes"], row["episodes"], *row["interval"]) for row in rows})
    texts = [f"{100 * low:.1f}–{100 * high:.1f}% for {wins}/{episodes}" for wins, episodes, low, high in found]
    return f"The 95% interval is {', '.join(texts)}."


# Speed


def speed(rows: Sequence[Row], file: str) -> str:
    """Steps per second, and how many times those of MetaWorld."""
    sizes = sorted({row["objects"] for row in rows})
    found = {(row["task"], row["objects"]): row for row in rows}
    lines = [[task, *(rate(found.get((task, size))) for size in sizes)] for task in tasks(rows)]
    table = markdown(["task", *(f"n = {size}" for size in sizes)], lines)
    theirs = sorted(row["metaworld_steps_per_second"] for row in rows)
    text = (
        "**Speed**: steps per second on one core, physics, observation and labels together, and how many times those "
        f"of MetaWorld's own pick-place ({theirs[0]:,} to {theirs[-1]:,}, in turns with ours). {origin(rows, file)}"
    )
    return below(text, table)


def rate(row: Row | None) -> str:
    return f"{row['steps_per_second']:,} ({row['ratio']:.2f}×)" if row else "–"


# Demonstrations

DEMONSTRATION_COLUMNS = (
    "task", "golden rules", "steps", "MB", "collecting, s", "learning, s", "cuts", "events", "no action", "another",
)  # fmt: skip


def demonstrations(rows: Sequence[Row], file: str) -> str:
    """How long a data set takes, and what is learned from it."""
    ordered = sorted(rows, key=lambda row: list(TASKS).index(row["task"]))
    episodes, sizes = ({row[key] for row in rows} for key in ("episodes", "objects"))
    table = markdown(DEMONSTRATION_COLUMNS, [list(demonstration_cells(row)) for row in ordered])
    text = (
        f"**Demonstrations**: {listed(episodes)} of each task with n = {listed(sizes)}, and whether they teach the "
        "golden rules, which small PDDL problems teach, too. *Cuts* are changes that no action explains, *events* what "
        "the world reported. *No action* was found for so many steps, all of them before a cut, and *another* than the "
        f"expert's for so many. {origin(rows, file)}"
    )
    return below(text, table)


def listed(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


def demonstration_cells(row: Row) -> Iterator[str]:
    yield row["task"] + (f", jostled {row['noise']:g}" if row["noise"] else "")
    yield "yes" if row["golden_rules"] else "no"
    yield f"{row['steps']:,}"
    yield f"{row['megabytes']:.1f}"
    yield f"{row['collecting_seconds']:.0f}"
    yield f"{row['labelling_seconds'] + row['learning_seconds']:.1f}"
    yield f"{row['exogenous']:,}"
    yield ", ".join(f"{kind} {number:,}" for kind, number in row["events"].items()) or "none"
    yield f"{row['steps'] - row['explained_steps']:,}"
    yield f"{row['explained_steps'] - row['agreeing_steps']:,}"


# The README

TABLES = {"experts.jsonl": experts, "world-speed.jsonl": speed, "demonstrations.jsonl": demonstrations}


def rendered(results: Path) -> str:
    """All tables, each below what it is about."""
    texts = []
    for file, render in TABLES.items():
        lines = (results / file).read_text(encoding="utf-8").splitlines()
        texts.append(render([json.loads(line) for line in lines], file))
    return "\n\n".join(texts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables between the marks in this file")
    given = parser.parse_args()
    tables = rendered(given.results)
    if given.write is None:
        print(tables, end="")
        return
    before, begin, rest = given.write.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{given.write}: the marks are missing, lines that read {BEGIN.strip()} and {END.strip()}")
    write_atomically(given.write, f"{before}{begin}{tables}{end}{after}")


if __name__ == "__main__":
    main()
