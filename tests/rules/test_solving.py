"""Solving does what the definition says, step by step, and says why it stops."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from notation import best_matches, facts, golden_rules

from bilevel.rules import solving
from bilevel.rules.matching import Match, bindings, output_variables
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.solving import Stop, default_bound, final_state, solve
from bilevel.symbolic.domain import (
    NO_FACTS,
    Action,
    Atom,
    Domain,
    Facts,
    Problem,
)
from bilevel.symbolic.packed import packed_problem
from bilevel.symbolic.pddl import parse_domain, write_problem
from bilevel.symbolic.plans import Plan, parse_plan, validate, write_plan
from bilevel.symbolic.semantics import ground, progress
from bilevel.tabletop.problems import shipped_domain
from executors import executor as executor
from random_rules import OBJECTS, random_atoms, random_domain, random_rule

pytestmark = pytest.mark.usefixtures("executor")


def blocks(number: int, rng: random.Random) -> Problem:
    names = range(number)
    objects = {f"b{i}": "block" for i in names} | {f"p{i}": "place" for i in names}
    state = facts("gripper-free, " + ", ".join(f"clear b{i}, clear p{i}" for i in names))
    places = rng.sample(names, number)
    return Problem("p", "blocks", objects, state, facts(", ".join(f"at b{i} p{places[i]}" for i in names)))


def pick_place(number: int, rng: random.Random) -> Problem:
    objects = {f"i{i}": "item" for i in range(number)} | {f"l{i}": "location" for i in range(3)}
    state = facts("robot-at l0, free, " + ", ".join(f"at i{i} l{rng.randrange(3)}" for i in range(number)))
    goal = facts(", ".join(f"at i{i} l{rng.randrange(3)}" for i in range(number)))
    return Problem("p", "pick-place", objects, state, goal)


def colours_and_trays(number: int) -> tuple[dict[str, str], str]:
    objects = {f"c{i}": "colour" for i in range(number)} | {f"t{i}": "tray" for i in range(number)}
    return objects, ", ".join(f"tray-colour t{i} c{i}" for i in range(number))


def colour(number: int, rng: random.Random) -> Problem:
    objects, trays = colours_and_trays(3)
    names = [f"b{i}" for i in range(number)]
    state = facts(f"gripper-free, free platform, {trays}, " + ", ".join(f"on {b} table, unknown {b}" for b in names))
    objects |= {"platform": "platform", "table": "table", "button": "button"} | dict.fromkeys(names, "block")
    return Problem("p", "colour", objects, state, facts(", ".join(f"achieved-goal {b}" for b in names)))


def gacha(number: int, rng: random.Random) -> Problem:
    objects, trays = colours_and_trays(5)
    objects |= {"box": "box", "button": "button"}
    state = facts(f"gripper-free, clear box, {rng.choice(['closed', 'opened'])} box, {trays}")
    return Problem("p", "gacha", objects, state, facts(", ".join(f"achieved-goal c{i}" for i in range(number))))


PROBLEMS = {"blocks": blocks, "pick-place": pick_place, "colour": colour, "gacha": gacha}

# The definition, for domains without chance


def serving(rules: Sequence[Rule], domain: Domain, state: Facts, task: Problem, goal: Atom) -> Match | None:
    """The first instance, in the order that decides ties, of the lowest priority that serves one goal fact."""
    objects = task.all_objects(domain)
    for priority in sorted({rule.priority for rule in rules}):
        for rule in (rule for rule in rules if rule.priority == priority):
            found = [
                Match(rule, b)
                for b in bindings(rule, domain, state, task.goal, objects)
                if goal in Match(rule, b).served
            ]
            if found:
                return min(found, key=lambda match: [match.binding[v] for v in output_variables(match.rule)])
    return None


def follow(
    rules: Sequence[Rule], domain: Domain, task: Problem, steps: int, commit: bool
) -> tuple[list[Action], Facts, Stop]:
    """Choose and act; with `commit` stay with a goal until it holds or no rule serves it."""
    actions: list[Action] = []
    state, served = task.state, NO_FACTS
    while len(actions) < steps and not task.goal <= state:
        match = None
        if commit and served and not served <= state:
            match = serving(rules, domain, state, task, min(served))
        if match is None:
            match = next(iter(best_matches(rules, domain, state, task.goal, task.all_objects(domain))), None)
            served = match.served if match else NO_FACTS
        if match is None:
            return actions, state, Stop.NO_RULE
        action = ground(domain.schemas[match.action.name], match.action.arguments)
        if action is None or not action.condition.holds(state):
            return actions, state, Stop.NOT_APPLICABLE
        state = progress(state, action.outcomes[0])
        actions.append(match.action)
    return actions, state, Stop.SOLVED if task.goal <= state else Stop.STEP_BOUND


def agrees_with_definition(rules: Sequence[Rule], domain: Domain, task: Problem, steps: int) -> list[Stop]:
    stops = []
    for commit in (False, True):
        actions, state, stop = follow(rules, domain, task, steps, commit)
        solution = solve(domain, task, rules, max_steps=steps, commit=commit)
        assert list(solution.plan.actions) == actions
        assert solution.stop is stop
        assert solution.open_goals == len(task.goal - state)
        assert final_state(domain, task, solution.plan) == (state, task.all_objects(domain))
        packed = solve(
            domain,
            packed_problem(write_problem(task, domain).encode(), domain) or task,
            rules,
            max_steps=steps,
            commit=commit,
        )
        assert (list(packed.plan.actions), packed.stop, packed.open_goals) == (actions, stop, solution.open_goals)
        stops.append(stop)
    return stops


@pytest.mark.parametrize("name", ["blocks", "pick-place"])
def test_solving_follows_the_definition_on_our_domains(name: str) -> None:
    rng = random.Random(0)
    for size in (0, 1, 2, 3, 4, 5, 6):
        task = PROBLEMS[name](size, rng)
        assert agrees_with_definition(golden_rules(name), shipped_domain(name), task, steps=200) == [Stop.SOLVED] * 2


@pytest.mark.parametrize("block", range(4))
def test_solving_follows_the_definition_on_random_domains(block: int) -> None:
    stops: set[Stop] = set()
    for seed in range(block * 60, block * 60 + 60):
        rng = random.Random(seed)
        domain = random_domain(rng)
        rules = sorted((random_rule(rng, domain) for _ in range(4)), key=lambda rule: (rule.priority, str(rule)))
        state, goal = random_atoms(rng, domain, OBJECTS, 12), random_atoms(rng, domain, OBJECTS, 8)
        task = Problem("p", "random", OBJECTS, state, goal)
        stops |= set(agrees_with_definition(rules, domain, task, steps=12))
    assert stops == {Stop.SOLVED, Stop.NO_RULE, Stop.STEP_BOUND, Stop.NOT_APPLICABLE}


# Goals that undo each other: a dish must end up aiming somewhere, and must turn away to take its images.
DISHES = parse_domain(
    """
