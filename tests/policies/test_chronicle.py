"""Chronicles: what was seen and done, step by step, whatever an earlier episode left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from bilevel.policies.chronicle import Chronicle
from bilevel.policies.policies import BilevelPolicy
from bilevel.policies.rollout import Moment
from bilevel.symbolic.domain import Action, Atom, Facts

PICK, PLACE = Action("pick", ("block1",)), Action("place", ("block1", "place1"))
HERE, THERE = frozenset({Atom("here")}), frozenset({Atom("there")})


def kept(*steps: tuple[Facts, Action | None], before: Action | None = None) -> Chronicle:
    """The chronicle of these states and actions; `before` is left from an earlier episode."""
    policy = SimpleNamespace(state=THERE, action=before)
    chronicle = Chronicle(cast(BilevelPolicy, policy))
    for number, (state, action) in enumerate(steps):
        policy.state, policy.action = frozenset(list(state)), action  # equal, but not the very same
        chronicle(cast(Moment, SimpleNamespace(info={"events": (f"teleport block{number}", "lost block9")})))
    return chronicle


def test_it_counts_the_steps_of_each_action() -> None:
    other = Action("pick", ("block2",))
    assert kept((HERE, PICK), (HERE, PICK), (THERE, PLACE), (HERE, PICK)).durations() == {"pick": [2, 1], "place": [1]}
    assert kept((HERE, PICK), (HERE, other), (HERE, other)).durations() == {"pick": [1, 2]}
    assert kept((HERE, PICK), (THERE, PICK)).durations() == {"pick": [2]}
    assert kept().durations() == {}


def test_it_does_not_mind_an_earlier_episode() -> None:
    assert kept((HERE, PICK), (THERE, PLACE), before=PLACE).durations() == {"pick": [1], "place": [1]}
    assert kept((HERE, PLACE), (HERE, PLACE), before=PLACE).durations() == {"place": [2]}


def test_it_counts_events_by_kind() -> None:
    assert kept((HERE, PICK), (THERE, PICK)).events() == {"teleport": 2, "lost": 2}


def test_runs_are_of_equal_states_and_end_with_what_was_seen_last() -> None:
    chronicle = kept((HERE, PICK), (HERE, PLACE), (THERE, PICK))
    chronicle.finish(THERE, ("arrival block2",))
    runs = [(run.state, run.action, run.start, run.length) for run in chronicle.runs()]
    assert runs == [(HERE, PLACE, 0, 2), (THERE, PICK, 2, 1)]
    assert [moment for moment, _ in chronicle.runs()[1].events] == [2, 2, 3]
