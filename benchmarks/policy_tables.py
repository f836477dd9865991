"""Tables about learned policies: success, failures, refinement, schedules, times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markdown_tables import Row, below, markdown, origin, tasks

from bilevel.experiments.evaluation import wilson_interval
from bilevel.experiments.report.paper import paper_rate

RECIPES = {"paper": "paper's setting", "best": "our recipe"}
KINDS = {"sizes": "n = 1–10", "large": "n = 15 and 20", "jostled": "n = 3, jostled"}


def success_table(rows: Sequence[Row], file: str) -> str:
    columns = [("sizes", "paper"), ("sizes", "best"), ("jostled", "paper"), ("jostled", "best"), ("large", "best")]
    header = ["task", "BISON in the paper", *(f"{RECIPES[recipe]}, {KINDS[kind]}" for kind, recipe in columns)]
    lines = [
        [
            task,
            f"{paper_rate('bison', task):.2f}",
            *(_rate(_chosen(rows, task, kind, recipe)) for kind, recipe in columns),
        ]
        for task in tasks(rows)
    ]
    models = len({(row["task"], row["recipe"], row["seed"]) for row in rows})
    text = (
        f"Successes of {models} policies in worlds that they have not seen, with 95% intervals: three of each kind, "
        f"each learned from {rows[0]['demonstrations']} demonstrations with three objects, and run 10 times with each "
        f"number of objects. *Jostled* hands are pushed about in bursts. {origin(rows, file)}"
    )
    return below(text, markdown(header, lines))


def _chosen(rows: Sequence[Row], task: str, kind: str, recipe: str) -> list[Row]:
    return [row for row in rows if (row["task"], row["kind"], row["recipe"]) == (task, kind, recipe)]


def _rate(rows: Sequence[Row]) -> str:
    """Successes of all seeds together, with the interval in per cent."""
    if not rows:
        return "–"
    successes, episodes = (sum(row[key] for row in rows) for key in ("successes", "episodes"))
    return _with_interval(successes, episodes)


def _with_interval(successes: int, episodes: int) -> str:
    low, high = wilson_interval(successes, episodes)
    return f"{successes}/{episodes} ({100 * low:.1f}–{100 * high:.1f}%)"


def failure_table(rows: Sequence[Row], file: str) -> str:
    failed: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        failed.setdefault((row["task"], row["recipe"], row["kind"]), Counter()).update(row["reasons"])
    reasons = sorted({reason for counts in failed.values() for reason in counts})
    lines = [
        [task, RECIPES[recipe], KINDS[kind], *(str(counts[reason] or "–") for reason in reasons)]
        for (task, recipe, kind), counts in failed.items()
        if counts
    ]
    episodes = sum(row["episodes"] for row in rows)
    text = f"All failures among {episodes:,} episodes, by cause; what is not listed had none. {origin(rows, file)}"
    return below(text, markdown(["task", "learned by", "run with", *reasons], lines))


def refinement_table(rows: Sequence[Row], file: str) -> str:
    columns = [(recipe, kind) for kind in ("sizes", "jostled") for recipe in RECIPES]
    lines = []
    for task in tasks(rows):
        cells = []
        for recipe, kind in columns:
            counts = sum((Counter(row["changes"]) for row in _chosen(rows, task, kind, recipe)), Counter[str]())
            part = counts["own"] / (counts["own"] + counts["unexpected"])
            cells.append(f"{100 * part:.2f}% ({counts['unexpected']:,})")
        lines.append([task, *cells])
    text = (
        "The part of the changes of the symbolic state that were the chosen action's own effects, and in brackets how "
        f"many were not; those that the world reported (teleports, arrivals) count for neither. {origin(rows, file)}"
    )
    return below(text, markdown(["task", *(f"{RECIPES[recipe]}, {KINDS[kind]}" for recipe, kind in columns)], lines))


def schedule_table(rows: Sequence[Row], file: str) -> str:
    trials = list(rows[0]["successes"])
    ordered = sorted(rows, key=lambda row: (tasks(rows).index(row["task"]), row["epochs"]))
    lines = [
        [
            row["task"],
            str(row["epochs"]),
            f"{sum(row['validation_losses']) / len(row['validation_losses']):.4f}",
            *(_with_interval(*(row["successes"][trial][key] for key in ("successes", "episodes"))) for trial in trials),
        ]
        for row in ordered
    ]
    text = (
        "Cloning alone, without practice: successes after schedules of so many epochs, and the mean squared error on "
        f"what was set aside; three networks each. {origin(rows, file)}"
    )
    return below(text, markdown(["task", "epochs", "validation loss", *trials], lines))


def _what_was_learned(row: Row) -> str:
    if row["part"] == "recipe":
        return "`bilevel learn`, our recipe"
    return f"{row['epochs']} epochs, " + ("one network" if row["networks"] == 1 else f"{row['networks']} at once")


def learning_table(rows: Sequence[Row], file: str) -> str:
    timed = [row for row in rows if row["part"] in ("training", "recipe")]
    lines = [
        [_what_was_learned(row), row.get("device", "cpu"), f"{row['samples']:,}", f"{row['seconds']:.0f}"]
        for row in timed
    ]
    text = (
        "Seconds to learn Blocks from 200 demonstrations; the last row is the whole of it, labels and practice "
        f"included. {origin(timed, file)}"
    )
    text += "".join(f" The row of the {row['device']} was {row['note']}." for row in timed if "note" in row)
    return below(text, markdown(["what", "on", "samples", "seconds"], lines))


def step_table(rows: Sequence[Row], file: str) -> str:
    timed = [row for row in rows if row["part"] == "steps"]
    found = {row["task"]: row for row in timed}
    lines = [
        [
            task,
            f"{found[task]['microseconds']['policy']:.0f}",
            f"{found[task]['microseconds']['physics']:.0f}",
            f"{found[task]['policy_over_physics']:.2f}",
        ]
        for task in tasks(timed)
    ]
    text = (
        "Microseconds of a step with 10 objects on one core: the policy's (label, choose, control) and the world's, in "
        f"the same episodes. {origin(timed, file)}"
    )
    return below(text, markdown(["task", "policy", "physics", "policy : physics"], lines))
