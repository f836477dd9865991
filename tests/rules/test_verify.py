"""Single problems: solved always, a shortest counterexample of each kind, or the bound hit."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files

import pytest

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.state_graph import Situation, StateGraph
from bilevel.rules.verify import Answer, Counterexample, Ending, Verdict, verify
from bilevel.symbolic.domain import Action, Atom, BadInput, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem, read_domain

GAMES = parse_domain(
    """
    (define (domain games)
      (:requirements :strips :typing :non-deterministic)
      (:types spot coin)
      (:predicates (robot-at ?s - spot) (path ?a ?b - spot) (heads ?c - coin) (broken) (shelved ?c - coin))
      (:action move :parameters (?a ?b - spot) :precondition (and (robot-at ?a) (path ?a ?b))
        :effect (and (robot-at ?b) (not (robot-at ?a))))
      (:action flip :parameters (?c - coin) :precondition ()
        :effect (oneof (heads ?c) (and)))
      (:action hammer :parameters (?c - coin) :precondition ()
        :effect (oneof (heads ?c) (broken)))
      (:action mint :parameters () :precondition ()
        :effect (exists (?c - coin) (and (new ?c) (heads ?c))))
      (:action shelve :parameters (?c - coin) :precondition (heads ?c) :effect (shelved ?c)))
    """
)
GOAL_HEADS = frozenset({Atom("heads", ("c",))})


def rules(text: str) -> tuple[Rule, ...]:
    return parse_rules("variables: ?a - spot, ?b - spot, ?s - spot, ?c - coin, ?d - coin\n" + text)


def game(state: str, goal: str) -> Problem:
    text = (
        f"(define (problem p) (:domain games) (:objects s1 s2 s3 - spot c - coin) (:init {state}) (:goal (and {goal})))"
    )
    return parse_problem(text, GAMES)


def refuted(verdict: Verdict) -> Counterexample:
    assert verdict.answer is Answer.REFUTED
    assert verdict.counterexample is not None
    return verdict.counterexample


def test_a_risk_that_may_end_in_a_state_without_a_rule_is_a_counterexample() -> None:
    policy = rules("1: not broken() & goal heads(?c) -> hammer(?c)")
    found = refuted(verify(policy, GAMES, game("", "(heads c)")))
    assert found.ending is Ending.NO_RULE
    assert [(step.action, step.outcome.add) for step in found.steps] == [
        (Action("hammer", ("c",)), frozenset({Atom("broken")}))
    ]
    assert found.state == {Atom("broken")}
    assert found.missed == GOAL_HEADS


def test_a_rule_whose_action_cannot_be_done_is_a_counterexample() -> None:
    found = refuted(verify(rules("1: goal shelved(?c) -> shelve(?c)"), GAMES, game("", "(shelved c)")))
    assert found.ending is Ending.NOT_APPLICABLE
    assert found.refused == Action("shelve", ("c",))
    assert found.steps == ()


def test_objects_that_still_matter_pile_up_until_the_bound_is_hit() -> None:
    policy = rules("1: goal shelved(?c) -> mint()")  # every coin could still be shelved
    verdict = verify(policy, GAMES, game("", "(shelved c)"), max_states=20)
    assert (verdict.answer, verdict.explored) == (Answer.BOUND_HIT, 20)
    assert "nothing found so far" in str(verdict)


def test_a_stop_within_the_bound_is_found_where_states_never_end() -> None:
    policy = rules(
        """1: broken() & goal robot-at(?a) & goal heads(?c) -> mint()
        2: not broken() & goal heads(?c) -> hammer(?c)"""
    )
    found = refuted(verify(policy, GAMES, game("", "(heads c) (robot-at s1)"), max_states=20))
    assert found.ending is Ending.NO_RULE
    assert found.missed == {Atom("robot-at", ("s1",))}


def test_rules_of_another_domain_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown predicate 'tails'"):
        verify(rules("1: tails(?c) & goal heads(?c) -> flip(?c)"), GAMES, game("", "(heads c)"))


# Objects made by nature

GACHA = read_domain(str(files("bilevel.tabletop") / "worlds" / "gacha.pddl"))
BOX = {"red": "colour", "blue": "colour", "tray1": "tray", "tray2": "tray", "box": "box", "button": "button"}
TRAYS = frozenset({Atom("tray-colour", ("tray1", "red")), Atom("tray-colour", ("tray2", "blue"))})
EMPTY = TRAYS | {Atom("clear", ("box",)), Atom("closed", ("box",)), Atom("gripper-free")}


def situation(graph: StateGraph, *facts: Atom) -> Situation:
    """What is left of a situation with these facts, too."""
    blocks = sorted({term for fact in facts for term in fact.terms if term.startswith("block")})
    made = tuple((name, "block") for name in blocks)
    return graph.situations[graph.number(Situation(EMPTY | set(facts), made))]


def colour(block: str, name: str) -> Atom:
    return Atom("colour-of", (block, name))


def test_made_objects_are_dropped_when_they_cannot_matter_and_renamed() -> None:
    problem = Problem("p", "gacha", BOX, EMPTY, frozenset())
    memory = parse_rules(
        "variables: ?x - block, ?c - colour, ?d - box\n1: colour-of(?x, ?c) & goal achieved-goal(?c) -> open(?d)"
    )
    graph, remembering = StateGraph(GACHA, problem), StateGraph(GACHA, problem, memory)
    put_away, inside = colour("block1", "red"), [Atom("in", (f"block{n}", "box")) for n in (4, 7)]
    assert situation(graph, put_away) == Situation(EMPTY)
    assert situation(remembering, put_away).facts == EMPTY | {put_away}
    first = situation(graph, colour("block4", "red"), colour("block7", "blue"), *inside)
    assert first == situation(graph, colour("block4", "blue"), colour("block7", "red"), *inside)
    assert first.made == (("block1", "block"), ("block2", "block"))


# Hash seeds

SCRIPT = """
from importlib.resources import files
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.verify import verify, verify_family
from bilevel.symbolic.pddl import parse_problem, read_domain
domain = read_domain(str(files("bilevel.tabletop") / "worlds" / "gacha.pddl"))
policy = parse_rules('''variables: ?x - block, ?c - colour, ?t - tray, ?d - box, ?b - button
1: colour-of(?x, ?c) & in(?x, ?d) & closed(?d) & gripper-free() & goal achieved-goal(?c) -> open(?d)
2: clear(?d) & closed(?d) & gripper-free() & goal achieved-goal(?c) -> roll(?d, ?b)
''')
text = '''(define (problem p) (:domain gacha) (:objects c1 c2 c3 - colour t1 t2 - tray d1 d2 - box b1 - button)
(:init (tray-colour t1 c1) (tray-colour t2 c2) (clear d1) (closed d1) (clear d2) (closed d2) (gripper-free))
(:goal (and (achieved-goal c1) (achieved-goal c2))))'''
problem = parse_problem(text, domain)
print(verify(policy, domain, problem))
print(verify_family(policy, domain, [problem], {"box": 2}))
"""


def test_the_answer_does_not_depend_on_the_hash_seed() -> None:
    def answer(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert "counterexample in" in answer("0")
    assert answer("0") == answer("1") == answer("2")
