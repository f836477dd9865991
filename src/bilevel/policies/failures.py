"""Why an episode did not succeed: one reason for each, the first of these that fits.

| reason | the episode |
|---|---|
| no rule | ended because the policy did not know what to do |
| no model | the same, as its planner cannot express what may happen |
| no plan | the same, as its planner found none, or none in time |
| plan broken | the same, as its plan is not for what happened |
| physics | ended because the simulation became unstable |
| label | had mostly flickers among the changes of its last 1000 steps, and at least five |
| stall | came to rest for good, or brought nothing about at its end: for 1000 steps, or ten times its longest action |
| drop, collision | had in its last 1000 steps half as many changes of these two kinds as own ones, or more |
| time | was still making progress at the step limit |

What the kinds of changes mean is in `changes`. Flickers and exogenous changes are nothing that was brought about. Of
drops and collisions it is the commoner that is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.planning.plan_policies import NO_MODEL, NO_PLAN, PLAN_BROKEN, Failure
from bilevel.policies.changes import EXOGENOUS, FLICKER, OWN, Change, count_changes
from bilevel.policies.rollout import NO_ACTION
from bilevel.tabletop.tabletop import SUCCESS, UNSTABLE

SETTLED = "settled"  # the outcome of an episode in which everything has come to rest for good
LAST_PART = 1000  # steps
MUCH_LONGER = 10  # times
MANY_FLICKERS = 5

REASONS = ("no rule", NO_MODEL, NO_PLAN, PLAN_BROKEN, "physics", "label", "stall", "drop", "collision", "time")


def reason_of_failure(
    outcome: str, steps: int, changes: Sequence[Change], failure: Failure | None = None
) -> str | None:
    """`None` for a success; `steps` is how long the episode was, `failure` what the policy itself says."""
    if failure:
        return failure.reason
    known = {SUCCESS: None, NO_ACTION: "no rule", UNSTABLE: "physics", SETTLED: "stall"}
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
    """Whether the policy has brought nothing about, good or bad, for too long."""
    moments = [change.moment for change in changes if change.kind not in (FLICKER, EXOGENOUS)]
    lasted = steps - (moments[-1] if moments else 0)
    longest = max((change.steps for change in changes if change.kind == OWN), default=LAST_PART)
    return lasted >= min(LAST_PART, MUCH_LONGER * longest)
