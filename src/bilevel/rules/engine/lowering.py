"""Plans as integers, which executors follow.

A *slot* holds the value of a variable or a constant while a join runs. A step is (kind, relation, columns to list by,
slots of the terms that have values, and for the other terms pairs of column and slot: where values go, and with what
they must agree). Lists may have any length, tuples have their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bilevel.rules.engine.join_plan import UNEQUAL, JoinStep, Literal, Planner, Relation, RulePlan, View
from bilevel.symbolic.domain import is_variable

PRESENT, ABSENT, DIFFERENT, LIST = range(4)
Slots = Mapping[str, int]
Places = list[tuple[int, int]]
Step = tuple[int, int, list[int], list[int], Places, Places]
Read = tuple[int, list[int], int, bool, list[Step]]  # a view, its key, the slot of its value, whether all are compared
Reading = tuple[list[Step], list[Read], list[int]]  # what is checked first, what is read, and the slots of the outputs


class Lowering:
    """Hands plans to an executor; `value` gives the value that stands for an object there."""

    def __init__(
        self, executor: Any, planner: Planner, relations: Mapping[Relation, int], value: Callable[[str], Any]
    ) -> None:
        self._executor, self._planner, self._value = executor, planner, value
        self._relations = dict(relations)  # with those of the views' keys, which come by and by

    def plan_rule(self, rule: int, served: int | None = None) -> None:
        """Tell the executor how to find a rule's instances, or those that serve a goal with one goal condition."""
        plan = self._planner.plan(rule, served)
        for use in plan.uses.values():
            self._add_view(self._planner.views[int(use.name)])
        slots = self._slots([*plan.guards, *plan.filters], plan.uses)
        checks = [self._check(guard, slots) for guard in plan.guards]
        self._executor.plan_rule(rule, served is not None, self._values(slots), checks, self._reading(plan, slots))

    def _reading(self, plan: RulePlan, slots: Slots) -> Reading:
        """Return in which order the variables are read, and what is checked when they have values."""
        bound, filters = set[str](), list(plan.filters)

        def checked() -> list[Step]:
            ready = [condition for condition in filters if condition.variables <= bound]
            filters[:] = [condition for condition in filters if condition not in ready]
            return [self._check(condition, slots) for condition in ready]

        at_first, reads = checked(), list[Read]()
        for variable in plan.order:
            use = plan.uses[variable]
            bound.add(variable)
            key = [slots[v] for v in use.key]
            reads.append((self._relations[use.relation], key, slots[variable], variable in plan.compared, checked()))
        return at_first, reads, [slots[v] for v in plan.outputs]

    def _add_view(self, view: View) -> None:
        """Hand over a view, after those it is made of, unless it is there already."""
        if view.relation in self._relations:
            return
        for literal in view.literals:
            if literal.relation.kind == "view":
                self._add_view(self._planner.views[int(literal.relation.name)])
        columns = [*view.key, view.variable]
        slots = self._slots(view.literals, columns)
        changes = []
        for literal in view.literals:
            if literal.relation != UNEQUAL:
                others = [other for other in view.literals if other is not literal]
                steps = self._steps(others, literal.variables, columns, slots)
                changes.append((self._relations[literal.relation], literal.positive, steps, *_unified(literal, slots)))
        self._relations[view.relation] = self._executor.add_view(
            self._values(slots),
            self._steps(view.literals, frozenset(), columns, slots),
            [slots[v] for v in view.key],
            slots[view.variable],
            changes,
        )

    def _slots(self, literals: Iterable[Literal], variables: Iterable[str]) -> dict[str, int]:
        """Return a place for each variable, and for each other term of the literals."""
        terms = [*variables, *(term for literal in literals for term in literal.terms)]
        return {term: slot for slot, term in enumerate(dict.fromkeys(terms))}

    def _values(self, slots: Slots) -> list[Any]:
        """Return what the slots hold at first: the constants."""
        return [0 if is_variable(term) else self._value(term) for term in slots]

    def _steps(
        self, literals: Sequence[Literal], bound: frozenset[str], needed: Iterable[str], slots: Slots
    ) -> list[Step]:
        steps, _ = self._planner.join_order(literals, bound, frozenset(needed))
        return [self._step(step, slots) for step in steps]

    def _step(self, step: JoinStep, slots: Slots) -> Step:
        literal, bound = step
        if len(bound) == len(literal.terms):
            return self._check(literal, slots)
        given = [slots[literal.terms[place]] for place in bound]
        return LIST, self._relations[literal.relation], [*bound], given, *_unified(literal, slots, bound)

    def _check(self, literal: Literal, slots: Slots) -> Step:
        """Return the step that tests a literal whose terms are all known."""
        terms = [slots[term] for term in literal.terms]
        if literal.relation == UNEQUAL:
            return DIFFERENT, -1, [], terms, [], []
        return PRESENT if literal.positive else ABSENT, self._relations[literal.relation], [], terms, [], []


def _unified(literal: Literal, slots: Slots, bound: Sequence[int] = ()) -> tuple[Places, Places]:
    """Return where the columns of a row go, those aside that have values, and which must agree with others."""
    binds: Places = []
    same: Places = []
    seen: set[str] = set()
    for column, term in enumerate(literal.terms):
        if column not in bound:
            (same if term in seen or not is_variable(term) else binds).append((column, slots[term]))
            seen.add(term)
    return binds, same
