"""The rule engine: finds the rule that fires while facts come and go, at a cost that does not grow with the objects.

Two ways in: follow a problem by applying actions, or add and remove facts as a robot's labels change. `choose` agrees
with the first of `matching.best_matches`, which is its definition and its test.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush, merge
from types import CodeType
from typing import Any, NamedTuple, TypeVar

from bilevel.rules.closures import MARK, closures_in, with_closures
from bilevel.rules.engine.choices import write_choosing, write_serving
from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.updates import (
    write_applying_function,
    write_building,
    write_declaring_function,
    write_fact_functions,
    write_view_functions,
)
from bilevel.rules.engine.views import Relation, Statistics
from bilevel.rules.engine.writer import PARAMETERS, Writer
from bilevel.rules.matching import asked_types
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Atom, Domain, Facts, Schema
from bilevel.symbolic.semantics import bind_outcome, substitute_all

# An instance of a rule: the rule's place among the engine's, and the values of its outputs (see `output_variables`).
Instance = tuple[int, tuple[str, ...]]
Found = TypeVar("Found")


class RuleEngine:
    """The facts and open goals that the rules ask about, and the program that keeps the rules' views of them.

    `state` and `goal` hold atoms; `objects` gives the types of the objects, which matter where a variable's type does
    not follow from the facts it occurs in. `choose` returns the instance that fires, or `None` where no rule applies.
    With `commit` the engine can also be asked for the first rule that serves one given goal fact.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        domain: Domain,
        state: Iterable[Atom],
        goal: Facts,
        objects: Mapping[str, str],
        *,
        commit: bool = False,
    ) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: rule.priority))  # stable: ties keep the given order
        self.domain = domain
        self._closures = closures_in(self.rules, domain)
        if self._closures:
            state = frozenset(state)
            self._links = {fact for fact in state if fact.predicate in self._closures}
            self._known = with_closures(frozenset(self._links), self._closures)
            self._is_stale = False
            state |= self._known
        arities = _relations(self.rules, domain, goal)
        tables = _tables(arities, state, goal, objects, domain)
        statistics = Statistics(_with_future(tables))
        program = program_for(self.rules, domain, arities, statistics, commit)
        self.source, self._outputs, self._names = program.source, program.outputs, program.names
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
        self._function("add", fact.predicate)(*fact.terms)
        if fact.predicate in self._closures:
            self._links.add(fact)
            self._is_stale = True

    def remove(self, fact: Atom) -> None:
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

    def binding(self, instance: Instance) -> dict[str, str]:
        """Return the values of an instance's outputs by variable."""
        rule, values = instance
        return dict(zip(self._outputs[rule], values, strict=True))


def _relations(rules: Sequence[Rule], domain: Domain, goal: Facts) -> dict[Relation, int]:
    """Return the relations to keep with their arities: what rules ask about, goals, what unsafe rules' actions need."""
    arities: dict[Relation, int] = {}
    for rule in rules:
        asked = rule.state_condition | rule.absent
        if not is_safe(rule, domain):
            schema = domain.schemas[rule.action.name]
            asked |= {a for a in schema.precondition | schema.negative_precondition if a.predicate != EQUALITY}
        arities |= {Relation("state", atom.predicate): len(atom.terms) for atom in asked}
        arities |= {Relation("goal", atom.predicate): len(atom.terms) for atom in rule.goal_condition}
        arities |= {Relation("type", kind): 1 for kind in asked_types(rule, domain).values()}
    return arities | {Relation("goal", atom.predicate): len(atom.terms) for atom in goal}


