"""The command that says whether a data set is whole, what is in it, and whether a policy could be learned from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bilevel.commands.arguments import DataFolder, Json, OptionalTask, answer, count, progress_bar

if TYPE_CHECKING:
    from bilevel.demonstrations.checking import Contents, Kind, Report
    from bilevel.learning.diagnosis import ControlFindings, Diagnosis

MOST_KINDS = 5  # of changes that are told; all are in --json


@dataclass(frozen=True)
class CheckDemonstrations:
    """Read every file of a data set and name those that are broken, with the reason; exits with 1 if there are any.

    Also says what is in it: who showed what, which changes of the labels no action explains, and which action comes
    nearest. Ends with whether rules and a network could be learned: yes, no, or doubtful, and why.
    """

    folder: DataFolder
    task: OptionalTask = None
    """Label every timestep anew with this task; else the labels are used that were recorded."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.learning.diagnosis import diagnose
        from bilevel.tasks.registry import find_task

        task = find_task(self.task) if self.task else None
        with progress_bar() as progress:
            bar = progress.add_task("checking")
            update = progress.update
            report, found = diagnose(self.folder, task, lambda now: update(bar, completed=now.done, total=now.total))
        problems = report.problems
        values = {**_values(report), **(_diagnosis_values(found) if found else {})}
        verdict = count(problems, "problem") if problems else "all files are whole"
        lines = [*_lines(report, found)] if found else []
        verdicts = [f"rules: {found.for_rules}", f"network: {found.for_network}"] if found else []
        answer(values, self.json, *problems, *lines, verdict, *verdicts)
        return 1 if problems else 0


# As JSON


def _values(report: Report) -> dict[str, Any]:
    found = report.contents
    problems = {"problems": report.problems, "task": report.task}
    if found is None:
        return problems
    return problems | {
        "episodes": found.episodes,
        "steps": found.steps,
        "actions": dict(sorted(found.actions.items())),
        "exogenous": found.exogenous,
        "ambiguous": found.several,
        "events": dict(sorted(found.events.items())),
        "explained_steps": found.explained,
        "agreeing_steps": found.agreeing,
        "megabytes": round(report.megabytes, 2),
    }


def _diagnosis_values(found: Diagnosis) -> dict[str, Any]:
    import msgspec

    contents = found.contents
    values = {
        "rate": found.rate,
        "groups": contents.groups,
        "objects": contents.objects,
        "goals": {name: {"wanted": n, "reached": contents.reached[name]} for name, n in contents.goals.items()},
        "unreached": contents.unreached,
        "reached_at_once": contents.reached_at_once,
        "unexplained_changes": contents.unexplained,
        "ambiguous_changes": contents.ambiguous,
        "flickers": contents.flickers,
        "rules": found.rules,
        "controls": found.controls,
        "verdicts": {
            name: {"answer": verdict.answer, "reason": verdict.reason, "doubts": verdict.doubts}
            for name, verdict in (("rules", found.for_rules), ("network", found.for_network))
        },
    }
    return {name: msgspec.to_builtins(value, str_keys=True) for name, value in values.items()}


# As text


def _lines(report: Report, diagnosis: Diagnosis) -> Iterator[str]:
    """Give what is in the data set, from what everybody wants to know to what is odd."""
    found = contents = diagnosis.contents
    rate = f", {diagnosis.rate:g} Hz" if diagnosis.rate else ""
    yield f"{report.task}: {count(found.episodes, 'episode')}, {found.steps} steps"
    yield f"{found.steps / max(1, found.episodes):.1f} steps an episode{rate}, {report.megabytes:.1f} MB"
    yield from _people(contents)
    yield f"objects: {', '.join(f'{name} {_span(*numbers)}' for name, numbers in contents.objects.items())}"
    yield f"actions: {_numbers(found.actions)}"
    events = f" (events: {_numbers(found.events)})" if found.events else ""
    yield f"exogenous changes: {found.exogenous}{events}; changes with several explanations: {found.several}"
    yield from kind_lines([*contents.unexplained, *contents.ambiguous])
    if contents.flickers:
        yield f"flickers, undone after a few steps: {sum(kind.count for kind in contents.flickers)}"
        yield from kind_lines(contents.flickers)
    agreeing = f"; where it is the expert's: {found.agreeing}" if found.recorded else ""
    yield f"steps with a high-level action: {found.explained}{agreeing}"
    yield from _goals(contents)
    yield from _controls(diagnosis.controls)


def _people(contents: Contents) -> Iterator[str]:
    """Say who showed how much, unless it was one who always succeeded."""
    groups = contents.groups
    if [(group.demonstrator, group.outcome) for group in groups] == [("", "success")]:
        return
    told = (
        f"{group.demonstrator or 'somebody'}, {group.outcome}: {count(group.episodes, 'episode')}, {group.steps} steps"
        for group in groups
    )
    yield f"shown by {'; '.join(told)}"


def kind_lines(kinds: Sequence[Kind]) -> Iterator[str]:
    """Tell each kind of change, with its first example."""
    for kind in kinds[:MOST_KINDS]:
        parts = [f"{', '.join(facts)} {what}" for facts, what in ((kind.came, "came"), (kind.went, "went")) if facts]
        reported = " (events)" if kind.reported == kind.count else ""
        yield f"  {kind.count} × {kind.change}{reported}"
        if reported:
            continue
        yield f"      first in episode {kind.episode} at step {kind.step}: {'; '.join(parts)}"
        if kind.actions:
            yield f"      may be {' or '.join(kind.actions)}"
        elif kind.nearest:
            yield f"      nearest: {kind.nearest}, but {kind.lacks}"
    if len(kinds) > MOST_KINDS:
        yield f"  and {len(kinds) - MOST_KINDS} more kinds, see --json"


def _goals(contents: Contents) -> Iterator[str]:
    told = (f"{name} {contents.reached[name]} of {number}" for name, number in sorted(contents.goals.items()))
    yield f"goals that hold at the end: {', '.join(told) or 'there are none'}"
    if contents.unreached:
        first = contents.unreached[0]
        episodes = count(contents.unreached, "episode")
        yield f"  {episodes} without, first episode {first.episode}: {', '.join(first.facts)} does not hold"
        successes = sum(each.outcome == "success" for each in contents.unreached)
        if successes:
            yield f"  {successes} of these are said to be successes: is what was seen last on record?"
    if contents.reached_at_once:
        episodes = count(contents.reached_at_once, "episode")
        yield f"  {episodes} in which nothing was to be done, first episode {contents.reached_at_once[0]}"


def _controls(found: ControlFindings) -> Iterator[str]:
    """Say what strikes about single numbers of the controls."""
    said = [f"number {index} is always {value:g}" for index, value in found.constant.items()]
    said += [
        f"number {index} leaves its bounds in {_share(n)} of the steps" for index, n in found.out_of_bounds.items()
    ]
    if said:
        yield f"controls: {'; '.join(said)}"


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def _span(fewest: int, most: int) -> str:
    return str(most) if fewest == most else f"{fewest} to {most}"


def _numbers(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items())) or "none"
