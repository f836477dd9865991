"""Traces from problems, and the rules learned from them, on the package's domains and on some of the classical kind."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from notation import GOLDEN, facts

from bilevel.planning.search import search
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import domain_line, format_rules
from bilevel.rules.solving import Stop, solve
from bilevel.rules.traces import MOST_REPLANNED, GroundPlan, ProblemTraces, traces_from_problems
from bilevel.symbolic.domain import Atom, Domain, Facts, Problem
from bilevel.symbolic.pddl import parse_domain
from bilevel.symbolic.plans import validate
from bilevel.tabletop.problems import shipped_domain, training_problems


def plan_for(domain: Domain, problem: Problem) -> GroundPlan | None:
    result = search(domain, problem, time_limit=30)
    return None if result.plan is None else [step.ground(domain) for step in result.steps]


@pytest.mark.parametrize("name", ["blocks", "pick-place", "colour", "gacha"])
def test_the_shipped_problems_give_the_golden_rules(name: str) -> None:
    domain = shipped_domain(name)
    found = traces_from_problems(domain, training_problems(name), plan_for)
    assert found.skipped == {}
    text = format_rules(learn_rules(found.traces, domain), [domain_line(name)])
    assert text == (GOLDEN / f"{name}.rules").read_text(encoding="utf-8")


# Domains of the classical kind, with generators of random problems

FERRY = """
(define (domain barge)
  (:types car shore)
  (:predicates (moored ?s - shore) (parked ?c - car ?s - shore) (aboard ?c - car) (empty))
  (:action cross :parameters (?a ?b - shore)
    :precondition (and (moored ?a) (not (= ?a ?b)))
    :effect (and (moored ?b) (not (moored ?a))))
  (:action board :parameters (?c - car ?s - shore)
    :precondition (and (parked ?c ?s) (moored ?s) (empty))
    :effect (and (aboard ?c) (not (parked ?c ?s)) (not (empty))))
  (:action land :parameters (?c - car ?s - shore)
    :precondition (and (aboard ?c) (moored ?s))
    :effect (and (parked ?c ?s) (empty) (not (aboard ?c)))))
"""

GRIPPER = """
(define (domain porter)
  (:types room ball hand)
  (:predicates (in ?r - room) (lies ?b - ball ?r - room) (carries ?h - hand ?b - ball) (idle ?h - hand))
  (:action walk :parameters (?a ?b - room)
    :precondition (in ?a) :effect (and (in ?b) (not (in ?a))))
  (:action grab :parameters (?b - ball ?r - room ?h - hand)
    :precondition (and (lies ?b ?r) (in ?r) (idle ?h))
    :effect (and (carries ?h ?b) (not (lies ?b ?r)) (not (idle ?h))))
  (:action lay :parameters (?b - ball ?r - room ?h - hand)
    :precondition (and (carries ?h ?b) (in ?r))
    :effect (and (lies ?b ?r) (idle ?h) (not (carries ?h ?b)))))
"""

MICONIC = """
(define (domain lift)
  (:types guest floor)
  (:predicates (waits ?g - guest ?f - floor) (wants ?g - guest ?f - floor) (above ?f ?g - floor)
               (cabin ?f - floor) (inside ?g - guest) (served ?g - guest))
  (:action up :parameters (?a ?b - floor)
    :precondition (and (cabin ?a) (above ?b ?a)) :effect (and (cabin ?b) (not (cabin ?a))))
  (:action down :parameters (?a ?b - floor)
    :precondition (and (cabin ?a) (above ?a ?b)) :effect (and (cabin ?b) (not (cabin ?a))))
  (:action enter :parameters (?g - guest ?f - floor)
    :precondition (and (waits ?g ?f) (cabin ?f)) :effect (and (inside ?g) (not (waits ?g ?f))))
  (:action leave :parameters (?g - guest ?f - floor)
    :precondition (and (wants ?g ?f) (cabin ?f) (inside ?g)) :effect (and (served ?g) (not (inside ?g)))))
"""

LOGISTICS = """
(define (domain post)
  (:types place town thing - object airfield - place parcel vehicle - thing van plane - vehicle)
  (:predicates (at ?x - thing ?p - place) (in ?x - parcel ?v - vehicle) (part ?p - place ?t - town))
  (:action load :parameters (?x - parcel ?v - vehicle ?p - place)
    :precondition (and (at ?x ?p) (at ?v ?p)) :effect (and (in ?x ?v) (not (at ?x ?p))))
  (:action unload :parameters (?x - parcel ?v - vehicle ?p - place)
    :precondition (and (in ?x ?v) (at ?v ?p)) :effect (and (at ?x ?p) (not (in ?x ?v))))
  (:action drive :parameters (?v - van ?a ?b - place ?t - town)
    :precondition (and (at ?v ?a) (part ?a ?t) (part ?b ?t)) :effect (and (at ?v ?b) (not (at ?v ?a))))
  (:action fly :parameters (?v - plane ?a ?b - airfield)
    :precondition (at ?v ?a) :effect (and (at ?v ?b) (not (at ?v ?a)))))
