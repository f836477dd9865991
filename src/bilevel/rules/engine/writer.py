"""Writes Python: lines and their indentation, names for relations, nested loops for joins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.views import UNEQUAL, JoinStep, Literal, Relation, RulePlan, View
from bilevel.symbolic.domain import ROOT_TYPE, Schema, is_variable

Environment = dict[str, str]  # variable -> the Python expression that holds its value

# What the program is handed when it starts: see `rule_engine`.
PARAMETERS = ("rows", "first", "first_of", "in_order", "in_order_of", "push", "queue_of")


class Writer:
    """The text of a program about some relations and views."""

    def __init__(
        self, planner: Planner, plans: Sequence[RulePlan], arities: Mapping[Relation, int], schemas: Sequence[Schema]
    ) -> None:
        domain = planner.domain
        self.planner = planner
        self.plans = plans
        self.arities = arities  # of every relation the engine keeps, views excepted
        self.identifiers = unique_identifiers(
            dict.fromkeys([*domain.predicates, *domain.schemas, *domain.types, ROOT_TYPE, *(r.name for r in arities)])
        )
        self.views = _used_views(planner, plans)
        self.names = {view.relation: f"view{number}" for number, view in enumerate(self.views)}
        self.names |= {found: f"{found.kind}_{self.identifiers[found.name]}" for found in sorted(arities)}
        self.locals = self._local_names(schemas)
        self.ordered = {use.name for plan in plans for v, use in plan.uses.items() if v in plan.outputs}
        self.indexes: dict[tuple[Relation, tuple[int, ...]], None] = {}
        self.lines: list[str] = []
        self._depth = 1

    def _local_names(self, schemas: Sequence[Schema]) -> dict[str, str]:
        """Return a Python name for each variable of rules and schemas."""
        variables = {variable for plan in self.plans for variable in plan.uses}
        variables |= {parameter.name for schema in schemas for parameter in schema.parameters}
        variables |= {chosen.name for schema in schemas for outcome in schema.outcomes for chosen in outcome.chosen}
        return {variable: f"the_{name}" for variable, name in unique_identifiers(variables).items()}

    # Lines

    def emit(self, line: str) -> None:
        """Write a line at the present depth."""
        self.lines.append("    " * self._depth + line if line else "")

    def comment(self, text: str) -> None:
        """Write a comment on one line, whatever the names in it."""
        self.emit("# " + "".join(c if c.isprintable() else "?" for c in text))

    @contextmanager
    def block(self, *heads: str) -> Iterator[None]:
        """Put the lines written inside below the heads, each of which opens a block."""
        before = self._depth
        for head in heads:
            self.emit(head)
            self._depth += 1
        yield
        self._depth = before

    # Names

    def view(self, relation: Relation) -> View:
        """Return the view that a relation stands for."""
        return self.planner.views[int(relation.name)]

    def arity(self, relation: Relation) -> int:
        """Return how many columns a relation has."""
        return len(self.view(relation).key) if relation.kind == "view" else self.arities[relation]

    def index(self, relation: Relation, bound: tuple[int, ...]) -> str:
        """Return the name of the dictionary from bound columns to the others, and note that it is needed."""
        self.indexes[relation, bound] = None
        return f"by_{'_'.join(map(str, bound))}_{self.names[relation]}"

    def indexes_of(self, relation: Relation) -> list[tuple[int, ...]]:
        """Return by which columns a relation is looked up."""
        return sorted(bound for found, bound in self.indexes if found == relation)

    def describe(self, view: View) -> str:
        """Return a view in words, for a comment."""
        literals = " & ".join(self._describe_literal(literal) for literal in view.literals)
        key = f"{', '.join(view.key)} -> " if view.key else ""
        return f"{self.names[view.relation]}: {key}{view.variable}: {literals}"

    def _describe_literal(self, literal: Literal) -> str:
        if literal.relation == UNEQUAL:
            return " != ".join(literal.terms)
        return f"{'' if literal.positive else 'not '}{self.names[literal.relation]}({', '.join(literal.terms)})"

    # Joins

    def value(self, term: str, environment: Environment) -> str:
        """Return the expression for a term: a local variable's name, or a constant."""
        return environment[term] if is_variable(term) else repr(term)

    def test(self, literal: Literal, environment: Environment) -> str:
        """Return an expression for whether a literal holds."""
        values = [self.value(term, environment) for term in literal.terms]
        if literal.relation == UNEQUAL:
            return f"{values[0]} != {values[1]}"
        name = self.names[literal.relation]
        if not values:  # a fact without arguments, or a view without a key
            return name if literal.positive else f"not {name}"
        return f"{row(values)} {'in' if literal.positive else 'not in'} {name}"

    def join(self, steps: Iterable[JoinStep], environment: Environment, inside: Callable[[Environment], None]) -> None:
        """Write nested loops and checks, with `inside` at their heart."""
        environment = dict(environment)
        heads: list[str] = []
        for literal, bound in steps:
            if len(bound) == len(literal.terms):
                heads.append(f"if {self.test(literal, environment)}:")
            else:
                heads += self._loop(literal, bound, environment)
        with self.block(*heads):
            inside(environment)

    def _loop(self, literal: Literal, bound: tuple[int, ...], environment: Environment) -> list[str]:
        """Return a loop over the instances of a literal that agree with what is bound, and bind the others."""
        columns, repeated = [], []
        for place, term in enumerate(literal.terms):
            if place in bound:
                continue
            if term in environment:
                columns.append(f"same{place}")
                repeated.append(f"if same{place} == {environment[term]}:")
            else:
                environment[term] = self.locals[term]
                columns.append(environment[term])
        source = self.names[literal.relation]
        if bound:
            key = row([self.value(literal.terms[place], environment) for place in bound])
            source = f"{self.index(literal.relation, bound)}.get({key}, ())"
        return [f"for {', '.join(columns)} in {source}:", *repeated]

    def unify(self, terms: Sequence[str], columns: Sequence[str]) -> tuple[Environment, list[str]]:
        """Return what values in columns say of the variables of an atom, and the conditions for them to fit it."""
        environment: Environment = {}
        conditions = []
        for term, column in zip(terms, columns, strict=True):
            if not is_variable(term):
                conditions.append(f"{column} == {term!r}")
            elif environment.setdefault(term, column) != column:
                conditions.append(f"{column} == {environment[term]}")
        return environment, conditions


