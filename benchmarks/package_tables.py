"""What the pages say of the package: how often the policies in it succeed, and how long it takes to install."""

from __future__ import annotations

from collections.abc import Sequence

from result_tables import OF_POLICIES, Row, below, origin, with_interval


def pretrained_table(rows: Sequence[Row], file: str) -> str:
    """Return a line for each policy that comes with the package."""
    rows = sorted(rows, key=lambda row: str(row["task"]))
    sizes = list(rows[0]["by_objects"])
    lines = [
        [
            f"`{row['task']}`",
            str(row["rules"]),
            f"{row['parameters']:,}",
            f"{row['bytes'] / 1000:.0f}",
            *(with_interval([row["by_objects"][size]]) for size in sizes),
        ]
        for row in rows
    ]
    episodes = {row["by_objects"][size]["episodes"] for row in rows for size in sizes}
    text = (
        f"Successes of the policies in the package, with {OF_POLICIES}. Each was learned from "
        f"{rows[0]['demonstrations']} demonstrations with {rows[0]['demonstrated_objects']} objects, and run in "
        f"{' or '.join(map(str, sorted(episodes)))} episodes with each number of objects, on seeds that nothing else "
        f"uses. {origin(rows, file)}"
    )
    return below(text, ["policy", "rules", "parameters", "KB", *(f"n = {size}" for size in sizes)], lines)


def install_table(rows: Sequence[Row], file: str) -> str:
    """Return a line for each step from an empty environment to a film."""
    wheel = next(row for row in rows if row["file"].endswith(".whl"))
    lines = [
        [f"`{command}`", f"{step['seconds']:.0f} s", f"{step['cpu_seconds']:.0f} s"]
        for command, step in wheel["steps"].items()
    ]
    lines.append(["together", f"{wheel['seconds']:.0f} s", f"{wheel['cpu_seconds']:.0f} s"])
    busy = wheel["load"] > wheel["machine"]["cores"] / 2
    load = f" Meanwhile other programs were at work there: {wheel['load']:.0f} on average." if busy else ""
    torch = "with" if wheel["has_torch"] else "without"
    text = (
        f"From nothing to a film of a pretrained policy: {wheel['packages']} packages, {torch} torch, of "
        f"{wheel['environment_megabytes']} MB in all. {origin([wheel], file)}{load}"
    )
    return below(text, ["step", "time", "processor time"], lines)