"""

SATELLITE = """
(define (domain telescope)
  (:types dish star)
  (:predicates (aims ?d - dish ?s - star) (guide ?d - dish ?s - star) (sharp ?d - dish) (image ?s - star))
  (:action turn :parameters (?d - dish ?a ?b - star)
    :precondition (and (aims ?d ?a) (not (= ?a ?b))) :effect (and (aims ?d ?b) (not (aims ?d ?a))))
  (:action focus :parameters (?d - dish ?s - star)
    :precondition (and (aims ?d ?s) (guide ?d ?s)) :effect (sharp ?d))
  (:action expose :parameters (?d - dish ?s - star)
    :precondition (and (aims ?d ?s) (sharp ?d)) :effect (image ?s)))
"""


def names(kind: str, number: int) -> dict[str, str]:
    return {f"{kind}{i}": kind for i in range(number)}


def ferry(size: int, rng: random.Random) -> Problem:
    cars, shores = names("car", size), names("shore", size + 1)
    state = {f"parked {car} {rng.choice(list(shores))}" for car in cars} | {"moored shore0", "empty"}
    goal = {f"parked {car} {rng.choice(list(shores))}" for car in cars}
    return problem("barge", {**cars, **shores}, state, goal)


def gripper(size: int, rng: random.Random) -> Problem:
    balls, rooms = names("ball", size), names("room", 3)
    state = {f"lies {ball} {rng.choice(list(rooms))}" for ball in balls} | {"in room0", "idle hand0", "idle hand1"}
    goal = {f"lies {ball} {rng.choice(list(rooms))}" for ball in balls}
    return problem("porter", {**balls, **rooms, **names("hand", 2)}, state, goal)


def miconic(size: int, rng: random.Random) -> Problem:
    guests, floors = names("guest", size), names("floor", size + 2)
    state = {f"above floor{i} floor{j}" for i in range(size + 2) for j in range(i)} | {"cabin floor1"}
    for guest in guests:
        start, end = rng.sample(list(floors), 2)
        state |= {f"waits {guest} {start}", f"wants {guest} {end}"}
    return problem("lift", {**guests, **floors}, state, {f"served {guest}" for guest in guests})


def logistics(size: int, rng: random.Random) -> Problem:
    towns, parcels = range(3 + size // 5), names("parcel", size)
    objects = {**parcels, "plane0": "plane"}
    state = {f"at plane0 field{rng.choice(towns)}"}
    for town in towns:
        objects |= {f"town{town}": "town", f"field{town}": "airfield", f"yard{town}": "place", f"van{town}": "van"}
        state |= {f"part field{town} town{town}", f"part yard{town} town{town}"}
        state.add(f"at van{town} {rng.choice([f'field{town}', f'yard{town}'])}")
    places = [f"{kind}{town}" for kind in ("field", "yard") for town in towns]
    state |= {f"at {parcel} {rng.choice(places)}" for parcel in parcels}
    return problem("post", objects, state, {f"at {parcel} {rng.choice(places)}" for parcel in parcels})


def satellite(size: int, rng: random.Random) -> Problem:
    stars, dishes = names("star", size + 3), names("dish", 2)
    state = {f"aims {dish} {rng.choice(list(stars))}" for dish in dishes}
    state |= {f"guide {dish} {rng.choice(list(stars))}" for dish in dishes}
    goal = {f"aims {dish} star{i}" for i, dish in enumerate(dishes)}
    return problem("telescope", {**stars, **dishes}, state, goal | {f"image star{i + 2}" for i in range(size)})


def problem(domain: str, objects: dict[str, str], state: set[str], goal: set[str]) -> Problem:
    return Problem(domain, domain, objects, facts(", ".join(state)), facts(", ".join(goal)))


Generator = Callable[[int, random.Random], Problem]

# Each with the number of training problems; logistics has many different ways to go.
CLASSICAL: dict[str, tuple[str, Generator, int]] = {
    "ferry": (FERRY, ferry, 20),
    "gripper": (GRIPPER, gripper, 20),
    "miconic": (MICONIC, miconic, 20),
    "logistics": (LOGISTICS, logistics, 35),
    "satellite": (SATELLITE, satellite, 20),
}


def learned(name: str) -> tuple[Domain, tuple[Rule, ...]]:
    text, generate, number = CLASSICAL[name]
    domain = parse_domain(text, name)
    rng = random.Random(name)
    found = traces_from_problems(domain, [generate(2, rng) for _ in range(number)], plan_for, orders=2)
    assert found.skipped == {}
    return domain, learn_rules(found.traces, domain)


@pytest.mark.parametrize("name", CLASSICAL)
def test_rules_learned_from_small_problems_solve_larger_ones(name: str) -> None:
    domain, rules = learned(name)
    task = CLASSICAL[name][1](15, random.Random(f"larger {name}"))
    solution = solve(domain, task, rules)
    assert solution.stop is Stop.SOLVED, solution.detail
    verdict = validate(domain, task, solution.plan)
    assert verdict.is_valid, verdict


def test_goals_that_undo_each_other_need_commitment() -> None:
    domain, rules = learned("satellite")
    task = satellite(4, random.Random(0))
    committed = solve(domain, task, rules, commit=True)
    memoryless = solve(domain, task, rules, commit=False)
    assert committed.stop is Stop.SOLVED
    assert validate(domain, task, committed.plan).is_valid
    assert memoryless.stop is Stop.LOOP
    assert memoryless.open_goals > 0
    assert "came back" in memoryless.detail


# How the traces are made


def small_tasks(name: str, number: int) -> tuple[Domain, list[Problem]]:
    text, generate, _ = CLASSICAL[name]
    rng = random.Random(0)
    return parse_domain(text, name), [generate(2, rng) for _ in range(number)]


def actions(found: ProblemTraces) -> list[list[str]]:
    return [[str(step.action.action) for step in trace.steps] for trace in found.traces]


def test_traces_are_a_function_of_its_seed() -> None:
    domain = shipped_domain("gacha")
    problems = training_problems("gacha")
    once, again = (traces_from_problems(domain, problems, plan_for, seed=1) for _ in range(2))
    assert once == again
    assert actions(traces_from_problems(domain, problems, plan_for, seed=2)) != actions(once)


def test_each_trace_serves_one_goal_from_the_state_reached_so_far() -> None:
    domain, problems = small_tasks("gripper", 3)
    found = traces_from_problems(domain, problems, plan_for, orders=2)
    for trace in found.traces:
        (goal,) = trace.steps[0].goal
        assert goal not in trace.steps[0].state
        assert goal in trace.steps[-1].next_state
        for step, following in zip(trace.steps, trace.steps[1:], strict=False):
            assert step.action.condition.holds(step.state)
            assert following.state == step.next_state
    starts = {trace.steps[0].state for trace in found.traces}
    assert starts > {problem.state for problem in problems}


def test_the_planner_is_asked_only_once_about_the_same_thing() -> None:
    domain, problems = small_tasks("ferry", 2)
    asked: list[tuple[Facts, Facts]] = []

    def counting(domain: Domain, problem: Problem) -> GroundPlan | None:
        asked.append((problem.state, problem.goal))
        return plan_for(domain, problem)

    traces_from_problems(domain, problems, counting, orders=5)
    assert len(asked) == len(set(asked))


def test_goals_that_cannot_be_planned_for_are_skipped_and_named() -> None:
    domain = parse_domain(FERRY)
    start = {"moored shore0", "empty", "parked car0 shore0", "parked car1 shore1"}
    objects = {**names("car", 2), **names("shore", 3)}
    task = problem("barge", objects, start, {"parked car0 shore2", "parked car1 shore2"})
    hard = Atom("parked", ("car0", "shore2"))
    easy = task.goal - {hard}

    def choosy(domain: Domain, problem: Problem) -> GroundPlan | None:
        return None if hard in problem.goal else plan_for(domain, problem)

    found = traces_from_problems(domain, [task], choosy, orders=3)
    assert found.skipped == {0: (hard,)}
    assert found.traces
    assert all(trace.steps[0].goal <= easy for trace in found.traces)


def test_without_any_plan_there_are_no_traces() -> None:
    domain, problems = small_tasks("ferry", 1)
    found = traces_from_problems(domain, problems, lambda domain, problem: None)
    assert found.traces == ()
    assert set(found.skipped[0]) == problems[0].goal - problems[0].state


COIN = """
(define (domain coin)
  (:types side) (:constants heads tails - side) (:predicates (shows ?s - side) (won) (in-hand))
  (:action flip :parameters () :precondition (in-hand)
    :effect (and (not (in-hand)) (exists (?s - side) (shows ?s))))
  (:action take :parameters () :effect (and (in-hand) (not (shows heads)) (not (shows tails))))
  (:action win :parameters () :precondition (shows heads) :effect (won)))
