"""Two things that happened at once are told apart: a place and a teleport, a place and an arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from bilevel.domain_learning.changes import Change
from bilevel.domain_learning.lifting import Effects, Group, group_changes, lift
from bilevel.rules.matching import Binding, unify
from bilevel.symbolic.domain import Atom, Facts
from bilevel.symbolic.semantics import substitute, substitute_all

FEWEST, MUCH_MORE = 3, 3  # occurrences of a change by itself; times that of both together
USUALLY = 0.9  # of the times that an object of some type comes, just as many such facts come with it
Newcomer = tuple[str, tuple[str, ...]]  # a predicate, and the types of the newcomers that it is said of
Key = tuple[Effects, tuple[str, ...]]
Types = Sequence[Mapping[str, str]]


def separate(changes: Sequence[Change], known: Sequence[frozenset[str]], types: Types) -> list[Change]:
    """Return the changes, with each that is two at once replaced by the two, in a fixed order.

    `known` are the objects that had been seen before each change. What is said of newcomers that have nothing to do
    with anything else is an arrival. Beyond that, both parts must be much more frequent by themselves.
    """
    found: list[Change] = []
    for change, seen in zip(_without_chance(changes, known, types), known, strict=True):
        found += _without_arrival(change, seen)
    groups, _left = group_changes(found, types)
    counts = {_key(group): len(group.occurrences) for group in groups}
    result: dict[int, list[Change]] = {}
    for group in groups:
        for occurrence in group.occurrences:
            result[id(occurrence.change)] = _parts(occurrence.change, group, groups, counts, types)
    return [part for change in found for part in result.get(id(change), [change])]


def _without_chance(changes: Sequence[Change], known: Sequence[frozenset[str]], types: Types) -> list[Change]:
    """Return the changes without what is said of newcomers only now and then, whatever the reason they came for.

    What is one of several, as clean or dirty, of which each newcomer has one, is not said by chance.
    """

    def news(change: Change, seen: frozenset[str]) -> dict[Atom, Newcomer]:
        kinds = types[change.episode]
        return {
            fact: (fact.predicate, tuple(kinds.get(term, "") for term in fact.terms if term not in seen))
            for fact in change.after - change.before
            if not seen.issuperset(fact.terms)
        }

    said: dict[Newcomer, Counter[int]] = {}  # how many facts of a kind came, how often
    came: Counter[tuple[str, ...]] = Counter()
    together: list[set[Newcomer]] = []  # what was said of the same newcomers
    for change, seen in zip(changes, known, strict=True):
        new = news(change, seen)
        found = Counter(new.values())
        came.update({kinds for _, kinds in found})
        of: dict[tuple[str, ...], set[Newcomer]] = {}
        for fact, key in new.items():
            of.setdefault(tuple(term for term in fact.terms if term not in seen), set()).add(key)
        together += of.values()
        for key, number in found.items():
            said.setdefault(key, Counter())[number] += 1
    usual = {key for key, numbers in said.items() if max(numbers.values()) >= USUALLY * came[key[1]]}
    usual |= _alternatives(said.keys() - usual, together)
    return [
        replace(change, after=change.after - {fact for fact, key in new.items() if key not in usual})
        if (new := news(change, seen))
        else change
        for change, seen in zip(changes, known, strict=True)
    ]


def _alternatives(keys: AbstractSet[Newcomer], together: Sequence[set[Newcomer]]) -> set[Newcomer]:
    """Return those of which a newcomer usually has one, and never two; `together` is what is said of each."""
    found: set[Newcomer] = set()
    for kinds in sorted({kinds for _, kinds in keys}):
        chosen: set[Newcomer] = set()
        covered = 0
        often = Counter(key for one in together for key in one & keys if key[1] == kinds)
        for key, number in sorted(often.items(), key=lambda pair: (-pair[1], pair[0])):
            if not any(key in one and not chosen.isdisjoint(one) for one in together):
                chosen.add(key)
                covered += number
        if covered >= USUALLY * sum(any(key[1] == kinds for key in one) for one in together):
            found |= chosen
    return found


def _without_arrival(change: Change, seen: frozenset[str]) -> list[Change]:
    """Return the change without what it says of newcomers alone, and that; the change as it is if all is one."""
    added = change.after - change.before
    news = frozenset(fact for fact in added if fact.terms and seen.isdisjoint(fact.terms))
    linked = {term for fact in added if not seen.isdisjoint(fact.terms) for term in fact.terms}
    while grown := {term for fact in news if not linked.isdisjoint(fact.terms) for term in fact.terms} - linked:
        linked |= grown
    news = frozenset(fact for fact in news if linked.isdisjoint(fact.terms))
    between = change.after - news
    if not news or between == change.before:
        return [change]
    return [replace(change, after=between), replace(change, before=between, is_arrival=True)]


def _key(group: Group) -> Key:
    return (group.add, group.delete), tuple(group.types.values())


def _parts(
    change: Change, group: Group, groups: Sequence[Group], counts: Mapping[Key, int], types: Types
) -> list[Change]:
    """Return the two changes that are known by themselves and together make this one; else the change."""
    fewest = max(FEWEST, MUCH_MORE * len(group.occurrences))
    added, deleted = change.after - change.before, change.before - change.after
    for other in groups:
        if len(other.occurrences) < fewest or len(other.add) + len(other.delete) >= len(added) + len(deleted):
            continue
        for binding in _embeddings(other, added, deleted, types[change.episode]):
            between = (change.before - substitute_all(other.delete, binding)) | substitute_all(other.add, binding)
            rest = replace(change, before=between)
            lifted = lift(rest, types[change.episode])
            if lifted is None:
                continue
            effects, names = lifted
            kinds = tuple(types[change.episode].get(name, "") for name in names.values())
            if counts.get((effects, kinds), 0) >= fewest:
                return [replace(change, after=between), rest]
    return [change]


def _embeddings(group: Group, added: Facts, deleted: Facts, types: Mapping[str, str]) -> Iterator[Binding]:
    """Yield every way in which the group's effects are among those of a change."""
    wanted = [(atom, added) for atom in sorted(group.add)] + [(atom, deleted) for atom in sorted(group.delete)]

    def match(index: int, binding: Binding) -> Iterator[Binding]:
        if index == len(wanted):
            yield binding
            return
        pattern, facts = wanted[index]
        for fact in sorted(_like(substitute(pattern, binding), facts)):
            extended = unify(substitute(pattern, binding), fact)
            if extended is None or any(types.get(name) != group.types[v] for v, name in extended.items()):
                continue
            if len({*binding.values(), *extended.values()}) == len(binding) + len(extended):
                yield from match(index + 1, binding | extended)

    yield from match(0, {})


def _like(pattern: Atom, facts: Facts) -> list[Atom]:
    return [fact for fact in facts if fact.predicate == pattern.predicate]
