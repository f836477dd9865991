"""The checker against policies whose faults are known, and against what the definitions say of random ones."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import pytest
from fond_problems import random_problem

from bilevel.planning.fond import fond
from bilevel.planning.planner import ContingentPolicy, Deadline, Decision
from bilevel.planning.strong_cyclic import PolicyKind, check_policy, is_proved
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Outcome, Predicate, Problem, Schema
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.semantics import Condition

# A coin is flipped until it shows heads; pushing it may make it roll away for ever.
COINS = parse_domain(
    """(define (domain coins) (:requirements :typing :non-deterministic :negative-preconditions) (:types coin)
       (:predicates (heads ?c - coin) (tails ?c - coin) (lost) (rich))
       (:action flip :parameters (?c - coin) :precondition (and (tails ?c) (not (lost)))
         :effect (oneof (and (heads ?c) (not (tails ?c))) (and)))
       (:action push :parameters (?c - coin) :precondition (tails ?c)
         :effect (and (not (tails ?c)) (oneof (heads ?c) (lost))))
       (:action wait :parameters () :precondition () :effect (and))
       (:action win :parameters (?c - coin) :precondition (heads ?c) :effect (rich)))""",
    "coins",
)
ONE_COIN = parse_problem(
    "(define (problem one) (:domain coins) (:objects penny - coin) (:init (tails penny)) (:goal (rich)))", COINS, "one"
)

HEADS, TAILS, LOST = Atom("heads", ("penny",)), Atom("tails", ("penny",)), Atom("lost")
FLIP, PUSH, WIN = (Action(name, ("penny",)) for name in ("flip", "push", "win"))
WAIT = Action("wait")


def decision(positive: Iterable[Atom], action: Action, distance: int, negative: Iterable[Atom] = ()) -> Decision:
    return Decision(Condition(frozenset(positive), frozenset(negative)), action, distance)


FLIPPING = ContingentPolicy((decision([HEADS], WIN, 1), decision([TAILS], FLIP, 2, negative=[LOST])))
PUSHING = ContingentPolicy((decision([HEADS], WIN, 1), decision([TAILS], PUSH, 2)))
WAITING = ContingentPolicy((*PUSHING.decisions, decision([LOST], WAIT, 9)))


def test_a_cycle_that_can_be_left_is_fine() -> None:
    verdict = check_policy(COINS, ONE_COIN, FLIPPING.choose)
    assert verdict.kind is PolicyKind.STRONG_CYCLIC
    assert str(verdict) == "checked: strong-cyclic, 3 reachable states"
    graph, start, shown, rich = verdict.graph, ONE_COIN.state, frozenset({HEADS}), frozenset({HEADS, Atom("rich")})
    assert graph.choices == {start: ((FLIP, (shown, start)),), shown: ((WIN, (rich,)),), rich: ()}
    assert (graph.goals, graph.path(rich)) == ({rich}, [start, shown, rich])


@pytest.mark.parametrize(
    ("policy", "kind", "text"),
    [
        (ContingentPolicy(()), PolicyKind.NOT_CLOSED, "at the start: the policy has no action"),
        (PUSHING, PolicyKind.NOT_CLOSED, "after push(penny): the policy has no action"),
        (WAITING, PolicyKind.NOT_PROPER, "after push(penny): the goal is out of reach for ever"),
        (
            ContingentPolicy((decision([], WIN, 1),)),
            PolicyKind.NOT_CLOSED,
            "at the start: action 'win(penny)' cannot be done: heads(penny) does not hold",
        ),
    ],
)
def test_counterexamples(policy: ContingentPolicy, kind: PolicyKind, text: str) -> None:
    verdict = check_policy(COINS, ONE_COIN, policy.choose)
    assert (verdict.kind, verdict.reason) == (kind, text)
    assert str(verdict) == f"not strong-cyclic: {text}"


def test_it_gives_up_and_says_so() -> None:
    verdict = check_policy(COINS, ONE_COIN, FLIPPING.choose, max_states=1)
    assert (verdict.kind, str(verdict)) == (PolicyKind.UNKNOWN, "not checked: there are more than 1 reachable states")
    assert (len(verdict.graph.choices), len(verdict.graph.parents), verdict.graph.complete) == (1, 2, False)


# --- Random policies over states of three bits: by the definitions, with sets of all runs.

BITS = [Atom("b", (str(i),)) for i in range(3)]


def random_world(rng: random.Random) -> tuple[Domain, Problem, dict[Facts, Action]]:
    """Actions without precondition, each with two outcomes that set and clear bits; a policy for most states."""

    def some() -> Facts:
        return frozenset(atom for atom in BITS if rng.random() < 0.4)

    schemas = {
        name: Schema(name, (), frozenset(), (Outcome(some(), some()), Outcome(some(), some()))) for name in "uvwxyz"
    }
    objects = {str(i): "object" for i in range(3)}
    problem = Problem("p", "d", objects, some(), some() or frozenset({BITS[0]}))
    states = [frozenset(a for a, held in zip(BITS, held, strict=True) if held) for held in product((0, 1), repeat=3)]
    table = {state: Action(rng.choice(list(schemas))) for state in states if rng.random() < 0.9}
    return Domain("d", {"b": Predicate("b")}, schemas), problem, table


def is_strong_cyclic(domain: Domain, problem: Problem, table: dict[Facts, Action]) -> bool:
    def after(state: Facts) -> set[Facts]:
        if problem.goal <= state or state not in table:
            return set()
        return {(state - o.delete) | o.add for o in domain.schemas[table[state].name].outcomes}

    def reachable(state: Facts) -> set[Facts]:
        found = {state}
        for _ in range(8):
            found |= {s for one in found for s in after(one)}
        return found

    states = reachable(problem.state)
    closed = all(problem.goal <= state or state in table for state in states)
    return closed and all(any(problem.goal <= end for end in reachable(state)) for state in states)


def test_random_policies_are_judged_as_the_definition_does() -> None:
    answers = []
    for seed in range(1000):
        domain, problem, table = random_world(random.Random(seed))
        answers.append(is_strong_cyclic(domain, problem, table))
        assert (check_policy(domain, problem, table.get).kind is PolicyKind.STRONG_CYCLIC) == answers[-1], seed
    assert 100 < sum(answers) < 900  # neither answer is rare


def test_a_cycle_that_can_be_left_is_proved() -> None:
    assert is_proved(COINS, ONE_COIN, FLIPPING, Deadline(60))
    assert is_proved(COINS, replace(ONE_COIN, goal=ONE_COIN.state), ContingentPolicy(()), Deadline(60))


def test_whatever_is_proved_is_strong_cyclic() -> None:
    rng = random.Random(1)
    wrong = 0
    for seed in range(200):
        domain, problem = random_problem(seed)
        policy = fond(domain, problem, 60).policy
        for _ in range(5 if policy and policy.decisions else 0):
            assert policy is not None
            spoilt = _spoilt(policy, rng)
            verdict = check_policy(domain, problem, spoilt.choose)
            wrong += verdict.kind is not PolicyKind.STRONG_CYCLIC
            if is_proved(domain, problem, spoilt, Deadline(60)):
                assert verdict.kind is PolicyKind.STRONG_CYCLIC, seed
    assert wrong > 50


def _spoilt(policy: ContingentPolicy, rng: random.Random) -> ContingentPolicy:
    """The policy with some decision left out, or made to apply more often, or swapped with another's action."""
    decisions = list(policy.decisions)
    index = rng.randrange(len(decisions))
    spoilt = decisions.pop(index)
    match rng.randrange(3):
        case 0:
            weaker = frozenset(sorted(spoilt.condition.positive)[1:])
            decisions.insert(index, replace(spoilt, condition=Condition(weaker, spoilt.condition.negative)))
        case 1:
            decisions.insert(index, replace(spoilt, action=rng.choice(policy.decisions).action))
    return ContingentPolicy(tuple(decisions))
