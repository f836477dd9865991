"""Compiled actions and goals against the definition of ADL, on random domains."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from slow_adl import ARITIES, CONSTANTS, OBJECTS, TYPES, RandomAdl, fitting, holds, successors, written

from bilevel.symbolic import axioms
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Problem
from bilevel.symbolic.pddl import parse_for_planning, users_action
from bilevel.symbolic.semantics import ground, is_solved


def texts(actions: list[list[object]], state: Facts, goal: list[object]) -> tuple[str, str]:
    predicates = " ".join(f"({n} {' '.join(f'?{i}' for i in range(arity))})" for n, arity in ARITIES.items())
    declared = " ".join(f"{name} - {kind}" for name, kind in CONSTANTS.items())
    domain = f"(define (domain d) (:types {' '.join(TYPES)}) (:constants {declared}) (:predicates {predicates})"
    objects = " ".join(f"{name} - {kind}" for name, kind in OBJECTS.items())
    facts = " ".join(written([atom.predicate, *atom.terms]) for atom in sorted(state))
    problem = f"(define (problem p) (:domain d) (:objects {objects}) (:init {facts}) (:goal {written(goal)}))"
    return f"{domain} {' '.join(map(written, actions))})", problem


def compiled_successors(domain: Domain, problem: Problem, state: Facts) -> dict[Action, set[frozenset[Facts]]]:
    """For each action in the user's words what its cases that apply lead to."""
    found: dict[Action, set[frozenset[Facts]]] = {}
    objects = problem.all_objects(domain)
    for schema in domain.schemas.values():
        for arguments in product(*(fitting(parameter.type) for parameter in schema.parameters)):
            action = ground(schema, arguments)
            name = users_action(Action(schema.name, arguments))
            if action is not None and action.condition.holds(state):
                after = frozenset(axioms.successors(state, action, domain, objects))
                found.setdefault(name, set()).add(after)
    return found


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_compiled_actions_lead_where_the_definition_says(seed: int) -> None:
    draw = RandomAdl(seed)
    actions = [draw.action(name) for name in ("one", "two", "three")]
    first = draw.state()
    goal = draw.condition(["a", "b", "c"], 3)
    try:
        domain, problem = parse_for_planning(*texts(actions, first, goal))
    except BadInput:  # as the goal leaves a choice
        goal = ["p"]
        domain, problem = parse_for_planning(*texts(actions, first, goal))
    changing = ARITIES.keys() - domain.static
    fixed = {atom for atom in first if atom.predicate not in changing}
    for _ in range(5):
        state = frozenset(atom for atom in draw.state() if atom.predicate in changing) | fixed
        expected: dict[Action, set[frozenset[Facts]]] = {}
        for action in actions:
            kinds = action[3][2::3]
            for arguments in product(*map(fitting, kinds)):
                after = successors(action, arguments, state)
                if after is not None:
                    expected.setdefault(Action(action[1], arguments), set()).add(after)
        assert compiled_successors(domain, problem, state) == expected
        assert is_solved(problem, state) == holds(goal, {}, state)
