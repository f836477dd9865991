"""Plans as integers, which executors follow.

A *slot* holds the value of a variable or a constant while a join runs. A step is (kind, relation, columns to list by,
slots of the terms that have values, and for the other terms pairs of column and slot: where values go, and with what
they must agree). Lists may have any length, tuples have their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.views import UNEQUAL, JoinStep, Literal, Relation, RulePlan, ServingPlan, View, inverted
from bilevel.rules.engine.views import reading_order as reading_order_of
from bilevel.symbolic.domain import Atom, is_variable

PRESENT, ABSENT, DIFFERENT, LIST = range(4)
Slots = Mapping[str, int]
Places = list[tuple[int, int]]
Step = tuple[int, int, list[int], list[int], Places, Places]
Read = tuple[int, list[int], int, bool, list[Step]]  # a view, its key, the slot of its value, whether all are compared
Reading = tuple[list[Step], list[Read], list[int]]  # what is checked first, what is read, and the slots of the outputs
Serving = tuple[Places, Places, list[Step], list[Any], list[Step], Reading]


class Lowering:
    """Hands plans to an executor; `value` gives the value that stands for an object there."""

    def __init__(
        self, executor: Any, planner: Planner, relations: Mapping[Relation, int], value: Callable[[str], Any]
    ) -> None:
        self._executor = executor
        self._planner = planner
        self._value = value
        self._relations = dict(relations)  # with those of the views' keys, which come by and by

    # Joins

    def slots(self, literals: Iterable[Literal], variables: Iterable[str]) -> dict[str, int]:
        """Return a place for each variable, and for each other term of the literals."""
        terms = [*variables, *(term for literal in literals for term in literal.terms)]
        return {term: slot for slot, term in enumerate(dict.fromkeys(terms))}

    def values(self, slots: Slots) -> list[Any]:
        """Return what the slots hold at first: the constants."""
        return [0 if is_variable(term) else self._value(term) for term in slots]

    def checks(self, literals: Iterable[Literal], slots: Slots) -> list[Step]:
        """Return the steps that test literals whose terms are all known."""
        return [self._check(literal, slots) for literal in literals]

    def _check(self, literal: Literal, slots: Slots) -> Step:
        terms = [slots[term] for term in literal.terms]
        if literal.relation == UNEQUAL:
            return DIFFERENT, -1, [], terms, [], []
        return PRESENT if literal.positive else ABSENT, self._relations[literal.relation], [], terms, [], []

    def _steps(self, steps: Iterable[JoinStep], slots: Slots) -> list[Step]:
        return [self._step(step, slots) for step in steps]

    def _step(self, step: JoinStep, slots: Slots) -> Step:
        literal, bound = step
        if len(bound) == len(literal.terms):
            return self._check(literal, slots)
        binds, same = unified(literal.terms, slots, bound)
        given = [slots[literal.terms[place]] for place in bound]
        return LIST, self._relations[literal.relation], [*bound], given, binds, same

    # Views

    def _add_view(self, view: View) -> int:
        """Hand over a view, after those it is made of, unless it is there already; return its number."""
        for literal in view.literals:
            if literal.relation.kind == "view":
                self._add_view(self._planner.views[int(literal.relation.name)])
        if view.relation not in self._relations:
            columns = [*view.key, view.variable]
            slots = self.slots(view.literals, columns)
            steps, _ = self._planner.join_order(view.literals, frozenset(), frozenset(columns))
            changes = [
                (self._relations[literal.relation], literal.positive, *self._change(view, place, slots))
                for place, literal in enumerate(view.literals)
                if literal.relation != UNEQUAL
            ]
            self._relations[view.relation] = self._executor.add_view(
                self.values(slots),
                self._steps(steps, slots),
                [slots[v] for v in view.key],
                slots[view.variable],
                changes,
            )
        return self._relations[view.relation]

    def _change(self, view: View, place: int, slots: Slots) -> tuple[list[Step], Places, Places]:
        literal = view.literals[place]
        others = [other for i, other in enumerate(view.literals) if i != place]
        steps, _ = self._planner.join_order(others, literal.variables, frozenset({*view.key, view.variable}))
        return self._steps(steps, slots), *unified(literal.terms, slots)

    # Rules

    def plan_rule(self, number: int, plan: RulePlan) -> None:
        """Tell the executor how to find the instances of a rule."""
        for use in plan.uses.values():
            self._add_view(self._planner.views[int(use.name)])
        guards = [guard for guard in plan.guards if guard.relation.kind == "view"]
        slots = self.slots(plan.filters, plan.uses)
        reading = self._reading(plan, (), reading_order_of(plan.read, plan.uses), plan.filters, slots)
        self._executor.plan_rule(number, self.values(slots), self.checks(guards, slots), reading)

    def plan_serving(self, number: int, plan: RulePlan, servings: Iterable[tuple[Atom, ServingPlan]]) -> None:
        """Tell the executor how to find the instances of a rule that serve a goal."""
        self._executor.plan_serving(number, [self._serving(plan, atom, serving) for atom, serving in servings])

    def _serving(self, plan: RulePlan, atom: Atom, serving: ServingPlan) -> Serving:
        literals = [*serving.guards, *(step.literal for step in serving.steps), *plan.filters]
        slots = self.slots(literals, [*plan.uses, *atom.terms])
        binds, same = unified(atom.terms, slots)
        rest = self._reading(plan, serving.known, serving.order, serving.filters, slots)
        guards = self.checks(serving.guards, slots)
        return binds, same, guards, self.values(slots), self._steps(serving.steps, slots), rest

    def _reading(
        self, plan: RulePlan, known: Sequence[str], order: Sequence[str], filters: Sequence[Literal], slots: Slots
    ) -> Reading:
        """Return in which order the variables are read, and what is checked when they have values."""
        compared = inverted(plan.outputs, [v for v in [*known, *order] if v in plan.outputs])
        bound = set(known)

        def checked() -> list[Step]:
            nonlocal filters
            ready = [condition for condition in filters if condition.variables <= bound]
            filters = [condition for condition in filters if condition not in ready]
            return self.checks(ready, slots)

        at_first, reads = checked(), list[Read]()
        for variable in order:
            use = plan.uses[variable]
            bound.add(variable)
            key = [slots[v] for v in use.key]
            reads.append((self._relations[use.relation], key, slots[variable], variable in compared, checked()))
        return at_first, reads, [slots[v] for v in plan.outputs]


def unified(terms: Sequence[str], slots: Slots, bound: Sequence[int] = ()) -> tuple[Places, Places]:
    """Return where the columns of a row go, those aside that have values, and which must agree with others."""
    binds: Places = []
    same: Places = []
    seen: set[str] = set()
    for column, term in enumerate(terms):
        if column not in bound:
            (same if term in seen or not is_variable(term) else binds).append((column, slots[term]))
            seen.add(term)
    return binds, same
