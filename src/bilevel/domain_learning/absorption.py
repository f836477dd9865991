"""Changes that are the same but for what held already, or but for the types of their objects, are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from bilevel.domain_learning.conditions import satisfying
from bilevel.domain_learning.lifting import Binding, Group, Occurrence
from bilevel.rules.matching import unify
from bilevel.symbolic.domain import Atom, Facts
from bilevel.symbolic.semantics import substitute, substitute_all

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
    for names in _embeddings(small, large):
        found = [
            fitted
            for occurrence in small.occurrences
            if (fitted := _fitted(occurrence, large, names, needed, small)) is not None
        ]
        best = max(best, found, key=len)
    return best if len(best) >= MOSTLY * len(small.occurrences) else None


def _embeddings(small: Group, large: Group) -> Iterator[Mapping[str, str]]:
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
