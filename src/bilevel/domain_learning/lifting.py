"""Changes with variables for objects: those that are the same up to the objects' names form a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, permutations, product
from math import factorial, prod

from bilevel.domain_learning.changes import Change
from bilevel.symbolic.domain import Atom, Facts

MOST_OBJECTS = 8  # in one change; one that has more is not lifted
MOST_ORDERS = 5040  # of objects that look alike

Effects = tuple[Facts, Facts]  # added and deleted
Binding = dict[str, str]


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
