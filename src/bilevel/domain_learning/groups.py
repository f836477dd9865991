"""Groups of changes: the same but for objects, or but for what held already; composites are taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, permutations, product
from math import factorial, prod

from bilevel.domain_learning.changes import SettledChange
from bilevel.rules.matching import Binding, join
from bilevel.symbolic.domain import Atom, Facts
from bilevel.symbolic.semantics import substitute, substitute_all

MOST_OBJECTS = 8  # in one change; one that has more is not lifted
MOST_ORDERS = 5040  # of objects that look alike
FEWEST, MUCH_MORE = 3, 3  # occurrences of a change by itself; times that of both together
MOSTLY = 0.97  # of the occurrences of the smaller group must fit

Lifted = tuple[Facts, Facts, tuple[str, ...]]  # what comes and goes, over variables, and the types of these


@dataclass(frozen=True)
class Occurrence:
    """A change, and the object of each variable."""

    change: SettledChange
    binding: Binding


@dataclass(eq=False)
class Cluster:
    """Occurrences of one lifted change: which facts come and go, and the types of its variables."""

    add: Facts
    delete: Facts
    types: dict[str, str]
    occurrences: list[Occurrence] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How often it occurred."""
        return len(self.occurrences)

    @property
    def size(self) -> int:
        """How many facts come or go."""
        return len(self.add) + len(self.delete)

    @property
    def text(self) -> list[object]:
        """What decides between those that are equally large and equally frequent."""
        return [sorted(self.add), sorted(self.delete), list(self.types.values())]

    def embeddings(self, added: Facts, deleted: Facts) -> Iterator[Binding]:
        """Yield every way to bind the variables, each to another object, so that the effects are among these facts."""
        wanted = [(atom, added) for atom in sorted(self.add)] + [(atom, deleted) for atom in sorted(self.delete)]
        found = [binding for binding in join(wanted, {}) if len(set(binding.values())) == len(binding)]
        yield from sorted(found, key=lambda binding: [substitute(atom, binding) for atom, _ in wanted])


def lift(change: SettledChange) -> tuple[Lifted, Binding] | None:
    """Return a change in canonical form, with the object of each variable; `None` if these are too many.

    Objects are told apart by the facts they are in, then by trying all orders: the least form is the canonical one.
    """
    roles: dict[str, list[tuple[bool, str, int]]] = {}
    for is_added, facts in ((True, change.added), (False, change.deleted)):
        for fact in facts:
            for place, term in enumerate(fact.terms):
                roles.setdefault(term, []).append((is_added, fact.predicate, place))
    if len(roles) > MOST_OBJECTS:
        return None
    looks = {name: sorted(roles[name]) for name in sorted(roles)}
    alike = [list(names) for _, names in groupby(sorted(looks, key=looks.__getitem__), looks.__getitem__)]
    if prod(factorial(len(names)) for names in alike) > MOST_ORDERS:
        return None
    forms = []
    for orders in product(*(permutations(names) for names in alike)):
        names = [name for order in orders for name in order]
        variables = {name: f"?x{number}" for number, name in enumerate(names)}
        add, delete = (sorted(substitute_all(facts, variables)) for facts in (change.added, change.deleted))
        kinds = [change.types.get(name, "") for name in names]  # between forms that are equal the types decide
        forms.append((add, delete, kinds, names))
    add, delete, kinds, names = min(forms)
    lifted = frozenset(add), frozenset(delete), tuple(kinds)
    return lifted, {f"?x{number}": name for number, name in enumerate(names)}


def group_changes(changes: Sequence[SettledChange]) -> tuple[dict[Lifted, Cluster], list[SettledChange]]:
    """Return the groups of equal lifted changes with equal types, the largest first, and what could not be lifted."""
    groups: dict[Lifted, Cluster] = {}
    left: list[SettledChange] = []
    for change in changes:
        found = lift(change)
        if found is None:
            left.append(change)
            continue
        (add, delete, kinds), binding = found
        group = groups.setdefault(found[0], Cluster(add, delete, dict(zip(binding, kinds, strict=True))))
        group.occurrences.append(Occurrence(change, binding))
    in_order = sorted(groups.items(), key=lambda item: (-item[1].count, *item[1].text[:2]))
    return dict(in_order), left


# Two changes at once


