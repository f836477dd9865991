"""PDDL files: domains and problems, read and written; reading what was written gives an equal value.

STRIPS with types, constants, negative preconditions, equality, `oneof`, the existential effect and events; costs are
ignored, everything else is refused by name (`adl` reads more, for planning alone). Every error is a `BadInput` of the
form `file:line:column: message`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from os import PathLike, fspath

from bilevel.symbolic.domain import EQUALITY, Atom, Domain, Outcome, Parameter, Problem, Schema
from bilevel.symbolic.expressions import naming_position, read_text
from bilevel.symbolic.packed import no_garbage_collection, packed_problem
from bilevel.symbolic.pddl_reader import domain_from_text, problem_from_text


def read_domain(path: str | PathLike[str]) -> Domain:
    """Read a domain from a PDDL file; `BadInput`, with line and column, where it cannot be read."""
    return parse_domain(read_text(path), fspath(path))


def read_problem(path: str | PathLike[str], domain: Domain) -> Problem:
    """Read a problem of this domain from a PDDL file; `BadInput`, with line and column, where it cannot be read."""
    return parse_problem(read_text(path), domain, fspath(path))


def parse_domain(text: str, filename: str = "<domain>") -> Domain:
    """Return the domain that a text defines; `BadInput`, which names the file, where it defines none."""
    with naming_position(text, filename) as text:
        return domain_from_text(text)


def parse_problem(text: str, domain: Domain, filename: str = "<problem>") -> Problem:
    """Return the problem that a text defines; `BadInput`, which names the file, where it defines none."""
    with naming_position(text, filename) as text, no_garbage_collection():
        packed = packed_problem(text.encode(), domain)
        return packed.unpacked if packed else problem_from_text(text, domain)


def write_domain(domain: Domain) -> str:
    """Return the domain as PDDL."""
    if domain.adl:
        return domain.adl
    predicates = (f"\n    {_call(p.name, _parameters(p.parameters))}" for p in domain.predicates.values())
    sections = [
        f"  (:requirements {' '.join(_requirements(domain))})",
        *([f"  (:types{_typed_lines(domain.types)})"] if domain.types else []),
        *([f"  (:constants{_typed_lines(domain.constants)})"] if domain.constants else []),
        f"  (:predicates{''.join(predicates)})",
        *(_schema(":action", schema) for schema in domain.schemas.values()),
        *(_schema(":event", event) for event in domain.events.values()),
    ]
    return "\n".join([f"(define (domain {domain.name})", *sections]) + ")\n"


def _requirements(domain: Domain) -> list[str]:
    positive = {atom.predicate for schema in domain.schemas.values() for atom in schema.precondition}
    negative = {atom.predicate for schema in domain.schemas.values() for atom in schema.negative_precondition}
    needed = {
        ":strips": True,
        ":typing": bool(domain.types),
        ":negative-preconditions": bool(negative - {EQUALITY}),
        ":equality": EQUALITY in positive | negative,
        ":non-deterministic": not domain.is_deterministic,
    }
    return [name for name, is_needed in needed.items() if is_needed]


def _schema(keyword: str, schema: Schema) -> str:
    condition = [*map(_atom, sorted(schema.precondition)), *map(_negated, sorted(schema.negative_precondition))]
    outcomes = [_outcome(outcome) for outcome in schema.outcomes]
    effect = outcomes[0] if len(outcomes) == 1 else "(oneof\n      " + "\n      ".join(outcomes) + ")"
    return (
        f"\n  ({keyword} {schema.name}"
        f"\n    :parameters ({_parameters(schema.parameters)})"
        f"\n    :precondition {_call('and', ' '.join(condition))}"
        f"\n    :effect {effect})"
    )


def _outcome(outcome: Outcome) -> str:
    made = (f"(new {variable})" for variable in sorted(outcome.new))
    parts = [*made, *map(_atom, sorted(outcome.add)), *map(_negated, sorted(outcome.delete))]
    effect = _call("and", " ".join(parts))
    return f"(exists ({_parameters(outcome.chosen)}) {effect})" if outcome.chosen else effect


def _call(head: str, arguments: str) -> str:
    return f"({head} {arguments})" if arguments else f"({head})"


def _parameters(parameters: Iterable[Parameter]) -> str:
    return " ".join(f"{parameter.name} - {parameter.type}" for parameter in parameters)


def _atom(atom: Atom) -> str:
    predicate, terms = atom
    return f"({predicate} {' '.join(terms)})" if terms else f"({predicate})"


def _negated(atom: Atom) -> str:
    return f"(not {_atom(atom)})"


def _typed_lines(types: Mapping[str, str]) -> str:
    """`a b - t` for each run of names of one type, a line each, in the order of the mapping."""
    runs = groupby(types, key=types.__getitem__)
    return "".join(f"\n    {' '.join(names)} - {kind}" for kind, names in runs)


def write_problem(problem: Problem, domain: Domain) -> str:
    """The problem as one of the given domain."""
    state = "".join(sorted([f"\n    {_atom(atom)}" for atom in problem.state]))
    goal = "".join(sorted([f"\n    {_atom(atom)}" for atom in problem.goal]))
    goal += "".join(sorted([f"\n    {_negated(atom)}" for atom in problem.negative_goal]))
    return (
        f"(define (problem {problem.name})\n"
        f"  (:domain {domain.name})\n"
        f"  (:objects{_typed_lines(problem.objects)})\n"
        f"  (:init{state})\n"
        f"  (:goal (and{goal})))\n"
    )
