"""What a policy does in one episode, and why, in words: while it acts, and where it fails, in the end."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict
from typing import Any

from bilevel.policies.changes import REASONS, UNEXPECTED, Change, find_changes
from bilevel.policies.episode_log import Entry, EpisodeLog
from bilevel.policies.episode_run import EpisodeRun
from bilevel.policies.incidents import NO_RULE, STALL
from bilevel.rules.explanation.why_not import why_not
from bilevel.symbolic.domain import Action, Domain, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Position

CAPTION_WIDTH = 70  # characters in a line of a sentence below a video
MAX_SURPRISES = 10  # that are told

SURPRISES = {
    "drop": "a drop, which sets {action} back",
    "collision": "a collision: during {action} something else has changed",
    "flicker": "a flicker: during {action} a change was undone at once",
}

AT_A_LOSS = {
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


def lines_of(entry: Entry, before: Entry | None) -> list[str]:
    """What to say about an entry: events, what is done now and why; where the policy does not say it, what changed."""
    lines = [f"({event})" for event in entry.events]
    lines += [INCIDENTS[incident.kind].format(why=AT_A_LOSS[incident.reason]) for incident in entry.incidents]
    if entry.action is not None and (before is None or before.action != entry.action):
        lines += ["\n".join([str(entry.action), *reasons(entry)])]
    if entry.action is None and before is not None and before.action is None and before.state != entry.state:
        lines.append(_difference(before.state, entry.state))
    return lines


def reasons(entry: Entry) -> list[str]:
    """The rule, what its variables stand for, and the sentence."""
    if entry.match is None:
        return []
    binding = ", ".join(f"{variable} = {value}" for variable, value in sorted(entry.match.binding.items()))
    return [f"rule {entry.match.rule}", *([f"with {binding}"] if binding else []), entry.sentence or ""]


def caption(log: EpisodeLog) -> str:
    """What is being done, if that is known, and why."""
    entry = log.entries[-1] if log.entries else None
    if entry is None or entry.action is None:
        return ""
    return "\n".join([str(entry.action), *textwrap.wrap(entry.sentence or "", CAPTION_WIDTH)])


def as_json(entry: Entry) -> dict[str, Any]:
    """A decision for a program to read."""
    rule = str(entry.match.rule) if entry.match else None
    binding = dict(sorted(entry.match.binding.items())) if entry.match else None
    action = str(entry.action)
    return {"step": entry.step, "action": action, "rule": rule, "binding": binding, "sentence": entry.sentence}


def _difference(before: Facts, after: Facts) -> str:
    """The facts that are new, and those that are gone."""
    new, gone = (", ".join(map(str, sorted(facts))) for facts in (after - before, before - after))
    return "; ".join([*([new] if new else []), *([f"no longer {gone}"] if gone else [])])


def surprises(log: EpisodeLog, domain: Domain) -> list[Change]:
    """The changes of the state that neither an action nor an event explains."""
    return [change for change in find_changes(domain, log.stretches(), {}) if change.kind in UNEXPECTED]


def surprise_lines(log: EpisodeLog, domain: Domain) -> list[str]:
    """A line for each of the first unexpected changes, and one for how many more there were."""
    found, lines = surprises(log, domain), []
    for change in found[:MAX_SURPRISES]:
        known = (str(entry.action) for entry in reversed(log.decisions()) if entry.step < change.timestep)
        what = SURPRISES[change.kind].format(action=next(known, "what it does"))
        lines.append(f"unexpected at step {change.timestep}: {what}")
    more = len(found) - MAX_SURPRISES
    return [*lines, f"{more} more unexpected change{'s' if more > 1 else ''}"] if more > 0 else lines


def why_failed(run: EpisodeRun, log: EpisodeLog, scene: Scene) -> str | None:
    """Why an episode did not succeed: a line, and where no rule applies, what each one lacks in the last scene."""
    if run.reason is None:
        return None
    why = REASONS[run.reason].format(**asdict(run.changes))
    if run.reason == NO_RULE and log.rules is not None:
        last, domain = log.entries[-1], log.rules.domain
        lacking = why_not(log.rules.rules, domain, last.state, last.goal, {**domain.constants, **scene.objects})
        return "\n".join([f"{why}: no rule applies", *(f"  {line}" for line in lacking.splitlines())])
    decisions = log.decisions()
    last_action = decisions[-1].action if decisions else None
    away = _distances(last_action, scene) if run.reason == STALL and last_action else ""
    if run.detail is not None:
        return f"{why}: {run.detail}{away}"
    if not decisions:
        return why
    return f"{why}; at last it did {last_action}, for {run.steps - decisions[-1].step} steps{away}"


def _distances(action: Action, scene: Scene) -> str:
    """How far the agent is from what the action names, where both have positions: what it does not reach."""
    agent, found = scene.spec.agent_roles, []
    for name in dict.fromkeys(term for term in action.arguments if term in scene.objects):
        roles = scene.spec.object_roles[scene.objects[name]]
        shared = [each for each in roles if isinstance(roles[each], Position) and isinstance(agent.get(each), Position)]
        offsets = [scene[name][each] - scene.agent[each] for each in shared]
        found += [f"{math.hypot(*offsets):.3g} from {name}"] if shared else []
    return f"; the agent is {' and '.join(found)}" if found else ""