"""


def test_it_plans_again_after_surprises_and_nature_knows_the_constants() -> None:
    domain = parse_domain(COIN)
    found = traces_from_problems(
        domain, [Problem("p", "coin", {}, facts("in-hand"), facts("won"))], plan_for, orders=12
    )
    assert found.skipped == {}
    walks = actions(found)
    assert ["flip()", "win()"] in walks
    assert ["flip()", "take()", "flip()", "win()"] in walks
    assert all(trace.objects == {"heads": "side", "tails": "side"} for trace in found.traces)


def test_a_goal_is_given_up_after_too_many_plans() -> None:
    """Plans that lead nowhere end it; plans of one step each are enough to get there."""
    domain = parse_domain(COIN)
    plans = 0

    def one_step(domain: Domain, problem: Problem) -> GroundPlan | None:
        nonlocal plans
        plans += 1
        return (plan_for(domain, problem) or [])[:1]

    task = Problem("p", "coin", {}, facts(""), facts("won"))
    stuck = traces_from_problems(
        domain, [task], lambda domain, problem: (plan_for(domain, problem) or [])[:0], orders=1
    )
    assert stuck.skipped == {0: (Atom("won"),)}
    assert traces_from_problems(domain, [task], one_step, orders=1).skipped == {}
    assert 3 <= plans <= MOST_REPLANNED
