"""What the tables in README and docs say: each function turns the lines of a file of results into Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from bilevel.experiments.intervals import Counts, rate_interval
from bilevel.experiments.paper import paper_rate
from bilevel.experiments.report.tables import filled, markdown

Row = dict[str, Any]
Render = Callable[[Sequence[Row], str], str]  # from rows of results and the name of their file

NOTHING = "–"
NOT_MEASURED = "Not measured yet."
PRESETS = {"paper": "paper's setting", "best": "our preset"}
KINDS = {"sizes": "n = 1–10", "large": "n = 15 and 20", "perturbed": "n = 3, perturbed"}


def below(text: str, header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table below what is said about it."""
    return f"{filled(text)}\n\n{markdown(header, lines)}"


def tasks(rows: Sequence[Row]) -> list[str]:
    """Return the tasks that were measured, in the order of the results."""
    return list(dict.fromkeys(row["task"] for row in rows))


def origin(rows: Sequence[Row], file: str) -> str:
    """Return who measured it, where, and where it is written."""
    commands = " and ".join(sorted({f"`{row['command']}`" for row in rows}))
    machines = " and ".join(sorted({f"{row['machine']['cores']} cores ({row['machine']['cpu']})" for row in rows}))
    return f"Measured by {commands} on a machine with {machines}: [`results/{file}`](results/{file})."


OF_POLICIES = "95% intervals (Wilson) of these policies"
OF_SEEDS = "95% intervals over training seeds ([beta-binomial](reproduction.md#what-the-intervals-say))"


def with_interval(rows: Sequence[Row], seed: str | None = None) -> str:
    """Return the successes of all rows together, with the 95% interval in per cent.

    It is that of the policy that was run or, given the name of what a row calls its training seed, of the method.
    """
    if not rows:
        return NOTHING
    policies: dict[Any, Counts] = {}
    for row in rows:
        before = policies.get(row[seed] if seed else None, Counts(0, 0))
        added = Counts(before.successes + row["successes"], before.episodes + row["episodes"])
        policies[row[seed] if seed else None] = added
    low, high = rate_interval(list(policies.values()))
    successes, episodes = (sum(counts) for counts in zip(*policies.values(), strict=True))
    return f"{successes}/{episodes} ({100 * low:.1f}–{100 * high:.1f}%)"


# Learned policies


def policies_of(rows: Sequence[Row], task: str, kind: str, preset: str) -> list[Row]:
    """Return the rows of one kind of policies on a task."""
    return [row for row in rows if (row["task"], row["kind"], row["preset"]) == (task, kind, preset)]


def success_table(rows: Sequence[Row], file: str) -> str:
    columns = [("sizes", "paper"), ("sizes", "best"), ("perturbed", "paper"), ("perturbed", "best"), ("large", "best")]
    header = ["task", "BISON in the paper", *(f"{PRESETS[preset]}, {KINDS[kind]}" for kind, preset in columns)]
    lines = [
        [
            task,
            f"{paper_rate('bison', task):.2f}",
            *(with_interval(policies_of(rows, task, *column), "seed") for column in columns),
        ]
        for task in tasks(rows)
    ]
    models = len({(row["task"], row["preset"], row["seed"]) for row in rows})
    text = (
        f"Successes of {models} policies in worlds that they have not seen, with {OF_SEEDS}: three of each kind, "
        f"each learned from {rows[0]['demonstrations']} demonstrations with three objects, and run 10 times with each "
        f"number of objects. *Perturbed*: with bursts of control noise. {origin(rows, file)}"
    )
    return below(text, header, lines)


def failure_table(rows: Sequence[Row], file: str) -> str:
    failed: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        failed.setdefault((row["task"], row["preset"], row["kind"]), Counter()).update(row["reasons"])
    reasons = sorted({reason for counts in failed.values() for reason in counts})
    lines = [
        [task, PRESETS[preset], KINDS[kind], *(str(counts[reason] or NOTHING) for reason in reasons)]
        for (task, preset, kind), counts in failed.items()
        if counts
    ]
    episodes = sum(row["episodes"] for row in rows)
    text = f"All failures among {episodes:,} episodes, by cause; what is not listed had none. {origin(rows, file)}"
    return below(text, ["task", "learned by", "run with", *reasons], lines)


