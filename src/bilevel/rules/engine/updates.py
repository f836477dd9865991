"""The part of the program that builds relations and views and keeps them up to date."""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.rules.engine.views import Relation, View
from bilevel.rules.engine.writer import Environment, Writer, columns, row
from bilevel.symbolic.domain import Atom, Facts, Outcome, Schema

# Building


def write_building(w: Writer) -> None:
    """Write the building of the relations, their indexes, and the views, all filled at once."""
    for relation in sorted(w.arities):
        w.emit(f"{w.names[relation]} = set(rows({relation.kind!r}, {relation.name!r}))")
    goals = [(w.names[relation], relation.name) for relation in sorted(w.arities) if relation.kind == "goal"]
    for name, predicate in goals:
        w.emit(f"wanted_{name} = frozenset({name}).union(rows('achieved', {predicate!r}))")
    w.emit(f"open_goals = {' + '.join(f'len({name})' for name, _ in goals) or '0'}")
    for relation in sorted(w.arities):
        _build_indexes(w, relation)
    for view in w.views:
        _build_view(w, view)
        _build_indexes(w, view.relation)


def _build_indexes(w: Writer, relation: Relation) -> None:
    for bound in w.indexes_of(relation):
        found = columns(w.arity(relation))
        w.emit(f"{w.index(relation, bound)} = {{}}")
        with w.block(f"for {', '.join(found)} in {w.names[relation]}:"):
            _insert(w, w.index(relation, bound), row([found[i] for i in bound]), _rest(found, bound))


def _insert(w: Writer, dictionary: str, key: str, value: str) -> None:
    """Write an insertion: one value is kept as a tuple, which takes a quarter of the memory of a set, more as a set."""
    w.emit(f"found = {dictionary}.get({key})")
    w.emit(f"if found is None: {dictionary}[{key}] = ({value},)")
    w.emit(f"elif type(found) is tuple: {dictionary}[{key}] = {{*found, {value}}}")
    w.emit(f"else: found.add({value})")


def _rest(values: Sequence[str], bound: Sequence[int]) -> str:
    return row([value for place, value in enumerate(values) if place not in bound])


def _build_view(w: Writer, view: View) -> None:
    name = w.names[view.relation]

    def store(environment: Environment) -> None:
        value = environment[view.variable]
        if view.key:
            _insert(w, name, row([environment[k] for k in view.key]), value)
        else:
            w.emit(f"{name}.add({value})")

    w.emit("")
    w.comment(w.describe(view))
    w.emit(f"{name} = {'{}' if view.key else 'set()'}")
    steps, _ = w.planner.join_order(view.literals, frozenset(), frozenset({*view.key, view.variable}))
    w.join(steps, {}, store)
    if view.name in w.ordered:
        w.emit(f"{name}_queues = {{}}" if view.key else f"{name}_queue = queue_of({name})")
        if not view.key:
            w.emit(f"{name}_backlog, {name}_fresh = {name}_queue")


# What changes when an instance of a relation comes or goes


def _write_changes(w: Writer, relation: Relation, found: Sequence[str], positive: bool, appearing: bool) -> None:
    """Update every view that mentions the relation, or its absence."""
    for view in w.views:
        for place, literal in enumerate(view.literals):
            if literal.relation == relation and literal.positive == positive:
                _write_change(w, view, place, found, appearing)


def _write_change(w: Writer, view: View, place: int, found: Sequence[str], appearing: bool) -> None:
    literal = view.literals[place]
    others = [other for i, other in enumerate(view.literals) if i != place]
    steps, _ = w.planner.join_order(others, literal.variables, frozenset({*view.key, view.variable}))
    if not appearing:  # the view itself knows what it holds
        steps = [step for step in steps if len(step.bound) < len(step.literal.terms)]
    environment, conditions = w.unify(literal.terms, found)
    with w.block(*(f"if {condition}:" for condition in conditions)):
        w.join(steps, environment, lambda bound: _write_update(w, view, bound, appearing))


def _write_update(w: Writer, view: View, environment: Environment, appearing: bool) -> None:
    name, value = w.names[view.relation], environment[view.variable]
    if view.key:
        arguments = ", ".join([*(environment[k] for k in view.key), value])
        w.emit(f"{name}_{'add' if appearing else 'remove'}({arguments})")
    elif not appearing:
        w.emit(f"{name}.discard({value})")
    elif view.name not in w.ordered:
        w.emit(f"{name}.add({value})")
    else:
        with w.block(f"if {value} not in {name}:"):
            w.emit(f"{name}.add({value})")
            w.emit(f"push({name}_queue, {name}, {value})")