def separate(changes: Sequence[SettledChange]) -> list[SettledChange]:
    """Return the changes, with each that is two at once replaced by the two, in a fixed order.

    What is said of newcomers that have nothing to do with anything else is an arrival. Beyond that, both parts must be
    much more frequent by themselves.
    """
    found = [part for change in changes for part in _without_arrival(change)]
    groups, _ = group_changes(found)
    parts = {
        id(occurrence.change): _parts(occurrence.change, group.count, groups)
        for group in groups.values()
        for occurrence in group.occurrences
    }
    return [part for change in found for part in parts.get(id(change), [change])]


def _without_arrival(change: SettledChange) -> list[SettledChange]:
    """Return the change without what it says of newcomers alone, and that; the change as it is if all is one."""
    news = frozenset(fact for fact in change.added if fact.terms and change.known.isdisjoint(fact.terms))
    linked = {term for fact in change.added if not change.known.isdisjoint(fact.terms) for term in fact.terms}
    while grown := {term for fact in news if not linked.isdisjoint(fact.terms) for term in fact.terms} - linked:
        linked |= grown
    between = change.after - {fact for fact in news if linked.isdisjoint(fact.terms)}
    if between in (change.before, change.after):
        return [change]
    return [replace(change, after=between), replace(change, before=between, is_arrival=True)]


def _parts(change: SettledChange, count: int, groups: Mapping[Lifted, Cluster]) -> list[SettledChange]:
    """Return the two changes that are known by themselves and together make this one; else the change."""
    fewest = max(FEWEST, MUCH_MORE * count)
    for other in groups.values():
        if other.count < fewest or other.size >= len(change.added) + len(change.deleted):
            continue
        for binding in other.embeddings(change.added, change.deleted):
            if any(change.types.get(name) != other.types[variable] for variable, name in binding.items()):
                continue
            between = (change.before - substitute_all(other.delete, binding)) | substitute_all(other.add, binding)
            rest = replace(change, before=between)
            found = lift(rest)
            if found and found[0] in groups and groups[found[0]].count >= fewest:
                return [replace(change, after=between), rest]
    return [change]


# The same change where the rest held already


def absorbed(
    groups: Sequence[Cluster], conditions: Callable[[Cluster], Facts], alike: Callable[[Cluster, Cluster], bool]
) -> tuple[list[Cluster], list[Cluster]]:
    """Return the groups, with each that does the same as a larger one, where the rest held already, joined to that.

    To add what is there, or to delete what is not, changes nothing: so an action that frees the place it takes from
    frees nothing where the place is free anyway. Where effects are equal, only types differ. `conditions` says what
    always held before a group's changes, and `alike` whether two groups came of the same controls. A larger one that is
    very rare beside the other is that with a mislabel; those come second.
    """
    mislabelled = []
    result = sorted(groups, key=lambda group: (-group.size, -group.count, group.text))
    for small in sorted(groups, key=lambda group: (group.size, group.count, group.text)):
        for large in result:
            if large is small or large.size < small.size or not alike(small, large):
                continue
            joined = _joined(small, large, conditions(large))
            if len(joined) < MOSTLY * small.count:
                continue
            if large.count < (1 - MOSTLY) * small.count:
                mislabelled.append(large)
                result = [group for group in result if group is not large]
            else:
                large.occurrences += joined
                result = [group for group in result if group is not small]
                break
    return sorted(result, key=lambda group: (-group.count, group.text)), mislabelled


def _joined(small: Cluster, large: Cluster, needed: Facts) -> list[Occurrence]:
    """Return the occurrences of the smaller group as ones of the larger, as many as can be."""
    as_object = {variable: variable[1:] for variable in large.types}
    best: list[Occurrence] = []
    for inclusion in small.embeddings(substitute_all(large.add, as_object), substitute_all(large.delete, as_object)):
        names = {variable: f"?{name}" for variable, name in inclusion.items()}
        there = large.add - substitute_all(small.add, names)
        gone = large.delete - substitute_all(small.delete, names)
        news = {term for atom in there for term in atom.terms} - set(names.values())
        wanted = there | {atom for atom in needed if news.intersection(atom.terms)}
        fitted = (_fitted(occurrence, large, names, wanted, gone) for occurrence in small.occurrences)
        best = max(best, [occurrence for occurrence in fitted if occurrence], key=len)
    return best


def _fitted(
    occurrence: Occurrence, large: Cluster, names: Mapping[str, str], wanted: Facts, gone: Facts
) -> Occurrence | None:
    """Return the occurrence as one of the larger group: what this adds beyond is there, what it deletes is not."""
    before = occurrence.change.before
    for found in satisfying(wanted, before, {names[variable]: name for variable, name in occurrence.binding.items()}):
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