def refinement_table(rows: Sequence[Row], file: str) -> str:
    columns = [(kind, preset) for kind in ("sizes", "perturbed") for preset in PRESETS]
    lines = []
    for task in tasks(rows):
        counted = [sum((Counter(row["changes"]) for row in policies_of(rows, task, *column)), Counter[str]())
                   for column in columns]  # fmt: skip
        parts = [counts["own"] / (counts["own"] + counts["unexpected"]) for counts in counted]
        shown = zip(parts, counted, strict=True)
        lines.append([task, *(f"{100 * part:.2f}% ({counts['unexpected']:,})" for part, counts in shown)])
    text = (
        "The part of the changes of the symbolic state that were the chosen action's own effects, and in brackets how "
        f"many were not; those that the world reported (teleports, arrivals) count for neither. {origin(rows, file)}"
    )
    return below(text, ["task", *(f"{PRESETS[preset]}, {KINDS[kind]}" for kind, preset in columns)], lines)


def schedule_table(rows: Sequence[Row], file: str) -> str:
    trials = list(rows[0]["successes"])
    lines = [
        [
            row["task"],
            str(row["epochs"]),
            f"{sum(row['validation_losses']) / len(row['validation_losses']):.4f}",
            *(_of_schedule(row["successes"][trial]) for trial in trials),
        ]
        for row in sorted(rows, key=lambda row: (row["task"], row["epochs"]))
    ]
    text = (
        "Cloning alone, without DAgger: successes after schedules of so many epochs, and the mean squared error on "
        f"what was set aside; three networks each, with {OF_SEEDS} where what each did was kept. {origin(rows, file)}"
    )
    return below(text, ["task", "epochs", "validation loss", *trials], lines)


def _of_schedule(found: Row) -> str:
    if "by_seed" not in found:  # so the interval would be that of episodes which do not belong together
        return f"{found['successes']}/{found['episodes']}"
    each = found["episodes"] // len(found["by_seed"])
    seeds = [{"seed": seed, "successes": won, "episodes": each} for seed, won in enumerate(found["by_seed"])]
    return with_interval(seeds, "seed")


def learning_table(rows: Sequence[Row], file: str) -> str:
    lines = [[PRESETS[row["preset"]], row["device"], f"{row['samples']:,}", f"{row['seconds']:.0f}"] for row in rows]
    text = f"Seconds of `bilevel learn` with {rows[0]['demonstrations']} demonstrations of Blocks. {origin(rows, file)}"
    for row in rows:
        if "note" in row:
            text += f" The {row['seconds']:.0f} seconds on {row['device']} are those {row['note']}."
    return below(text, ["learned by", "on", "samples", "seconds"], lines)


def step_table(rows: Sequence[Row], file: str) -> str:
    timed = [row for row in rows if row["objects"] == 10]
    lines = []
    for row in timed:
        found, whole = row["microseconds"], row["ratio"]["step"]
        policy = found["labels and choice"] + found["network"]
        parts = (found["labels and choice"], found["network"], found["environment"])
        ratios = (policy / found["environment"], whole)
        lines.append([row["task"], *(f"{part:.0f}" for part in parts), *(f"{ratio:.2f}" for ratio in ratios)])
    text = (
        f"CPU microseconds of a step with 10 objects: the median of {timed[0]['repeats']} runs, in turns with commit "
        f"`{timed[0]['before']}`, from before tasks were values. {origin(timed, file)}"
    )
    columns = ["labels, choice", "network", "environment", "policy : environment", f"step : `{timed[0]['before']}`"]
    return below(text, ["task", *columns], lines)


def startup_table(rows: Sequence[Row], file: str) -> str:
    lines = [[f"`{row['words']}`", f"{row['seconds_before']:.2f}", f"{row['seconds']:.2f}"] for row in rows]
    text = (
        f"CPU seconds of whole commands that have next to nothing to do: the median of {rows[0]['repeats']} runs, in "
        f"turns with commit `{rows[0]['before']}`. {origin(rows, file)}"
    )
    return below(text, ["`bilevel …`", "before", "now"], lines)


def large_problem_table(rows: Sequence[Row], file: str) -> str:
    def cells(row: Row, command: str) -> list[str]:
        seconds = [f"{row[f'{command}_seconds_{which}']:.2f}" for which in ("before", "pure", "now")]
        return [*seconds, *(f"{row[f'{command}_mebibytes_{which}']:,.0f}" for which in ("before", "now"))]

    lines = [
        [row["shape"], f"{row['size']:,}", f"{row['actions']:,}", f"`{command}`", *cells(row, command)]
        for row in rows
        for command in ("solve", "validate")
    ]
    few = rows[0]["repeats"]
    runs = "one run each" if few == 1 else f"the median of {few} runs, from a million objects on one run"
    text = (
        f"CPU seconds and the most memory of whole commands, at commit `{rows[0]['before']}`, now without the compiled "
        f"parts, and with them, in turns: {runs}. The plans are the same. {origin(rows, file)}"
    )
    header = ["problem", "size", "actions", "", "before s", "pure s", "compiled s", "before MiB", "compiled MiB"]
    return below(text, header, lines)