def write_view_functions(w: Writer, view: View) -> None:
    """Add a value to a view with a key, or remove it; whoever asks about the key hears of the first and the last."""
    name, relation = w.names[view.relation], view.relation
    found = columns(len(view.key))
    key, value = row(found), f"a{len(view.key)}"
    w.emit("")
    w.comment(w.describe(view))
    with w.block(f"def {name}_add({', '.join([*found, value])}):"):
        w.emit(f"found = {name}.get({key})")
        with w.block("if found is None:"):
            w.emit(f"{name}[{key}] = ({value},)")
            _update_indexes(w, relation, found, True)
            _write_changes(w, relation, found, True, True)
        with w.block(f"elif {value} not in found:"):
            w.emit(f"if type(found) is tuple: {name}[{key}] = found = {{*found, {value}}}")
            w.emit(f"else: found.add({value})")
            if view.name in w.ordered:
                w.emit(f"queue = {name}_queues.get({key})")
                w.emit(f"if queue is not None: push(queue, found, {value})")
    with w.block(f"def {name}_remove({', '.join([*found, value])}):"):
        w.emit(f"found = {name}.get({key})")
        with w.block(f"if found is not None and {value} in found:"):
            w.emit(f"if len(found) > 1: found.discard({value})")
            with w.block("else:"):
                _write_changes(w, relation, found, True, False)
                _update_indexes(w, relation, found, False)
                w.emit(f"del {name}[{key}]")
                if view.name in w.ordered:
                    w.emit(f"{name}_queues.pop({key}, None)")


def _update_indexes(w: Writer, relation: Relation, found: Sequence[str], present: bool) -> None:
    for bound in w.indexes_of(relation):
        index, key, value = w.index(relation, bound), row([found[i] for i in bound]), _rest(found, bound)
        if present:
            _insert(w, index, key, value)
        else:
            w.emit(f"found = {index}[{key}]")
            w.emit(f"if len(found) == 1: del {index}[{key}]")
            w.emit(f"else: found.discard({value})")


# Functions for facts, objects and actions


def write_fact_functions(w: Writer, predicate: str) -> None:
    """Write what happens when a fact comes or goes: to the state, and to the goals not yet achieved."""
    state, goal = Relation("state", predicate), Relation("goal", predicate)
    name = w.identifiers[predicate]
    found = columns(w.arities[state] if state in w.arities else w.arities[goal])
    for verb, appearing in (("add", True), ("remove", False)):
        w.emit("")
        with w.block(f"def {verb}_{name}({', '.join(found)}):"):
            if state in w.arities:
                _write_state_change(w, state, found, appearing)
            if goal in w.arities:
                _write_goal_change(w, goal, found, appearing)
    if state in w.arities:
        w.emit(f"def holds_{name}({', '.join(found)}): return {row(found)} in {w.names[state]}")


def _write_state_change(w: Writer, state: Relation, found: Sequence[str], appearing: bool) -> None:
    w.emit(f"if {row(found)} {'in' if appearing else 'not in'} {w.names[state]}: return")
    _write_changes(w, state, found, not appearing, False)
    _write_storing(w, state, found, row(found), appearing)
    _write_changes(w, state, found, appearing, True)


def _write_goal_change(w: Writer, goal: Relation, found: Sequence[str], achieved: bool) -> None:
    name, instance = w.names[goal], row(found)
    w.emit("nonlocal open_goals")
    if len(found) > 1:
        w.emit(f"row = {instance}")
        instance = "row"
    condition = f"{instance} in {name}" if achieved else f"{instance} in wanted_{name} and {instance} not in {name}"
    with w.block(f"if {condition}:"):
        w.emit(f"open_goals {'-' if achieved else '+'}= 1")
        if achieved:
            _write_changes(w, goal, found, True, False)
        _write_storing(w, goal, found, instance, not achieved)
        if not achieved:
            _write_changes(w, goal, found, True, True)


def _write_storing(w: Writer, relation: Relation, found: Sequence[str], instance: str, present: bool) -> None:
    w.emit(f"{w.names[relation]}.{'add' if present else 'discard'}({instance})")
    _update_indexes(w, relation, found, present)


def write_declaring_function(w: Writer, relation: Relation) -> None:
    """Write the function that makes an object of a type known."""
    name = w.names[relation]
    w.emit("")
    with w.block(f"def declare_{w.identifiers[relation.name]}(a0):", f"if a0 not in {name}:"):
        _write_storing(w, relation, ["a0"], "a0", True)
        _write_changes(w, relation, ["a0"], True, True)


def write_applying_function(w: Writer, schema: Schema, number: int, outcome: Outcome) -> None:
    """Carry out an outcome of an action: additions first, so that fewer views fall empty in between."""
    parameters = [*schema.parameters, *outcome.chosen]
    environment = {p.name: w.locals[p.name] for p in parameters}

    def values(atom: Atom) -> list[str]:
        return [w.value(term, environment) for term in atom.terms]

    w.emit("")
    arguments = ", ".join(environment[p.name] for p in parameters)
    with w.block(f"def apply_{w.identifiers[schema.name]}_{number}({arguments}):"):
        w.comment(f"{schema.name}{f', outcome {number + 1}' if len(schema.outcomes) > 1 else ''}")
        added, deleted = _asked(w, outcome.add), _asked(w, outcome.delete - outcome.add)
        for atom in added:
            w.emit(f"add_{w.identifiers[atom.predicate]}({', '.join(values(atom))})")
        for atom in deleted:
            others = [other for other in added if other.predicate == atom.predicate]
            with w.block(*(f"if {row(values(atom))} != {row(values(other))}:" for other in others)):
                w.emit(f"remove_{w.identifiers[atom.predicate]}({', '.join(values(atom))})")
        w.emit("return None")


def _asked(w: Writer, effects: Facts) -> list[Atom]:
    """Return the effects that some rule or goal asks about, in a fixed order."""
    asked = {relation.name for relation in w.arities if relation.kind != "type"}
    return [atom for atom in sorted(effects) if atom.predicate in asked]
