"""What the tables about few demonstrations say: from lines of results to Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from result_tables import NOTHING, OF_SEEDS, Row, below, origin, tasks, with_interval

LABELS = {
    "before": "`best` as it was: 8 epochs",
    "updates": "5,000 updates",
    "relevance": "5,000 updates, relevance",
    "symmetries": "5,000 updates, symmetries",
    "centre": "all three, nothing set aside: `best` now",
    "held-out": "`best` now, but one set aside",
    "fewer-updates": "`best` now, but 2,000 updates",
    "more-updates": "`best` now, but 15,000 updates",
    "narrow": "`best` now, but 32 hidden",
    "wide": "`best` now, but 128 hidden",
    "fast": "`best` now, but three times the learning rate",
    "average": "`best` now, with a moving average of the weights *",
    "decay": "`best` now, with weight decay *",
    "huber": "`best` now, with Huber's loss *",
    "jitter": "`best` now, with noise on what is seen *",
}
ALL = "all"  # the rules that all demonstrations show


def curve_table(rows: Sequence[Row], file: str) -> str:
    """Return the successes by task and number of demonstrations, before and now."""
    found = [row for row in rows if row["rules"] != ALL]
    numbers = sorted({row["demonstrations"] for row in found if row["demonstrations"]})
    lines = []
    for task in sorted(tasks(found)):
        ceiling = _cell([row for row in found if (row["task"], row["variant"]) == (task, "expert")])
        for variant, name in (("before", "before"), ("centre", "now")):
            ours = [row for row in found if (row["task"], row["variant"]) == (task, variant)]
            cells = [with_interval([row for row in ours if row["demonstrations"] == n], "seed") for n in numbers]
            lines.append([task, name, *cells, ceiling])
    text = (
        "Successes with ten objects of policies cloned from so many demonstrations with three, without DAgger, and of "
        f"the expert: by `best` as it was, and as it is now, with {OF_SEEDS}. {_sizes(found)} {origin(found, file)}"
    )
    return below(text, ["task", "", *map(str, numbers), "expert"], lines)


def ablation_table(rows: Sequence[Row], file: str) -> str:
    """Return the successes of all ways of training that were tried."""
    found = [row for row in rows if row["rules"] == ALL]
    columns = sorted({(row["demonstrations"], row["task"]) for row in found})
    lines = [
        [LABELS[variant], *(_cell(_of(found, variant, *column)) for column in columns)]
        for variant in LABELS
        if any(row["variant"] == variant for row in found)
    ]
    text = (
        "The same for the network alone: with the rules that all demonstrations show and no recovery, so that an "
        "episode ends where the hand is stuck. What is marked * did not help, and the code no longer has it. "
        f"{_sizes(found)} {origin(found, file)}"
    )
    return below(text, ["cloned by", *(f"{task}, {number}" for number, task in columns)], lines)


def _of(rows: Sequence[Row], variant: str, number: int, task: str) -> list[Row]:
    return [row for row in rows if (row["variant"], row["demonstrations"], row["task"]) == (variant, number, task)]


def _sizes(rows: Sequence[Row]) -> str:
    """Say how many networks a cell is of."""
    networks = Counter((row["variant"], row["task"], row["demonstrations"]) for row in rows if row["demonstrations"])
    least, most = min(networks.values()), max(networks.values())
    return f"A cell is of {least if least == most else f'{least} to {most}'} {'network' if most == 1 else 'networks'}."


def _cell(rows: Sequence[Row]) -> str:
    if not rows:
        return NOTHING
    return f"{sum(row['successes'] for row in rows)}/{sum(row['episodes'] for row in rows)}"
