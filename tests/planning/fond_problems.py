"""Problems with nondeterministic actions to try planners on: small and random."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

from exact_fond import all_actions

from bilevel.symbolic.axioms import successors
from bilevel.symbolic.domain import Atom, Domain, Facts, Outcome, Parameter, Predicate, Problem, Schema

ARITIES = {"p": 0, "q": 0, "r": 1, "s": 1, "t": 2}
PREDICATES = {
    name: Predicate(name, tuple(Parameter(f"?x{i}") for i in range(arity))) for name, arity in ARITIES.items()
}
TYPES = {"cup": "object", "lid": "object"}
OBJECTS = {"a": "cup", "b": "cup", "c": "lid"}


def random_atoms(rng: random.Random, terms: list[str], count: int) -> Facts:
    names = rng.choices(list(ARITIES), k=count)
    return frozenset(Atom(name, tuple(rng.choices(terms, k=ARITIES[name]))) for name in names)


def random_choice(rng: random.Random, terms: list[str]) -> list[Outcome]:
    """One `oneof`, sometimes with an outcome that does nothing, sometimes with one that nature fills in."""
    outcomes = []
    for _ in range(rng.choice([1, 2, 2, 3])):
        chosen = (Parameter("?n", rng.choice(["object", *TYPES])),) if rng.random() < 0.1 else ()
        within = terms + [variable.name for variable in chosen]
        add, delete = random_atoms(rng, within, rng.randint(0, 2)), random_atoms(rng, within, rng.randint(0, 2))
        outcomes.append(Outcome(add, delete, chosen))
    return outcomes


def random_schema(rng: random.Random, name: str) -> Schema:
    parameters = tuple(Parameter(f"?{i}", rng.choice(["object", *TYPES])) for i in range(rng.randint(0, 2)))
    terms = [parameter.name for parameter in parameters] + ["a"]
    choices = [random_choice(rng, terms)]
    if rng.random() < 0.3:
        choices.append([outcome for outcome in random_choice(rng, terms) if not outcome.chosen])
    outcomes = tuple(
        Outcome(
            frozenset[Atom]().union(*(part.add for part in parts)),
            frozenset[Atom]().union(*(part.delete for part in parts)),
            parts[0].chosen,
        )
        for parts in product(*(choice for choice in choices if choice))
    )
    negative = random_atoms(rng, terms, rng.randint(0, 1))
    if len(parameters) == 2 and rng.random() < 0.5:
        negative |= {Atom("=", (terms[0], terms[1]))}
    return Schema(name, parameters, random_atoms(rng, terms, rng.randint(1, 2)), outcomes, negative)


def random_facts_problem(rng: random.Random) -> tuple[Domain, Problem]:
    """Facts that come and go; most such problems are easy or have no policy."""
    schemas = {name: random_schema(rng, name) for name in ("one", "two", "three", "four", "five")[: rng.randint(3, 5)]}
    domain = Domain("random", PREDICATES, schemas, TYPES)
    state = random_atoms(rng, list(OBJECTS), 4)
    problem = Problem("random", "random", OBJECTS, state, random_atoms(rng, list(OBJECTS), 2))
    new = sorted(random_walk(rng, domain, problem) - state)
    return domain, replace(problem, goal=frozenset(rng.sample(new, min(3, len(new))))) if new else problem


def random_walk(rng: random.Random, domain: Domain, problem: Problem) -> Facts:
    """The state after ten random steps, or fewer where nothing applies."""
    state, actions, objects = problem.state, all_actions(domain, problem), problem.all_objects(domain)
    for _ in range(10):
        possible = [
            after
            for action in actions
            if action.condition.holds(state)
            for after in sorted(map(sorted, successors(state, action, domain, objects)))
        ]
        state = frozenset(rng.choice(possible)) if possible else state
    return state


def random_journey(rng: random.Random) -> tuple[Domain, Problem]:
    """A traveller between places whom each step may lead to one of several, some of them with no way out.

    A switch, which some steps flip and some need on or off, doubles the states.
    """
    places = [Atom(f"at{number}") for number in range(9)]
    switch = Atom("on")
    schemas = {}
    for number in range(rng.randint(12, 22)):
        start = rng.choice(places)
        outcomes = []
        for end in rng.choices(places, k=rng.randint(1, 3)):
            flip = rng.choice([(set(), set()), (set(), set()), ({switch}, set()), (set(), {switch})])
            outcomes.append(Outcome(frozenset({end} | flip[0]), frozenset({start} | flip[1])))
        need = rng.random()
        positive = frozenset({start, switch} if need < 0.15 else {start})
        negative = frozenset({switch} if need > 0.85 else set())
        schemas[f"go{number}"] = Schema(f"go{number}", (), positive, tuple(outcomes), negative)
    predicates = {atom.predicate: Predicate(atom.predicate) for atom in (*places, switch)}
    domain = Domain("journey", predicates, schemas)
    return domain, Problem("journey", "journey", {}, frozenset({places[0]}), frozenset({places[-1]}))


def random_problem(seed: int) -> tuple[Domain, Problem]:
    rng = random.Random(seed)
    return random_journey(rng) if seed % 2 else random_facts_problem(rng)
