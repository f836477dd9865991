"""A stall is noticed when nothing has come of an action for longer than any demonstration of it took, with a margin."""

from __future__ import annotations

import math

from bilevel.policies.stalls import LEAST, MANY_TIMES, MARGIN, UNKNOWN, Situation, StallWatch
from bilevel.symbolic.domain import Action, Atom, Facts

LONGEST = 40
GOAL: Facts = frozenset({Atom("done")})


def situation(*facts: str, action: str = "pick") -> Situation:
    return frozenset(map(Atom, facts)), GOAL, Action(action, ())


def watch() -> StallWatch:
    return StallWatch({"pick": LONGEST, "press": 1})


def test_an_action_may_take_several_times_as_long_as_it_ever_did() -> None:
    found = watch()
    assert found.deadline == math.inf
    assert found.enter(7, situation("a"))
    assert found.deadline == 7 + MARGIN * LONGEST
    found.enter(20, situation("b"))
    assert found.deadline == 20 + MARGIN * LONGEST


def test_short_actions_and_those_that_nobody_showed_have_a_time_of_their_own() -> None:
    found = watch()
    assert (found.patience("press"), found.patience("unheard-of")) == (LEAST, MARGIN * LONGEST)
    assert StallWatch({}).patience("pick") == UNKNOWN


def test_where_nothing_is_done_nothing_stalls() -> None:
    found = watch()
    found.enter(0, situation("a"))
    assert not found.enter(5, None)
    assert found.deadline == math.inf


def test_a_change_that_is_undone_at_once_is_none() -> None:
    found = watch()
    found.enter(0, situation("a"))
    for step in range(10, 100, 10):
        found.enter(step, situation())
        found.enter(step + 3, situation("a"))
    assert found.deadline == MARGIN * LONGEST + 9 * 3  # the steps elsewhere do not count


def test_states_that_come_again_and_again_stall_by_their_total() -> None:
    found, step, rounds = watch(), 0, 0
    while step < found.deadline:
        found.enter(step, situation("a"))
        found.enter(step + 30, situation("b"))
        step, rounds = step + 60, rounds + 1
    assert MANY_TIMES * LONGEST // 30 <= rounds <= MANY_TIMES * LONGEST // 30 + 1


def test_one_more_attempt_has_twice_the_time_until_something_is_new() -> None:
    found, patience = watch(), MARGIN * LONGEST
    found.enter(0, situation("a"))
    found.forgive(patience)
    assert found.deadline == 3 * patience
    found.forgive(3 * patience)
    assert found.deadline == 7 * patience
    found.enter(4 * patience, situation("b"))
    assert found.deadline == 5 * patience


def test_nothing_is_remembered_beyond_a_reset() -> None:
    found = watch()
    assert (found.enter(0, situation("a")), found.enter(3, situation("b")), found.enter(6, situation("a"))) == (
        True,
        True,
        False,
    )
    found.reset()
    assert found.enter(0, situation("a"))
    assert found.deadline == MARGIN * LONGEST
