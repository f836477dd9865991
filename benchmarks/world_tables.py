"""What the tables of the worlds say: how well experts do there, what the worlds' arguments cost, how fast they are."""

from __future__ import annotations

from collections.abc import Sequence

from result_tables import NOTHING, Row, below, origin, tasks, with_interval


def expert_table(rows: Sequence[Row], file: str) -> str:
    columns = sorted({(row["noise"], row["objects"]) for row in rows})
    names = [f"n = {objects}" + (", perturbed" if noise else "") for noise, objects in columns]
    found = {(row["task"], row["noise"], row["objects"]): row for row in rows}
    size = 3 if (0.0, 3) in columns else columns[0][1]
    lines = []
    for task in tasks(rows):
        results = (found.get((task, *column)) for column in columns)
        shown = (
            f"{row['successes']}/{row['episodes']}, {row['mean_steps']:.0f}" if row else NOTHING for row in results
        )
        steps = found.get((task, 0.0, size), {}).get("mean_steps_per_schema", {})
        skills = ", ".join(f"{schema} {mean:.0f}" for schema, mean in steps.items())
        lines.append([task, *shown, skills or NOTHING])
    intervals = sorted({(row["successes"], row["episodes"], *row["interval"]) for row in rows})
    told = [f"{100 * low:.1f}–{100 * high:.1f}% for {wins}/{episodes}" for wins, episodes, low, high in intervals]
    text = (
        "**Experts**: successes, and mean steps. *Perturbed*: with bursts of [control noise](#experts). The 95% "
        f"interval (Wilson; nothing is learned here) is {', '.join(told)}. {origin(rows, file)}"
    )
    return below(text, ["task", *names, f"steps of each action, n = {size}"], lines)


def world_speed_table(rows: Sequence[Row], file: str) -> str:
    sizes = sorted({row["objects"] for row in rows})
    found = {(row["task"], row["objects"]): f"{row['steps_per_second']:,} ({row['ratio']:.2f}×)" for row in rows}
    lines = [[task, *(found.get((task, size), NOTHING) for size in sizes)] for task in tasks(rows)]
    theirs = sorted(row["metaworld_steps_per_second"] for row in rows)
    text = (
        "**Speed**: steps per second on one core, physics, observation and labels together, and how many times those "
        f"of MetaWorld's own pick-place ({theirs[0]:,} to {theirs[-1]:,}, in turns with ours). {origin(rows, file)}"
    )
    return below(text, ["task", *(f"n = {size}" for size in sizes)], lines)


def option_table(rows: Sequence[Row], file: str) -> str:
    """Return what the expert reaches with each argument of a world, beside what luck alone lets it."""
    sizes = sorted({row["objects"] for row in rows})
    found: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        option = ", ".join(f"`{name}={value}`" for name, value in row["arguments"].items())
        found.setdefault((row["task"], option), {})[row["objects"]] = row
    lines = []
    for (task, option), by_size in found.items():
        cells = [by_size.get(size) for size in sizes]
        lines.append([f"{task}, {option}", *(_success_and_steps(row) for row in cells)])
        if any(row and "bad_luck" in row for row in cells):
            lucky = (f"{100 * (1 - row['bad_luck']):.1f}%" if row else NOTHING for row in cells)
            lines.append(["*by luck alone*", *lucky])
    text = (
        "**What the arguments of worlds cost the expert**: successes with 95% intervals (Wilson), and mean steps. "
        "*By luck alone*: how often the wanted colours all come up in as many rolls as the step limit has room for, if "
        "nothing teleports. "
        f"{origin(rows, file)}"
    )
    return below(text, ["task", *(f"n = {size}" for size in sizes)], lines)


def _success_and_steps(row: Row | None) -> str:
    return f"{with_interval([row])}, {row['mean_steps']:.0f}" if row else NOTHING
