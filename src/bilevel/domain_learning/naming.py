"""Names for operators, events and their variables, proposed from what they do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bilevel.domain_learning.learned import BESIDE, Dropped, LearnedDomain, Operator
from bilevel.symbolic.domain import Domain, Facts, Outcome, Parameter, Schema
from bilevel.symbolic.semantics import substitute_all

# What an operator is called if a fact with such a name comes (+) or goes (-); the first that fits.
HELD = r"hold|held|carr|grasp|in-hand|have-"
NAMES: Sequence[tuple[str, str, str]] = (
    ("pick", "+", HELD),
    ("place", "-", HELD),
    ("unlock", "+", r"unlock"),
    ("lock", "+", r"^lock|locked"),
    ("press", "+", r"press|push"),
    ("open", "+", r"^open"),
    ("close", "+", r"^clos"),
    ("move", "+", r"robot|at-|agent|vehicle|position"),
)
TOUCHED = {"button": "press", "switch": "switch", "lever": "pull", "handle": "turn"}  # by the type that the agent is at


def named(
    frame: Domain, operators: Sequence[Operator], events: Sequence[Operator], dropped: tuple[Dropped, ...]
) -> LearnedDomain:
    """Give everything a name, and make it a domain."""
    taken: set[str] = set()
    schemas: dict[str, Schema] = {}
    happenings: dict[str, Schema] = {}
    counts: dict[str, tuple[int, ...]] = {}
    untold: dict[str, tuple[str, ...]] = {}
    for number, operator in enumerate(operators, 1):
        name = _free(_proposals(operator, number, operators), taken)
        schemas[name], names = _schema(operator, name)
        counts[name] = tuple(count for _, count in operator.outcomes)
        idle = tuple(names[variable] for variable in operator.types if not _is_told(variable, operator))
        if idle and len(idle) < len(operator.types):
            untold[name] = idle
    for operator in events:
        name = _free(_event_names(operator), taken)
        happenings[name], _ = _schema(operator, name)
        counts[name] = tuple(count for _, count in operator.outcomes)
    return LearnedDomain(replace(frame, schemas=schemas, events=happenings), counts, untold, dropped)


def _is_told(variable: str, operator: Operator) -> bool:
    """Whether the controls depend on a parameter: the agent came to it, or nothing is known of that."""
    return operator.approach.controls is None or variable in operator.approach.touched or variable == BESIDE


def _free(names: Iterator[str], taken: set[str]) -> str:
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


def _effects(operator: Operator) -> tuple[Facts, Facts]:
    first = operator.outcomes[0][0]
    return first.add, first.delete


def _proposals(operator: Operator, number: int, operators: Sequence[Operator]) -> Iterator[str]:
    """Yield names for an operator, the best first: a verb, with a type, then numbered."""
    add, delete = _effects(operator)
    beside = operator.approach.beside[0] if operator.approach.beside else ""
    verb = TOUCHED.get(beside) or _verb(add, delete)
    if verb is None:
        yield f"action-{number}"
        verb = "action"
    else:
        yield verb
        others = {kind for other in operators if other is not operator for kind in other.types.values()}
        special = [kind for kind in operator.types.values() if kind not in others]
        came = [atom.predicate for atom in sorted(add) if atom.terms]
        for what in (*special, *operator.types.values(), *came):
            yield f"{verb}-{what}"
    further = number
    while True:
        yield f"{verb}-{further}"
        further += 1


def _verb(add: Facts, delete: Facts) -> str | None:
    for verb, sign, pattern in NAMES:
        if any(re.search(pattern, atom.predicate) for atom in (add if sign == "+" else delete)):
            return verb
    return None


def _event_names(operator: Operator) -> Iterator[str]:
    first = operator.outcomes[0][0]
    if first.new:
        yield "arrival"
        stem = "arrival"
    else:
        stem = f"change-of-{min([*first.add, *first.delete]).predicate}"
        moved = {atom.terms[0] for atom in first.delete if atom.terms} & {
            atom.terms[0] for atom in first.add if atom.terms
        }
        stem = "displacement" if moved else stem
        yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1


def _reading_order(operator: Operator) -> list[str]:
    """Return the parameters in the order in which the effects name them, those that name most first."""
    add, delete = _effects(operator)
    effects = sorted((*add, *delete), key=lambda atom: (-len(atom.terms), atom))
    named_first = dict.fromkeys(term for atom in effects for term in atom.terms)
    return list(dict.fromkeys([*(v for v in named_first if v in operator.types), *operator.types]))


def _schema(operator: Operator, name: str) -> tuple[Schema, Mapping[str, str]]:
    """Return the schema with readable variables, called after their types, and what each is called."""
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    operator.types = {variable: operator.types[variable] for variable in _reading_order(operator)}
    kinds = operator.all_types
    every = Counter(kinds.values())
    for variable, kind in kinds.items():
        counts[kind] += 1
        names[variable] = f"?{kind}{counts[kind]}" if every[kind] > 1 else f"?{kind}"
    schema = operator.schema(name)
    return (
        Schema(
            name,
            tuple(Parameter(names[p.name], p.type) for p in schema.parameters),
            substitute_all(schema.precondition, names),
            tuple(
                Outcome(
                    substitute_all(outcome.add, names),
                    substitute_all(outcome.delete, names),
                    tuple(Parameter(names[p.name], p.type) for p in outcome.chosen),
                    frozenset(names[variable] for variable in outcome.new),
                )
                for outcome in schema.outcomes
            ),
            substitute_all(schema.negative_precondition, names),
        ),
        names,
    )
