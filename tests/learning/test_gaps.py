"""Where rules had nothing to say: which problems are kept, and which traces of what was done from there."""

from __future__ import annotations

from bilevel.learning.dagger import RolloutDecision, RuleGaps, find_gaps
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.symbolic.semantics import ground_action, progress
from bilevel.tabletop.problems import shipped_domain

BLOCKS = shipped_domain("blocks")
OBJECTS = {"a": "block", "b": "block", "l": "place", "m": "place", "t": "table"}
Plan = list[tuple[str, bool]]  # actions, and whether somebody was asked for them


def facts(text: str) -> Facts:
    return frozenset(Atom(name, tuple(terms)) for name, *terms in (fact.split() for fact in text.split(", ")))


CIRCLE, GOAL = facts("at a m, at b l, gripper-free"), facts("at a l, at b m")


def action(text: str) -> Action:
    name, *arguments = text.split()
    return Action(name, tuple(arguments))


def after(state: Facts, text: str) -> Facts:
    return progress(state, ground_action(BLOCKS, action(text)).outcomes[0])


def gaps_of(plan: Plan, state: Facts = CIRCLE, steps: int = 8) -> RuleGaps:
    """The gaps of an episode in which every action takes so many steps."""
    decisions = []
    for text, asked in plan:
        decisions += [RolloutDecision(state, GOAL, OBJECTS, action(text), asked)] * steps
        state = after(state, text)
    return find_gaps(BLOCKS, decisions, state, GOAL)


def done(trace: Trace) -> list[str]:
    return [str(step.action.action) for step in trace.steps]


UNDONE: Plan = [("take a m", True), ("put-aside a t", True), ("take b l", True), ("place b m", False)]
REST: Plan = [("pick a", False), ("place a l", False)]


def test_every_state_without_a_rule_is_a_problem_and_its_trace_goes_up_to_the_next_goal() -> None:
    found = gaps_of(UNDONE + REST)
    assert [problem.state for problem in found.problems] == [
        CIRCLE,
        after(CIRCLE, "take a m"),
        after(after(CIRCLE, "take a m"), "put-aside a t"),
    ]
    assert all((problem.goal, problem.objects) == (GOAL, OBJECTS) for problem in found.problems)
    actions = ["take(a, m)", "put-aside(a, t)", "take(b, l)", "place(b, m)"]
    assert [done(trace) for trace in found.traces] == [actions, actions[1:], actions[2:]]


def test_what_only_looks_like_an_action_ends_the_trace() -> None:
    """The block was to be placed, and slipped out of the hand."""
    start = facts("at a m, clear l, at b l, gripper-free") - facts("at b l")
    held = after(start, "take a m")
    dropped = after(held, "put-aside a t")
    decisions = [RolloutDecision(start, GOAL, OBJECTS, action("take a m"), True)] * 8
    decisions += [RolloutDecision(held, GOAL, OBJECTS, action("place a l"), False)] * 8
    decisions += [RolloutDecision(dropped, GOAL, OBJECTS, action("pick a"), False)] * 8
    decisions += [RolloutDecision(held, GOAL, OBJECTS, action("place a l"), False)] * 8
    found = find_gaps(BLOCKS, decisions, after(held, "place a l"), GOAL)
    assert (len(found.problems), found.traces) == (1, ())