(define (domain dishes)
  (:types dish star)
  (:predicates (aims ?d - dish ?s - star) (guide ?d - dish ?s - star) (sharp ?d - dish) (image ?s - star))
  (:action turn :parameters (?d - dish ?a ?b - star)
    :precondition (aims ?d ?a) :effect (and (aims ?d ?b) (not (aims ?d ?a)) (not (sharp ?d))))
  (:action focus :parameters (?d - dish ?s - star) :precondition (aims ?d ?s) :effect (sharp ?d))
  (:action expose :parameters (?d - dish ?s - star)
    :precondition (and (aims ?d ?s) (sharp ?d)) :effect (image ?s)))
"""
)
AIM_AND_TAKE_IMAGES = parse_rules(
    """
variables: ?d - dish, ?s - star, ?t - star
1: aims(?d, ?s) & goal aims(?d, ?t) -> turn(?d, ?s, ?t)
1: aims(?d, ?s) & sharp(?d) & goal image(?s) -> expose(?d, ?s)
2: aims(?d, ?s) & goal image(?s) -> focus(?d, ?s)
3: aims(?d, ?s) & guide(?d, ?t) & goal image(?t) -> turn(?d, ?s, ?t)
"""
)


def test_commitment_follows_the_definition_where_goals_undo_each_other() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        stars, dishes = [f"s{i}" for i in range(5)], [f"d{i}" for i in range(rng.randint(1, 2))]
        state = {f"aims {dish} {rng.choice(stars)}" for dish in dishes}
        state |= {f"guide {rng.choice(dishes)} {star}" for star in stars}
        goal = {f"aims {dish} s0" for dish in dishes} | {f"image {star}" for star in rng.sample(stars[1:], 3)}
        objects = dict.fromkeys(stars, "star") | dict.fromkeys(dishes, "dish")
        task = Problem("p", "dishes", objects, facts(", ".join(state)), facts(", ".join(goal)))
        stops = agrees_with_definition(AIM_AND_TAKE_IMAGES, DISHES, task, steps=40)
        assert stops == [Stop.STEP_BOUND, Stop.SOLVED]
    assert solve(DISHES, task, AIM_AND_TAKE_IMAGES, commit=False).stop is Stop.LOOP


# Why it stops


def test_a_problem_that_is_solved_already_needs_no_plan() -> None:
    task = blocks(1, random.Random(0))
    done = Problem("p", "blocks", task.objects, task.state | task.goal, task.goal)
    for problem in (done, Problem("p", "blocks", task.objects, task.state, NO_FACTS)):
        solution = solve(shipped_domain("blocks"), problem, golden_rules("blocks"))
        assert (solution.stop, list(solution.plan.actions), solution.open_goals) == (Stop.SOLVED, [], 0)
        assert solution.is_solved
    always = parse_rules("variables: ?b - block\n1: clear(?b) & gripper-free() -> pick(?b)")
    assert list(solve(shipped_domain("blocks"), done, always).plan.actions) == []


def test_it_stops_where_no_rule_applies() -> None:
    task = blocks(2, random.Random(0))
    solution = solve(shipped_domain("blocks"), task, golden_rules("blocks")[1:])
    assert solution.stop is Stop.NO_RULE
    assert [str(action) for action in solution.plan.actions] == ["pick(b0)"]
    assert solution.open_goals == 2
    assert not solution.is_solved
    assert solve(shipped_domain("blocks"), task, ()).stop is Stop.NO_RULE


@pytest.mark.parametrize(("bound", "stop"), [(0, Stop.STEP_BOUND), (5, Stop.STEP_BOUND), (6, Stop.SOLVED)])
def test_it_stops_at_the_bound_on_steps(bound: int, stop: Stop) -> None:
    solution = solve(shipped_domain("blocks"), blocks(3, random.Random(0)), golden_rules("blocks"), max_steps=bound)
    assert solution.stop is stop
    assert len(solution.plan.actions) == bound


def test_it_stops_at_an_action_that_cannot_be_done() -> None:
    rules = parse_rules("variables: ?b - block, ?p - place\n1: clear(?b) & goal at(?b, ?p) -> place(?b, ?p)")
    solution = solve(shipped_domain("blocks"), blocks(2, random.Random(0)), rules)
    assert solution.stop is Stop.NOT_APPLICABLE
    assert solution.detail == "place(b0, p1)"
    assert list(solution.plan.actions) == []


ROUNDABOUT = parse_domain(
    """
