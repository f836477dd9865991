"""Why an episode did not succeed: one reason for each, the first of these that fits.

| reason | the episode |
|---|---|
| no rule | ended because the policy did not know what to do |
| no model | the same, as its planner cannot express what may happen |
| no plan | the same, as its planner found none, or none in time |
| plan broken | the same, as its plan is not for what happened |
| physics | ended because the simulation became unstable |
| terminated | was ended by the environment, for a reason of its own |
| label | had mostly flickers among the changes of its last 1000 steps, and at least five |
| stall | came to rest for good, or brought nothing about: never, not for 1000 steps, or ten times its longest action |
| drop, collision | had in its last 1000 steps half as many changes of these two kinds as own ones, or more |
| time | was still making progress at the step limit |

What the kinds of changes mean is in `changes`. Flickers and exogenous changes are nothing that was brought about. Of
drops and collisions it is the commoner that is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.policies.changes import EXOGENOUS, FLICKER, OWN, Change, count_changes
from bilevel.policies.rollout import NO_ACTION
from bilevel.policies.settling import SETTLED
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, TERMINATED

UNSTABLE = "unstable simulation"  # an outcome that an environment may report
LAST_PART = 1000  # steps
MUCH_LONGER = 10  # times
MANY_FLICKERS = 5

REASONS = (
    "no rule", "no model", "no plan", "plan broken", "physics", "terminated", "label", "stall", "drop", "collision",
    "time",
)  # fmt: skip


def reason_of_failure(outcome: str, steps: int, changes: Sequence[Change]) -> str | None:
    """`None` for a success; `steps` is how long the episode was."""
    known = {SUCCESS: None, NO_ACTION: "no rule", UNSTABLE: "physics", SETTLED: "stall", TERMINATED: "terminated"}
    if outcome != STEP_LIMIT:
        return known.get(outcome, "terminated")
    last = count_changes([change for change in changes if change.timestep > steps - LAST_PART])
    if last.flicker >= MANY_FLICKERS and 2 * last.flicker > last.own + last.exogenous + last.unexpected:
        return "label"
    if _stalled(steps, changes):
        return "stall"
    if 2 * (last.drop + last.collision) >= max(last.own, 1):
        return "drop" if last.drop >= last.collision else "collision"
    return "time"


def _stalled(steps: int, changes: Sequence[Change]) -> bool:
    """Whether the policy has brought nothing about, good or bad, for too long."""
    timesteps = [change.timestep for change in changes if change.kind not in (FLICKER, EXOGENOUS)]
    longest = max((change.steps for change in changes if change.kind == OWN), default=LAST_PART)
    return not timesteps or steps - timesteps[-1] >= min(LAST_PART, MUCH_LONGER * longest)
