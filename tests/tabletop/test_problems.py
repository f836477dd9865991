"""The shipped domains teach what they should, and generated problems are what their names say."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bilevel.planning.search import search
from bilevel.rules.learning import learn_rules
from bilevel.rules.matching import best_matches
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import read_rules
from bilevel.rules.solving import solve
from bilevel.rules.traces import traces_from_problems
from bilevel.symbolic.domain import Atom, BadInput, Domain, Outcome, Problem
from bilevel.symbolic.pddl import parse_problem, write_problem
from bilevel.symbolic.plans import validate
from bilevel.symbolic.semantics import GroundAction
from bilevel.tabletop.problems import (
    GENERATORS,
    TANGLED,
    UNTANGLED,
    domain_text,
    generate_problem,
    names,
    shipped_domain,
    training_problems,
)

COMPLETED = Path(__file__).parents[1] / "rules" / "golden"

# The actions of the learned rules by priority; the paper's Example 1 and appendix, see docs.
EXPECTED = {
    "blocks": ["place", "pick"],
    "pick-place": ["place", "move", "pick", "move"],
    "colour": ["place-goal", "pick", "press", "place", "pick"],
    "gacha": ["place-goal", "pick", "open", "roll", "close", "place-goal", "pick", "open"],
    "stack": ["place", "take"],
    "trays": ["place", "pick"],
}


def plan_by_search(domain: Domain, problem: Problem) -> list[tuple[GroundAction, Outcome]]:
    return [step.ground(domain) for step in search(domain, problem, 60.0).steps]


@cache
def learned_rules(name: str) -> tuple[Rule, ...]:
    domain = shipped_domain(name)
    found = traces_from_problems(domain, training_problems(name), plan_by_search)
    assert not found.skipped
    return learn_rules(found.traces, domain)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_training_problems_give_the_complete_rules(name: str) -> None:
    rules = learned_rules(name)
    assert [rule.action.name for rule in rules] == EXPECTED[name]
    assert [rule.priority for rule in rules] == list(range(1, len(rules) + 1))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_few_training_problems_ship_with_each_domain(name: str) -> None:
    problems = training_problems(name)
    assert 3 <= len(problems) <= 6
    assert [problem.name for problem in problems] == names(f"{name}-", len(problems))


@pytest.mark.parametrize("size", [1, 2, 3, 12, 100])
@pytest.mark.parametrize("shape", UNTANGLED)
def test_generated_problems_are_solved_by_the_learned_rules(shape: str, size: int) -> None:
    problem = generate_problem(shape, size, random.Random(size))
    domain = shipped_domain(problem.domain_name)
    solution = solve(domain, problem, learned_rules(domain.name), seed=size)
    assert solution.is_solved
    assert validate(domain, problem, solution.plan).is_valid


@pytest.mark.parametrize("size", [1, 2, 3, 12])
@pytest.mark.parametrize("shape", [shape for shape in TANGLED if shape != "stack"])
def test_tangled_problems_are_solved_by_completed_rules(shape: str, size: int) -> None:
    for seed in range(5):
        problem = generate_problem(shape, size, random.Random(seed))
        domain = shipped_domain(problem.domain_name)
        rules = read_rules(COMPLETED / f"{domain.name}-complete.rules", domain)
        solution = solve(domain, problem, rules)
        assert solution.is_solved
        assert validate(domain, problem, solution.plan).is_valid


def test_things_are_in_each_other_s_way() -> None:
    for shape in TANGLED:
        problem = generate_problem(shape, 20, random.Random(0))
        rules = learned_rules(problem.domain_name) if problem.domain_name != "swap" else ()
        assert not solve(shipped_domain(problem.domain_name), problem, rules, commit=False).is_solved


def test_one_tower_becomes_another() -> None:
    problem = generate_problem("one-tower", 9, random.Random(0))
    for facts in (problem.state, problem.goal):
        assert sum(atom.predicate == "on" for atom in facts) == 8
        assert sum(atom.predicate == "on-table" for atom in facts) == 1


@pytest.mark.parametrize("shape", GENERATORS)
def test_generated_problems_can_be_written_and_read(shape: str) -> None:
    problem = generate_problem(shape, 11, random.Random(1))
    domain = shipped_domain(problem.domain_name)
    assert parse_problem(write_problem(problem, domain), domain) == problem


def test_the_guide_names_all_shapes() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")
    families = guide.partition("The families are ")[2].partition("\n\n")[0]
    assert re.findall(r"`([a-z-]+)`", families) == list(GENERATORS)


@pytest.mark.parametrize("shape", GENERATORS)
def test_a_seed_fixes_the_problem(shape: str) -> None:
    first, again, other = (GENERATORS[shape](20, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.objects == other.objects
    if shape != "colour":  # its trays may come out alike
        assert first != other


def test_every_goal_of_pick_place_is_open_and_depot_has_one_destination() -> None:
    for shape in ("pick-place", "depot"):
        problem = generate_problem(shape, 50, random.Random(0))
        assert not problem.goal & problem.state
        assert {atom.terms[0] for atom in problem.goal} == {f"item{i:02d}" for i in range(1, 51)}
    assert len({atom.terms[1] for atom in problem.goal}) == 1


def test_only_the_last_goal_is_workable() -> None:
    problem = generate_problem("last-goal", 5, random.Random(0))
    domain = shipped_domain("stack")
    matches = best_matches(learned_rules("stack"), domain, problem.state, problem.goal, problem.objects)
    assert [match.action.arguments for match in matches] == [("box5", "box4")]
    solution = solve(domain, problem, learned_rules("stack"))
    placed = [action.arguments[0] for action in solution.plan.actions if action.name == "place"]
    assert placed == ["box5", "box4", "box3", "box2", "box1"]


def test_trays_come_in_the_colours_of_the_blocks() -> None:
    state = generate_problem("trays", 200, random.Random(0)).state

    def colours(predicate: str) -> Counter[str]:
        return Counter(atom.terms[1] for atom in state if atom.predicate == predicate)

    assert colours("colour-of") == colours("tray-colour")
    assert len(colours("colour-of")) == 10


def test_gacha_can_roll_two_colours_that_nobody_wants() -> None:
    problem = generate_problem("gacha", 7, random.Random(0))
    wanted = {atom.terms[0] for atom in problem.goal}
    assert len(wanted) == 7
    assert sum(atom.predicate == "tray-colour" for atom in problem.state) == 9
    assert Atom("closed", ("box",)) in problem.state


def test_names_sort_by_number() -> None:
    assert names("b", 3) == ["b1", "b2", "b3"]
    assert names("b", 12) == sorted(names("b", 12))


def test_unknown_names_and_sizes_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown domain 'block'; domains that come with bilevel: blocks, "):
        domain_text("block")
    with pytest.raises(BadInput, match="unknown kind of problem 'block'; known kinds: blocks, "):
        generate_problem("block", 3, random.Random(0))
    with pytest.raises(BadInput, match="at least 1"):
        generate_problem("blocks", 0, random.Random(0))