(define (domain roundabout)
  (:types place)
  (:predicates (at ?p - place) (road ?p ?q - place) (home) (key))
  (:action walk :parameters (?p ?q - place) :precondition (and (at ?p) (road ?p ?q))
    :effect (and (at ?q) (not (at ?p)))))
"""
)
WALK = parse_rules(
    "variables: ?p - place, ?q - place, ?r - place\n1: at(?p) & road(?p, ?q) & goal home() -> walk(?p, ?q)"
)
SEEK = parse_rules(
    "variables: ?p - place, ?q - place, ?r - place\n1: at(?p) & road(?p, ?q) & goal at(?r) -> walk(?p, ?q)"
)


def circle(number: int, tail: int) -> Problem:
    """A road that leads into a circle."""
    roads = [(i, i + 1) for i in range(tail + number - 1)] + [(tail + number - 1, tail)]
    objects = {f"p{i}": "place" for i in range(number + tail)}
    return Problem(
        "p", "roundabout", objects, facts("at p0, " + ", ".join(f"road p{a} p{b}" for a, b in roads)), facts("home")
    )


@pytest.mark.parametrize("commit", [False, True])
@pytest.mark.parametrize(("number", "tail"), [(2, 0), (3, 5), (17, 2)])
def test_it_stops_when_it_goes_round_in_circles(number: int, tail: int, commit: bool) -> None:
    task = circle(number, tail)
    solution = solve(ROUNDABOUT, task, WALK, commit=commit, max_steps=100_000)
    assert solution.stop is Stop.LOOP
    before, after = (int(word) for word in solution.detail.split() if word.isdigit())
    assert after == len(solution.plan.actions) < 100_000
    earlier, later = (Plan(solution.plan.actions[:steps]) for steps in (before, after))
    assert final_state(ROUNDABOUT, task, earlier) == final_state(ROUNDABOUT, task, later)


def test_a_long_way_is_not_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even when circles are looked out for; and a goal reached with the last step allowed is reached."""
    monkeypatch.setattr(solving, "PATIENCE", 1000)
    length = 2500
    objects = {f"p{i}": "place" for i in range(length + 1)}
    state = facts("at p0, " + ", ".join(f"road p{i} p{i + 1}" for i in range(length)))
    task = Problem("p", "roundabout", objects, state, facts(f"at p{length}"))
    for bound in (None, length):
        for commit in (True, False):
            solution = solve(ROUNDABOUT, task, SEEK, max_steps=bound, commit=commit)
            assert solution.stop is Stop.SOLVED
            assert len(solution.plan.actions) == length
    assert solve(ROUNDABOUT, task, SEEK, max_steps=length - 1).stop is Stop.STEP_BOUND


