"""The rule engine: finds the rule that fires while facts come and go, at a cost that does not grow with the objects.

Two ways in: follow a problem by applying actions, or add and remove facts as a robot's labels change. `choose` agrees
with the first of `matching.best_matches`, which is its definition and its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bilevel.rules.engine.ordering import first, first_of, in_order, in_order_of, push, queue_of
from bilevel.rules.engine.program import program_for
from bilevel.rules.engine.statistics import Relation, Statistics
from bilevel.rules.matching import asked_types
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Atom, Domain, Facts, Schema
from bilevel.symbolic.semantics import substitute_all

# An instance of a rule: the rule's place among the engine's, and the values of its outputs (see `output_variables`).
Instance = tuple[int, tuple[str, ...]]


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
        self.choose: Callable[[], Instance | None] = self._functions["choose"]
        self.open_goals: Callable[[], int] = self._functions["count_open_goals"]
        self._checked_types = [relation.name for relation in arities if relation.kind == "type"]

    def _function(self, verb: str, name: str) -> Callable[..., Any]:
        """Return a function of the program; for what no rule asks about, one that does nothing."""
        return self._functions.get(f"{verb}_{self._names[name]}", lambda *terms: None)

    def server(self, predicate: str) -> Callable[..., Instance | None]:
        """Return a function from the terms of a goal fact to the first instance that serves it, if it is open."""
        return self._function("serve", predicate)

    def add(self, fact: Atom) -> None:
        self._function("add", fact.predicate)(*fact.terms)

    def remove(self, fact: Atom) -> None:
        self._function("remove", fact.predicate)(*fact.terms)

    def declare(self, name: str, kind: str) -> None:
        """Make a new object of a type known."""
        for ancestor in self._checked_types:
            if self.domain.is_subtype(kind, ancestor):
                self._function("declare", ancestor)(name)

    def applier(self, schema: Schema, outcome: int) -> Callable[..., None]:
        """Return the function that applies an outcome of a rule's action to its arguments and nature's choices."""
        return self._functions[f"apply_{self._names[schema.name]}_{outcome}"]

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
