"""Tables about planning: how long methods think, with it and without, and how long the strong-cyclic planner takes."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_tables import Row, below, markdown, origin

from bilevel.experiments.methods import METHODS
from bilevel.tabletop.tasks import TASKS


def thinking_table(rows: Sequence[Row], file: str) -> str:
    """Microseconds for each step, with all planning and without."""
    lines = []
    for row in sorted(rows, key=lambda row: (list(TASKS).index(row["task"]), list(METHODS).index(row["method"]))):
        times = row["microseconds_per_step"]
        lines.append(
            [
                f"{row['task']}, {row['method']}",
                f"{times['policy']:.0f}",
                f"{times['planning']:.0f}" if times["planning"] else "–",
                f"{times['policy'] / times['physics']:.2f}",
                "/".join(map(str, row["plans"])) if any(row["plans"]) else "–",
                f"{row['successes']}/{row['episodes']}",
            ]
        )
    header = ["task, method", "µs a step", "of that planning", "physics = 1", "plans in each episode", "successes"]
    objects, episodes = rows[0]["objects"], rows[0]["episodes"]
    text = (
        f"**Thinking**: what a method takes for each step with n = {objects}, labels included, all in turn in one run: "
        f"the median of {episodes} episodes. {origin(rows, file)}"
    )
    return below(text, markdown(header, lines))


def fond_table(rows: Sequence[Row], file: str) -> str:
    """How long the strong-cyclic planner takes."""
    kinds = {
        "colour": lambda row: f"colour, {row['blocks']} blocks, {row['colours']} colours",
        "tyres": lambda row: f"triangle tyre world, {row['rows']} rows",
    }
    lines = [
        [kinds[row["problem"]](row), row["answer"], str(row["decisions"]), f"{row['cpu_seconds']:.3f}"]
        for row in rows
        if row["problem"] in kinds
    ]
    random = next(row for row in rows if row["problem"] == "random")
    text = (
        f"**Strong-cyclic planning**, with CPU seconds. On {random['agree']} of {random['agree'] + random['disagree']} "
        f"random problems, of which {random['with_policy']} have a policy, it answers as an exact solver does that "
        f"goes over all states. {origin(rows, file)}"
    )
    return below(text, markdown(["problem", "answer", "decisions", "seconds"], lines))
