"""Random problems that are larger than those a policy is proved on: they begin and end where random actions lead."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import TypeVar

from bilevel.rules.matching import narrowest_join
from bilevel.rules.small_problems import Size, goal_predicates, grow, is_plausible, own_counts, single_facts
from bilevel.symbolic.domain import EQUALITY, Atom, Domain, Facts, Problem, Schema
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import GroundAction, applicable, bind_outcome, ground, progress

LARGER = 2  # times as many objects as in the largest small problems
STEPS_PER_OBJECT = 3  # of a random walk
MOST_DRAWN = 200  # ways to do an action, to find one that can be done

Item = TypeVar("Item", str, Atom)


def random_larger_problems(
    seeds: Sequence[Problem], domain: Domain, counts: Size | None, number: int, seed: int
) -> Iterator[Problem]:
    """Yield problems with twice the objects that begin where random actions lead, and end where more of them lead.

    Without counts they have twice as many objects as the seeds of each type that has several.
    """
    if not number:
        return
    predicates, single = goal_predicates(seeds), single_facts(seeds, domain)
    sizes = [{key: LARGER * count for key, count in (counts or own_counts(p)).items()} for p in seeds]
    larger = [grow(problem, domain, size) for problem, size in zip(seeds, sizes, strict=True)]
    larger = [problem for problem in larger if is_plausible(problem, domain, single)] or larger
    for n in range(number):
        rng, grown = random.Random(f"{seed} {n}"), larger[n % len(larger)]
        nature, steps = Nature(domain, grown.all_objects(domain), rng), STEPS_PER_OBJECT * len(grown.objects)
        start = _random_walk(domain, nature, grown.state, steps, rng)
        objects_then = {name: kind for name, kind in nature.objects.items() if name not in domain.constants}
        end = _random_walk(domain, nature, start, steps, rng)
        known = objects_then.keys() | domain.constants.keys()
        possible = sorted(a for a in end - start if a.predicate in predicates and known >= set(a.terms))
        goal = frozenset(fact for fact in possible if rng.random() < 0.8) or frozenset(possible[:1])
        if goal:
            yield replace(grown, name=f"random-{n}", objects=objects_then, state=start, goal=goal)


def _random_walk(domain: Domain, nature: Nature, state: Facts, steps: int, rng: random.Random) -> Facts:
    """Return the state after up to so many actions, drawn at random."""
    for _ in range(rng.randrange(steps // 2, steps + 1)):
        if action := _random_action(domain, state, nature.objects, rng):
            move = nature.move(domain.schemas[action.action.name])
            state = progress(state, bind_outcome(action.outcomes[move.outcome], move.binding))
    return state


def _random_action(domain: Domain, state: Facts, objects: Mapping[str, str], rng: random.Random) -> GroundAction | None:
    """Return the first applicable action that is found in a random order of facts, schemas and objects."""
    by_predicate = groupby(sorted(state), key=lambda fact: fact.predicate)
    facts = {predicate: _shuffled(found, rng) for predicate, found in by_predicate}
    for schema in map(domain.schemas.__getitem__, _shuffled(domain.schemas, rng)):
        needed = [(a, facts.get(a.predicate, ())) for a in sorted(schema.precondition) if a.predicate != EQUALITY]
        bound = {term for atom, _ in needed for term in atom.terms}
        for parameter in schema.parameters:
            if parameter.name not in bound:
                fitting = [name for name, kind in objects.items() if domain.is_subtype(kind, parameter.type)]
                needed.append((Atom("", (parameter.name,)), [Atom("", (name,)) for name in _shuffled(fitting, rng)]))
        arguments = (tuple(binding[p.name] for p in schema.parameters) for binding in narrowest_join(needed, {}))
        well_typed = (names for names in arguments if _fits(names, schema, domain, objects))
        for action in (ground(schema, names) for names in islice(well_typed, MOST_DRAWN)):
            if action is not None and applicable(state, action):
                return action
    return None


def _shuffled(items: Iterable[Item], rng: random.Random) -> list[Item]:
    found = sorted(items)
    rng.shuffle(found)
    return found


def _fits(names: Sequence[str], schema: Schema, domain: Domain, objects: Mapping[str, str]) -> bool:
    parameters = zip(names, schema.parameters, strict=True)
    return all(domain.is_subtype(objects[name], parameter.type) for name, parameter in parameters)
