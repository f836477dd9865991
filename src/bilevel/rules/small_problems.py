"""The small problems of a domain, up to a number of objects, each with all its states and every goal that can come up.

A seed is grown by cloning: the k-th object of a type is the seed's own k-th, or else a clone of its last. A clone has
every fact of the last object with itself in its place, so the last object of a type should be a typical one (not the
place where the robot is). In a fact over the last objects of several growing types their first clones go together,
their second clones, and so on: `at(b1, l1)` gives `at(b2, l2)`, not every pair. Types that must keep pace, as one tray
for each colour, grow together: the key `colour+tray`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, combinations, groupby, islice, permutations, product
from math import prod
from typing import Any

from bilevel.rules.matching import narrowest_join
from bilevel.rules.rule import Rule
from bilevel.rules.state_graph import StateGraph
from bilevel.symbolic.axioms import close, outcome_in
from bilevel.symbolic.domain import EQUALITY, Atom, BadInput, Domain, Facts, Problem
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import bind_outcome, fresh_names, ground, progress, substitute, substitute_all

MOST_SIZES = 300  # of grown problems; far fewer are small enough to be looked at
MOST_GOALS = 50_000  # before those that are the same up to names are told
MOST_EXPLORED = 500  # states of a seed, to find out what is true of one object at a time
MOST_RENAMINGS = 20_000  # that are tried; with more, some problems that are the same are told apart: slower, not wrong
LARGER = 2  # times as many objects as in the largest small problems
STEPS_PER_OBJECT = 3  # of a random walk
MOST_DRAWN = 200  # ways to do an action, to find one that can be done
_COUNT = re.compile(r"[0-9]{1,9}")  # Python refuses to convert thousands of digits

Size = Mapping[str, int]  # how many objects of each growing type


def parse_counts(texts: Iterable[str]) -> dict[str, int]:
    """Return the most objects of each growing type, from texts such as `block=4` and `colour+tray=3`."""
    counts = {}
    for text in texts:
        key, equals, count = text.partition("=")
        if not (key and equals and _COUNT.fullmatch(count)):
            raise BadInput(f"'{text}' is not a count of objects; write for example block=4 or colour+tray=3")
        counts[key] = int(count)
    return counts


def grown_problems(seeds: Sequence[Problem], domain: Domain, counts: Size | None) -> list[tuple[Size, Problem]]:
    """Return each seed with up to so many objects, and its size, those with the fewest objects first, and none twice.

    Without counts there are up to as many objects of each type as the seed has.
    """
    if min((counts or {"": 1}).values()) < 1:
        raise BadInput("at least one object of each growing type is needed")
    if prod((counts or {}).values()) > MOST_SIZES:
        raise BadInput(f"these are more than {MOST_SIZES} sizes of problems; grow fewer types, or by fewer objects")
    if not goal_predicates(seeds):
        raise BadInput("no problem with a goal to start from: goals are made of the predicates of the problems' goals")
    grown = [(size, grow(seed, domain, size)) for seed in seeds for size in sizes(counts or own_counts(seed)) or [{}]]
    distinct: dict[object, tuple[Size, Problem]] = {}
    for size, problem in sorted(grown, key=lambda each: len(each[1].objects)):
        distinct.setdefault((frozenset(problem.objects.items()), problem.state), (size, problem))
    kept = plausible([problem for _, problem in distinct.values()], seeds if counts else (), domain)
    return [(size, problem) for size, problem in distinct.values() if problem in kept]


def goal_predicates(seeds: Sequence[Problem]) -> frozenset[str]:
    """Return what goals are made of: the predicates of the seeds' goals."""
    return frozenset(atom.predicate for seed in seeds for atom in seed.goal)


def wanted_kinds(goal: Facts, objects: Mapping[str, str]) -> set[Facts]:
    """Return what a goal says of its objects: for each the facts about it, with its type for it and _ for others."""
    return {
        frozenset(
            Atom(atom.predicate, tuple(objects[name] if term == name else "_" for term in atom.terms))
            for atom in goal
            if name in atom.terms
        )
        for name in {term for atom in goal for term in atom.terms}
    }