# Planning


def thinking_table(rows: Sequence[Row], file: str) -> str:
    lines = []
    for row in rows:
        times = row["microseconds_per_step"]
        lines.append(
            [
                f"{row['task']}, {row['method']}",
                f"{times['policy']:.0f}",
                f"{times['planning']:.0f}" if times["planning"] else NOTHING,
                f"{times['policy'] / times['physics']:.2f}",
                "/".join(map(str, row["plans"])) if any(row["plans"]) else NOTHING,
                f"{row['successes']}/{row['episodes']}",
            ]
        )
    header = ["task, method", "µs a step", "of that planning", "physics = 1", "plans in each episode", "successes"]
    text = (
        f"**Thinking**: what a method takes for each step with n = {rows[0]['objects']}, labels included, all in turn "
        f"in one run: the median of {rows[0]['episodes']} episodes. {origin(rows, file)}"
    )
    return below(text, header, lines)


def fond_table(rows: Sequence[Row], file: str) -> str:
    kinds = {
        "colour": lambda row: f"colour, {row['blocks']} blocks, {row['colours']} colours",
        "gacha": lambda row: f"gacha, {row['wanted']} of {row['colours']} colours",
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
    return below(text, ["problem", "answer", "decisions", "seconds"], lines)


def fond_family_table(rows: Sequence[Row], file: str) -> str:
    found = {(row["family"], row["size"], row["version"]): row for row in rows}
    problems = dict.fromkeys((row["family"], row["size"]) for row in rows)
    limit = rows[0]["limit"]

    def shown(row: Row | None) -> list[str]:
        if row is None:
            return ["", "not tried"]
        if row["answer"] == "timed out":
            return ["", f"> {limit}"]
        return [str(row["decisions"] or row["answer"]), f"{row['cpu_seconds']:.1f}"]

    lines = []
    for family, size in problems:
        before, after = (shown(found.get((family, size, version))) for version in ("before", "after"))
        lines.append([family, str(size), *before, *after])
    policies = [row for row in rows if row["answer"] == "solved"]
    checked = sum(row["checked"] == "strong-cyclic" for row in policies)
    text = (
        f"**Families of problems that grow**, in CPU seconds of the whole command, at most {limit}, before (commit "
        f"{rows[0]['revision']}) and after. {checked} of {len(policies)} policies were checked to be strong-cyclic. "
        f"{origin(rows, file)}"
    )
    return below(text, ["family", "size", "decisions before", "seconds", "decisions after", "seconds"], lines)


# Demonstrations


def demonstration_table(rows: Sequence[Row], file: str) -> str:
    lines = [
        [
            row["task"] + (f", perturbed {row['noise']:g}" if row["noise"] else ""),
            "yes" if row["golden_rules"] else "no",
            f"{row['steps']:,}",
            f"{row['megabytes']:.1f}",
            f"{row['collecting_seconds']:.0f}",
            f"{row['labelling_seconds'] + row['learning_seconds']:.1f}",
            f"{row['exogenous']:,}",
            ", ".join(f"{kind} {number:,}" for kind, number in row["events"].items()) or "none",
            f"{row['steps'] - row['explained_steps']:,}",
            f"{row['explained_steps'] - row['agreeing_steps']:,}",
        ]
        for row in sorted(rows, key=lambda row: tasks(rows).index(row["task"]))
    ]
    episodes, sizes = (" or ".join(map(str, sorted({row[key] for row in rows}))) for key in ("episodes", "objects"))
    text = (
        f"**Demonstrations**: {episodes} of each task with n = {sizes}, and whether they teach the "
        "golden rules, which small PDDL problems teach, too. *Cuts* are changes that no action explains, *events* what "
        "the world reported. *No action* was found for so many steps, all of them before a cut, and *another* than the "
        f"expert's for so many. {origin(rows, file)}"
    )
    times = ("collecting, s", "learning, s")
    return below(text, ["task", "golden rules", "steps", "MB", *times, "cuts", "events", "no action", "another"], lines)
