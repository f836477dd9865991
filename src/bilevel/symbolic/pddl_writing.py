"""Writes domains and problems as PDDL; reading the text back gives an equal value. Facts are sorted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from bilevel.symbolic.domain import EQUALITY, Atom, Domain, Outcome, Parameter, Problem, Schema
from bilevel.symbolic.semantics import has_negative_conditions


def write_domain(domain: Domain) -> str:
    return "\n".join([f"(define (domain {domain.name})", *_domain_sections(domain)]) + ")\n"


def _domain_sections(domain: Domain) -> Iterator[str]:
    yield f"  (:requirements {' '.join(_requirements(domain))})"
    if domain.types:
        yield "  (:types" + _typed_lines(domain.types) + ")"
    if domain.constants:
        yield "  (:constants" + _typed_lines(domain.constants) + ")"
    predicates = (f"\n    {_call(p.name, _parameters(p.parameters))}" for p in domain.predicates.values())
    yield f"  (:predicates{''.join(predicates)})"
    for schema in domain.schemas.values():
        yield _action(schema)


def _requirements(domain: Domain) -> Iterator[str]:
    yield ":strips"
    if domain.types:
        yield ":typing"
    if has_negative_conditions(domain):
        yield ":negative-preconditions"
    if any(a.predicate == EQUALITY for s in domain.schemas.values() for a in s.precondition | s.negative_precondition):
        yield ":equality"
    if not domain.is_deterministic:
        yield ":non-deterministic"


def _action(schema: Schema) -> str:
    condition = [*map(_atom, sorted(schema.precondition)), *map(_negated, sorted(schema.negative_precondition))]
    outcomes = [_outcome(outcome) for outcome in schema.outcomes]
    effect = outcomes[0] if len(outcomes) == 1 else "(oneof\n      " + "\n      ".join(outcomes) + ")"
    return (
        f"\n  (:action {schema.name}"
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
