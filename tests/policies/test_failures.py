"""Reasons of failures, on made-up changes."""

from __future__ import annotations

import pytest

from bilevel.policies.changes import (
    COLLISION,
    DROP,
    EXOGENOUS,
    FLICKER,
    OWN,
    REASONS,
    UNSTABLE,
    Change,
    reason_of_failure,
)
from bilevel.policies.rollout import NO_ACTION, SETTLED
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, TERMINATED

LIMIT = 4000


def every(steps: int, *kinds: str, begin: int = 0, end: int = LIMIT) -> list[Change]:
    """Changes of these kinds in turn, one every so many steps."""
    timesteps = range(begin + steps, end, steps)
    return [Change(timestep, kinds[number % len(kinds)], steps) for number, timestep in enumerate(timesteps)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (every(50, OWN), "time"),
        (every(50, OWN, EXOGENOUS), "time"),
        (every(50, OWN, OWN, OWN, DROP), "time"),
        (every(50, OWN, FLICKER), "time"),
        ([], "stall"),
        (every(50, OWN, end=3000), "stall"),
        (every(50, OWN, end=2000) + every(300, EXOGENOUS, begin=2000), "stall"),
        (every(50, OWN, end=2000) + every(300, DROP, begin=2000), "drop"),
        (every(90, OWN, end=3090), "stall"),  # 900 steps and more, which is ten times as long as the others
        (every(99, OWN, end=3100), "time"),
        (every(50, OWN, end=2000) + every(180, FLICKER, begin=2000), "label"),
        (every(50, OWN, end=2000) + every(300, FLICKER, begin=2000), "stall"),
        (every(50, OWN, FLICKER, FLICKER), "label"),
        (every(50, OWN, DROP), "drop"),
        (every(50, OWN, DROP, OWN, OWN, DROP), "drop"),
        (every(50, OWN, COLLISION), "collision"),
        (every(50, OWN, COLLISION, OWN, COLLISION, DROP), "collision"),
        (every(50, DROP, end=2000) + every(50, OWN, begin=2000), "time"),
        (every(50, OWN, end=2000) + every(50, COLLISION, begin=2000), "collision"),
    ],
)
def test_an_episode_that_came_to_the_step_limit(changes: list[Change], reason: str) -> None:
    assert reason_of_failure(STEP_LIMIT, LIMIT, changes) == reason
    assert reason in REASONS


def test_flickers_at_which_things_moved_are_not_the_labels_fault() -> None:
    changes = every(50, OWN, FLICKER, FLICKER)
    flickers = [change.timestep for change in changes if change.kind == FLICKER and change.timestep > LIMIT - 1000]
    half = len(flickers) // 2
    assert reason_of_failure(STEP_LIMIT, LIMIT, changes, flickers) == "control"
    assert reason_of_failure(STEP_LIMIT, LIMIT, changes, flickers[: half + 1]) == "control"
    assert reason_of_failure(STEP_LIMIT, LIMIT, changes, flickers[:half]) == "label"
    assert reason_of_failure(STEP_LIMIT, LIMIT, every(50, OWN, FLICKER), flickers) == "time"


def test_a_short_episode_in_which_nothing_was_brought_about_is_no_progress() -> None:
    assert reason_of_failure(STEP_LIMIT, 200, []) == "stall"
    assert reason_of_failure(STEP_LIMIT, 200, every(50, EXOGENOUS, end=200)) == "stall"
    assert reason_of_failure(STEP_LIMIT, 200, every(50, OWN, end=200)) == "time"


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (SUCCESS, None),
        (NO_ACTION, "no rule"),
        (UNSTABLE, "physics"),
        (SETTLED, "stall"),
        (TERMINATED, "terminated"),
        ("on fire", "terminated"),
    ],
)
def test_other_ends_speak_for_themselves(outcome: str, reason: str | None) -> None:
    assert reason_of_failure(outcome, LIMIT, []) == reason
