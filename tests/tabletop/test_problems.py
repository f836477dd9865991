"""The shipped domains teach what they should, and generated problems are what their names say."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from bilevel.planning.search import search
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import read_rules
from bilevel.rules.solving import solve
from bilevel.rules.traces import traces_from_problems
from bilevel.symbolic.domain import BadInput, Domain, Outcome, Problem
from bilevel.symbolic.pddl import parse_problem, write_problem
from bilevel.symbolic.plans import validate
from bilevel.symbolic.semantics import GroundAction
from bilevel.tabletop.problems import GENERATORS, domain_text, generate_problem, shipped_domain, training_problems

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


@pytest.mark.parametrize("size", [1, 3, 12])
@pytest.mark.parametrize("shape", ["blocks", "pick-place", "trays", "colour", "gacha"])
def test_generated_problems_are_solved_by_the_learned_rules(shape: str, size: int) -> None:
    problem = generate_problem(shape, size, random.Random(size))
    domain = shipped_domain(problem.domain_name)
    solution = solve(domain, problem, learned_rules(domain.name), seed=size)
    assert solution.is_solved
    assert validate(domain, problem, solution.plan).is_valid


@pytest.mark.parametrize("size", [1, 3, 12])
@pytest.mark.parametrize("shape", ["swap", "towers"])
def test_tangled_problems_are_solved_by_completed_rules(shape: str, size: int) -> None:
    for seed in range(5):
        problem = generate_problem(shape, size, random.Random(seed))
        domain = shipped_domain(problem.domain_name)
        rules = read_rules(COMPLETED / f"{domain.name}-complete.rules", domain)
        solution = solve(domain, problem, rules)
        assert solution.is_solved
        assert validate(domain, problem, solution.plan).is_valid


@pytest.mark.parametrize("shape", GENERATORS)
def test_generated_problems_can_be_written_and_read(shape: str) -> None:
    problem = generate_problem(shape, 11, random.Random(1))
    assert problem == generate_problem(shape, 11, random.Random(1))
    domain = shipped_domain(problem.domain_name)
    assert parse_problem(write_problem(problem, domain), domain) == problem


def test_unknown_names_and_sizes_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown domain 'block'; domains that come with bilevel: blocks, "):
        domain_text("block")
    with pytest.raises(BadInput, match="unknown kind of problem 'block'; known kinds: blocks, "):
        generate_problem("block", 3, random.Random(0))
    with pytest.raises(BadInput, match="at least 1"):
        generate_problem("blocks", 0, random.Random(0))
