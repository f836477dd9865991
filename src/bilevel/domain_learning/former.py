"""A learned domain in the words of an earlier version, to which a user may have given names.

Two operators are the same if one of their outcomes is, up to the names of variables. Of several that could be the same,
those are whose conditions, parameters and other outcomes differ least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice, permutations, product
from typing import NamedTuple

from bilevel.domain_learning.learned import LearnedDomain
from bilevel.rules.matching import join
from bilevel.symbolic.domain import Atom, Domain, Outcome, Parameter, Schema
from bilevel.symbolic.semantics import substitute_all

MOST_RENAMINGS = 200  # of the variables of two operators, that are compared
MOST_BINDINGS = 5000  # of the variables in their effects, before those are left out that are none
FORMER = "="  # begins the former's variables while they are compared; no object's name does
Names = Mapping[str, str]


class Match(NamedTuple):
    """How a schema is one of an earlier version: the variables of both, and of the former's outcomes the schema's."""

    distance: int
    names: Names
    outcomes: tuple[int | None, ...]


def in_former_words(learned: LearnedDomain, former: Domain) -> LearnedDomain:
    """Return the learned domain with the names of operators and variables that the former has for the same.

    So has it the former's order of parameters and outcomes, and its name. What is new has names that the former lacks.
    """
    ours = {**learned.domain.schemas, **learned.domain.events}
    theirs = {**former.schemas, **former.events}
    pairs, taken = _pairs(ours, theirs), {*theirs}
    schemas: dict[str, Schema] = {}  # by the names that they had
    counts: dict[str, tuple[int, ...]] = {}
    untold: dict[str, tuple[str, ...]] = {}
    for name, schema in ours.items():
        if name in pairs:
            known, match = pairs[name]
            renamed, order, names = _renamed(schema, theirs[known], match)
        else:
            renamed, order = replace(schema, name=_fresh(name, taken)), tuple(range(len(schema.outcomes)))
            names = {parameter.name: parameter.name for parameter in schema.parameters}
        schemas[name] = renamed
        counts[renamed.name] = tuple(learned.counts[name][number] for number in order)
        if name in learned.untold:
            untold[renamed.name] = tuple(names[variable] for variable in learned.untold[name])
    actions, events = (
        {schemas[name].name: schemas[name] for name in kind} for kind in (learned.domain.schemas, learned.domain.events)
    )
    domain = replace(learned.domain, name=former.name, schemas=actions, events=events)
    return replace(learned, domain=domain, counts=counts, untold=untold)


def _pairs(ours: Mapping[str, Schema], theirs: Mapping[str, Schema]) -> dict[str, tuple[str, Match]]:
    """Return for each of our schemas the one that it was, the nearest first."""
    found = [
        (match.distance, name != known, _new_names(match), name, known, match)
        for name, schema in ours.items()
        for known, former in theirs.items()
        if (match := same_operator(schema, former)) is not None
    ]
    pairs: dict[str, tuple[str, Match]] = {}
    taken: set[str] = set()
    for *_, name, known, match in sorted(found, key=lambda each: each[:-1]):
        if name not in pairs and known not in taken:
            pairs[name] = known, match
            taken.add(known)
    return pairs


def same_operator(schema: Schema, former: Schema) -> Match | None:
    """Return how two schemas are the same, in the way in which they differ least, if they have an outcome in common."""
    ours, theirs = _comparable(schema, "?"), _comparable(former, FORMER)
    numbers = range(len(ours.outcomes)), range(len(theirs.outcomes))
    for together in range(min(map(len, numbers)), 0, -1):
        pairings = product(permutations(numbers[0], together), combinations(numbers[1], together))
        apart = 3 * (len(numbers[0]) + len(numbers[1]) - 2 * together)
        found: list[Match] = []
        for here, there in islice(pairings, MOST_RENAMINGS):
            places = dict(zip(there, here, strict=True))
            outcomes = tuple(places.get(number) for number in numbers[1])
            renamings = islice(_renamings(ours, theirs, here, there), MOST_RENAMINGS)
            found += [Match(_distance(ours, theirs, names) + apart, names, outcomes) for names in renamings]
        if found:
            return min(found, key=lambda match: (match.distance, _new_names(match), sorted(match.names.items())))
    return None


def _new_names(match: Match) -> int:
    return sum(old[1:] != new[1:] for old, new in match.names.items())


class _Side(NamedTuple):
    """One of two schemas that are compared: its variables have names that the other's cannot have."""

    types: Names  # of the parameters
    conditions: frozenset[tuple[bool, Atom]]
    outcomes: Sequence[Outcome]


def _comparable(schema: Schema, prefix: str) -> _Side:
    """Return a schema whose variables begin with the prefix; nature's also have the number of their outcome."""
    names = {parameter.name: prefix + parameter.name[1:] for parameter in schema.parameters}
    outcomes = []
    for number, outcome in enumerate(schema.outcomes):
        natures = {variable.name: f"{prefix}{variable.name[1:]}:{number}" for variable in outcome.chosen}
        outcomes.append(_renamed_outcome(outcome, {**names, **natures}))
    positive, negative = (substitute_all(atoms, names) for atoms in (schema.precondition, schema.negative_precondition))
    conditions = frozenset([(True, atom) for atom in positive] + [(False, atom) for atom in negative])
    return _Side({names[p.name]: p.type for p in schema.parameters}, conditions, outcomes)


