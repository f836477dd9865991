"""Why an episode did not succeed: one reason for each, the first of these that fits.

| reason | the episode |
|---|---|
| no rule | ended because the policy did not know what to do |
| physics | ended because the simulation became unstable |
| label | had mostly flickers among the changes of its last 1000 steps, and at least five |
| stall | went on in one state to its end: for 1000 steps, or ten times as long as the longest action before |
| drop, collision | had, there, half as many changes of these kinds as of the policy's own, or more; the commoner one |
| time | was still making progress at the step limit |

What the kinds of changes mean is in `changes`. A state that flickers goes on for as long as it comes back.
"""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.environments.tabletop import SUCCESS, UNSTABLE
from bilevel.execution.rollout import NO_ACTION
from bilevel.experiments.changes import FLICKER, OWN, Change, count_changes

LAST_PART = 1000  # steps
MUCH_LONGER = 10  # times
MANY_FLICKERS = 5

REASONS = ("no rule", "physics", "label", "stall", "drop", "collision", "time")


def reason_of_failure(outcome: str, steps: int, changes: Sequence[Change]) -> str | None:
    """`None` for a success; `steps` is how long the episode was."""
    known = {SUCCESS: None, NO_ACTION: "no rule", UNSTABLE: "physics"}
    if outcome in known:
        return known[outcome]
    last = count_changes([change for change in changes if change.moment > steps - LAST_PART])
    if last.flicker >= MANY_FLICKERS and 2 * last.flicker > last.own + last.exogenous + last.unexpected:
        return "label"
    if _stalled(steps, changes):
        return "stall"
    if 2 * (last.drop + last.collision) >= max(last.own, 1):
        return "drop" if last.drop >= last.collision else "collision"
    return "time"


def _stalled(steps: int, changes: Sequence[Change]) -> bool:
    real = [change for change in changes if change.kind != FLICKER]
    lasted = steps - (real[-1].moment if real else 0)
    longest = max((change.steps for change in real if change.kind == OWN), default=LAST_PART)
    return lasted >= min(LAST_PART, MUCH_LONGER * longest)
