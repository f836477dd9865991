"""The grammar of candidates: what could be said of the things that a spec declares, with thresholds from the data.

- in the hand: near the point at which carried things are, with the agent's own features as they are while it carries;
- near, on, under, in line with, in a box around another thing: where things come to rest;
- a feature of a thing, or of the agent, above a threshold, or below;
- two things agree in features that are for labels alone, or in their numbers (these do not change: they are for goals);
- of all these, that there is none: nothing is on it, nothing is held, it is neither held nor on anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from bilevel.domain_learning.predicates.definitions import (
    AGENT,
    Constant,
    Definition,
    Quantified,
    feature,
    identifier,
    variables_of,
)
from bilevel.domain_learning.predicates.evidence import Evidence
from bilevel.domain_learning.predicates.holding import holding
from bilevel.domain_learning.predicates.resting import resting
from bilevel.domain_learning.predicates.thresholds import Floats, rounded
from bilevel.tasks.spec import Angle, LabelOnly, Position, Scalar, Spec

SAME = 0.02  # in features that agree
WIDE = 0.25  # of a feature's range: a gap between two sorts of values is at least so wide


def candidates(evidence: Evidence) -> list[Definition]:
    """Return all candidates that the data does not speak against, those by which others are defined first."""
    features = list(_feature_thresholds(evidence))
    found = _named(filter(None, (holding(evidence, kind, features) for kind in evidence.carried)))
    held = {definition.types[0]: definition.name for definition in found}
    for kind in evidence.moving:
        for other in evidence.spec.objects:
            found += _named(resting(evidence, kind, other, held), found)
    known = {definition.tests for definition in found}
    return [*found, *_named((each for each in features if each.tests not in known), found)]


def statics(spec: Spec) -> list[Definition]:
    """Return what two things have in common that never changes: features for labels alone, and their numbers."""
    found = list[Definition]()
    for types in combinations(spec.objects, 2):
        (roles, others), (one, two) = (spec.object_roles[kind] for kind in types), variables_of(types)
        common = [name for name, role in roles.items() if isinstance(role, LabelOnly) and name in others]
        if common:
            tests = tuple(f"abs({feature(one, name)} - {feature(two, name)}) < SAME" for name in common)
            constants = {"SAME": Constant(SAME, "features that agree differ by less")}
            comment = f"The same {', '.join(common)}."
            found.append(Definition("same", types, tests, constants=constants, comment=comment, static=True))
        test = (f"number({one}) == number({two})",)
        found.append(Definition("same-number", types, test, comment="The same number.", static=True))
    return found


# Features above thresholds


def _feature_thresholds(evidence: Evidence) -> Iterator[Definition]:
    """Yield for each feature that is no coordinate and has two sorts of values that it is high, and that it is low."""
    spec = evidence.spec
    for name, role in spec.agent_roles.items():
        if isinstance(role, Scalar | LabelOnly):
            values = [track.agent[:, spec.agent_column[name]] for track in evidence.tracks]
            yield from _two_sorts(name, (), AGENT, np.concatenate([_turns(column) for column in values]))
    for kind, roles in spec.object_roles.items():
        for name, role in roles.items():
            if isinstance(role, Position | Angle) or (isinstance(role, LabelOnly) and role.role is None):
                continue
            columns = [
                _turns(track.features[:, row, spec.column[name]][track.visible[:, row]])
                for track in evidence.tracks
                for row in range(*track.roster.rows(kind).indices(len(track.roster.names)))
            ]
            if any(len(np.unique(column)) > 1 for column in columns):
                (thing,) = variables_of((kind,))
                yield from _two_sorts(name, (kind,), thing, np.concatenate(columns))


def _turns(values: Floats) -> Floats:
    """Return the values at which a series begins, ends, stays or turns."""
    if len(values) < 3:
        return values
    steps = np.diff(values)
    kept = (steps[1:] * steps[:-1] <= 0) & ~((steps[1:] == 0) & (steps[:-1] == 0))
    return np.asarray(values[np.concatenate([[True], kept, [True]])])


def _two_sorts(name: str, types: tuple[str, ...], thing: str, values: Floats) -> Iterator[Definition]:
    """Yield that a feature is above the widest gap in its values, and that it is below."""
    ordered = np.unique(values)
    if len(ordered) < 2:
        return
    widest = int(np.diff(ordered).argmax())
    low, high = float(ordered[widest]), float(ordered[widest + 1])
    if high - low < WIDE * (ordered[-1] - ordered[0]):
        return
    label = "_".join(identifier(word).upper() for word in (*types, name, "threshold"))
    constant = {label: Constant(rounded((low + high) / 2, 3), f"measured: at most {low:.3g}, or at least {high:.3g}")}
    whose = f"the {types[0]}'s" if types else "the agent's"
    is_flag = ordered.tolist() == [0.0, 1.0]
    names = (name, f"not-{name}") if is_flag else (f"{name}-high", f"{name}-low")
    for full_name, word, sign in zip(names, ("high", "low"), (">", "<="), strict=True):
        test = f"{feature(thing, name)} {sign} {label}"
        yield Definition(full_name, types, (test,), (), constant, f"{whose.capitalize()} {name} is {word}.")


# That there is none


def absences(found: Sequence[Definition], known: Sequence[Definition]) -> list[Definition]:
    """Return the quantified negations: nothing is held, nothing is on it, it is neither held nor on anything.

    Their names are none of those of what is `known`.
    """
    result, held = [], sorted(definition.name for definition in found if definition.held)
    if held:
        absent = tuple(map(Quantified, held))
        result.append(Definition("free", (), (), absent, comment="Nothing is in the hand."))
    for definition in found:
        if len(definition.types) == 1 and not definition.held:
            comment = f"No {definition.types[0]} is {definition.name}."
            result.append(Definition(f"no-{definition.name}", (), (), (Quantified(definition.name),), comment=comment))
        if len(definition.types) == 2:
            kind, other = definition.types
            comment = f"No {kind} is {definition.word} it."
            result.append(Definition("clear", (other,), (), (Quantified(definition.name, 1),), comment=comment))
    for kind in dict.fromkeys(definition.types[0] for definition in found if len(definition.types) == 2):
        about = [each for each in found if kind in each.types[:1] and (len(each.types) == 2 or each.held)]
        absent = tuple(Quantified(each.name, 0) for each in about)
        words = " nor ".join(_place(each) for each in about)
        result.append(Definition("loose", (kind,), (), absent, comment=f"The {kind} is neither {words}."))
    return _named(result, known)


def _place(definition: Definition) -> str:
    """Return in words where a thing is of which a predicate holds."""
    return "in the hand" if definition.held else f"{definition.word} a {definition.types[1]}"


def _named(found: Iterable[Definition], known: Sequence[Definition] = ()) -> list[Definition]:
    """Return the definitions with names of their own: a second `on` is called after the types that it is about."""
    taken, result = {definition.name for definition in known}, list[Definition]()
    for definition in found:
        name, types = definition.name, definition.types
        tried = [name, "-".join((name, *types[1:])), "-".join((name, *types))]
        tried += [f"{tried[-1]}-{number}" for number in range(2, 100)]
        name = next(name for name in tried if name not in taken)
        taken.add(name)
        result.append(replace(definition, name=name, word=definition.name))
    return result