def own_counts(problem: Problem) -> dict[str, int]:
    """Return the number of objects of each type that has several."""
    return {kind: count for kind, count in Counter(problem.objects.values()).items() if count > 1}


def sizes(counts: Size) -> list[Size]:
    """Return every combination of counts from 1 up to those given; none if they are many."""
    if not counts or prod(counts.values()) > MOST_SIZES:
        return []
    return [dict(zip(counts, n, strict=True)) for n in product(*(range(1, n + 1) for n in counts.values()))]


def grow(problem: Problem, domain: Domain, counts: Size) -> Problem:
    """Return the problem with exactly so many objects of each type; of its goal, what its remaining objects leave."""
    if not counts:
        return problem
    most = {growing: count for key, count in counts.items() for growing in key.split("+")}
    grows = {n: next((g for g in most if domain.is_subtype(kind, g)), None) for n, kind in problem.objects.items()}
    objects = {name: problem.objects[name] for name, growing in grows.items() if growing is None}
    taken = {**problem.objects, **domain.constants}
    clones: dict[str, list[str]] = {}  # of the last object of each growing type
    for growing, count in most.items():
        own = [name for name in grows if grows[name] == growing]
        if not own:
            raise BadInput(f"problem '{problem.name}' has no object of type '{growing}' to clone; give it one")
        names = fresh_names(own[-1].rstrip("0123456789") or taken[own[-1]], taken)
        clones[own[-1]] = [*islice(names, max(0, count - len(own)))]
        taken |= dict.fromkeys(clones[own[-1]], taken[own[-1]])
        objects |= {name: taken[name] for name in [*own[:count], *clones[own[-1]]]}
    state = set(problem.state)
    for atom in problem.state:  # first clones go together, second clones, and so on
        replaced = [term for term in dict.fromkeys(atom.terms) if term in clones]
        for together in zip(*(clones[term] for term in replaced), strict=False):
            state.add(substitute(atom, dict(zip(replaced, together, strict=True))))
    known = objects.keys() | domain.constants.keys()
    facts = frozenset(atom for atom in state if known >= set(atom.terms))
    return Problem(
        ", ".join([problem.name, *(f"{key}={count}" for key, count in counts.items())]),
        problem.domain_name,
        objects,
        state=close(facts, domain, {**domain.constants, **objects}),
        goal=frozenset(atom for atom in problem.goal if known >= set(atom.terms)),
    )


def plausible(problems: Sequence[Problem], seeds: Sequence[Problem], domain: Domain) -> list[Problem]:
    """Return the problems in which no object is in two places at once just because one of them was cloned.

    No state that the seeds' actions lead to has a block at two places, though there are two; so none may begin so.
    """

    def counted(facts: Facts, objects: Mapping[str, str]) -> Iterator[tuple[tuple[str, int, str], int]]:
        """Yield how often an object of a type comes first or second in facts of a predicate with two arguments."""
        found = Counter((atom.predicate, i, atom.terms[i]) for atom in facts if len(atom.terms) == 2 for i in (0, 1))
        for (predicate, place, name), count in found.items():
            if name in objects:
                yield (predicate, place, objects[name]), count

    most: Counter[tuple[str, int, str]] = Counter()
    for seed in seeds:
        graph = StateGraph(domain, seed)
        graph.explore(MOST_EXPLORED)
        for facts, _ in graph.situations:
            for (predicate, place, kind), count in counted(facts, graph.objects):
                other = domain.predicates[predicate].parameters[1 - place].type
                if sum(domain.is_subtype(each, other) for each in graph.objects.values()) > 1:
                    most[predicate, place, kind] = max(most[predicate, place, kind], count)
    return [
        problem
        for problem in problems
        if all(count == 1 or most[key] != 1 for key, count in counted(problem.state, problem.all_objects(domain)))
    ]


# States and goals


