"""Learned operators beside written ones: which are the same but for names, and how the others differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import NamedTuple

from bilevel.symbolic.domain import Atom, Domain, Facts, Outcome, Schema

NOT = "not "


class Literals(NamedTuple):
    """What a schema says: its conditions, and for each of its outcomes the effects, negative ones too."""

    conditions: frozenset[str]
    outcomes: frozenset[frozenset[str]]

    @property
    def effects(self) -> frozenset[str]:
        return frozenset().union(*self.outcomes)


class Pair(NamedTuple):
    """A written operator, the learned one that comes nearest, and what this has more and less."""

    written: str
    learned: str | None
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        return self.learned is not None and not self.more and not self.less


def compare_domains(written: Domain, learned: Domain) -> tuple[list[Pair], list[str]]:
    """Return each written operator with the nearest learned one, and the learned ones that are nearest to none."""
    pairs = [_nearest(schema, learned) for schema in written.schemas.values()]
    return pairs, sorted(set(learned.schemas) - {pair.learned for pair in pairs})


def _nearest(schema: Schema, learned: Domain) -> Pair:
    """Return the learned operator that differs least in its effects, then in its conditions, if any shares some."""
    ours, candidates = _literals(schema, {}), []
    for other in learned.schemas.values():
        for names in _renamings(other, schema):
            theirs = _literals(other, names)
            shared = len(ours.effects & theirs.effects)
            apart = len(ours.effects ^ theirs.effects), ours.outcomes != theirs.outcomes, _misfits(schema, other, names)
            if shared:
                candidates.append((*apart, len(ours.conditions ^ theirs.conditions), other.name, theirs))
    if not candidates:
        return Pair(schema.name, None)
    *_, name, theirs = min(candidates, key=lambda found: found[:5])
    more, less = (tuple(sorted(_difference(one, other))) for one, other in ((theirs, ours), (ours, theirs)))
    return Pair(schema.name, name, more, less)


def _misfits(schema: Schema, other: Schema, names: Mapping[str, str]) -> int:
    """Return how many variables of the other schema have another type than those they are called by."""
    types = _types(schema)
    return sum(types.get(names[name], kind) != kind for name, kind in _types(other).items())


def _types(schema: Schema) -> dict[str, str]:
    chosen = (variable for outcome in schema.outcomes for variable in outcome.chosen)
    return {variable.name: variable.type for variable in (*schema.parameters, *chosen)}


def _difference(one: Literals, other: Literals) -> Iterator[str]:
    yield from (f"condition {literal}" for literal in one.conditions - other.conditions)
    yield from (f"effect {literal}" for literal in one.effects - other.effects)
    if one.effects == other.effects:
        yield from (f"outcome {', '.join(sorted(outcome))}" for outcome in one.outcomes - other.outcomes)


def _literals(schema: Schema, names: Mapping[str, str]) -> Literals:
    conditions = _texts(schema.precondition, names) | _texts(schema.negative_precondition, names, NOT)
    return Literals(conditions, frozenset(_effects(outcome, names) for outcome in schema.outcomes))


def _effects(outcome: Outcome, names: Mapping[str, str]) -> frozenset[str]:
    new = frozenset(f"new({names.get(name, name)})" for name in outcome.new)
    return _texts(outcome.add, names) | _texts(outcome.delete, names, NOT) | new


def _texts(facts: Facts, names: Mapping[str, str], before: str = "") -> frozenset[str]:
    return frozenset(f"{before}{Atom(p, tuple(names.get(term, term) for term in terms))}" for p, terms in facts)


def _renamings(schema: Schema, like: Schema) -> Iterator[dict[str, str]]:
    """Yield every way of calling the variables of a schema by those of another; the rest get new names."""
    ours, theirs = list(_types(schema)), list(_types(like))
    theirs += [f"?more{number}" for number in range(len(ours) - len(theirs))]
    for order in permutations(theirs, len(ours)):
        yield dict(zip(ours, order, strict=True))
