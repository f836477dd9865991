"""All problems of a domain up to a number of objects: grown from seeds, up to the renaming of objects.

A seed is grown by cloning: the k-th object of a type is the seed's own k-th, or else a clone of its last. A clone has
every fact of the last object with itself in its place, so the last object of a type should be a typical one (not the
place where the robot is). In a fact over the last objects of several growing types their first clones go together,
their second clones, and so on: `at(b1, l1)` gives `at(b2, l2)`, not every pair. Types that must keep pace, as one tray
for each colour, grow together: the key `colour+tray`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice, permutations, product
from math import prod
from typing import Literal

from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import ROOT_TYPE, Atom, BadInput, Domain, Facts, Parameter, Problem
from bilevel.symbolic.semantics import new_object, substitute

MOST_SIZES = 10_000  # of grown problems; far fewer are small enough to be looked at
_COUNT = re.compile(r"[0-9]{1,9}")  # Python refuses to convert thousands of digits
MOST_RENAMINGS = 20_000  # that are tried; with more, some problems that are the same are told apart: slower, not wrong

Size = Mapping[str, int]  # how many objects of each growing type

# Problems begin in the grown seed's own state, in any that actions lead to from there, or in those of them that have
# every fact without arguments as at first (the hand free).
Starts = Literal["initial", "at-rest", "any"]


@dataclass(frozen=True)
class Family:
    """Seeds, the most objects of each growing type, and which starts and goals are meant.

    Goals are made of facts that can come up, of the predicates of the seeds' goals: at most one for each first argument
    or, with `complete_goals`, one for every first argument there is.
    """

    seeds: tuple[Problem, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    starts: Starts = "at-rest"
    complete_goals: bool = False


def parse_counts(texts: Iterable[str]) -> dict[str, int]:
    """Return the most objects of each growing type, from texts such as `block=4` and `colour+tray=3`."""
    counts = {}
    for text in texts:
        key, equals, count = text.partition("=")
        if not (key and equals and _COUNT.fullmatch(count)):
            raise BadInput(f"'{text}' is not a count of objects; write for example block=4 or colour+tray=3")
        counts[key] = int(count)
    return counts


def sizes(counts: Mapping[str, int]) -> list[dict[str, int]]:
    """Return every combination of counts from 1 up to those given, the fewest objects first."""
    combinations = [dict(zip(counts, n, strict=True)) for n in product(*(range(1, n + 1) for n in counts.values()))]

    def rank(size: Mapping[str, int]) -> tuple[int, ...]:
        return sum(n * len(key.split("+")) for key, n in size.items()), *size.values()

    return sorted(combinations, key=rank)


def grow(problem: Problem, domain: Domain, counts: Mapping[str, int]) -> Problem:
    """Return the problem with exactly so many objects of each type; of its goal, what its remaining objects leave."""
    objects = {name: kind for name, kind in problem.objects.items() if _growing(kind, domain, counts) is None}
    taken = {**problem.objects, **domain.constants}
    clones: dict[str, list[str]] = {}  # of the last object of each growing type
    for key, count in counts.items():
        for growing in key.split("+"):
            own = [n for n, k in problem.objects.items() if _growing(k, domain, counts) == growing]
            if not own:
                raise BadInput(f"problem '{problem.name}' has no object of type '{growing}' to clone; give it one")
            last, kind = own[-1], problem.objects[own[-1]]
            clones[last] = []
            for _ in range(count - len(own)):
                clones[last].append(new_object(Parameter("?clone", last.rstrip("0123456789") or kind), taken))
                taken[clones[last][-1]] = kind
            objects.update({name: taken[name] for name in [*own[:count], *clones[last]]})
    known = objects.keys() | domain.constants.keys()
    state = problem.state.union(_cloned(problem.state, clones))
    return Problem(
        grown_name(problem, counts),
        problem.domain_name,
        objects,
        state=frozenset(atom for atom in state if known >= set(atom.terms)),
        goal=frozenset(atom for atom in problem.goal if known >= set(atom.terms)),
    )


def grown_name(problem: Problem, counts: Mapping[str, int]) -> str:
    """Return the name of a problem with so many objects of each kind."""
    return ", ".join([problem.name, *(f"{key}={count}" for key, count in counts.items())])


def _growing(kind: str, domain: Domain, counts: Mapping[str, int]) -> str | None:
    """Return the first growing type that objects of this kind belong to."""
    types = (growing for key in counts for growing in key.split("+"))
    return next((growing for growing in types if domain.is_subtype(kind, growing)), None)


def _cloned(facts: Facts, clones: Mapping[str, Sequence[str]]) -> Iterator[Atom]:
    """Yield each fact with the cloned objects replaced by their first clones, by their second ones and so on."""
    for atom in facts:
        replaced = [term for term in dict.fromkeys(atom.terms) if term in clones]
        for together in zip(*(clones[term] for term in replaced), strict=False):
            yield substitute(atom, dict(zip(replaced, together, strict=True)))


def grown_seeds(
    family: Family, domain: Domain, too_large: Sequence[tuple[Problem, Size]]
) -> Iterator[tuple[Problem, Size, Problem]]:
    """Yield each seed in each size, but none that comes out equal to another or is as large as one found too large."""
    seen: list[Problem] = []
    for size, seed in product(sizes(family.counts), family.seeds):
        if any(other is seed and all(size[key] >= smaller[key] for key in size) for other, smaller in too_large):
            continue
        grown = grow(seed, domain, size)
        if not any(other.objects == grown.objects and other.state == grown.state for other in seen):
            seen.append(grown)
            yield seed, size, grown


def goals_of(atoms: Iterable[Atom], complete: bool = False) -> Iterator[Facts]:
    """Yield every goal made of these facts, with at most one, or exactly one, for each first argument."""
    options: dict[tuple[str, ...], list[Atom]] = {}
    for atom in atoms:
        options.setdefault((atom.predicate, *atom.terms[:1]), []).append(atom)
    nothing: list[Atom | None] = [] if complete else [None]
    for chosen in product(*([*nothing, *choices] for choices in options.values())):
        goal = frozenset(atom for atom in chosen if atom is not None)
        if goal:
            yield goal


def namings(objects: Mapping[str, str], others: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the ways to call objects by the names of others; none where they are not as many of the same types."""
    own, theirs = _by_type(objects), _by_type(others)
    if {kind: len(names) for kind, names in own.items()} == {kind: len(names) for kind, names in theirs.items()}:
        for order in product(*(permutations(theirs[kind]) for kind in own)):
            yield dict(zip(chain(*own.values()), chain(*order), strict=True))


