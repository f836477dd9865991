"""One form for all rules that are equal up to the names of their variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Domain

Colouring = dict[str, int]


def canonical(rule: Rule, domain: Domain) -> Rule:
    """Return the rule with its variables named after their types, the same for all renamings of the rule.

    Variables are told apart by what they take part in, refined until nothing changes; where some still look alike,
    each of them is tried as the first, unless a symmetry makes it as good as another, and the smallest result wins.
    """
    head = rule.action.arguments
    colours = _ranked({v: (head.index(v) if v in head else len(head), kind) for v, kind in rule.types.items()})
    order = min(_orders(rule, colours), key=lambda order: _serialise(rule, order))
    return rule.renamed(_names(rule, order, domain))


def _atoms(rule: Rule) -> list[tuple[str, str, tuple[str, ...]]]:
    return (
        [("state", atom.predicate, atom.terms) for atom in rule.state_condition]
        + [("goal", atom.predicate, atom.terms) for atom in rule.goal_condition]
        + [("absent", atom.predicate, atom.terms) for atom in rule.negative_condition]
        + [("absent", EQUALITY, atom.terms[::-1]) for atom in rule.negative_condition if atom.predicate == EQUALITY]
    )


def _ranked(keys: Mapping[str, object]) -> Colouring:
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values()), key=repr))}
    return {v: ranks[key] for v, key in keys.items()}


def _refined(rule: Rule, colours: Colouring) -> Colouring:
    """Split colours by the atoms their variables occur in, until no colour splits any more."""
    while True:
        keys: dict[str, object] = {}
        for variable, colour in colours.items():
            seen = sorted(
                (part, predicate, tuple(i for i, t in enumerate(terms) if t == variable), _coloured(terms, colours))
                for part, predicate, terms in _atoms(rule)
                if variable in terms
            )
            keys[variable] = (f"{colour:04}", seen)
        refined = _ranked({v: repr(key) for v, key in keys.items()})
        if len(set(refined.values())) == len(set(colours.values())):
            return colours
        colours = refined


def _coloured(terms: Sequence[str], colours: Colouring) -> tuple[str, ...]:
    return tuple(f"?{colours[t]:04}" if t in colours else t for t in terms)


def _orders(rule: Rule, colours: Colouring) -> Iterator[list[str]]:
    """Yield orders of the variables that respect the colours; more than one where refinement leaves a tie.

    Where putting one variable first looks in the end like putting another first, a symmetry of the rule takes one to
    the other, so one of the two will do.
    """
    colours = _refined(rule, colours)
    tied = _first_tie(colours)
    if not tied:
        yield sorted(colours, key=colours.__getitem__)
    tried = []
    for first in tied:
        orders = _orders(rule, _split(colours, first))
        order = next(orders)
        likeness = _serialise(rule, order)
        if likeness not in tried:
            tried.append(likeness)
            yield order
            yield from orders


def _first_tie(colours: Colouring) -> list[str]:
    """Return the variables of the first colour that several have; none where all have their own."""
    shared = min((colour for colour, number in Counter(colours.values()).items() if number > 1), default=None)
    return sorted(variable for variable, colour in colours.items() if colour == shared)


def _split(colours: Colouring, first: str) -> Colouring:
    """Give one variable a colour of its own, before the others that had the same."""
    shared = colours[first]
    return {v: colour + (colour > shared or (colour == shared and v != first)) for v, colour in colours.items()}


def _serialise(rule: Rule, order: Sequence[str]) -> list[tuple[str, str, tuple[str, ...]]]:
    place = {variable: f"?{i:04}" for i, variable in enumerate(order)}
    return sorted((part, p, tuple(place.get(t, t) for t in terms)) for part, p, terms in _atoms(rule))


def _names(rule: Rule, order: Sequence[str], domain: Domain) -> dict[str, str]:
    """Return names for the variables after their types: ?b and ?b2 for blocks, ?bu for a button."""
    stems, types = _stems(domain), rule.types
    counts: Counter[str] = Counter()
    names = {}
    for variable in order:
        kind = types[variable]
        counts[kind] += 1
        names[variable] = f"?{stems.get(kind, kind)}{counts[kind] if counts[kind] > 1 else ''}"
    return names


def _stems(domain: Domain) -> dict[str, str]:
    """Return the shortest beginning of each type's name that no type before it in the alphabet has taken."""
    stems: dict[str, str] = {ROOT_TYPE: "x"}
    for kind in sorted({*domain.types, *domain.types.values()} - {ROOT_TYPE}):
        taken = set(stems.values())
        lengths = range(1, len(kind) + 1)
        stems[kind] = next((kind[:n] for n in lengths if kind[:n] not in taken and not kind[n - 1].isdigit()), kind)
    return stems
