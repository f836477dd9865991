"""An episode in words: what a policy does, while it acts, and why; as a table; and why it failed, in the end."""

from __future__ import annotations

import csv
import io
import math
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bilevel.files import require_writable, write_atomically
from bilevel.policies.episode import NO_RULE, REASONS, STALL, Entry, Episode
from bilevel.policies.policy import Policy
from bilevel.policies.rollout import Transition
from bilevel.rules.explanation.why_not import why_not
from bilevel.symbolic.domain import Action, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Position

CAPTION_WIDTH = 70  # characters in a line of a sentence below a video
MAX_UNEXPECTED = 10  # changes that are printed

UNEXPECTED_KINDS = {
    "drop": "a drop, which sets {action} back",
    "collision": "a collision: during {action} something else has changed",
    "flicker": "a flicker: during {action} a change was undone at once",
}

INCIDENT_REASONS = {
    "no rule": "no rule applies",
    "unseen": "what it needs is not seen",
    "jam": "nothing moves",
    "stall": "nothing comes of it",
}
INCIDENTS = {
    "wait": "{why}: it waits",
    "plan": "{why}: it follows a plan",
    "nudge": "{why}: it is nudged",
    "retry": "{why}: it backs off and tries again",
    "other": "{why}: it does something else",
    "stop": "{why}: it stops",
}


def lines_of(entry: Entry, *, explain: bool = True) -> list[str]:
    """Return what to say about an entry: events, what is done now and why; or what changed, if no action is known."""
    before = entry.before
    lines = [f"({event})" for event in entry.events]
    lines += [INCIDENTS[incident.kind].format(why=INCIDENT_REASONS[incident.reason]) for incident in entry.incidents]
    if entry.action is not None and (before is None or before.action != entry.action):
        lines += ["\n".join([str(entry.action), *(reasons(entry) if explain else ())])]
    if entry.action is None and before is not None and before.action is None and before.state != entry.state:
        lines.append(_difference(before.state, entry.state))
    return lines


def reasons(entry: Entry) -> list[str]:
    """The rule, what its variables stand for, and the sentence."""
    if entry.match is None:
        return []
    binding = ", ".join(f"{variable} = {value}" for variable, value in sorted(entry.match.binding.items()))
    return [f"rule {entry.match.rule}", *([f"with {binding}"] if binding else []), entry.sentence or ""]


def caption(episode: Episode) -> str:
    """Return what is being done, if that is known, and why."""
    entry = episode.entries[-1] if episode.entries else None
    if entry is None or entry.action is None:
        return ""
    return "\n".join([str(entry.action), *textwrap.wrap(entry.sentence or "", CAPTION_WIDTH)])


def _difference(before: Facts, after: Facts) -> str:
    """The facts that are new, and those that are gone."""
    new, gone = (", ".join(map(str, sorted(facts))) for facts in (after - before, before - after))
    return "; ".join([*([new] if new else []), *([f"no longer {gone}"] if gone else [])])


def unexpected_lines(episode: Episode) -> list[str]:
    """Return a line for each of the first unexpected changes, and one for how many more there were."""
    unexpected, lines = episode.unexpected, []
    for change in unexpected[:MAX_UNEXPECTED]:
        earlier = (str(entry.action) for entry in reversed(episode.decisions()) if entry.step < change.timestep)
        kind = UNEXPECTED_KINDS[change.kind].format(action=next(earlier, "what it does"))
        lines.append(f"unexpected at step {change.timestep}: {kind}")
    more = len(unexpected) - MAX_UNEXPECTED
    return [*lines, f"{more} more unexpected change{'s' if more > 1 else ''}"] if more > 0 else lines


def why_failed(episode: Episode) -> str | None:
    """Return why an episode failed: a line, and where no rule applies, what each one lacks; `None` for a success."""
    if episode.reason is None:
        return None
    why, rules, scene = REASONS[episode.reason].format(**asdict(episode.counts)), episode.rules, episode.scene
    if episode.reason == NO_RULE and rules is not None:
        last, objects = episode.entries[-1], {**rules.domain.constants, **scene.objects}
        lacking = why_not(rules.rules, rules.domain, last.state, last.goal, objects)
        return "\n".join([f"{why}: no rule applies", *(f"  {line}" for line in lacking.splitlines())])
    decisions = episode.decisions()
    last_action = decisions[-1].action if decisions else None
    away = _distances(last_action, scene) if episode.reason == STALL and last_action else ""
    if episode.detail is not None:
        return f"{why}: {episode.detail}{away}"
    if not decisions:
        return why
    return f"{why}; at last it did {last_action}, for {episode.steps - decisions[-1].step} steps{away}"


def _distances(action: Action, scene: Scene) -> str:
    """How far the agent is from what the action names, where both have positions: what it does not reach."""
    agent, found = scene.spec.agent_roles, []
    for name in dict.fromkeys(term for term in action.arguments if term in scene.objects):
        roles = scene.spec.object_roles[scene.objects[name]]
        shared = [each for each in roles if isinstance(roles[each], Position) and isinstance(agent.get(each), Position)]
        offsets = [scene[name][each] - scene.agent[each] for each in shared]
        found += [f"{math.hypot(*offsets):.3g} from {name}"] if shared else []
    return f"; the agent is {' and '.join(found)}" if found else ""


