"""The rule engine: finds the rule that fires while facts come and go, at a cost that does not grow with the objects.

Two ways in: follow a problem by applying actions, or add and remove facts as a robot's labels change. `choose` agrees
with `matching.best_match`, which is its definition and its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from types import CodeType
from typing import Any, NamedTuple

from bilevel.rules.code_generation import Generator, identifier
from bilevel.rules.join_plan import Planner
from bilevel.rules.matching import bind_action, checked_types, free_variables
from bilevel.rules.rule import Rule
from bilevel.rules.statistics import Relation, Statistics
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Facts, Schema
from bilevel.symbolic.semantics import substitute_all


class Choice(NamedTuple):
    """A rule, by its place in the list of rules, and the values of its outputs (see `output_variables`)."""

    rule: int
    values: tuple[str, ...]


class RuleEngine:
    """The facts and open goals that the rules ask about, and the program that keeps the rules' views of them.

    `state` and `goal` may be any iterables of atoms; `objects` gives the types of the objects, which matter where a
    variable's type does not follow from the facts it occurs in. With `commit` the engine can also be asked for the
    first rule that serves one given goal fact.
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
        schemas = [domain.schemas[name] for name in sorted({rule.action.name for rule in self.rules})]
        self._arities = _relations(self.rules, domain, goal)
        tables = _tables(self._arities, state, goal, objects, domain)
        statistics = Statistics(_with_future(tables))
        volatile = frozenset(atom.predicate for schema in schemas for o in schema.outcomes for atom in o.add | o.delete)
        typed = domain.keeps_types and all(fits_schema(rule, domain) for rule in self.rules)
        planner = Planner(domain, statistics, volatile, typed)
        plans = [planner.plan(rule) for rule in self.rules]
        self._outputs = [plan.outputs for plan in plans]
        self.source = Generator(planner, plans, self._arities, commit).program(schemas)
        program: dict[str, Any] = {}
        exec(_compiled(self.source), program)

        def rows(kind: str, name: str) -> Iterable[Any]:
            found = tables.pop(Relation(kind, name))
            return [row[0] for row in found] if found and len(found[0]) == 1 else found

        self._functions = program["engine"](rows, first, first_of, in_order, heapify, heappush)
        self.choose_raw: Callable[[], tuple[int, tuple[str, ...]] | None] = self._functions["choose"]
        self.status: Callable[[], tuple[int, int]] = self._functions["status"]
        self._type_checks = [r.name for r in self._arities if r.kind == "type"]

    def choose(self) -> Choice | None:
        """The instance that fires, or `None` where no rule applies."""
        found = self.choose_raw()
        return None if found is None else Choice(*found)

    def choose_for(self, goal: Atom) -> Choice | None:
        """The first instance of lowest priority that serves one goal fact not yet achieved."""
        serve = self._functions.get(f"serve_{identifier(goal.predicate)}")
        found = serve(*goal.terms) if serve else None
        return None if found is None else Choice(*found)

    def server(self, predicate: str) -> Callable[..., tuple[int, tuple[str, ...]] | None]:
        """The function behind `choose_for` for the goals of one predicate that some rule serves."""
        function: Callable[..., tuple[int, tuple[str, ...]] | None] = self._functions[f"serve_{identifier(predicate)}"]
        return function

    @property
    def open_goals(self) -> int:
        """How many goal facts are not achieved."""
        return self.status()[0]

    @property
    def fingerprint(self) -> int:
        """Changes with every fact that matters to the rules and returns to the same value with the same facts."""
        return self.status()[1]

    def add(self, fact: Atom) -> None:
        function = self._functions.get(f"add_{identifier(fact.predicate)}")
        if function:
            function(*fact.terms)

    def remove(self, fact: Atom) -> None:
        function = self._functions.get(f"remove_{identifier(fact.predicate)}")
        if function:
            function(*fact.terms)

    def declare(self, name: str, kind: str) -> None:
        """Make a new object of a type known."""
        for ancestor in self._type_checks:
            if self.domain.is_subtype(kind, ancestor):
                self._functions[f"add_is_{identifier(ancestor)}"](name)

    def applier(self, schema: Schema, outcome: int) -> Callable[..., None]:
        """The function that applies an outcome of an action of some rule to its arguments and nature's choices."""
        function: Callable[..., None] = self._functions[f"apply_{identifier(schema.name)}_{outcome}"]
        return function

    def holds(self, fact: Atom) -> bool:
        """Whether a fact holds, for the predicates that some rule asks about."""
        held = self._functions[f"holds_{identifier(fact.predicate)}"]
        return bool(held(*fact.terms))

    def binding(self, choice: Choice) -> dict[str, str]:
        """The values of the choice's outputs by variable."""
        return dict(zip(self._outputs[choice.rule], choice.values, strict=True))

    def action(self, choice: Choice) -> Action:
        return bind_action(self.rules[choice.rule].action, self.binding(choice))

    def served(self, choice: Choice) -> Facts:
        """The goal facts that the choice works towards."""
        return substitute_all(self.rules[choice.rule].goal_condition, self.binding(choice))


Members = set[str] | tuple[str, ...]  # a tuple if there is just one


def first(heap: list[str], members: set[str]) -> str:
    """The smallest member; the heap holds all members, and values that have ceased to be members."""
    value = heap[0]
    while value not in members:
        heappop(heap)
        value = heap[0]
    return value


