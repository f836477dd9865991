"""The part of the program that reads off which rule fires, and for which objects."""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.rules.engine.views import Literal, Relation, RulePlan, View, inverted, reading_order
from bilevel.rules.engine.writer import Environment, Writer, columns, row, tuple_of
from bilevel.symbolic.domain import Atom


def write_choosing(w: Writer) -> None:
    """Write a function per rule and one that asks them in turn."""
    for number, plan in enumerate(w.plans):
        w.emit("")
        w.comment(str(plan.rule))
        order = reading_order(plan.read, plan.uses)
        _write_reading(w, f"rule_{number}", plan, order, {}, plan.filters)
    w.emit("")
    with w.block("def choose():"):
        for number, plan in enumerate(w.plans):
            guard = " and ".join(w.test(guard, {}) for guard in plan.guards) or "True"
            with w.block(f"if {guard}:"):
                w.emit(f"found = rule_{number}()")
                w.emit(f"if found is not None: return {number}, found")
        w.emit("return None")


def _write_reading(
    w: Writer, name: str, plan: RulePlan, order: Sequence[str], known: Environment, filters: Sequence[Literal]
) -> None:
    """Write a function for the first instance of a rule, as the values of its outputs, or `None`.

    The outputs are read in `order`, given those in `known`. Where nothing is left to compare or check, the first value
    will do; otherwise values are tried one by one, by a function for what comes after.
    """
    environment = dict(known)
    pending = [condition for condition in filters if not condition.variables <= environment.keys()]
    compared = inverted(plan.outputs, [v for v in [*environment, *order] if v in plan.outputs])
    straight = 0 if pending else next((i for i, v in enumerate(order) if v in compared), len(order))
    with w.block(f"def {name}({', '.join(known.values())}):"):
        for condition in filters:
            if condition not in pending:
                w.emit(f"if not ({w.test(condition, environment)}): return None")
        for variable in order[:straight]:
            environment[variable] = w.locals[variable]
            w.emit(f"{environment[variable]} = {_first(w, plan.uses[variable], environment)}")
        if straight == len(order):
            w.emit(f"return {tuple_of([environment[v] for v in plan.outputs])}")
            return
        tried = order[straight]
        environment[tried] = w.locals[tried]
        rest = f"{name}_{environment[tried]}"
        _write_trying(w, rest, plan.uses[tried], environment, tried in compared, ordered=tried in plan.outputs)
    _write_reading(w, rest, plan, order[straight + 1 :], environment, pending)


def _first(w: Writer, use: View, environment: Environment) -> str:
    view = w.names[use.relation]
    if use.key:
        return f"first_of({view}, {view}_queues, {row([environment[k] for k in use.key])})"
    return f"first({view}_backlog, {view}_fresh, {view})"


def _write_trying(w: Writer, rest: str, use: View, environment: Environment, compare: bool, ordered: bool) -> None:
    """Try each value of a variable: until one works, in order if that matters, or all to find the first instance."""
    view, value = w.names[use.relation], environment[use.variable]
    call = f"{rest}({', '.join(environment.values())})"
    key = row([environment[k] for k in use.key]) if use.key else ""
    values = f"{view}.get({key}, ())" if use.key else view
    if compare:
        w.emit("best = None")
        with w.block(f"for {value} in {values}:"):
            _write_comparison(w, call)
        w.emit("return best")
    else:
        if ordered:  # most often the first value will do
            w.emit(f"{value} = {_first(w, use, environment)}")
            w.emit(f"found = {call}")
            w.emit("if found is not None: return found")
            values = f"in_order_of({view}, {view}_queues, {key})" if use.key else f"in_order({view}, {view}_queue)"
        with w.block(f"for {value} in {values}:"):
            w.emit(f"found = {call}")
            w.emit("if found is not None: return found")
        w.emit("return None")


def _write_comparison(w: Writer, call: str) -> None:
    w.emit(f"found = {call}")
    w.emit("if found is not None and (best is None or found < best): best = found")


# Serving one goal


def write_serving(w: Writer) -> None:
    """Write for each goal predicate a function to the first rule that serves a goal fact, and its first instance."""
    by_predicate: dict[str, dict[int, list[str]]] = {}
    for number, plan in enumerate(w.plans):
        for place, atom in enumerate(sorted(plan.rule.goal_condition)):
            name = f"rule_{number}_for_{place}"
            _write_serving_rule(w, name, plan, atom)
            by_predicate.setdefault(atom.predicate, {}).setdefault(number, []).append(name)
    for predicate, rules in sorted(by_predicate.items()):
        found = ", ".join(columns(w.arities[Relation("goal", predicate)]))
        w.emit("")
        with w.block(f"def serve_{w.identifiers[predicate]}({found}):"):
            for number, names in rules.items():
                calls = ", ".join(f"{name}({found})" for name in names)
                w.emit(f"found = {calls if len(names) == 1 else f'min(filter(None, ({calls})), default=None)'}")
                w.emit(f"if found is not None: return {number}, found")
            w.emit("return None")


def _write_serving_rule(w: Writer, name: str, plan: RulePlan, atom: Atom) -> None:
    """Write a function like a rule's, but for instances that serve one goal fact, whose values are given."""
    serving = w.planner.plan_serving(plan, atom)
    known = {v: w.locals[v] for v in serving.known}
    w.emit("")
    w.comment(str(plan.rule))
    _write_reading(w, f"{name}_rest", plan, serving.order, known, serving.filters)
    found = columns(len(atom.terms))
    environment, conditions = w.unify(atom.terms, found)
    conditions += [w.test(guard, {}) for guard in serving.guards]

    def compare(bound: Environment) -> None:
        _write_comparison(w, f"{name}_rest({', '.join(bound[v] for v in known)})")

    with w.block(f"def {name}({', '.join(found)}):"):
        w.emit("best = None")
        with w.block(*([f"if {' and '.join(conditions)}:"] if conditions else [])):
            w.join(serving.steps, environment, compare)
        w.emit("return best")
