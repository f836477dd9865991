"""What the tables about environments of others say: from a line an episode, and published figures, to Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from result_tables import NOTHING, OF_SEEDS, Row, below, origin, tasks

from bilevel.experiments.intervals import Counts, rate_interval

EXPERT = "expert"
PUBLISHED = Path(__file__).parents[1] / "results" / "published.jsonl"
LIMITS = {
    "cube-single": 200,
    "cube-double": 500,
    "cube-triple": 1000,
    "cube-quadruple": 1000,
    "cube-octuple": 1500,
    "scene": 750,
    "puzzle-3x3": 500,
    "puzzle-4x4": 500,
    "puzzle-4x5": 1000,
    "puzzle-4x6": 1000,
}


def environment(task: str) -> str:
    """The environment of an official task: that of scene-task3 is scene."""
    return task.rsplit("-", 1)[0]


def successes(rows: Sequence[Row]) -> str:
    """All episodes together, with the 95% interval over training seeds in per cent; the expert's is Wilson's."""
    if not rows:
        return NOTHING
    seeds: dict[int | None, list[bool]] = {}
    for row in rows:
        seeds.setdefault(row["training_seed"], []).append(row["success"])
    low, high = rate_interval([Counts(sum(won), len(won)) for won in seeds.values()])
    return f"{sum(row['success'] for row in rows)}/{len(rows)} ({100 * low:.0f}–{100 * high:.0f}%)"


def by_seed(rows: Sequence[Row]) -> str:
    """The successes of each training seed's policy."""
    seeds = sorted({row["training_seed"] for row in rows})
    return ", ".join(str(sum(row["success"] for row in rows if row["training_seed"] == seed)) for seed in seeds)


def steps(rows: Sequence[Row]) -> str:
    """Mean steps of the episodes that succeeded."""
    won = [row["steps"] for row in rows if row["success"]]
    return f"{mean(won):.0f}" if won else NOTHING


def _split(rows: Sequence[Row], chosen: Callable[[Row], bool]) -> tuple[list[Row], list[Row]]:
    """The learned policies' episodes, and the expert's."""
    found = [row for row in rows if chosen(row)]
    return [row for row in found if row["method"] != EXPERT], [row for row in found if row["method"] == EXPERT]


def official_table(rows: Sequence[Row], file: str) -> str:
    """Return the successes in every official task."""
    lines = []
    for task in sorted(tasks(rows), key=lambda task: list(LIMITS).index(environment(task))):
        ours, expert = _split(rows, lambda row, task=task: row["task"] == task)  # type: ignore[misc]
        about = [task, ours[0]["method"] if ours else NOTHING, successes(ours), by_seed(ours), steps(ours)]
        lines.append([*about, str(LIMITS[environment(task)]), successes(expert)])
    text = (
        "Every official task, with its own start, goal, step limit and word for success. Successes of all training "
        f"seeds' policies together, with {OF_SEEDS}, then of each seed; mean steps of the episodes that succeeded. "
        f"The expert's interval is Wilson's. {origin(rows, file)}"
    )
    return below(text, ["task", "method", "successes", "by seed", "steps", "limit", "expert"], lines)


def published_table(rows: Sequence[Row], file: str) -> str:
    """Return our successes by environment beside those that others report."""
    published = [json.loads(line) for line in PUBLISHED.read_text(encoding="utf-8").splitlines()]
    methods = list(dict.fromkeys(row["method"] for row in published if row["group"] == "benchmark"))

    def cell(name: str, method: str) -> str:
        found = [r for r in published if (r["environment"], r["method"], r["group"]) == (name, method, "benchmark")]
        return f"{100 * found[0]['success']:.0f}" if found else NOTHING

    def best(name: str, group: str) -> str:
        later = [row for row in published if (row["environment"], row["group"]) == (name, group)]
        if not later:
            return NOTHING
        row = max(later, key=lambda row: row["success"])
        data = "" if group == "later" else f", data: {row['data']}"
        return f"{100 * row['success']:.0f}, {row['method']}{data} [{row['reference']}]"

    lines = []
    for name in sorted({environment(task) for task in tasks(rows)}, key=list(LIMITS).index):
        ours = [row for row in rows if environment(row["task"]) == name and row["method"] != EXPERT]
        rate = f"{100 * mean(row['success'] for row in ours):.1f}"
        lines.append(
            [name, rate, *(cell(name, method) for method in methods), best(name, "later"), best(name, "more data")]
        )
    text = (
        "Success in per cent, the mean of an environment's five official tasks: ours, the methods of OGBench's own "
        "paper [1], and the best later figures that we found, of methods that learn from the same data and from "
        "more. The sources are in "
        f"[`results/published.jsonl`](results/published.jsonl). {origin(rows, file)}"
    )
    return below(text, ["environment", "ours", *methods, "best later, same data", "best later, more data"], lines)


def size_table(rows: Sequence[Row], file: str) -> str:
    """Return the successes by task and number of objects."""
    lines = []
    for task in tasks(rows):
        for objects in sorted({row["objects"] for row in rows if row["task"] == task}):
            ours, expert = _split(rows, lambda row, key=(task, objects): (row["task"], row["objects"]) == key)  # type: ignore[misc]
            lines.append([task, str(objects), successes(ours), by_seed(ours), steps(ours), successes(expert)])
    text = (
        f"Successes by the number of objects, of all training seeds' policies together, with {OF_SEEDS}, then of each "
        f"seed; mean steps of the episodes that succeeded. The expert's interval is Wilson's. {origin(rows, file)}"
    )
    return below(text, ["task", "objects", "successes", "by seed", "steps", "expert"], lines)
