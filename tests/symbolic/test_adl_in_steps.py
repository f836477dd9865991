"""Actions with too many cases, and goals with a choice, done in steps of our own: against the definition of ADL."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from slow_adl import RandomAdl, fitting, holds, successors
from test_adl_against_definition import texts

from bilevel.symbolic import expressions, semantics
from bilevel.symbolic.adl import MET, compile_adl
from bilevel.symbolic.adl_actions import DUE, is_own, users_action
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Problem
from bilevel.symbolic.semantics import GroundAction, applicable, ground


def steps(domain: Domain, own: bool) -> Iterator[GroundAction]:
    """All ground actions of the user's, or all steps of ours."""
    for schema in domain.schemas.values():
        if is_own(schema.name) is own:
            for arguments in product(*(fitting(parameter.type) for parameter in schema.parameters)):
                action = ground(schema, arguments)
                if action is not None:
                    yield action


def ends(domain: Domain, problem: Problem, state: Facts) -> set[Facts]:
    """The states in which what is due has been done, in the words of the user's domain."""
    if DUE not in state:
        return {frozenset(fact for fact in state if ":" not in fact.predicate)}
    objects = problem.all_objects(domain)
    due = [action for action in steps(domain, own=True) if applicable(state, action)]
    found = []
    for action in due:
        after = semantics.successors(state, action, domain, objects)
        found.append(set[Facts]().union(*(ends(domain, problem, one) for one in after)))
    assert found  # some case applies
    assert all(each == found[0] for each in found)
    return found[0]


def test_two_steps_lead_where_the_definition_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MOST_CASES", 4)
    compared = 0
    for seed in range(400):
        draw = RandomAdl(seed)
        action, state = draw.action("one"), draw.state()
        terms = [*action[3][::3], "a"]
        action[5], choice = draw.condition(terms, 1), ["oneof", *(draw.effect(terms, 2) for _ in range(3))]
        action[7] = ["and", draw.effect(terms, 1), choice]
        try:
            domain, problem = compile_adl(*texts([action], state, ["p"]), in_steps=True)
        except BadInput:  # too much even so
            continue
        if not any(map(is_own, domain.schemas)):
            continue
        objects = problem.all_objects(domain)
        found: dict[Action, set[Facts]] = {}
        for first in steps(domain, own=False):
            if applicable(state, first):
                after = semantics.successors(state, first, domain, objects)
                lasting = set[Facts]().union(*(ends(domain, problem, one) for one in after))
                found[users_action(first.action)] = lasting
        expected = {}
        for arguments in product(*map(fitting, action[3][2::3])):
            led = successors(action, arguments, state)
            if led is not None:
                expected[Action("one", arguments)] = set(led)
        assert found == expected
        compared += bool(expected)
    assert compared > 20


def test_a_goal_with_a_choice_is_met_where_the_definition_says() -> None:
    compared = 0
    for seed in range(300):
        draw = RandomAdl(seed)
        state, goal = draw.state(), draw.condition(["a", "b", "c"], 3)
        actions = [draw.action(name) for name in ("one", "two")]  # so that not all facts are fixed
        domain, problem = compile_adl(*texts(actions, state, goal), in_steps=True)
        if problem.goal == {MET}:
            assert any(applicable(state, step) for step in steps(domain, own=True)) is holds(goal, {}, state)
            compared += 1
    assert compared > 20