def row(values: Sequence[str]) -> str:
    """Return one value as itself, any other number as a tuple: how rows and keys are stored."""
    return values[0] if len(values) == 1 else tuple_of(values)


def tuple_of(values: Sequence[str]) -> str:
    """Return the expression for a tuple of values."""
    return f"({', '.join(values)},)" if len(values) == 1 else f"({', '.join(values)})"


def columns(count: int) -> list[str]:
    """Return names for so many columns."""
    return [f"a{number}" for number in range(count)]


def unique_identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return a part of a Python name for each of the names, all different: b-1 and b_1 are two things."""
    found: dict[str, str] = {}
    for name in sorted(set(names)):
        letters = (c if c.isascii() and (c.isalnum() or c == "_") else "_" if c in "-?" else f"u{ord(c)}" for c in name)
        spelt = "".join(letters).strip("_")
        while spelt in found.values():
            spelt += "_"
        found[name] = spelt
    return found


def _used_views(planner: Planner, plans: Sequence[RulePlan]) -> list[View]:
    """Return the views the plans need, each after the views it needs itself."""
    needed: dict[View, None] = {}

    def visit(view: View) -> None:
        for literal in view.literals:
            if literal.relation.kind == "view":
                visit(planner.views[int(literal.relation.name)])
        needed[view] = None

    for plan in plans:
        for use in plan.uses.values():
            visit(planner.views[int(use.name)])
    return list(needed)