def _by_type(objects: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, kind in objects.items():
        found.setdefault(kind, []).append(name)
    return found


Renaming = Callable[[Facts], Facts]  # a permutation of objects


def _renaming(names: Mapping[str, str]) -> Renaming:
    changed = {name: other for name, other in names.items() if name != other}
    renamed = cache(lambda atom: substitute(atom, changed))  # as the same atoms are in many states
    return lambda facts: frozenset(map(renamed, facts))


def symmetries(problem: Problem, rules: Sequence[Rule]) -> list[Renaming]:
    """Return the renamings of objects that leave the problem's state and the rules as they are, the identity first."""
    fixed = {term for rule in rules for atom in (*rule.atoms, rule.action) for term in atom[1]}
    objects = {name: kind for name, kind in problem.objects.items() if name not in fixed}
    candidates = islice(namings(objects, objects), MOST_RENAMINGS)
    return [_renaming(n) for n in candidates if all(substitute(atom, n) in problem.state for atom in problem.state)]


def distinct_goals(candidates: Iterable[Facts], renamings: Sequence[Renaming]) -> list[Facts]:
    """Return one goal of each kind that is the same up to renaming, the smallest goals first."""
    seen: set[Facts] = set()
    distinct = []
    for goal in candidates:
        if goal not in seen:
            distinct.append(goal)
            seen.update(renaming(goal) for renaming in renamings)
    return sorted(distinct, key=lambda goal: (len(goal), sorted(goal)))


def at_rest(initial: Facts, state: Facts) -> bool:
    """Return whether the facts without arguments that held at first hold."""
    return all(atom in state for atom in initial if not atom.terms)


def check_family(family: Family, domain: Domain) -> None:
    """`BadInput` for types and goals that the domain does not know, and for no problems or too many."""
    types = {*domain.types, *domain.types.values(), ROOT_TYPE}
    types.update(p.type for predicate in domain.predicates.values() for p in predicate.parameters)
    for key, count in family.counts.items():
        for kind in key.split("+"):
            if kind not in types:
                raise BadInput(f"unknown type '{kind}' in '{key}={count}'; known types: {', '.join(sorted(types))}")
        if count < 1:
            raise BadInput(f"'{key}={count}': at least one object of each type is needed")
    if prod(family.counts.values()) > MOST_SIZES:
        raise BadInput(f"these are more than {MOST_SIZES} sizes of problems; grow fewer types, or by fewer objects")
    wanted = sorted({atom for seed in family.seeds for atom in seed.goal})
    if not wanted:
        raise BadInput("no seed problem has a goal; goals are made of the predicates of the seeds' goals")
    for atom in wanted:
        if atom.predicate not in domain.predicates:
            raise BadInput(f"goal {atom}: domain '{domain.name}' has no predicate '{atom.predicate}'")
