"""What always held when something happened, over its objects and those that facts link to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from bilevel.domain_learning.changes import Seen
from bilevel.domain_learning.lifting import Binding, Occurrence
from bilevel.rules.matching import join
from bilevel.symbolic.domain import NO_FACTS, ROOT_TYPE, Atom, Domain, Facts
from bilevel.symbolic.semantics import substitute_all

MOST_LINKED = 2  # further objects that conditions may name
Seens = Sequence[Seen]
MOST_STATES = 600  # in which it is looked whether a condition ever mattered
USUALLY = 0.8


@dataclass(frozen=True)
class Linked:
    """A further variable, what is said of it, and its object in each occurrence, where it has one."""

    variable: str
    conditions: Facts
    objects: tuple[str | None, ...]


def held_always(occurrences: Sequence[Occurrence], misses: int) -> Facts:
    """Return what held before all occurrences, but for a few, over their own objects."""
    counts: Counter[Atom] = Counter()
    for occurrence in occurrences:
        counts.update(_over(occurrence.change.before, _names(occurrence.binding)))
    return frozenset(atom for atom, count in counts.items() if count >= len(occurrences) - misses)


def _names(binding: Mapping[str, str]) -> dict[str, str]:
    return {name: variable for variable, name in binding.items()}


def _over(facts: Iterable[Atom], names: Mapping[str, str]) -> set[Atom]:
    """Return the facts that mention nothing but the named objects, with their names."""
    return {
        Atom(fact.predicate, tuple(names[term] for term in fact.terms))
        for fact in facts
        if all(term in names for term in fact.terms)
    }


def linked_objects(occurrences: Sequence[Occurrence], misses: int) -> list[Linked]:
    """Return further objects of which the same is said each time, by facts that link them to those of the change."""
    tables = [_links(occurrence) for occurrence in occurrences]
    found: list[Linked] = []
    whole = {frozenset(patterns) for table in tables[:3] for patterns in table.values()}
    pairs = {frozenset(pair) for patterns in whole for pair in combinations(sorted(patterns), 2)}
    for start in sorted(whole | pairs, key=lambda patterns: (-len(patterns), sorted(patterns))):
        patterns = _common(start, tables, misses)
        if any(_is_link(pattern) for pattern in patterns) and not any(patterns <= other.conditions for other in found):
            found = [other for other in found if not other.conditions <= patterns]
            objects = tuple(_fitting(table, patterns) for table in tables)
            found.append(Linked(HERE, patterns, objects))
    found.sort(key=lambda each: (-_links_together(each), -len(each.conditions), sorted(each.conditions)))
    return [
        Linked(f"?y{i}", substitute_all(each.conditions, {HERE: f"?y{i}"}), each.objects)
        for i, each in enumerate(found[:MOST_LINKED])
    ]


def _links_together(linked: Linked) -> int:
    """How many of the change's objects have to do with the further one."""
    return len({term for atom in linked.conditions for term in atom.terms if term != HERE})


HERE = "?here"


def _links(occurrence: Occurrence) -> dict[str, set[Atom]]:
    """Return what the state before says of each further object, alone or together with those of the change."""
    names = _names(occurrence.binding)
    found: dict[str, set[Atom]] = {}
    for fact in occurrence.change.before:
        others = {term for term in fact.terms if term not in names}
        if len(others) == 1:
            (name,) = others
            pattern = Atom(fact.predicate, tuple(names.get(term, HERE) for term in fact.terms))
            found.setdefault(name, set()).add(pattern)
    return {name: found[name] for name in sorted(found) if any(map(_is_link, found[name]))}


def _is_link(pattern: Atom) -> bool:
    return any(term != HERE for term in pattern.terms)


def _common(start: frozenset[Atom], tables: Sequence[Mapping[str, set[Atom]]], misses: int) -> frozenset[Atom]:
    """Return what of a few patterns holds of one object in all occurrences, but for a few of these."""
    patterns = start
    while patterns:
        counts: Counter[Atom] = Counter()
        for table in tables:
            counts.update(max((patterns & said for said in table.values()), key=_most, default=NO_FACTS))
        kept = frozenset(pattern for pattern in patterns if counts[pattern] >= len(tables) - misses)
        together = sum(any(kept <= said for said in table.values()) for table in tables)
        if kept == patterns and together >= len(tables) - misses:
            return patterns
        patterns = kept if kept != patterns else kept - {min(kept, key=lambda pattern: (counts[pattern], pattern))}
    return patterns


def _most(patterns: Iterable[Atom]) -> tuple[int, list[Atom]]:
    ordered = sorted(patterns)
    return len(ordered), ordered


def _fitting(table: Mapping[str, set[Atom]], patterns: frozenset[Atom]) -> str | None:
    return next((name for name, said in table.items() if patterns <= said), None)


def satisfying(conditions: Facts, state: Facts, binding: Binding | None = None) -> Iterator[Binding]:
    """Yield every way in which the conditions hold in a state."""
    by_predicate: dict[str, list[Atom]] = {}
    for fact in state:
        by_predicate.setdefault(fact.predicate, []).append(fact)
    order: list[tuple[Atom, Facts]] = []
    bound = set(binding or {})
    left = sorted(conditions)
    while left:  # the one with the fewest open variables next, so that few facts have to be tried
        atom = min(left, key=lambda atom: (len({*atom.terms} - bound), len(by_predicate.get(atom.predicate, ()))))
        left.remove(atom)
        bound.update(atom.terms)
        order.append((atom, frozenset(by_predicate.get(atom.predicate, ()))))
    yield from join(order, dict(binding or {}))


def never_mattered(
    conditions: Facts, tested: Facts, types: Mapping[str, str], some: Collection[str], domain: Domain, seen: Seens
) -> bool:
    """Whether in all states, and for all objects of which the other conditions hold, the tested ones hold as well.

    Variables that only the tested ones have are all objects of their type, but those among `some` are any one of them.
    """
    rest = conditions - tested
    bound = {term for atom in rest for term in atom.terms}
    left = {term for atom in tested for term in atom.terms} - bound
    every_one = sorted(left.difference(some))
    for state, objects in seen[:: 1 + len(seen) // MOST_STATES]:

        def fits(binding: Binding, objects: Mapping[str, str] = objects) -> bool:
            return all(domain.is_subtype(objects.get(name, ROOT_TYPE), types[v]) for v, name in binding.items())

        choices = [[o for o, kind in objects.items() if domain.is_subtype(kind, types[v])] for v in every_one]
        for found in filter(fits, satisfying(rest, state)):
            for chosen in product(*choices):
                binding = found | dict(zip(every_one, chosen, strict=True))
                wanted = substitute_all(tested, binding)
                if not wanted <= state and not any(map(fits, satisfying(wanted, state))):
                    return False
    return True


def is_wider(one: Atom, other: Atom, seen: Seens) -> bool:
    """Whether one of two conditions on the same objects holds wherever the other does, and seldom without it."""
    if one.terms != other.terms or len(set(one.terms)) < len(one.terms):
        return False
    both = alone = 0
    for state, _ in seen:
        places, others = ({fact.terms for fact in state if fact.predicate == each.predicate} for each in (one, other))
        if not others <= places:
            return False
        both += len(others)
        alone += len(places - others)
    return alone > 0 and both >= USUALLY * (both + alone)
