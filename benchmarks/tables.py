"""What README and docs say in numbers, as markdown tables, from what was measured:

    python benchmarks/tables.py                              # print all tables
    python benchmarks/tables.py --write                      # put each between its marks in the file where it belongs

`TABLES` says which results each of them reads.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_tables import Render, Row, below, markdown, origin, tasks
from planning_tables import fond_table, thinking_table
from policy_tables import (
    failure_table,
    learning_table,
    refinement_table,
    schedule_table,
    step_table,
    success_table,
)
from reproduction_tables import (
    difference_list,
    interval_table,
    reproduction_causes,
    reproduction_costs,
    reproduction_sizes,
    reproduction_table,
    solving_table,
    speed_table,
)

from bilevel.files import write_atomically
from bilevel.tabletop.tasks import TASKS

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
    jostled = "*Jostled* hands are pushed about in [bursts](#experts)."
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


# Where they go


@dataclass(frozen=True)
class Table:
    """What renders rows of results, and the file in which its marks are."""

    render: Render
    results: str
    file: str

    def text(self, results: Path) -> str:
        lines = (results / self.results).read_text(encoding="utf-8").splitlines()
        text = self.render([json.loads(line) for line in lines], self.results)
        return text.replace("](results/", "](../results/") if self.file.startswith("docs/") else text


TABLES: Mapping[str, Table] = {
    "success": Table(success_table, "policies.jsonl", "README.md"),
    "failures": Table(failure_table, "policies.jsonl", "docs/policies.md"),
    "refinement": Table(refinement_table, "policies.jsonl", "docs/policies.md"),
    "schedules": Table(schedule_table, "schedules.jsonl", "docs/policies.md"),
    "learning times": Table(learning_table, "learning.jsonl", "docs/policies.md"),
    "step times": Table(step_table, "learning.jsonl", "docs/policies.md"),
    "reproduction": Table(reproduction_table, "reproduction.jsonl", "README.md"),
    "reproduction success": Table(interval_table, "reproduction.jsonl", "docs/reproduction.md"),
    "reproduction differences": Table(difference_list, "reproduction.jsonl", "docs/reproduction.md"),
    "reproduction sizes": Table(reproduction_sizes, "reproduction.jsonl", "docs/reproduction.md"),
    "reproduction costs": Table(reproduction_costs, "reproduction.jsonl", "docs/reproduction.md"),
    "reproduction causes": Table(reproduction_causes, "reproduction.jsonl", "docs/reproduction.md"),
    "solving time": Table(solving_table, "reproduction.jsonl", "docs/reproduction.md"),
    "reproduction speed": Table(speed_table, "reproduction-speed.jsonl", "docs/reproduction.md"),
    "thinking": Table(thinking_table, "inference.jsonl", "docs/methods.md"),
    "strong-cyclic planning": Table(fond_table, "fond.jsonl", "docs/planning.md"),
    "experts": Table(experts, "experts.jsonl", "docs/worlds.md"),
    "speed": Table(speed, "world-speed.jsonl", "docs/worlds.md"),
    "demonstrations": Table(demonstrations, "demonstrations.jsonl", "docs/demonstrations.md"),
}


def inserted(page: str, name: str, text: str) -> str:
    """The page with the text between the marks of this name."""
    begin, end = f"<!-- table: {name}; made by python benchmarks/tables.py --write -->\n", "<!-- end of table -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        sys.exit(f"the marks of the table are missing, lines that read {begin.strip()} and {end.strip()}")
    return f"{before}{begin}\n{text}\n\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of README.md and docs")
    parser.add_argument("--write", action="store_true", help="put the tables into their files")
    given = parser.parse_args()
    for name, table in TABLES.items():
        text = table.text(given.results)
        if given.write:
            path = given.root / table.file
            write_atomically(path, inserted(path.read_text(encoding="utf-8"), name, text))
        else:
            print(f"{text}\n")


if __name__ == "__main__":
    main()