def _renamed_outcome(outcome: Outcome, names: Names) -> Outcome:
    return Outcome(
        substitute_all(outcome.add, names),
        substitute_all(outcome.delete, names),
        tuple(Parameter(names.get(variable.name, variable.name), variable.type) for variable in outcome.chosen),
        frozenset(names.get(variable, variable) for variable in outcome.new),
    )


def _renamings(ours: _Side, theirs: _Side, here: Sequence[int], there: Sequence[int]) -> Iterator[Names]:
    """Give the ways to call our variables theirs, each by another name, that make these outcomes equal."""
    pairs = [(ours.outcomes[i], theirs.outcomes[j]) for i, j in zip(here, there, strict=True)]
    atoms = [(atom, their.add) for our, their in pairs for atom in sorted(our.add)]
    atoms += [(atom, their.delete) for our, their in pairs for atom in sorted(our.delete)]
    for found in sorted(islice(join(atoms, {}), MOST_BINDINGS), key=lambda found: sorted(found.items())):
        names = {**found, **_unmentioned(found, pairs)}
        renamed = [_renamed_outcome(our, names) for our, _ in pairs]
        if len({*names.values()}) == len(names) and all(map(_equal, renamed, (their for _, their in pairs))):
            left = [variable for variable in ours.types if variable not in names]
            yield from _completed(
                names, left, [variable for variable in theirs.types if variable not in names.values()]
            )


def _unmentioned(names: Names, pairs: Iterable[tuple[Outcome, Outcome]]) -> Names:
    """Return names for what nature chooses and no effect mentions, in its order."""
    found: dict[str, str] = {}
    for our, their in pairs:
        left = [variable.name for variable in our.chosen if variable.name not in names]
        free = [variable.name for variable in their.chosen if variable.name not in names.values()]
        found |= dict(zip(left, free, strict=False))
    return found


def _equal(one: Outcome, other: Outcome) -> bool:
    """Return whether two outcomes are the same but for the order of nature's variables and their types."""
    chosen = ({variable.name for variable in outcome.chosen} for outcome in (one, other))
    return (one.add, one.delete, one.new, next(chosen)) == (other.add, other.delete, other.new, next(chosen))


def _completed(names: Names, left: Sequence[str], free: Sequence[str]) -> Iterator[Names]:
    """Give the names with those of parameters that no effect mentions; some may have no counterpart."""
    if not left:
        yield names
        return
    first, *rest = left
    for other in sorted(free, key=lambda other: other[1:] != first[1:]):
        yield from _completed({**names, first: other}, rest, [each for each in free if each != other])
    yield from _completed(names, rest, free)


def _distance(ours: _Side, theirs: _Side, names: Names) -> int:
    """Return in how many conditions and parameters two schemas differ."""
    conditions = {(truth, *substitute_all(frozenset({atom}), names)) for truth, atom in ours.conditions}
    same = [v for v, kind in ours.types.items() if theirs.types.get(names.get(v, "")) == kind]
    return len(conditions ^ theirs.conditions) + len(ours.types) + len(theirs.types) - 2 * len(same)


def _renamed(schema: Schema, former: Schema, match: Match) -> tuple[Schema, tuple[int, ...], dict[str, str]]:
    """Return a schema in the words and the order of the former, its outcomes' order, and its parameters' names."""
    there = {old: f"?{new[1:]}" for old, new in match.names.items() if ":" not in old}
    taken = {*there.values()}
    names = {p.name: there.get(p.name) or _fresh(p.name, taken) for p in schema.parameters}
    parameters = {names[p.name]: Parameter(names[p.name], p.type) for p in schema.parameters}
    ordered = [parameters[p.name] for p in former.parameters if p.name in parameters]
    ordered += [parameter for parameter in parameters.values() if parameter not in ordered]
    order = [number for number in match.outcomes if number is not None]
    order += [number for number in range(len(schema.outcomes)) if number not in order]
    outcomes = []
    for number in order:
        natures = {v.name: match.names.get(f"{v.name}:{number}") for v in schema.outcomes[number].chosen}
        called = {
            v: f"?{new[1:].partition(':')[0]}" if new else _fresh(v, {*names.values()}) for v, new in natures.items()
        }
        outcome = _renamed_outcome(schema.outcomes[number], {**names, **called})
        if number in match.outcomes:
            their = [v.name for v in former.outcomes[match.outcomes.index(number)].chosen]
            outcome = replace(outcome, chosen=tuple(sorted(outcome.chosen, key=lambda v: their.index(v.name))))
        outcomes.append(outcome)
    positive, negative = (substitute_all(each, names) for each in (schema.precondition, schema.negative_precondition))
    return Schema(former.name, tuple(ordered), positive, tuple(outcomes), negative), tuple(order), names


def _fresh(name: str, taken: set[str]) -> str:
    """Return the name, or one like it that is not taken yet."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    taken.add(free)
    return free
