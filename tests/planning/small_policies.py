"""A small nondeterministic domain with every kind of trouble in it, and policies for it."""

from __future__ import annotations

from collections.abc import Iterable

from bilevel.planning.planner import ContingentPolicy, Decision
from bilevel.symbolic.domain import Action, Atom
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
