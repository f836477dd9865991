"""The executor in Python: it writes a program for the rules and the data, and runs it. See `RuleEngine`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple, TypeVar

from bilevel.rules.closures import closures_in, with_closures
from bilevel.rules.engine.asked import Instance, changed_predicates, keeps_types, relations_asked
from bilevel.rules.engine.choices import write_choosing, write_serving
from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.queues import first, first_of, in_order, in_order_of, push, queue_of
from bilevel.rules.engine.updates import (
    write_applying_function,
    write_building,
    write_declaring_function,
    write_fact_functions,
    write_view_functions,
)
from bilevel.rules.engine.views import Relation, Statistics
from bilevel.rules.engine.writer import PARAMETERS, Writer
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts, Schema
from bilevel.symbolic.semantics import bind_outcome

Found = TypeVar("Found")


class WrittenExecutor:
    """The facts and open goals that the rules ask about, and the program that keeps the rules' views of them."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        domain: Domain,
        state: Iterable[Atom],
        goal: Facts,
        objects: Mapping[str, str],
        commit: bool,
    ) -> None:
        self.rules, self.domain = rules, domain
        self._closures = closures_in(rules, domain)
        if self._closures:
            state = frozenset(state)
            self._links = {fact for fact in state if fact.predicate in self._closures}
            self._known = with_closures(frozenset(self._links), self._closures)
            self._is_stale = False
            state |= self._known
        arities = relations_asked(rules, domain)
        arities |= {Relation("goal", atom.predicate): len(atom.terms) for atom in goal}
        tables = _tables(arities, state, goal, objects, domain)
        statistics = Statistics(_with_future(tables))
        program = program_for(rules, domain, arities, statistics, commit)
        self.source, self._names = program.source, program.names
        namespace: dict[str, Any] = {}
        exec(program.code, namespace)

        def rows(kind: str, name: str) -> Table:
            return tables.pop(Relation(kind, name))

        self._functions: dict[str, Callable[..., Any]] = namespace["engine"](
            rows, first, first_of, in_order, in_order_of, push, queue_of
        )
        self.choose: Callable[[], Instance | None] = self._up_to_date(self._functions["choose"])
        self.open_goals: Callable[[], int] = self._functions["count_open_goals"]
        self._checked_types = [relation.name for relation in arities if relation.kind == "type"]

    def _function(self, verb: str, name: str) -> Callable[..., Any]:
        """Return a function of the program; for what no rule asks about, one that does nothing."""
        return self._functions.get(f"{verb}_{self._names[name]}", lambda *terms: None)

    def server(self, predicate: str) -> Callable[..., Instance | None]:
        """Return a function from the terms of a goal fact to the first instance that serves it, if it is open."""
        return self._up_to_date(self._function("serve", predicate))

    def add(self, fact: Atom) -> None:
        """Make a fact true."""
        self._function("add", fact.predicate)(*fact.terms)
        if fact.predicate in self._closures:
            self._links.add(fact)
            self._is_stale = True

    def remove(self, fact: Atom) -> None:
        """Make a fact false."""
        self._function("remove", fact.predicate)(*fact.terms)
        if fact.predicate in self._closures:
            self._links.discard(fact)
            self._is_stale = True

    def declare(self, name: str, kind: str) -> None:
        """Make a new object of a type known."""
        for ancestor in self._checked_types:
            if self.domain.is_subtype(kind, ancestor):
                self._function("declare", ancestor)(name)

    def applier(self, schema: Schema, outcome: int) -> Callable[..., None]:
        """Return the function that applies an outcome of a rule's action to its arguments and nature's choices."""
        apply: Callable[..., None] = self._functions[f"apply_{self._names[schema.name]}_{outcome}"]
        effects = schema.outcomes[outcome]
        if self._closures.isdisjoint(atom.predicate for atom in effects.add | effects.delete):
            return apply
        names = [parameter.name for parameter in (*schema.parameters, *effects.chosen)]

        def apply_and_note(*values: str) -> None:
            apply(*values)
            bound = bind_outcome(effects, dict(zip(names, values, strict=True)))
            self._links -= bound.delete
            self._links |= {fact for fact in bound.add if fact.predicate in self._closures}
            self._is_stale = True

        return apply_and_note

    def _up_to_date(self, function: Callable[..., Found]) -> Callable[..., Found]:
        """Return the function, preceded by a look at what closures have become where any rule asks for one."""
        if not self._closures:
            return function

        def refreshed(*values: str) -> Found:
            if self._is_stale:
                known = with_closures(frozenset(self._links), self._closures)
                for fact in known - self._known - self._links:
                    self._function("add", fact.predicate)(*fact.terms)
                for fact in self._known - known:
                    if fact.predicate not in self._closures:
                        self._function("remove", fact.predicate)(*fact.terms)
                self._known, self._is_stale = known, False
            return function(*values)

        return refreshed

    def holds(self, fact: Atom) -> bool:
        """Return whether a fact holds, for the predicates that some rule or the action of an unsafe one asks about."""
        return bool(self._function("holds", fact.predicate)(*fact.terms))


Table = list[Any]  # rows: of one column as plain strings, of others as tuples


def _tables(
    arities: Mapping[Relation, int], state: Iterable[Atom], goal: Facts, objects: Mapping[str, str], domain: Domain
) -> dict[Relation, Table]:
    """Return the rows of every relation. This reads each fact of a problem once, so it is written for speed."""
    tables: dict[Relation, Table] = {relation: [] for relation in arities}
    tables |= {Relation("achieved", relation.name): [] for relation in arities if relation.kind == "goal"}

    def appenders(kind: str) -> dict[str, Callable[[Any], None]]:
        return {relation.name: table.append for relation, table in tables.items() if relation.kind == kind}

    append_state, append_goal, append_achieved = appenders("state"), appenders("goal"), appenders("achieved")
    achieved: set[Atom] = set()
    for atom in state:
        predicate, terms = atom
        if predicate in append_state:
            append_state[predicate](terms if len(terms) != 1 else terms[0])
        if predicate in append_goal and atom in goal:
            achieved.add(atom)
    for atom in goal:
        predicate, terms = atom
        (append_achieved if atom in achieved else append_goal)[predicate](terms if len(terms) != 1 else terms[0])
    for relation in arities:
        if relation.kind == "type":
            tables[relation] = [o for o, kind in objects.items() if domain.is_subtype(kind, relation.name)]
    return tables


def _with_future(tables: Mapping[Relation, Table]) -> dict[Relation, Table]:
    """Return the tables, with goals counted among the facts too: that is what the state will come to look like."""
    return {
        relation: rows + tables.get(Relation("goal", relation.name), []) if relation.kind == "state" else rows
        for relation, rows in tables.items()
    }


# The program, which is meant to be read (see `source`): relations are sets, views are dictionaries of sets, a
# function per predicate adds or removes a fact and updates the views, one per rule reads off its first instance, and
# one per action and outcome applies its effects.


class Program(NamedTuple):
    """A program for some rules and data like those it was planned for."""

    source: str
    code: CodeType
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
    planner = Planner(domain, statistics, changed_predicates(schemas, arities), keeps_types(rules, domain))
    plans = [planner.plan(rule) for rule in rules]
    writer = Writer(planner, plans, arities, schemas)
    for _ in range(2):
        writer.lines = []
        _write_functions(writer, schemas, commit)
        functions, writer.lines = writer.lines, [f"def engine({', '.join(PARAMETERS)}):"]
        write_building(writer)
    source = "\n".join([*writer.lines, *functions, ""])
    return Program(source, compile(source, "<rule engine>", "exec"), writer.identifiers)


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
