"""Tables about all methods: success, causes of failure, how long they think."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markdown_tables import Row, below, markdown, origin, tasks

from bilevel.experiments.evaluation import wilson_interval
from bilevel.experiments.methods import METHODS
from bilevel.experiments.report.paper import PAPER
from bilevel.tasks import TASKS


def methods(rows: Sequence[Row]) -> list[str]:
    """Those that were measured, in the usual order."""
    return [method for method in METHODS if any(row["method"] == method for row in rows)]


def not_run(rows: Sequence[Row]) -> list[str]:
    """Published models without results: nothing stands in for their weights."""
    return [name for name, method in METHODS.items() if method.model and name not in methods(rows)]


def cloned(rows: Sequence[Row]) -> list[Row]:
    """Those of the methods as the paper trains them, and of those that are not trained."""
    return [row for row in rows if row["recipe"] != "best"]


def comparison_table(all_rows: Sequence[Row], file: str) -> str:
    rows, practised = cloned(all_rows), [row for row in all_rows if row["recipe"] == "best"]
    found = {(row["method"], row["task"]): row for row in rows}
    names = tasks(rows)
    lines = [
        [f"{method}, *paper's*" if paper else method, *(_cell(method, task, found, paper) for task in names)]
        for method in [*methods(rows), *not_run(rows)]
        for paper in (False, True)
        if not paper or method in PAPER
    ]
    sizes = list(rows[0]["by_objects"])
    episodes = rows[0]["by_objects"][sizes[0]]["episodes"]
    total = rows[0]["episodes"]
    low, high = (100 * bound for bound in wilson_interval(total, total))
    text = (
        f"**Successes** of {total} episodes, with {', '.join(sizes[:-1])} and {sizes[-1]} objects in brackets, "
        f"{episodes} of each; below, the rates that the paper reports for 1 to 10 objects. All learned from "
        f"{rows[0]['demonstrations']} demonstrations with three objects, by cloning for {_epochs(rows)} epochs, one "
        f"network of each kind; all methods met the same episodes. The 95% interval is {low:.1f}–{high:.1f}% for "
        f"{total} of {total}, and at most ±{_widest(total):.0f} points for others. {_practised(practised)}"
        f"{origin(all_rows, file)}"
    )
    return below(text, markdown(["method", *names], lines))


def _practised(rows: Sequence[Row]) -> str:
    """What practice, as in our recipe, makes of it, where that was measured."""
    if not rows:
        return ""
    told = [f"{row['method']} solves {row['successes']} of {row['episodes']} in {row['task']}" for row in rows]
    return f"With practice, as in our recipe, {' and '.join(told)}. "


def _epochs(rows: Sequence[Row]) -> str:
    return " or ".join(sorted({str(row["epochs"]) for row in rows if row["epochs"]}))


def _widest(total: int) -> float:
    low, high = wilson_interval(total // 2, total)
    return 50 * (high - low)


def _cell(method: str, task: str, found: dict[tuple[str, str], Row], paper: bool) -> str:
    if paper:
        return f"*{PAPER[method][list(TASKS).index(task)]:.2f}*"
    row = found.get((method, task))
    if row is None:
        return "not run" if METHODS[method].model else "–"
    return f"{row['successes']} ({' '.join(str(part['successes']) for part in row['by_objects'].values())})"


def rival_table(all_rows: Sequence[Row], file: str) -> str:
    """Success rates, in short."""
    rows = cloned(all_rows)
    found = {(row["method"], row["task"]): row for row in rows}
    names = tasks(rows)
    lines = [[method, *(_rate(found.get((method, task))) for task in names)] for method in methods(rows)]
    lines += [[method, *["not run"] * len(names)] for method in not_run(rows)]
    sizes = list(rows[0]["by_objects"])
    text = (
        f"Success rates of one network of each kind over {rows[0]['episodes']} episodes, with {', '.join(sizes[:-1])} "
        f"and {sizes[-1]} objects. {origin(rows, file)}"
    )
    return below(text, markdown(["method", *names], lines))


def _rate(row: Row | None) -> str:
    return f"{row['successes'] / row['episodes']:.2f}" if row else "–"


def cause_table(rows: Sequence[Row], file: str) -> str:
    """Why episodes failed, for each method."""
    rows = cloned(rows)
    causes: dict[str, Counter[str]] = {}
    for row in rows:
        causes.setdefault(row["method"], Counter()).update(row["reasons"])
    reasons = [reason for reason, _ in sum(causes.values(), Counter()).most_common()]
    lines = [
        [
            method,
            f"{sum(row['successes'] for row in rows if row['method'] == method)}/"
            f"{sum(row['episodes'] for row in rows if row['method'] == method)}",
            *(str(causes[method][reason] or "–") for reason in reasons),
        ]
        for method in methods(rows)
    ]
    text = f"**Causes of failure** on all tasks together; what they mean is [here](policies.md). {origin(rows, file)}"
    return below(text, markdown(["method", "successes", *reasons], lines))


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
