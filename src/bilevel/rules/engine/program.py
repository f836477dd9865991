"""The program of a rule engine, specialised to its rules.

It is meant to be read (`RuleEngine.source`): relations are sets, views are dictionaries of sets, a function per
predicate adds or removes a fact and updates the views, one per rule reads off its first instance, and one per action
and outcome applies its effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType
from typing import NamedTuple

from bilevel.rules.engine.choices import write_choosing, write_serving
from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.statistics import Relation, Statistics
from bilevel.rules.engine.updates import (
    write_applying_function,
    write_building,
    write_declaring_function,
    write_fact_functions,
    write_view_functions,
)
from bilevel.rules.engine.writer import PARAMETERS, Writer, unique_identifiers
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import ROOT_TYPE, Domain, Schema


class Program(NamedTuple):
    """A program for some rules and data like those it was planned for."""

    source: str
    code: CodeType
    outputs: tuple[tuple[str, ...], ...]  # of each rule, the variables that an instance gives values for
    names: Mapping[str, str]  # of predicates, schemas and types in the program


_programs: dict[object, tuple[Domain, Program]] = {}  # with the domain, so that its identity is not used again
MOST_KEPT = 100


def program_for(
    rules: tuple[Rule, ...], domain: Domain, arities: Mapping[Relation, int], statistics: Statistics, commit: bool
) -> Program:
    """Return the program for these rules, written anew only if the data are of another kind than any before."""
    key = (rules, id(domain), frozenset(arities), statistics.magnitudes(), commit)
    if key not in _programs:
        if len(_programs) >= MOST_KEPT:
            _programs.clear()
        _programs[key] = domain, _write(rules, domain, arities, statistics, commit)
    return _programs[key][1]


def _write(
    rules: tuple[Rule, ...], domain: Domain, arities: Mapping[Relation, int], statistics: Statistics, commit: bool
) -> Program:
    """Plan how to find each rule's instances, given what the data are like and what the policy's actions change.

    The source is that of a function `engine`, which is handed the data and returns the functions to work with. It is
    written twice, since only the writing shows which indexes there must be.
    """
    schemas = [domain.schemas[name] for name in sorted({rule.action.name for rule in rules})]
    volatile = frozenset(atom.predicate for schema in schemas for o in schema.outcomes for atom in o.add | o.delete)
    typed = domain.keeps_types and all(_fits_schema(rule, domain) for rule in rules)
    planner = Planner(domain, statistics, volatile, typed)
    plans = [planner.plan(rule) for rule in rules]
    names = unique_identifiers([*domain.predicates, *domain.schemas, *domain.types, ROOT_TYPE])
    writer = Writer(planner, plans, arities, schemas, names)
    for _ in range(2):
        writer.lines = []
        _write_functions(writer, schemas, commit)
        functions, writer.lines = writer.lines, [f"def engine({', '.join(PARAMETERS)}):"]
        write_building(writer)
    source = "\n".join([*writer.lines, *functions, ""])
    return Program(source, compile(source, "<rule engine>", "exec"), tuple(plan.outputs for plan in plans), names)


def _fits_schema(rule: Rule, domain: Domain) -> bool:
    """Return whether the terms of the rule's action are of the types that its schema declares."""
    types = rule.types | dict(domain.constants)
    wanted = domain.schemas[rule.action.name].parameters
    return all(domain.is_subtype(types[t], p.type) for t, p in zip(rule.action.arguments, wanted, strict=True))


def _write_functions(writer: Writer, schemas: Sequence[Schema], commit: bool) -> None:
    for view in reversed(writer.views):
        if view.key:
            write_view_functions(writer, view)
    for predicate in sorted({relation.name for relation in writer.arities if relation.kind in ("state", "goal")}):
        write_fact_functions(writer, predicate)
    for relation in sorted(writer.arities):
        if relation.kind == "type":
            write_declaring_function(writer, relation)
    write_choosing(writer)
    if commit:
        write_serving(writer)
    for schema in schemas:
        for number, outcome in enumerate(schema.outcomes):
            write_applying_function(writer, schema, number, outcome)
    writer.emit("")
    writer.emit("def count_open_goals(): return open_goals")
    writer.emit("return locals()")
