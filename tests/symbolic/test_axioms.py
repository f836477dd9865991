"""Derived predicates: what follows from facts, wherever facts are read, changed, planned with and learned from."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from slow_axioms import (
    BASIC,
    OBJECTS,
    Axiom,
    derived,
    domain_text,
    levels,
    random_actions,
    random_axioms,
    random_facts,
)

from bilevel.planning.fond import fond
from bilevel.planning.planner import Status
from bilevel.planning.planners import bounded_plan, plan
from bilevel.planning.search import search
from bilevel.planning.strong_cyclic import PolicyKind, check_policy
from bilevel.rule_learning.problems import learn_from_problems
from bilevel.rules.learning import learn_rules
from bilevel.rules.matching import matches_in_order
from bilevel.rules.solving import solve
from bilevel.rules.state_graph import groundings
from bilevel.rules.traces import traces_from_problems, traces_from_states
from bilevel.rules.verify import Answer, verify
from bilevel.symbolic.axioms import close, outcome_in, successors
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_domain, write_problem
from bilevel.symbolic.plans import Plan, validate
from bilevel.symbolic.semantics import Condition, GroundAction, ground_action, progress, regress

TOWERS = """(define (domain towers) (:types block)
  (:predicates (on ?x ?y - block) (on-table ?x - block) (holding ?x - block)
    (clear ?x - block) (above ?x ?y - block) (arm-empty))
  (:derived (clear ?x - block) (and (not (holding ?x)) (forall (?y - block) (not (on ?y ?x)))))
  (:derived (above ?x ?y - block) (or (on ?x ?y) (exists (?z - block) (and (on ?x ?z) (above ?z ?y)))))
  (:derived (arm-empty) (not (exists (?x - block) (holding ?x))))
  (:action pickup :parameters (?x - block) :precondition (and (clear ?x) (on-table ?x) (arm-empty))
    :effect (and (holding ?x) (not (on-table ?x))))
  (:action putdown :parameters (?x - block) :precondition (holding ?x)
    :effect (and (on-table ?x) (not (holding ?x))))
  (:action stack :parameters (?x ?y - block) :precondition (and (holding ?x) (clear ?y))
    :effect (and (on ?x ?y) (not (holding ?x))))
  (:action unstack :parameters (?x ?y - block) :precondition (and (on ?x ?y) (clear ?x) (arm-empty))
    :effect (and (holding ?x) (not (on ?x ?y)))))"""
SEEDS = given(st.integers(0, 10**9))


def towers(domain: Domain, blocks: int, goal: str, seed: int) -> Problem:
    """A problem with a random heap of blocks, and a goal about two of them, b0 and b1."""
    rng, facts, tops = random.Random(seed), list[str](), list[str]()
    for block in rng.sample(range(blocks), blocks):
        place = rng.randrange(len(tops) + 1)
        facts.append(f"(on b{block} {tops[place]})" if place < len(tops) else f"(on-table b{block})")
        tops[place : place + 1] = [f"b{block}"]
    names = " ".join(f"b{number}" for number in range(blocks))
    return parse_problem(
        f"(define (problem p) (:domain towers) (:objects {names} - block) (:init {' '.join(facts)}) (:goal {goal}))",
        domain,
    )


@settings(max_examples=300, deadline=None)
@SEEDS
def test_what_follows_is_what_the_definition_says(seed: int) -> None:
    rng = random.Random(seed)
    axioms, facts = random_axioms(rng), random_facts(rng)
    assume(levels(axioms) is not None)
    domain = understood(axioms)
    assert parse_domain(write_domain(domain)) == domain
    closed = close(facts, domain, OBJECTS)
    assert {fact for fact in closed if "@" not in fact.predicate} == derived(axioms, facts)
    assert close(closed, domain, OBJECTS) == closed


def understood(axioms: Sequence[Axiom], actions: Sequence[str] = ()) -> Domain:
    """The domain; one is refused in which all objects have a property if all objects have it."""
    try:
        return parse_domain(domain_text(axioms, actions))
    except BadInput as error:
        assume("follows from its own absence" not in str(error))
        raise


def drawn(seed: int) -> tuple[random.Random, Domain, Facts]:
    """A random domain with actions, and a state of it."""
    rng = random.Random(seed)
    axioms, actions, facts = random_axioms(rng), random_actions(rng), random_facts(rng)
    assume(levels(axioms) is not None)
    domain = understood(axioms, actions)
    return rng, domain, close(facts, domain, OBJECTS)


def applicable(domain: Domain, state: Facts) -> Iterator[GroundAction]:
    every = groundings(domain.schemas.values(), domain, OBJECTS)
    return (action for action in every if action.condition.holds(state))


@settings(max_examples=200, deadline=None)
@SEEDS
def test_actions_bring_what_follows_and_regression_says_why(seed: int) -> None:
    rng, domain, state = drawn(seed)
    for action in applicable(domain, state):
        outcome = outcome_in(state, action.outcomes[0], domain, OBJECTS)
        after = progress(state, outcome)
        assert after == close(progress(state, action.outcomes[0]), domain, OBJECTS)
        assert explained(domain, state, after)
        wanted = frozenset(fact for fact in after if rng.random() < 0.3)
        before = regress(Condition(wanted), action, outcome)
        assert before is not None
        assert before.holds(state)


def explained(domain: Domain, state: Facts, after: Facts) -> bool:
    return after == state or bool(traces_from_states(domain, [state, after], [after, after], OBJECTS).traces)


@settings(max_examples=100, deadline=None)
@SEEDS
def test_the_search_finds_a_plan_where_there_is_one(seed: int) -> None:
    rng, domain, first = drawn(seed)
    goal = frozenset(fact for fact in close(random_facts(rng), domain, OBJECTS) if rng.random() < 0.3)
    states = [first]
    for state in states:  # grows while it is read
        assume(len(states) < 300)
        new = {after for a in applicable(domain, state) for after in successors(state, a, domain, OBJECTS)}
        states += sorted(new - {*states}, key=sorted)
    objects = {name: kind for name, kind in OBJECTS.items() if name not in domain.constants}
    problem = Problem("p", "d", objects, first, goal)
    assert parse_problem(write_problem(problem, domain), domain) == problem
    result = search(domain, problem, 60)
    assert (result.plan is not None) == any(goal <= state for state in states)
    if result.plan is not None:
        assert validate(domain, problem, Plan(result.plan)).is_valid


@pytest.mark.parametrize("planner", ["search", "lama"])
def test_planners_achieve_goals_that_follow(planner: str) -> None:
    domain = parse_domain(TOWERS)
    problem = towers(domain, 5, "(and (above b0 b1) (clear b0) (arm-empty))", seed=3)
    result = plan(domain, problem, planner=planner, time_limit=60)
    assert result.plan
    assert validate(domain, problem, Plan(result.plan)).is_valid
    assert "above" in validate(domain, problem, Plan(result.plan[:-1])).fault


@pytest.mark.parametrize("goal", ["(clear b0)", "(above b0 b1)"])
def test_rules_are_learned_verified_and_solve_larger_problems(goal: str) -> None:
    domain = parse_domain(TOWERS)
    training = [towers(domain, blocks, goal, seed) for blocks in (2, 3, 4) for seed in range(4)]
    found = learn_from_problems(domain, training)
    assert not found.unsolved
    assert all(verify(found.rules, domain, problem).answer is Answer.SOLVED for problem in training)
    for seed in range(5):
        problem = towers(domain, 12, goal, seed)
        solution = solve(domain, problem, found.rules, commit=False)
        assert validate(domain, problem, solution.plan).is_valid
        state, objects = problem.state, problem.all_objects(domain)
        for action in solution.plan.actions:
            assert next(matches_in_order(found.rules, domain, state, problem.goal, objects)).action == action
            (state,) = successors(state, ground_action(domain, action), domain, objects)


def test_rules_are_learned_from_plans_for_goals_that_follow() -> None:
    domain = parse_domain(TOWERS)
    training = [towers(domain, 3, "(above b0 b1)", seed) for seed in range(10)]
    rules = learn_rules(traces_from_problems(domain, training, bounded_plan).traces, domain)
    assert all(solve(domain, problem, rules).is_solved for problem in training)


def test_policies_count_on_what_follows() -> None:
    domain = parse_domain(
        """(define (domain coins) (:types coin) (:predicates (heads ?c - coin) (won))
          (:derived (won) (forall (?c - coin) (heads ?c)))
          (:action flip :parameters (?c - coin) :precondition (not (won))
            :effect (oneof (heads ?c) (not (heads ?c)))))"""
    )
    problem = parse_problem(
        "(define (problem p) (:domain coins) (:objects a b - coin) (:init (heads a)) (:goal (won)))", domain
    )
    result = fond(domain, problem, 60)
    assert result.status is Status.SOLVED
    assert result.policy is not None
    assert check_policy(domain, problem, result.policy.choose).kind is PolicyKind.STRONG_CYCLIC


@pytest.mark.parametrize(
    ("axiom", "effect", "place", "message"),
    [
        ("(:derived (e) (q ?x))", "(q ?x)", "3:13", "takes 1 arguments, not 0"),
        ("(:derived (e ?x) (q ?y))", "(q ?x)", "3:23", "unbound variable '[?]y'"),
        ("(:derived (e ?x))", "(q ?x)", "3:3", "expected '[(]:derived"),
        ("(:derived (g ?x) (q ?x))", "(q ?x)", "3:14", "undeclared predicate 'g'"),
        ("(:derived (e ?x ?y) (q ?x))", "(q ?x)", "3:13", "takes 1 arguments, not 2"),
        ("(:derived (e ?x) (exists (?y - cop) (q ?y)))", "(q ?x)", "3:34", "unknown type 'cop'"),
        ("(:derived (e ?x) (not (e ?x)))", "(q ?x)", "3:3", "'e' follows from its own absence"),
        ("(:derived (e ?x) (q ?x))", "(e ?x)", "4:47", "'e' is derived"),
        ("(:derived (e ?x) (q ?x))", "(exists (?y - cup) (new ?y))", "4:66", "cannot make new objects"),
        ("(:derived (e ?x) (q ?x))", "(not (e ?x))", "4:52", "'e' is derived"),
    ],
)
def test_mistakes_are_named_with_their_place(axiom: str, effect: str, place: str, message: str) -> None:
    text = f"""(define (domain d) (:types cup)
  (:predicates (q ?x) (e ?x))
  {axiom}
  (:action one :parameters (?x - cup) :effect {effect}))"""
    with pytest.raises(BadInput, match=f"<domain>:{place}: .*{message}"):
        parse_domain(text)


def test_a_problem_does_not_say_what_follows() -> None:
    domain = parse_domain(TOWERS)
    with pytest.raises(BadInput, match=r"<problem>:1:\d+: 'clear' is derived"):
        parse_problem(
            "(define (problem p) (:domain towers) (:objects a - block) (:init (clear a)) (:goal (clear a)))", domain
        )


def test_nothing_is_derived_without_axioms() -> None:
    domain = parse_domain(domain_text([]))
    facts = frozenset({Atom(name, ("a",) * arity) for name, arity in BASIC.items()})
    assert close(facts, domain, OBJECTS) is facts
    assert not domain.derived
