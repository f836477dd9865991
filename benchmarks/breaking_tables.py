"""What the pages say of attempts to break the program: what became of fuzzed inputs, and of killed commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from result_tables import NOTHING, Row, below, origin

VERDICTS = ("refused", "accepted", "answered no", "interrupted", "fault")
KILLS = ("killed", "worker killed", "told to end", "interrupted")


def fuzz_table(rows: Sequence[Row], file: str) -> str:
    """Return how damaged files and odd options ended."""
    ended: dict[str, Counter[str]] = {"damaged files": Counter(), "options": Counter()}
    for row in rows:
        for kind, verdicts in row["kinds"].items():
            ended["options" if kind.startswith("options of") else "damaged files"].update(verdicts)
    lines = [
        [what, f"{sum(counts.values()):,}", *(f"{counts[verdict]:,}" for verdict in VERDICTS)]
        for what, counts in ended.items()
    ]
    text = (
        f"What became of {sum(row['inputs'] for row in rows):,} inputs. *Answered no* is the exit code 1, such as of a "
        "plan that is not valid; *interrupted* is what took more than 2 s of processor time, and had to end well when "
        f"it was told to. {origin(rows, file)}"
    )
    return below(text, ["", "inputs", *VERDICTS[:-1], "faults"], lines)


def kill_table(rows: Sequence[Row], file: str) -> str:
    """Return what was done to each command, and how often anything was wrong then."""
    commands: dict[str, Counter[str]] = {}
    for row in rows:
        for name, counts in row["commands"].items():
            commands.setdefault(name, Counter()).update(counts)
    lines = [
        [f"`{name}`", *(str(counts[kind] or NOTHING) for kind in KILLS), str(counts["runs"]), str(counts["wrong"])]
        for name, counts in commands.items()
    ]
    text = (
        f"{sum(row['kills'] for row in rows):,} kills: of the whole command, of a worker, by SIGTERM, or by Ctrl-C. "
        "*Ended* is how many of these commands were then given again until they ended, and compared; *wrong* counts "
        f"other bytes, tracebacks, and what was left behind. {origin(rows, file)}"
    )
    return below(text, ["command", *KILLS, "ended", "wrong"], lines)
