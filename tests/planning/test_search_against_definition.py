"""The built-in search against breadth-first search written with `semantics.py` alone, on random lifted domains."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from exact_fond import all_actions
from plan_oracle import achieves_goal

from bilevel.planning.grounding import Grounding
from bilevel.planning.planner import Status
from bilevel.planning.search import search
from bilevel.symbolic.domain import Atom, Domain, Facts, Outcome, Parameter, Predicate, Problem, Schema
from bilevel.symbolic.semantics import applicable, progress, successors
from bilevel.tabletop.problems import shipped_domain, training_problems

TYPES = {"thing": "object", "cup": "thing", "lid": "thing"}
ARITIES = {"p": 0, "q": 1, "r": 1, "s": 2, "t": 2}
PREDICATES = {
    name: Predicate(name, tuple(Parameter(f"?x{i}") for i in range(arity))) for name, arity in ARITIES.items()
}


def random_atoms(rng: random.Random, terms: list[str], count: int) -> Facts:
    names = [rng.choice(list(ARITIES)) for _ in range(count)]
    return frozenset(Atom(name, tuple(rng.choice(terms) for _ in range(ARITIES[name]))) for name in names)


def random_schema(rng: random.Random, name: str) -> Schema:
    parameters = tuple(Parameter(f"?{i}", rng.choice(["object", *TYPES])) for i in range(rng.randint(1, 3)))
    terms = [p.name for p in parameters] + ["k"]
    outcomes = []
    for _ in range(rng.choice([1, 1, 2])):
        chosen = (Parameter("?n", rng.choice(["thing", "cup"])),) if rng.random() < 0.3 else ()
        effect_terms = terms + [p.name for p in chosen]
        add = random_atoms(rng, effect_terms, rng.randint(1, 2))
        outcomes.append(Outcome(add, random_atoms(rng, effect_terms, rng.randint(0, 2)), chosen))
    positive = random_atoms(rng, terms, rng.randint(0, 3))
    negative = random_atoms(rng, terms, rng.randint(0, 1))
    equality = frozenset({Atom("=", (terms[0], rng.choice(terms[1:])))}) if rng.random() < 0.4 else frozenset()
    if rng.random() < 0.3:
        positive |= equality
    else:
        negative |= equality
    return Schema(name, parameters, positive, tuple(outcomes), negative)


def random_task(seed: int) -> tuple[Domain, Problem]:
    rng = random.Random(seed)
    schemas = {name: random_schema(rng, name) for name in ("one", "two", "three")}
    domain = Domain("random", PREDICATES, schemas, TYPES, {"k": "lid"})
    objects = {"a": "cup", "b": "lid", "c": rng.choice(["thing", "object"])}
    everything = ["k", *objects]
    problem = Problem("p", "random", objects, random_atoms(rng, everything, 6), random_atoms(rng, everything, 1))
    new = sorted(random_walk(rng, domain, problem) - problem.state)
    if not new or rng.random() < 0.2:
        return domain, problem  # mostly without a plan
    return domain, replace(problem, goal=frozenset(rng.sample(new, min(3, len(new)))))


def random_walk(rng: random.Random, domain: Domain, problem: Problem) -> Facts:
    """The state after ten random steps, or fewer where nothing applies."""
    state, actions, objects = problem.state, all_actions(domain, problem), problem.all_objects(domain)
    for _ in range(10):
        possible = [
            a for action in actions if applicable(state, action) for a in successors(state, action, domain, objects)
        ]
        state = rng.choice(possible) if possible else state
    return state


def shortest_length(domain: Domain, problem: Problem, most_states: int) -> int | None:
    """The length of a shortest plan, -1 where there is none, `None` where there are too many states to tell."""
    actions, objects = all_actions(domain, problem), problem.all_objects(domain)
    depth, seen, layer = 0, {problem.state}, [problem.state]
    while layer:
        if any(problem.goal <= state for state in layer):
            return depth
        if len(seen) > most_states:
            return None
        after = {
            state
            for before in layer
            for action in actions
            if applicable(before, action)
            for state in successors(before, action, domain, objects)
        }
        layer = list(after - seen)
        seen |= after
        depth += 1
    return -1


@pytest.mark.parametrize("first_seed", range(0, 300, 50))
def test_shortest_plans_are_as_short_as_the_definition_says(first_seed: int) -> None:
    lengths = []
    for seed in range(first_seed, first_seed + 50):
        domain, problem = random_task(seed)
        expected = shortest_length(domain, problem, most_states=1000)
        if expected is None:
            continue
        for breadth_first_states in (0, 100_000):
            result = search(domain, problem, 60, breadth_first_states)
            assert result.status is (Status.UNSOLVABLE if expected < 0 else Status.SOLVED), seed
            if expected >= 0:
                assert achieves_goal(domain, problem, result.steps), seed
                assert len(result.steps) >= expected, seed
        assert len(result.steps) == max(expected, 0), seed
        lengths.append(expected)
    assert len({length for length in lengths if length > 0}) >= 3, "the random tasks are too easy to tell anything"


def test_grounding_once_gives_the_same_plans() -> None:
    plans = 0
    for seed in range(60):
        (domain, problem), grounding, rng = random_task(seed), Grounding(), random.Random(seed)
        for _ in range(4):  # goals after each other, each from where the plan for the last one ends
            once, anew = (search(domain, problem, 60, 5_000, each) for each in (grounding, None))
            assert (once.status, once.steps) == (anew.status, anew.steps)
            plans += bool(once.steps)
            state = problem.state
            for step in once.steps:
                state = progress(state, step.ground(domain)[1])
            new = sorted(random_walk(rng, domain, problem) - state)
            problem = replace(problem, state=state, goal=frozenset(new[:2]))
    assert plans > 60


def test_another_problem_is_grounded_anew() -> None:
    grounding = Grounding()
    for name in ("blocks", "pick-place", "blocks"):
        for problem in training_problems(name):
            domain = shipped_domain(name)
            once, anew = (search(domain, problem, 60, grounding=each) for each in (grounding, None))
            assert once == anew
            assert once.plan