def episode_json(episode: Episode, *, explain: bool = False) -> dict[str, Any]:
    """Return how an episode went, for a program; with `explain`, all decisions and unexpected changes, too."""
    found: dict[str, Any] = {
        "outcome": episode.outcome,
        "reason": episode.reason,
        "why": why_failed(episode),
        "steps": episode.steps,
        "incidents": [incident.as_json() for incident in episode.incidents],
    }
    if explain:
        found["decisions"] = [_decision(entry) for entry in episode.decisions()]
        found["unexpected"] = [{"step": change.timestep, "kind": change.kind} for change in episode.unexpected]
    return found


def _decision(entry: Entry) -> dict[str, Any]:
    rule = str(entry.match.rule) if entry.match else None
    binding = dict(sorted(entry.match.binding.items())) if entry.match else None
    action = str(entry.action)
    return {"step": entry.step, "action": action, "rule": rule, "binding": binding, "sentence": entry.sentence}


# Printing


class EpisodePrinter:
    """A callback of a rollout that prints what is new, with what repeats folded; of any number of episodes."""

    def __init__(self, *, explain: bool = False) -> None:
        """With `explain`, reasons are printed, too, and at the end the unexpected changes."""
        self._explain, self._folding = explain, Folding(print_step)

    def __call__(self, transition: Transition) -> None:
        self._print(transition.episode.new_entry)

    def end(self, episode: Episode) -> None:
        """Print what was seen last, what was only counted, and how the episode ended."""
        self._print(episode.new_entry)
        self._folding.end(episode.steps)
        for line in unexpected_lines(episode) if self._explain else ():
            print(line, flush=True)
        self._folding = Folding(print_step)
        lines = [f"{episode.outcome} after {episode.steps} steps", why_failed(episode)]
        print(*filter(None, lines), sep="\n", file=sys.stderr)

    def _print(self, entry: Entry | None) -> None:
        if entry is not None:
            for text in lines_of(entry, explain=self._explain):
                self._folding.add(entry.step, text)


def print_step(step: int | None, text: str) -> None:
    """Print what happens at a step, and below it why."""
    first, *further = text.splitlines()
    label = "" if step is None else str(step)
    print("\n".join([f"{label:>6}  {first}", *(f"{'':10}{line}" for line in further)]), flush=True)


FOLD_AFTER = 10  # lines in a row that say nothing new, before they are only counted
MOST_NAMED = 6  # of what is counted, the commonest are named


class Folding:
    """Passes on texts with their steps. Reasons are given once; where nothing is new for long, it only counts."""

    def __init__(self, say: Callable[[int | None, str], None]) -> None:
        """`say` is given a step and a text, whose first line is what happens and the others why; or no step."""
        self._say = say
        self._told: dict[str, int] = {}  # each text, with the step at which it was told first
        self._repeated = 0  # in a row
        self._counted: Counter[str] = Counter()

    def add(self, step: int, text: str) -> None:
        """Say what happens at a step, unless it repeats too often."""
        what, *why = text.splitlines()
        if text not in self._told:
            self.end(step)
            self._told[text], self._repeated = step, 0
            self._say(step, text)
            return
        self._repeated += 1
        if self._repeated <= FOLD_AFTER:
            self._say(step, f"{what} (as at step {self._told[text]:,})" if why else what)
        else:
            self._counted[what] += 1

    def end(self, step: int) -> None:
        """Say what was only counted until this step, if anything was."""
        if not self._counted:
            return
        named = [f"{what} {number:,} times" for what, number in self._counted.most_common(MOST_NAMED)]
        others = ["and others"] if len(self._counted) > MOST_NAMED else []
        total = sum(self._counted.values())
        self._say(None, f"… {total:,} more of the same until step {step:,}: {', '.join([*named, *others])}")
        self._counted.clear()


# A table of all steps


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
        scene, episode = transition.scene, transition.episode
        believed = self._policy.believed(scene)
        controls = {"control": transition.control, "executed": transition.executed}
        self._rows.append(
            _trace_row(episode, scene)
            | (_features("believed.", believed) if believed is not scene else {})
            | {
                f"{name}.{place}": number
                for name, control in controls.items()
                for place, number in enumerate(np.asarray(control).reshape(-1).tolist())
            }
        )

    def end(self, episode: Episode) -> None:
        """Add what was seen last, and write the file."""
        self._rows.append({**_trace_row(episode, episode.scene), "outcome": episode.outcome})
        columns = list(dict.fromkeys(name for row in self._rows for name in row))
        table = io.StringIO()
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
        **_features("", scene),
    }


def _features(prefix: str, scene: Scene) -> dict[str, object]:
    """Return all features in a scene by the names of their columns."""
    things = {"agent": (scene.agent, scene.spec.agent_roles)}
    things |= {name: (scene[name], scene.spec.object_roles[kind]) for name, kind in scene.objects.items()}
    return {f"{prefix}{name}.{role}": thing[role] for name, (thing, roles) in things.items() for role in roles}
