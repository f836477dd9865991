"""What the tables about disturbed policies and completed rules say: from lines of results to Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from result_tables import NOTHING, OF_POLICIES, Row, below, origin, tasks, with_interval

METHODS = {"bison": "BISON", "expert": "expert", "bison, rules shown": "BISON without completion"}
SEEN_BY = {
    "policy": "BISON",
    "policy without estimation": "BISON without estimation",
    "expert with estimation": "expert with estimation",
}


def robustness_table(rows: Sequence[Row], file: str) -> str:
    """Return successes by task and amplitude of the control noise, for each method."""
    perturbed = [row for row in rows if row["noise"]]
    noises = sorted({row["noise"] for row in perturbed})

    def cell(task: str, method: str, noise: float) -> str:
        found = [row for row in perturbed if (row["task"], row["method"], row["noise"]) == (task, method, noise)]
        no_rule = sum(row["reasons"].get("no rule", 0) for row in found)
        return with_interval(found) + (f"; no rule {no_rule}" if no_rule else "")

    lines = [
        [task, f"{noise}", *(cell(task, method, noise) for method in METHODS)]
        for task in tasks(rows)
        for noise in noises
    ]
    text = (
        f"Successes with 10 objects while bursts of noise push the hand, by their amplitude, with {OF_POLICIES}. "
        "*No rule* counts the episodes that ended because no rule applied. One policy of each kind, learned from 200 "
        f"demonstrations with three objects. {origin(rows, file)}"
    )
    return below(text, ["task", "amplitude", *METHODS.values()], lines)


def disturbed_table(rows: Sequence[Row], file: str) -> str:
    """Return the successes of the policies by task and amplitude, beside the expert's, in short."""
    perturbed = [row for row in rows if row["noise"]]
    noises = sorted({row["noise"] for row in perturbed})

    def cell(task: str, noise: float) -> str:
        about = [
            (row["method"], f"{row['successes']}/{row['episodes']}")
            for row in perturbed
            if (row["task"], row["noise"]) == (task, noise)
        ]
        found = dict(about)
        return f"{found.get('bison', NOTHING)} *{found.get('expert', NOTHING)}*"

    lines = [[task, *(cell(task, noise) for noise in noises)] for task in tasks(rows)]
    text = (
        "Successes of policies with 10 objects whose hand bursts of noise push; in italics those of the expert. "
        "Where both lose, things teleport faster than a perturbed hand can put them back. "
        f"[Policies](policies.md#at-a-loss) has the intervals. {origin(rows, file)}"
    )
    return below(text, ["task", *(f"amplitude {noise}" for noise in noises)], lines)


def circle_table(rows: Sequence[Row], file: str) -> str:
    """Return successes where blocks may begin on each other's places."""
    still = [row for row in rows if not row["noise"]]
    kinds = list(dict.fromkeys((row["task"], row["arguments"].get("start", ""), row["objects"]) for row in still))

    def cell(task: str, start: str, objects: int, method: str) -> str:
        about = task, start, objects, method
        return with_interval(
            [r for r in still if (r["task"], r["arguments"].get("start", ""), r["objects"], r["method"]) == about]
        )

    methods = [method for method in METHODS if any(row["method"] == method for row in still)]
    lines = [
        [f"{task}, {start}" if start else task, f"{objects}", *(cell(task, start, objects, m) for m in methods)]
        for task, start, objects in kinds
    ]
    text = (
        "Undisturbed successes where blocks begin on each other's places: in Swap in a circle in every other episode, "
        f"in Blocks with `start=circle` always, with {OF_POLICIES}. {origin(rows, file)}"
    )
    return below(text, ["task", "objects", *(METHODS[method] for method in methods)], lines)


def perception_table(rows: Sequence[Row], file: str) -> str:
    """Return successes by what is wrong with the sensors, all worlds together."""
    conditions = list(dict.fromkeys(row["perception"] for row in rows))
    sizes = sorted({row["objects"] for row in rows})

    def cell(condition: str, method: str, objects: int) -> str:
        found = [
            row for row in rows if (row["perception"], row["method"], row["objects"]) == (condition, method, objects)
        ]
        worst = min(found, key=lambda row: row["successes"] / row["episodes"], default=None)
        if worst is None:
            return NOTHING
        total = with_interval(found)
        is_even = worst["successes"] == worst["episodes"]
        return total if is_even else f"{total}; {worst['task']} {worst['successes']}/{worst['episodes']}"

    methods = [method for method in SEEN_BY if any(row["method"] == method for row in rows)]
    columns = [(method, objects) for method in methods for objects in sizes]
    header = ["perception", *(f"{SEEN_BY[method]}, n = {objects}" for method, objects in columns)]
    lines = [
        [f"`{condition}`" if condition else "perfect", *(cell(condition, *column) for column in columns)]
        for condition in conditions
    ]
    worlds = ", ".join(tasks(rows))
    text = (
        f"Successes in {worlds} together, with {OF_POLICIES}; where they differ, with the worst of them. The policies "
        f"were learned from clean demonstrations. {origin(rows, file)}"
    )
    return below(text, header, lines)


def completion_table(rows: Sequence[Row], file: str) -> str:
    """Return what completing rules found and proved, and how many larger problems the rules solve."""
    lines = [
        [
            row["domain"],
            f"{row['rules_before']} → {row['rules']}",
            f"{row['seconds']:.1f}",
            row["sizes"] if row["proved"] else NOTHING,
            "yes" if row["commitment"] else "no",
            f"{row['shape']}, {row['size']}",
            f"{row['solved_before']} → {row['solved']} of {row['tried']}",
            f"{row['mean_steps']:g}",
        ]
        for row in rows
    ]
    header = ["domain", "rules", "seconds", "proved for", "commits", "larger problems, size", "solved", "mean steps"]
    text = f"Rules before and after they are completed, and random problems of ten times the size. {origin(rows, file)}"
    return below(text, header, lines)


def generalised_table(rows: Sequence[Row], file: str) -> str:
    """Return for each domain how many rules were learned, how long that took, and solving with them, then and now."""
    found = {(row["domain"], row["version"]): row for row in rows}
    names = sorted({name for name, version in found if version == "after"})
    lines = []
    for name in names:
        pair = [found[name, version] for version in ("before", "after") if (name, version) in found]
        tests = [*zip(*(row["solved"] for row in pair), strict=True)]
        valid = [sum(test["valid"] for test in row["solved"]) for row in pair]
        lines.append(
            [
                name,
                _then_and_now([row["rules"] for row in pair]),
                _then_and_now([f"{row['seconds']:.1f}" for row in pair]),
                *(_then_and_now([f"{test['seconds']:.1f}" for test in level]) for level in tests),
                f"{_then_and_now(valid)} of {len(tests)}",
            ]
        )
    header = ["domain", "rules", "learning", "solving: easy", "medium", "hard", "solved"]
    text = (
        "Rules learned from 30 small problems of each domain, and the largest problem of each level solved with them, "
        "before and after; CPU seconds of whole commands, not measured in turns. Before, how many rules there were for "
        f"barman depended on how far planning came in its time. {origin(rows, file)}"
    )
    return below(text, header, lines)


def _then_and_now(values: Sequence[object]) -> str:
    """Return one value if all are the same."""
    return " → ".join(map(str, values if len({*map(str, values)}) > 1 else values[-1:]))
