"""An episode in words: what a policy does, while it acts, and why; as a table; and why it failed, in the end."""

from __future__ import annotations

import csv
import io
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bilevel.files import require_writable, write_atomically
from bilevel.policies.episode import NO_RULE, REASONS, Episode, LogEntry
from bilevel.policies.policy import Policy
from bilevel.policies.rollout import Transition
from bilevel.rules.nearest import why_not
from bilevel.tasks.checking import numbers
from bilevel.tasks.scene import Scene

CAPTION_WIDTH = 70  # characters in a line of a sentence below a video
MAX_UNEXPECTED = 10  # changes that are printed
MAX_PRINTED = 10  # times that the same line is printed, as flickers repeat themselves for ever


def lines_of(entry: LogEntry) -> list[str]:
    """Return what to say about an entry: events, what is done now and why; or what changed, if no action is known."""
    before, match = entry.before, entry.match
    lines = [f"({event})" for event in entry.events]
    lines += [f"({incident.reason}: {incident.kind})" for incident in entry.incidents]
    if entry.action is None:
        if before is not None and before.action is None and before.state != entry.state:
            gone = (f"no longer {fact}" for fact in sorted(before.state - entry.state))
            lines.append(", ".join([*map(str, sorted(entry.state - before.state)), *gone]))
    elif before is None or before.action != entry.action:
        reasons = []
        if match is not None:
            binding = ", ".join(f"{variable} = {value}" for variable, value in sorted(match.binding.items()))
            reasons = [f"rule {match.rule}", *([f"with {binding}"] if binding else []), entry.sentence or ""]
        lines.append("\n".join([str(entry.action), *reasons]))
    return lines


def caption(episode: Episode) -> str:
    """Return what is being done, if that is known, and why."""
    entry = episode.entries[-1] if episode.entries else None
    if entry is None or entry.action is None:
        return ""
    return "\n".join([str(entry.action), *textwrap.wrap(entry.sentence or "", CAPTION_WIDTH)])


def unexpected_lines(episode: Episode) -> list[str]:
    """Return a line for each of the first unexpected changes."""
    lines = []
    for change in episode.unexpected[:MAX_UNEXPECTED]:
        now = next(entry for entry in episode.entries if entry.step >= change.timestep)
        before = now.before or now
        facts = ", ".join(map(str, sorted(now.state ^ before.state)))
        during = f" during {before.action}" if before.action else ""
        lines.append(f"unexpected at step {change.timestep}: a {change.kind}{during}: {facts} changed")
    return lines


def why_failed(episode: Episode) -> str | None:
    """Return why an episode failed: a line, and where no rule applies, what each one lacks; `None` for a success."""
    if episode.reason is None:
        return None
    why, rules = REASONS[episode.reason].format(**episode.counts), episode.rules
    if episode.reason == NO_RULE and rules is not None:
        last, objects = episode.entries[-1], {**rules.domain.constants, **episode.scene.objects}
        lacking = why_not(rules.rules, rules.domain, last.state, last.goal, objects)
        return f"{why}: no rule applies\n{textwrap.indent(lacking, '  ')}"
    decisions = episode.decisions()
    if episode.detail is None and decisions:
        return f"{why}; at last it did {decisions[-1].action}, for {episode.steps - decisions[-1].step} steps"
    return f"{why}: {episode.detail}" if episode.detail else why


def episode_json(episode: Episode, *, explain: bool = False) -> dict[str, Any]:
    """Return how an episode went, for a program; with `explain`, all decisions and unexpected changes, too."""
    found: dict[str, Any] = {
        "outcome": episode.outcome,
        "reason": episode.reason,
        "why": why_failed(episode),
        "steps": episode.steps,
        "incidents": msgspec.to_builtins(episode.incidents, order="deterministic"),
    }
    if explain:
        found["decisions"] = [
            {
                "step": entry.step,
                "action": str(entry.action),
                "rule": str(entry.match.rule) if entry.match else None,
                "binding": dict(sorted(entry.match.binding.items())) if entry.match else None,
                "sentence": entry.sentence,
            }
            for entry in episode.decisions()
        ]
        found["unexpected"] = [{"step": change.timestep, "kind": change.kind} for change in episode.unexpected]
    return found


class EpisodePrinter:
    """A callback of a rollout that prints what is new, each line a few times at most; of any number of episodes."""

    def __init__(self, *, explain: bool = False) -> None:
        """With `explain`, reasons are printed, too, each of them once, and at the end the unexpected changes."""
        self._explain = explain
        self._printed: Counter[str] = Counter()

    def __call__(self, transition: Transition) -> None:
        self._print(transition.episode.new_entry)

    def end(self, episode: Episode) -> None:
        """Print what was seen last, and how the episode ended."""
        self._print(episode.new_entry)
        for line in unexpected_lines(episode) if self._explain else ():
            print(line, flush=True)
        print(f"{episode.outcome} after {episode.steps} steps", file=sys.stderr)
        if not episode.success:
            print(why_failed(episode), file=sys.stderr)
        self._printed.clear()

    def _print(self, entry: LogEntry | None) -> None:
        for text in lines_of(entry) if entry else ():
            self._printed[text] += 1
            first, *reasons = text.splitlines()
            if entry and self._printed[text] <= MAX_PRINTED:
                more = reasons if self._explain and self._printed[text] == 1 else ()
                print(f"{entry.step:>6}  {first}", *(f"{'':10}{line}" for line in more), sep="\n", flush=True)


class TraceWriter:
    """A callback of a rollout that writes a table of what was seen, believed, chosen and done, a row for each step.

    Columns are named after features, such as `agent.x` and `block1.z`; those of an object are empty while it is not
    seen. With state estimation, what is believed of them is in columns `believed.agent.x` and so on.
    """

    def __init__(self, path: Path, policy: Policy) -> None:
        require_writable(path)
        self._path, self._policy = path, policy
        self._rows: list[dict[str, object]] = []

    def __call__(self, transition: Transition) -> None:
        row, believed = _trace_row(transition.episode, transition.scene), self._policy.scene or transition.scene
        if believed is not transition.scene:
            row |= {f"believed.{name}": value for name, value in numbers(believed).items()}
        for name, control in (("control", transition.control), ("executed", transition.executed)):
            row |= {f"{name}.{place}": number for place, number in enumerate(np.asarray(control).reshape(-1).tolist())}
        self._rows.append(row)

    def end(self, episode: Episode) -> None:
        """Add what was seen last, and write the file."""
        self._rows.append({**_trace_row(episode, episode.scene), "outcome": episode.outcome})
        table = io.StringIO()
        columns = list(dict.fromkeys(name for row in self._rows for name in row))
        writer = csv.DictWriter(table, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        write_atomically(self._path, table.getvalue())


def _trace_row(episode: Episode, scene: Scene) -> dict[str, object]:
    """Return what holds at the present step of an episode, and what is seen."""
    entry, new = episode.entries[-1], episode.new_entry
    return {
        "step": episode.steps,
        "state": "; ".join(map(str, sorted(entry.state))),
        "goal": "; ".join(map(str, sorted(entry.goal))),
        "action": "" if entry.action is None else str(entry.action),
        "rule": str(entry.match.rule) if entry.match else "",
        "events": "; ".join(new.events if new else ()),
        "incidents": "; ".join(f"{each.reason}: {each.kind}" for each in (new.incidents if new else ())),
        **numbers(scene),
    }