def small_problems(
    seeds: Sequence[Problem], grown: Iterable[tuple[Size, Problem]], domain: Domain, rules: Sequence[Rule], most: int
) -> Iterator[tuple[Size, StateGraph, list[Facts] | None]]:
    """Yield the states and the goals of each grown problem; no goals where it, or a part of it, is too large."""
    predicates, too_large = goal_predicates(seeds), list[Problem]()
    for size, problem in grown:
        graph, goals = StateGraph(domain, problem, rules), None
        if not any(problem.objects.items() >= p.objects.items() and problem.state >= p.state for p in too_large):
            goals = all_goals(graph, predicates, most)
        too_large += [problem] if goals is None else []
        yield size, graph, goals


def all_goals(graph: StateGraph, predicates: Set[str], most: int) -> list[Facts] | None:
    """Return all goals of a problem, whose states are explored, unless there are more than so many of either.

    They are the sets of facts of these predicates, about the problem's own objects, that some state has, and that are
    not empty; one of each kind that is the same up to names, the smallest first.
    """
    if not graph.explore(most):
        return None
    possible = frozenset(atom for facts, _ in graph.situations for atom in facts if atom.predicate in predicates)
    graph.goal_facts = frozenset(atom for atom in possible if graph.objects.keys() >= set(atom.terms))
    goals: set[Facts] = set()
    for facts in sorted({graph.goal_facts & facts for facts, _ in graph.situations}, key=sorted):
        if 2 ** len(facts) > MOST_GOALS or len(goals) > MOST_GOALS:
            return None
        goals.update(frozenset(goal) for size in range(1, len(facts) + 1) for goal in combinations(facts, size))
    renamings = symmetries(graph.problem)
    seen, distinct = set[Facts](), list[Facts]()
    for goal in sorted(goals, key=sorted):
        if goal not in seen:
            distinct.append(goal)
            seen.update(substitute_all(goal, names) for names in renamings)
    return sorted(distinct, key=lambda goal: (len(goal), sorted(goal))) if len(distinct) <= most else None


def namings(objects: Mapping[str, str], others: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the ways to call objects by the names of others; none where they are not as many of the same types."""
    if Counter(objects.values()) == Counter(others.values()):
        own, theirs = sorted(objects, key=lambda name: objects[name]), list[Iterator[tuple[str, ...]]]()
        for kind in sorted({*others.values()}):
            theirs.append(permutations([name for name in others if others[name] == kind]))
        for order in product(*theirs):
            yield dict(zip(own, chain(*order), strict=True))


def symmetries(problem: Problem) -> list[dict[str, str]]:
    """Return the renamings of objects that leave the problem's state as it is, the identity first; some are tried."""
    candidates = islice(namings(problem.objects, problem.objects), MOST_RENAMINGS)
    return [n for n in candidates if all(substitute(atom, n) in problem.state for atom in problem.state)]


# Larger problems: they begin and end where random actions lead


def random_larger_problems(
    seeds: Sequence[Problem], domain: Domain, counts: Size | None, number: int, seed: int
) -> Iterator[Problem]:
    """Yield problems with twice the objects that begin where random actions lead, and end where more of them lead.

    Without counts they have twice as many objects as the seeds of each type that has several.
    """
    predicates = goal_predicates(seeds)
    sizes = [{key: LARGER * count for key, count in (counts or own_counts(p)).items()} for p in seeds]
    larger = [grow(problem, domain, size) for problem, size in zip(seeds, sizes, strict=True)]
    larger = plausible(larger, seeds, domain) or larger
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
        state = _random_step(domain, nature, state, rng)
    return state


def _random_step(domain: Domain, nature: Nature, state: Facts, rng: random.Random) -> Facts:
    """Return the state after the first applicable action in a random order of facts, schemas and objects."""
    objects = nature.objects
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
        well_typed = (
            names
            for names in arguments
            if all(domain.is_subtype(objects[n], p.type) for n, p in zip(names, schema.parameters, strict=True))
        )
        for action in (ground(schema, names) for names in islice(well_typed, MOST_DRAWN)):
            if action is not None and action.condition.holds(state):
                move = nature.move(schema)
                outcome = bind_outcome(action.outcomes[move.outcome], move.binding)
                return progress(state, outcome_in(state, outcome, domain, objects))
    return state


def _shuffled(items: Iterable[Any], rng: random.Random) -> list[Any]:
    found = sorted(items)
    rng.shuffle(found)
    return found
