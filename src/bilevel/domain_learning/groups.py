"""Groups of changes: the same but for objects, or but for what held already; composites are taken apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import groupby, permutations, product
from math import factorial, prod

from bilevel.domain_learning.changes import Change
from bilevel.rules.matching import Binding, join, unify
from bilevel.symbolic.domain import Atom, Facts
from bilevel.symbolic.semantics import substitute, substitute_all

MOST_OBJECTS = 8  # in one change; one that has more is not lifted
MOST_ORDERS = 5040  # of objects that look alike

Effects = tuple[Facts, Facts]  # added and deleted


@dataclass(frozen=True)
class Occurrence:
    """A change, and the object of each variable."""

    change: Change
    binding: Binding


@dataclass(eq=False)
class Group:
    """Occurrences of one lifted change: which facts come and go, and the types of its variables."""

    add: Facts
    delete: Facts
    types: dict[str, str]
    occurrences: list[Occurrence] = field(default_factory=list)

    @property
    def variables(self) -> list[str]:
        """The variables of what the occurrences have in common."""
        return list(self.types)

    def objects_of(self, occurrence: Occurrence) -> tuple[str, ...]:
        """Return what an occurrence binds the variables to."""
        return tuple(occurrence.binding[variable] for variable in self.types)


def lift(change: Change, types: Mapping[str, str]) -> tuple[Effects, Binding] | None:
    """Return the effects of a change in canonical form, with the object of each variable; `None` if they are too many.

    Objects are told apart by the facts they are in, then by trying all orders: the least form is the canonical one.
    """
    added, deleted = change.after - change.before, change.before - change.after
    roles: dict[str, list[tuple[bool, str, int]]] = {}
    for is_added, facts in ((True, added), (False, deleted)):
        for fact in facts:
            for place, term in enumerate(fact.terms):
                roles.setdefault(term, []).append((is_added, fact.predicate, place))
    if len(roles) > MOST_OBJECTS:
        return None
    looks = {name: sorted(found) for name, found in roles.items()}
    alike = [
        list(names) for _, names in groupby(sorted(roles, key=lambda name: (looks[name], name)), looks.__getitem__)
    ]
    if prod(factorial(len(names)) for names in alike) > MOST_ORDERS:
        return None
    best: tuple[tuple[list[Atom], list[Atom], list[str]], Binding] | None = None
    for orders in product(*(permutations(names) for names in alike)):
        names = [name for order in orders for name in order]
        variable = {name: f"?x{number}" for number, name in enumerate(names)}
        kinds = [types.get(name, "") for name in names]  # between forms that are equal the types decide
        form = sorted(_renamed(added, variable)), sorted(_renamed(deleted, variable)), kinds
        if best is None or form < best[0]:
            best = form, dict(zip(variable.values(), names, strict=True))
    assert best is not None
    (add, delete, _), binding = best
    return (frozenset(add), frozenset(delete)), binding


def _renamed(facts: Facts, names: Mapping[str, str]) -> list[Atom]:
    return [Atom(fact.predicate, tuple(names[term] for term in fact.terms)) for fact in facts]


def group_changes(changes: Sequence[Change], types: Sequence[Mapping[str, str]]) -> tuple[list[Group], list[Change]]:
    """Return the groups of equal lifted changes with equal types, the largest first, and what could not be lifted.

    `types` are those of each episode's objects.
    """
    groups: dict[tuple[Effects, tuple[str, ...]], Group] = {}
    left: list[Change] = []
    for change in changes:
        lifted = lift(change, types[change.episode])
        if lifted is None:
            left.append(change)
            continue
        effects, binding = lifted
        kinds = {variable: types[change.episode].get(name, "") for variable, name in binding.items()}
        group = groups.setdefault((effects, tuple(kinds.values())), Group(*effects, kinds))
        group.occurrences.append(Occurrence(change, binding))
    order = sorted(
        groups.values(), key=lambda group: (-len(group.occurrences), sorted(group.add), sorted(group.delete))
    )
    return order, left


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


MOSTLY = 0.97  # of the occurrences of the smaller group must fit

Alike = Callable[[Group, Group], bool]


def absorbed(
    groups: Sequence[Group], conditions: Callable[[Group], Facts], alike: Alike
) -> tuple[list[Group], list[Group]]:
    """Return the groups, with each that does the same as a larger one, where the rest held already, joined to that.

    To add what is there, or to delete what is not, changes nothing: so an action that frees the place it takes from
    frees nothing where the place is free anyway. Where effects are equal, only types differ. `conditions` says what
    always held before a group's changes, and `alike` whether two groups came of the same controls. A larger one that is
    very rare beside the other is that with a mislabel; those come second.
    """
    mislabelled = []
    result = sorted(groups, key=lambda group: (-_size(group), -len(group.occurrences), _text(group)))
    for small in sorted(groups, key=lambda group: (_size(group), len(group.occurrences), _text(group))):
        for large in result:
            if large is small or _size(large) < _size(small) or not alike(small, large):
                continue
            joined = _joined(small, large, conditions)
            if joined is not None and len(large.occurrences) < (1 - MOSTLY) * len(small.occurrences):
                mislabelled.append(large)
                result = [group for group in result if group is not large]
            elif joined is not None:
                large.occurrences += joined
                result = [group for group in result if group is not small]
                break
    return sorted(result, key=lambda group: (-len(group.occurrences), _text(group))), mislabelled


def _size(group: Group) -> int:
    return len(group.add) + len(group.delete)


def _text(group: Group) -> list[object]:
    return [sorted(group.add), sorted(group.delete), list(group.types.values())]


def _joined(small: Group, large: Group, conditions: Callable[[Group], Facts]) -> list[Occurrence] | None:
    """Return the occurrences of the smaller group as ones of the larger, if (nearly) all of them are."""
    needed = conditions(large)
    best: list[Occurrence] = []
    for names in _inclusions(small, large):
        found = [
            fitted
            for occurrence in small.occurrences
            if (fitted := _fitted(occurrence, large, names, needed, small)) is not None
        ]
        best = max(best, found, key=len)
    return best if len(best) >= MOSTLY * len(small.occurrences) else None


def _inclusions(small: Group, large: Group) -> Iterator[Mapping[str, str]]:
    """Yield every way to take the smaller group's variables for some of the larger one's, effects among effects."""
    wanted = [(atom, large.add) for atom in sorted(small.add)] + [(atom, large.delete) for atom in sorted(small.delete)]

    def match(index: int, names: Binding) -> Iterator[Binding]:
        if index == len(wanted):
            yield names
            return
        pattern, effects = wanted[index]
        for effect in sorted(effects):
            found = unify(pattern, Atom(effect.predicate, effect.terms))
            if found is None or any(names.get(variable, other) != other for variable, other in found.items()):
                continue
            together = names | found
            if len(set(together.values())) == len(together):
                yield from match(index + 1, together)

    yield from match(0, {})


def _fitted(
    occurrence: Occurrence, large: Group, names: Mapping[str, str], needed: Facts, small: Group
) -> Occurrence | None:
    """Return the occurrence as one of the larger group: what this adds beyond is there, what it deletes is not."""
    before = occurrence.change.before
    binding = {names[variable]: name for variable, name in occurrence.binding.items()}
    there = large.add - substitute_all(small.add, names)
    gone = large.delete - substitute_all(small.delete, names)
    news = {term for atom in there for term in atom.terms} - set(binding)
    linked = frozenset(atom for atom in needed if news.intersection(atom.terms))
    for found in satisfying(there | linked, before, binding):
        if set(found) >= set(large.types) and not any(substitute(atom, found) in before for atom in gone):
            return Occurrence(occurrence.change, {variable: found[variable] for variable in large.types})
    return None


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