def first_of(view: dict[Any, Members], heaps: dict[Any, list[str]], key: Any) -> str:
    """The smallest value a view has for a key; its heap is made when it is first asked for."""
    members = view[key]
    if type(members) is tuple:
        return members[0]
    heap = heaps.get(key)
    if heap is None:
        heap = heaps[key] = sorted(members)
    value = heap[0]
    while value not in members:
        heappop(heap)
        value = heap[0]
    return value


def in_order(members: Members, heaps: dict[Any, list[str]], key: Any) -> Iterator[str]:
    """The members from the smallest on. The heap is left as it is, so that loops over one view may be nested."""
    if not members:
        return
    if type(members) is tuple:
        yield members[0]
        return
    heap = heaps.get(key)
    if heap is None:
        heap = heaps[key] = sorted(members)
    while heap[0] not in members:
        heappop(heap)
    frontier, last = [(heap[0], 0)], ""
    while frontier:
        value, place = heappop(frontier)
        if value != last and value in members:
            yield value
        last = value
        for child in (2 * place + 1, 2 * place + 2):
            if child < len(heap):
                heappush(frontier, (heap[child], child))


@lru_cache(maxsize=64)
def _compiled(source: str) -> CodeType:
    return compile(source, "<rule engine>", "exec")


def _relations(rules: Sequence[Rule], domain: Domain, goal: Facts) -> dict[Relation, int]:
    """The relations to keep: what rules ask about, goals, and what unsafe rules' actions need; with their arities."""
    arities: dict[Relation, int] = {}
    for rule in rules:
        asked = rule.state_condition | rule.absent
        if not is_safe(rule, domain):
            schema = domain.schemas[rule.action.name]
            asked |= {a for a in schema.precondition | schema.negative_precondition if a.predicate != EQUALITY}
        arities |= {Relation("state", atom.predicate): len(atom.terms) for atom in asked}
        arities |= {Relation("goal", atom.predicate): len(atom.terms) for atom in rule.goal_condition}
        types = {variable.name: variable.type for variable in rule.variables}
        ranging = {types[variable] for variable in free_variables(rule)} | set(checked_types(rule, domain).values())
        arities |= {Relation("type", kind): 1 for kind in ranging}
    return arities | {Relation("goal", atom.predicate): len(atom.terms) for atom in goal}


def is_safe(rule: Rule, domain: Domain) -> bool:
    """Whether the rule's conditions imply its action's precondition, as those of learned rules do."""
    schema = domain.schemas[rule.action.name]
    binding = dict(zip((p.name for p in schema.parameters), rule.action.arguments, strict=True))
    positive = {a for a in substitute_all(schema.precondition, binding) if a.predicate != EQUALITY}
    equal = {a for a in substitute_all(schema.precondition, binding) if a.predicate == EQUALITY}
    negative = {a for a in substitute_all(schema.negative_precondition, binding) if a.predicate != EQUALITY}
    unequal = {a for a in substitute_all(schema.negative_precondition, binding) if a.predicate == EQUALITY}
    return (
        positive <= rule.state_condition
        and negative <= rule.absent | rule.goal_condition  # an open goal is an absent fact
        and all(a.terms[0] == a.terms[1] for a in equal)
        and all((min(a.terms), max(a.terms)) in rule.inequalities for a in unequal)
    )


def fits_schema(rule: Rule, domain: Domain) -> bool:
    """Whether the terms of the rule's action are of the types that its schema declares."""
    types = {variable.name: variable.type for variable in rule.variables} | dict(domain.constants)
    wanted = domain.schemas[rule.action.name].parameters
    return all(domain.is_subtype(types[t], p.type) for t, p in zip(rule.action.arguments, wanted, strict=True))


Table = list[tuple[str, ...]]


def _tables(
    arities: Mapping[Relation, int], state: Iterable[Atom], goal: Facts, objects: Mapping[str, str], domain: Domain
) -> dict[Relation, Table]:
    tables: dict[Relation, Table] = {relation: [] for relation in arities}
    tables |= {Relation("achieved", relation.name): [] for relation in arities if relation.kind == "goal"}

    def appenders(kind: str) -> dict[str, Callable[[tuple[str, ...]], None]]:
        return {relation.name: table.append for relation, table in tables.items() if relation.kind == kind}

    append_state, append_goal, append_achieved = appenders("state"), appenders("goal"), appenders("achieved")
    achieved: set[Atom] = set()
    for atom in state:
        predicate, terms = atom
        if predicate in append_state:
            append_state[predicate](terms)
        if predicate in append_goal and atom in goal:
            achieved.add(atom)
    for atom in goal:
        (append_achieved if atom in achieved else append_goal)[atom[0]](atom[1])
    for relation in arities:
        if relation.kind == "type":
            tables[relation] = [(o,) for o, kind in objects.items() if domain.is_subtype(kind, relation.name)]
    return tables


def _with_future(tables: Mapping[Relation, Table]) -> dict[Relation, Table]:
    """The tables, with goals counted among the facts too: that is what the state will come to look like."""
    return {
        relation: rows + tables.get(Relation("goal", relation.name), []) if relation.kind == "state" else rows
        for relation, rows in tables.items()
    }
