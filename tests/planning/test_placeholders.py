"""Policies for actions that make new objects: placeholders say no more than is true, and policies lead to the goal."""

from __future__ import annotations

import random

import pytest
from exact_fond import all_actions, has_policy

from bilevel.planning.fond import fond
from bilevel.planning.placeholders import Finite, remember_newest
from bilevel.planning.planner import Deadline, NoModel
from bilevel.planning.planners import PlannedPolicy
from bilevel.planning.strong_cyclic import PolicyKind, check_policy, is_proved
from bilevel.symbolic.axioms import successors
from bilevel.symbolic.domain import Action, Domain, Facts, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.semantics import (
    bind_outcome,
    ground_action,
    natures_choices,
    progress,
    substitute_all,
)
from bilevel.tabletop.problems import gacha_problem, shipped_domain

GACHA = shipped_domain("gacha")

# A workshop, where one action makes two things at once, another one of them, and a thing outlives its maker's next one.
WORKSHOP = """(define (domain workshop) (:requirements :strips :typing :non-deterministic)
  (:types part lid pot)
  (:predicates (idle) (busy) (loose ?p - part) (fits ?l - lid ?p - part) (kept ?p - part)
    (in ?p - part ?q - pot) (full))
  (:action cast :parameters () :precondition (idle)
    :effect (and (not (idle)) (busy) (exists (?p - part ?l - lid) (and (new ?p) (new ?l) (loose ?p)
      (oneof (fits ?l ?p) (and))))))
  (:action mend :parameters (?p - part) :precondition (and (busy) (loose ?p))
    :effect (exists (?l - lid) (and (new ?l) (fits ?l ?p))))
  (:action close :parameters (?p - part ?l - lid ?q - pot) :precondition (and (loose ?p) (fits ?l ?p) (busy))
    :effect (and (not (busy)) (idle) (not (loose ?p)) (in ?p ?q)))
  (:action clear :parameters () :precondition (busy) :effect (and (not (busy)) (idle)))
  (:action finish :parameters (?p - part ?q - pot) :precondition (and (in ?p ?q) (idle)) :effect (full)))"""
SHOP = """(define (problem shop) (:domain workshop) (:objects old - part cup - pot)
  (:init (idle) (loose old)) (:goal (full)))"""


def workshop(domain: str = WORKSHOP, problem: str = SHOP) -> tuple[Domain, Problem]:
    read = parse_domain(domain)
    return read, parse_problem(problem, read)


def gacha(size: int) -> tuple[Domain, Problem]:
    return GACHA, gacha_problem(size, random.Random(size))


CASES = {"gacha": gacha(1), "gacha with two colours": gacha(2), "workshop": workshop()}


class Run:
    """A run of a domain as it is written, in which nature makes objects, at random."""

    def __init__(self, domain: Domain, problem: Problem, seed: int) -> None:
        self.domain, self.rng = domain, random.Random(seed)
        self.state, self.objects = problem.state, problem.all_objects(domain)
        self.made: list[str] = []  # by the last action

    def do(self, action: Action) -> None:
        grounded = ground_action(self.domain, action, self.objects)
        assert grounded.condition.holds(self.state), action
        outcome = self.rng.choice(grounded.outcomes)
        choice = self.rng.choice(list(natures_choices(outcome, self.domain, self.objects)))
        types = {variable.name: variable.type for variable in outcome.chosen}
        self.made = [choice[variable.name] for variable in outcome.chosen if variable.name in outcome.new]
        self.objects |= {choice[name]: types[name] for name in choice if choice[name] in self.made}
        self.state = progress(self.state, bind_outcome(outcome, choice))

    def possible(self) -> list[Action]:
        here = Problem("here", self.domain.name, self.objects, self.state, frozenset())
        return [each.action for each in all_actions(self.domain, here) if each.condition.holds(self.state)]