def is_safe(rule: Rule, domain: Domain) -> bool:
    """Return whether the rule's conditions imply its action's precondition, as those of learned rules do."""
    schema = domain.schemas[rule.action.name]
    binding = dict(zip((p.name for p in schema.parameters), rule.action.arguments, strict=True))
    required, forbidden = (substitute_all(a, binding) for a in (schema.precondition, schema.negative_precondition))
    facts, absent = (frozenset(a for a in atoms if a.predicate != EQUALITY) for atoms in (required, forbidden))
    return (
        facts <= rule.state_condition
        and absent <= rule.absent | rule.goal_condition  # an open goal is an absent fact
        and all(a.terms[0] == a.terms[1] for a in required - facts)
        and all((min(a.terms), max(a.terms)) in rule.inequalities for a in forbidden - absent)
    )


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


# The program, which is meant to be read (`RuleEngine.source`): relations are sets, views are dictionaries of sets, a
# function per predicate adds or removes a fact and updates the views, one per rule reads off its first instance, and
# one per action and outcome applies its effects.


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
    volatile |= {relation.name for relation in arities if relation.name.endswith(MARK)}
    typed = domain.keeps_types and all(_fits_schema(rule, domain) for rule in rules)
    planner = Planner(domain, statistics, volatile, typed)
    plans = [planner.plan(rule) for rule in rules]
    writer = Writer(planner, plans, arities, schemas)
    for _ in range(2):
        writer.lines = []
        _write_functions(writer, schemas, commit)
        functions, writer.lines = writer.lines, [f"def engine({', '.join(PARAMETERS)}):"]
        write_building(writer)
    source = "\n".join([*writer.lines, *functions, ""])
    return Program(
        source, compile(source, "<rule engine>", "exec"), tuple(plan.outputs for plan in plans), writer.identifiers
    )


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


# Sets that know their first members. A set in a view comes with a queue of two lists that together hold all members,
# and also values that have ceased to be members, which are dropped when they come to the front. The *backlog* is
# sorted, the last first, and holds what was there when the queue was made; the *fresh* list is a heap of what came
# later. Taking from the end of a sorted list is much cheaper than taking from a heap of a million.

Members = set[str] | tuple[str, ...]  # a tuple if there is just one
Queue = tuple[list[str], list[str]]  # backlog and fresh


def queue_of(members: Iterable[str]) -> Queue:
    return sorted(members, reverse=True), []


def first(backlog: list[str], fresh: list[str], members: Members) -> str:
    """Return the smallest of the members, of which there must be some."""
    while backlog and backlog[-1] not in members:
        backlog.pop()
    while fresh and fresh[0] not in members:
        heappop(fresh)
    if fresh and not (backlog and backlog[-1] < fresh[0]):
        return fresh[0]
    return backlog[-1]


def first_of(view: dict[Any, Members], queues: dict[Any, Queue], key: Hashable) -> str:
    """Return the smallest value a view has for a key; the key's queue is made when it is first asked for."""
    members = view[key]
    if type(members) is tuple:
        return members[0]
    return first(*(queues.get(key) or queues.setdefault(key, queue_of(members))), members)


def push(queue: Queue, members: Members, value: str) -> None:
    """Add a member; when the queue holds mostly values that are no longer members it is made anew."""
    backlog, fresh = queue
    heappush(fresh, value)
    if len(fresh) > 2 * len(members) + 100:
        backlog[:], fresh[:] = queue_of(members)


def in_order(members: Members, queue: Queue) -> Iterator[str]:
    """Yield the members from the smallest on. The queue is not used up, so that loops over one view may be nested."""
    if not members:
        return
    first(*queue, members)  # afterwards both lists begin with a member and nobody takes from them meanwhile
    backlog, fresh = queue
    fresh.sort()  # a sorted list is a heap too
    last = ""
    for value in merge(reversed(backlog), fresh):
        if value != last and value in members:
            yield value
        last = value


def in_order_of(view: dict[Any, Members], queues: dict[Any, Queue], key: Hashable) -> Iterator[str]:
    """Yield the values a view has for a key, from the smallest on."""
    members = view.get(key, ())
    if type(members) is tuple:
        return iter(members)
    return in_order(members, queues.get(key) or queues.setdefault(key, queue_of(members)))
