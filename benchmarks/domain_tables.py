"""What the tables about learned domains say: from lines of results to Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from result_tables import NOTHING, OF_POLICIES, Row, below, origin, tasks, with_interval

LEARNED, WRITTEN = "learned", "written"


def learned_success_table(rows: Sequence[Row], file: str) -> str:
    """Return the successes of policies with the learned and with the written domain, by task and setting."""
    found = [row for row in rows if row["part"] == "success"]
    most = max(row["demonstrations"] for row in found)
    lines = []
    for task in tasks(found):
        ours = [row for row in found if row["task"] == task and row["demonstrations"] == most]
        for setting in dict.fromkeys(row["setting"] for row in ours):
            cells = [
                with_interval([row for row in ours if (row["setting"], row["domain"]) == (setting, domain)])
                for domain in (LEARNED, WRITTEN)
            ]
            lines.append([task, setting, *cells])
    text = (
        f"Successes, with {OF_POLICIES}, from {most} demonstrations with three objects (one in "
        "scene), with a domain learned from these and with the one that somebody wrote: the same data, settings, seed "
        f"and episodes, one policy each. {origin(found, file)}"
    )
    return below(text, ["task", "setting", "learned domain", "written domain"], lines)


def few_demonstrations_table(rows: Sequence[Row], file: str) -> str:
    """Return the successes of policies from fewer demonstrations, with the learned and with the written domain."""
    found = [row for row in rows if row["part"] == "success"]
    numbers = sorted({row["demonstrations"] for row in found}, reverse=True)[1:]
    columns = [(number, domain) for number in numbers for domain in (LEARNED, WRITTEN)]
    lines = []
    for task in tasks(found):
        for setting in dict.fromkeys(row["setting"] for row in found if row["task"] == task):
            about = [row for row in found if (row["task"], row["setting"]) == (task, setting)]
            cells = [
                with_interval([row for row in about if (row["demonstrations"], row["domain"]) == column])
                for column in columns
            ]
            lines.append([task, setting, *cells])
    text = f"The same from fewer demonstrations. {origin(found, file)}"
    return below(text, ["task", "setting", *(f"{number}: {domain}" for number, domain in columns)], lines)


def learned_operator_table(rows: Sequence[Row], file: str) -> str:
    """Return how many of the written operators were found again, and how well held-out changes are explained."""
    found = [row for row in rows if row["part"] == "domain"]
    numbers = sorted({row["demonstrations"] for row in found}, reverse=True)

    def cells(task: str, number: int) -> list[str]:
        for row in found:
            if (row["task"], row["demonstrations"]) == (task, number):
                shown = [pair for pair in row["operators"].values() if pair["done"]]
                held = row["held_out"]
                return [
                    f"{sum(map(_has_same_effects, shown))} of {len(shown)}",
                    f"{sum(pair['same'] for pair in shown)}",
                    f"{held['explained']:.0f}",
                    f"{row['seconds']:.0f}",
                ]
        return [NOTHING] * 4

    lines = [[task, *(cell for number in numbers for cell in cells(task, number))] for task in tasks(found)]
    header = ["task"]
    for number in numbers:
        header += [f"{number}: same effects", "the same", "explained, %", "s"]
    text = (
        "Operators learned from so many demonstrations, a fifth of them held out: how many of the written ones that "
        "were shown have a learned one with the same effects, how many of these are the same up to names, and which "
        f"share of the held-out changes the learned domain explains; seconds of learning. {origin(found, file)}"
    )
    return below(text, header, lines)


def _has_same_effects(pair: Row) -> bool:
    """Whether a learned operator does the same as a written one, whatever its conditions are."""
    return not any(part.startswith("effect") for key in ("more", "less") for part in pair[key])


def difference_table(rows: Sequence[Row], file: str) -> str:
    """Return where learned operators differ from written ones, from the most demonstrations."""
    found = [row for row in rows if row["part"] == "domain"]
    lines = []
    for task in tasks(found):
        row = max((row for row in found if row["task"] == task), key=lambda row: row["demonstrations"])
        for pair in row["operators"].values():
            if pair["done"] and not pair["same"]:
                parts = [", ".join(pair[key]) or NOTHING for key in ("more", "less")]
                lines.append([task, pair["written"], str(pair["learned"]), *parts])
    text = f"Operators that are not the same, each from the most demonstrations of its task. {origin(found, file)}"
    return below(text, ["task", "written", "learned", "the learned one has more", "and lacks"], lines)


def fault_table(rows: Sequence[Row], file: str) -> str:
    """Return what is learned from faulty labels."""
    lines = []
    for row in rows:
        shown = [pair for pair in row["operators"].values() if pair["done"]]
        found = sum(map(_has_same_effects, shown))
        explained = f"{row['held_out']['explained']:.1f}" if "held_out" in row else NOTHING
        about = [row["task"], row["fault"], str(row["demonstrations"]), f"{found} of {len(shown)}"]
        lines.append([*about, str(sum(pair["same"] for pair in shown)), explained, str(row["dropped"])])
    text = (
        "What is learned from faulty labels, or from perturbed demonstrations: written operators that were shown and "
        "have a learned one with the same effects, those that are the same up to names, the share of changes explained "
        f"in held-out episodes without the fault, and how many changes were dropped. {origin(rows, file)}"
    )
    return below(
        text, ["task", "fault", "demonstrations", "same effects", "the same", "explained, %", "dropped"], lines
    )


def equivalence_table(rows: Sequence[Row], file: str) -> str:
    """Return from how many random plans on learned operators are equivalent to the written ones."""
    lines = []
    for domain in dict.fromkeys(row["domain"] for row in rows):
        ours = sorted((row for row in rows if row["domain"] == domain), key=lambda row: row["plans"])
        failing = [row["plans"] for row in ours if not row["equivalent"]]
        enough = [row["plans"] for row in ours if row["plans"] > max(failing, default=0)]
        last = ours[-1]
        left = "" if last["equivalent"] else f"{last['missing']} missing, {last['extra']} too many"
        same = f"{last['same']} of {last['operators']}"
        lines.append([domain, str(enough[0]) if enough else NOTHING, str(last["states"]), same, left])
    text = (
        "From how many random plans on, of those tried, learned operators give exactly the transitions of the written "
        "ones in all reachable states of small problems that were not among the plans; how many operators are the same "
        f"up to names with the most plans, and what is different then. {origin(rows, file)}"
    )
    return below(text, ["domain", "plans", "states", "the same", "different transitions"], lines)


def proposal_table(rows: Sequence[Row], file: str) -> str:
    """Return what was proposed for each task, and the successes of policies learned with it."""
    lines = []
    for row in rows:
        held = row["held_out"]
        agreeing = f"{held['agreeing']}/{held['actions']}"
        about = [row["task"], ", ".join(row["predicates"]), str(len(row["operators"])), agreeing]
        lines.append([*about, f"{row['proposing_seconds']:.0f}", str(row["objects"]), with_interval([row])])
    most = max(row["demonstrations"] for row in rows)
    text = (
        f"Predicates proposed from {most} demonstrations with three objects, of which only what is seen is used; "
        "operators learned with them, held-out actions that are as the rules say, seconds; successes of one policy "
        f"learned with them, judged by the task's own labels, with {OF_POLICIES}. {origin(rows, file)}"
    )
    return below(text, ["task", "predicates", "operators", "held out", "s", "objects", "successes"], lines)