def stood_for(run: Run, roles: dict[str, str], finite: Finite) -> Facts:
    """The state of a run less all facts about objects that are neither the problem's nor stood for."""
    names = {name: role for role, name in roles.items()}
    known = {*finite.problem.all_objects(finite.domain)}
    renamed = substitute_all(run.state, names)
    return frozenset(atom for atom in renamed if known.issuperset(atom.terms))


@pytest.mark.parametrize("case", CASES)
def test_a_run_less_what_is_forgotten_is_a_run_with_placeholders(case: str) -> None:
    domain, problem = CASES[case]
    finite = remember_newest(domain, problem)
    objects = finite.problem.all_objects(finite.domain)
    made = 0
    for seed in range(20):
        run, roles = Run(domain, problem, seed), dict[str, str]()
        for _ in range(30):
            names = {name: role for role, name in roles.items()}
            actions = [a for a in run.possible() if {names.get(name, name) for name in a.arguments} <= objects.keys()]
            if not actions:
                break
            before, action = stood_for(run, roles, finite), run.rng.choice(actions)
            told = ground_action(finite.domain, Action(action.name, tuple(names.get(n, n) for n in action.arguments)))
            assert told.condition.holds(before)
            run.do(action)
            makers = [place for place in finite.placeholders if place.maker == action.name]
            for name in run.made:
                place = next(place for place in makers if place.type == run.objects[name])
                roles[place.name] = name
            made += len(run.made)
            assert stood_for(run, roles, finite) in set(successors(before, told, finite.domain, objects))
    assert made > 20


@pytest.mark.parametrize("case", CASES)
def test_policies_are_strong_cyclic_and_there_is_one_where_the_definition_says_so(case: str) -> None:
    domain, problem = CASES[case]
    policy = fond(domain, problem, 60).policy
    assert policy is not None
    assert check_policy(domain, problem, policy.choose).kind is PolicyKind.STRONG_CYCLIC
    assert is_proved(domain, problem, policy, Deadline(60))
    finite = remember_newest(domain, problem)
    assert has_policy(finite.domain, finite.problem)


@pytest.mark.parametrize("case", CASES)
def test_policies_are_followed_to_the_goal_among_objects_that_are_made(case: str) -> None:
    domain, problem = CASES[case]
    for seed in range(20):
        run = Run(domain, problem, seed)
        policy = PlannedPolicy(domain, fond, replan=False, time_limit=60)
        policy.reset(run.state, problem.goal, run.objects)
        for _ in range(500):
            if problem.goal <= run.state:
                break
            policy.declare(run.objects)
            action = policy.choose(run.state, problem.goal)
            assert action is not None, policy.failure
            assert not any(name.startswith("new-") for name in action.arguments)
            run.do(action)
        assert problem.goal <= run.state
        assert policy.plans == 1


NEEDS_TWO = WORKSHOP.replace(
    ":parameters (?p - part ?q - pot) :precondition (and (in ?p ?q) (idle))",
    ":parameters (?p ?r - part ?q - pot) :precondition (and (in ?p ?q) (in ?r ?q) (not (= ?p ?r)) (idle))",
)
NO_CHOICE = WORKSHOP.replace(
    ":action clear :parameters () :precondition (busy)", ":action clear :parameters (?p - part) :precondition (busy)"
)
ANY_PART = WORKSHOP.replace(":effect (full)", ":effect (and (full) (exists (?r - part) (kept ?r)))")


@pytest.mark.parametrize(
    ("domain", "reason"),
    [
        (NEEDS_TWO, "no strong-cyclic policy exists that remembers of new objects only the last"),
        (NO_CHOICE, "'clear' asks nothing of its part, which may not be there yet"),
        (ANY_PART, "in 'finish' nature may choose any part, whenever it was made"),
    ],
)
def test_where_placeholders_would_say_too_little_there_is_no_model(domain: str, reason: str) -> None:
    with pytest.raises(NoModel, match=reason):
        fond(*workshop(domain, SHOP.replace("(loose old)", "")), 60)