def test_the_bound_leaves_room_for_every_goal() -> None:
    assert default_bound(blocks(5, random.Random(0))) - default_bound(blocks(2, random.Random(0))) >= 300


# Chance


@pytest.mark.parametrize("name", ["colour", "gacha"])
def test_outcomes_are_drawn_with_the_seed(name: str) -> None:
    domain, task = shipped_domain(name), PROBLEMS[name](4, random.Random(0))
    texts = []
    for seed in range(6):
        solution = solve(domain, task, golden_rules(name), seed=seed)
        assert solution.stop is Stop.SOLVED
        assert write_plan(solve(domain, task, golden_rules(name), seed=seed).plan) == write_plan(solution.plan)
        texts.append(write_plan(solution.plan))
    assert len(set(texts)) > 3


@pytest.mark.parametrize("commit", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_plans_are_valid_and_stay_so_in_a_file(name: str, commit: bool) -> None:
    domain = shipped_domain(name)
    for seed in range(5):
        task = PROBLEMS[name](1 + seed, random.Random(seed))
        solution = solve(domain, task, golden_rules(name), seed=seed, commit=commit)
        assert solution.stop is Stop.SOLVED
        verdict = validate(domain, task, parse_plan(write_plan(solution.plan), domain))
        assert verdict.is_valid, verdict
        assert task.goal <= final_state(domain, task, solution.plan)[0]


def test_the_objects_that_nature_made_are_there_at_the_end() -> None:
    domain, task = shipped_domain("gacha"), gacha(2, random.Random(0))
    solution = solve(domain, task, golden_rules("gacha"))
    _, objects = final_state(domain, task, solution.plan)
    rolls = [action for action in solution.plan.actions if action.name == "roll"]
    assert {name for name in objects if name not in task.objects} == {f"block{i + 1}" for i in range(len(rolls))}


DICE = parse_domain(
    """
(define (domain dice)
  (:predicates (rolled) (six))
  (:action roll :parameters () :effect (oneof (and (six) (rolled)) (rolled) (not (rolled)))))
"""
)


def test_a_state_that_comes_back_by_chance_is_no_circle() -> None:
    rules = parse_rules("1: goal six() -> roll()")
    task = Problem("p", "dice", {}, NO_FACTS, facts("six"))
    lengths = set()
    for seed in range(20):
        solution = solve(DICE, task, rules, seed=seed)
        assert solution.stop is Stop.SOLVED
        assert validate(DICE, task, solution.plan).is_valid
        lengths.add(len(solution.plan.actions))
    assert max(lengths) > 5
