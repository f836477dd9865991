"""What the tables about the statistics of the comparison say: from lines of results to Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from result_tables import Row, below, origin

INTERVALS = {"wilson": "Wilson", "bootstrap": "bootstrap over seeds and episodes", "ours": "beta-binomial (ours)"}


def coverage_table(rows: Sequence[Row], file: str) -> str:
    """Return how often intervals hold the true rate, by how much seeds differ."""
    found = [row for row in rows if row["part"] == "rate"]
    lines = []
    for episodes, correlation in dict.fromkeys((row["episodes"], row["correlation"]) for row in found):
        about = [row for row in found if (row["episodes"], row["correlation"]) == (episodes, correlation)]
        held = [sorted(row[name]["held"] for row in about) for name in INTERVALS]
        shown = (f"{100 * least:.0f}–{100 * most:.0f}%" for least, *_, most in held)
        lines.append([f"{about[0]['seeds']} × {episodes}", f"{correlation:g}", *shown])
    rates = ", ".join(f"{rate:g}" for rate in dict.fromkeys(row["rate"] for row in found))
    measured = sorted(row["correlation"] for row in rows if row["part"] == "measured")
    small = sum(correlation <= 0.05 for correlation in measured)
    text = (
        f"How often 95% intervals hold the true rate: the least and the most of true rates {rates}, with "
        f"{found[0]['trials']:,} draws of each. ρ is the correlation of the episodes of one network; in our table "
        f"{small} of {len(measured)} are below 0.05, and the largest is {measured[-1]:.2f}. {origin(rows, file)}"
    )
    return below(text, ["seeds × episodes", "ρ", *INTERVALS.values()], lines)


def settled_table(rows: Sequence[Row], file: str) -> str:
    """Return how many episodes were given up early, and what becomes of them when they are not."""
    lines = [
        [
            f"{row['task']}, {row['method']}",
            f"{row['successes']}/{row['episodes']}",
            str(row["settled"]),
            str(row["successes_to_the_end"]),
            str(row["other_reasons_to_the_end"]),
            f"{row['saved_steps']:,}",
        ]
        for row in rows
    ]
    given_up, successes = (sum(row[key] for row in rows) for key in ("settled", "successes_to_the_end"))
    first, episodes = rows[0], sum(row["episodes"] for row in rows)
    whose = f"trained for {first['epochs']} epochs from {first['demonstrations']} demonstrations, so that they stall"
    if first["of_the_table"]:
        whose = f"of [the table](reproduction.md#what-it-found), with {', '.join(map(str, first['objects']))} objects"
    text = (
        f"Networks {whose}; {first['networks']} for each line. Of {episodes} episodes {given_up} were given up; run to "
        f"their ends, {successes} of these succeed. {origin(rows, file)}"
    )
    header = [
        "task, method",
        "successes",
        "given up",
        "of these to their ends: successes",
        "other reasons",
        "steps saved",
    ]
    return below(text, header, lines)
