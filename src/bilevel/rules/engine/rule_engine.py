"""The rule engine: finds the rule that fires while facts come and go, at a cost that does not grow with the objects.

Two ways in: follow a problem by applying actions, or add and remove facts as a robot's labels change. `choose` agrees
with `matching.best_match`, which is its definition and its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.ordering import first, first_of, in_order, in_order_of, push, queue_of
from bilevel.rules.engine.program import program
from bilevel.rules.engine.statistics import Relation, Statistics
from bilevel.rules.engine.writer import unique_identifiers
from bilevel.rules.matching import bind_action, checked_types, free_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Action, Atom, Domain, Facts, Schema
from bilevel.symbolic.semantics import substitute_all


class Choice(NamedTuple):
    """A rule, by its place in the list of rules, and the values of its outputs (see `output_variables`)."""

    rule: int
    values: tuple[str, ...]


Found = tuple[int, tuple[str, ...]] | None  # a choice as the program returns it


class RuleEngine:
    """The facts and open goals that the rules ask about, and the program that keeps the rules' views of them.

    `state` and `goal` hold atoms; `objects` gives the types of the objects, which matter where a variable's type does
    not follow from the facts it occurs in. With `commit` the engine can also be asked for the first rule that serves
    one given goal fact, with `watch` it keeps a fingerprint of what the rules can see.
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
        watch: bool = False,
    ) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: rule.priority))  # stable: ties keep the given order
        self.domain = domain
        arities = _relations(self.rules, domain, goal)
        tables = _tables(arities, state, goal, objects, domain)
        statistics = Statistics(_with_future(tables))
        prepared = _prepared(self.rules, domain, arities, statistics, commit, watch)
        self.source, self._outputs, self._names = prepared.source, prepared.outputs, prepared.names
        namespace: dict[str, Any] = {}
        exec(prepared.code, namespace)

        def rows(kind: str, name: str) -> Table:
            return tables.pop(Relation(kind, name))

        self._functions: dict[str, Callable[..., Any]] = namespace["engine"](
            rows, first, first_of, in_order, in_order_of, push, queue_of
        )
        self.choose_raw: Callable[[], Found] = self._functions["choose"]
        self._checked_types = [relation.name for relation in arities if relation.kind == "type"]

    def _function(self, verb: str, name: str) -> Callable[..., Any] | None:
        """A function of the program; there is none for what no rule asks about."""
        return self._functions.get(f"{verb}_{self._names[name]}")

    def choose(self) -> Choice | None:
        """The instance that fires, or `None` where no rule applies."""
        found = self.choose_raw()
        return None if found is None else Choice(*found)

    def choose_for(self, goal: Atom) -> Choice | None:
        """The first instance of lowest priority that serves one goal fact not yet achieved."""
        found = self.server(goal.predicate)(*goal.terms)
        return None if found is None else Choice(*found)

    def server(self, predicate: str) -> Callable[..., Found]:
        """The function behind `choose_for` for the goals of one predicate."""
        return self._function("serve", predicate) or (lambda *terms: None)

    @property
    def open_goals(self) -> int:
        """How many goal facts are not achieved."""
        return self.status()[0]

    def status(self) -> tuple[int, int]:
        """How many goal facts are not achieved, and a number that is the same for the same facts (with `watch`)."""
        found: tuple[int, int] = self._functions["status"]()
        return found

    def add(self, fact: Atom) -> None:
        function = self._function("add", fact.predicate)
        if function:
            function(*fact.terms)

    def remove(self, fact: Atom) -> None:
        function = self._function("remove", fact.predicate)
        if function:
            function(*fact.terms)

    def declare(self, name: str, kind: str) -> None:
        """Make a new object of a type known."""
        for ancestor in self._checked_types:
            if self.domain.is_subtype(kind, ancestor):
                self._functions[f"declare_{self._names[ancestor]}"](name)

    def applier(self, schema: Schema, outcome: int) -> Callable[..., None]:
        """The function that applies an outcome of an action of some rule to its arguments and nature's choices."""
        return self._functions[f"apply_{self._names[schema.name]}_{outcome}"]

    def holds(self, fact: Atom) -> bool:
        """Whether a fact holds, for the predicates that some rule or the action of an unsafe one asks about."""
        return bool(self._functions[f"holds_{self._names[fact.predicate]}"](*fact.terms))

    def binding(self, choice: Choice) -> dict[str, str]:
        """The values of the choice's outputs by variable."""
        return dict(zip(self._outputs[choice.rule], choice.values, strict=True))

    def action(self, choice: Choice) -> Action:
        return bind_action(self.rules[choice.rule].action, self.binding(choice))

    def served(self, choice: Choice) -> Facts:
        """The goal facts that the choice works towards."""
        return substitute_all(self.rules[choice.rule].goal_condition, self.binding(choice))


class Prepared(NamedTuple):
    """A program for some rules and data like those it was planned for."""

    source: str
    code: CodeType
    outputs: tuple[tuple[str, ...], ...]
    names: dict[str, str]


_preparations: dict[object, tuple[Domain, Prepared]] = {}  # with the domain, so that its identity is not used again
MOST_PREPARED = 100


def _prepared(
    rules: tuple[Rule, ...],
    domain: Domain,
    arities: dict[Relation, int],
    statistics: Statistics,
    commit: bool,
    watch: bool,
) -> Prepared:
    """The program for these rules, made anew only if the data are of another kind than any before."""
    key = (rules, id(domain), frozenset(arities), statistics.magnitudes(), commit, watch)
    if key not in _preparations:
        if len(_preparations) >= MOST_PREPARED:
            _preparations.clear()
        _preparations[key] = domain, _prepare(rules, domain, arities, statistics, commit, watch)
    return _preparations[key][1]


def _prepare(
    rules: tuple[Rule, ...],
    domain: Domain,
    arities: dict[Relation, int],
    statistics: Statistics,
    commit: bool,
    watch: bool,
) -> Prepared:
    """Plan how to find each rule's instances, given what the data are like and what the policy's actions change."""
    schemas = [domain.schemas[name] for name in sorted({rule.action.name for rule in rules})]
    volatile = frozenset(atom.predicate for schema in schemas for o in schema.outcomes for atom in o.add | o.delete)
    typed = domain.keeps_types and all(fits_schema(rule, domain) for rule in rules)
    planner = Planner(domain, statistics, volatile, typed)
    plans = [planner.plan(rule) for rule in rules]
    names = unique_identifiers([*domain.predicates, *domain.schemas, *domain.types, ROOT_TYPE])
    source = program(planner, plans, arities, schemas, names, commit=commit, watch=watch)
    return Prepared(source, compile(source, "<rule engine>", "exec"), tuple(plan.outputs for plan in plans), names)


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


Table = list[Any]  # rows: of one column as plain strings, of others as tuples


def _tables(
    arities: Mapping[Relation, int], state: Iterable[Atom], goal: Facts, objects: Mapping[str, str], domain: Domain
) -> dict[Relation, Table]:
    """The rows of every relation. This reads each fact of a problem once, so it is written for speed."""
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
    """The tables, with goals counted among the facts too: that is what the state will come to look like."""
    return {
        relation: rows + tables.get(Relation("goal", relation.name), []) if relation.kind == "state" else rows
        for relation, rows in tables.items()
    }
