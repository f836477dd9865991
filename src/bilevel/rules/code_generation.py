"""Python code for a set of rule plans: the rule engine, specialised to its rules.

The generated program is meant to be read (`RuleEngine.source`). It holds the relations as sets, the views as
dictionaries of sets, one function per predicate that adds or removes a fact and updates the views, one per rule that
reads off its first instance, and one per action and outcome that applies its effects.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from bilevel.rules.join_plan import (
    UNEQUAL,
    JoinStep,
    Literal,
    Planner,
    RulePlan,
    View,
    ViewUse,
    inverted,
    reading_order,
)
from bilevel.rules.statistics import Relation
from bilevel.symbolic.domain import Atom, Outcome, Schema, is_variable

Environment = dict[str, str]  # variable -> the Python expression that holds its value

PARAMETERS = ("rows", "first", "first_of", "in_order", "heapify", "heappush")


class Generator:
    """Writes the program line by line; `emit` knows how deep it is indented."""

    def __init__(self, planner: Planner, plans: Sequence[RulePlan], arities: Mapping[Relation, int], commit: bool):
        self.planner = planner
        self.plans = plans
        self.arities = arities  # of every relation the engine keeps, views excepted
        self.commit = commit
        self.views = _used_views(planner, plans)
        self.names = _names(self.views, arities)
        self.ordered = {use.view for plan in plans for v, use in plan.uses.items() if v in plan.outputs}
        self.lines: list[str] = []
        self.depth = 0
        self.indexes: dict[tuple[Relation, tuple[int, ...]], None] = {}

    def program(self, schemas: Sequence[Schema]) -> str:
        """The whole source. It is written twice, since only the writing shows which indexes there must be."""
        self._collect(lambda: self._functions(schemas))
        self._collect(self._building)
        functions = self._collect(lambda: self._functions(schemas))
        building = self._collect(self._building)
        header = [f"def engine({', '.join(PARAMETERS)}):"]
        return "\n".join([*header, *building, *functions, ""])

    # --- writing lines -----------------------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def _collect(self, write: Callable[[], None]) -> list[str]:
        self.lines, self.depth = [], 1
        write()
        return self.lines

    # --- the parts of the program ------------------------------------------------------------------------------

    def _building(self) -> None:
        for relation, arity in sorted(self.arities.items()):
            name = self.names[relation]
            self.emit(f"{name} = {'bool' if arity == 0 else 'set'}(rows({relation.kind!r}, {relation.name!r}))")
            if relation.kind == "goal":
                achieved = f"rows('achieved', {relation.name!r})"
                self.emit(
                    f"wanted_{name} = "
                    + (f"frozenset({name}).union({achieved})" if arity else f"{name} or bool({achieved})")
                )
        self.emit("fingerprint = 0")
        goals = sorted(relation for relation in self.arities if relation.kind == "goal")
        counts = [f"len({self.names[r]})" if self.arities[r] else f"int({self.names[r]})" for r in goals]
        self.emit(f"open_goals = {' + '.join(counts) or '0'}")
        for relation in sorted(self.arities):
            self._build_indexes(relation)
        for view in self.views:
            self._build_view(view)
            self._build_indexes(view.relation)

    def _functions(self, schemas: Sequence[Schema]) -> None:
        for view in reversed(self.views):
            if view.key:
                self._view_functions(view)
        for predicate in sorted({r.name for r in self.arities if r.kind in ("state", "goal")}):
            self._fact_functions(predicate)
        for relation in sorted(self.arities):
            if relation.kind == "type":
                self._type_function(relation)
            if relation.kind == "state":
                columns = [f"a{i}" for i in range(self.arities[relation])]
                test = self._test(Literal(relation, tuple(f"?{c}" for c in columns)), {f"?{c}": c for c in columns})
                self.emit(f"def holds_{identifier(relation.name)}({', '.join(columns)}): return {test}")
        for number, plan in enumerate(self.plans):
            self._rule_function(number, plan)
        self._choose_function()
        if self.commit:
            self._serve_functions()
        for schema in schemas:
            for number, outcome in enumerate(schema.outcomes):
                self._apply_function(schema, number, outcome)
        self.emit("def status(): return open_goals, fingerprint")
        self.emit("return locals()")

    # --- relations and views -----------------------------------------------------------------------------------

    def _arity(self, relation: Relation) -> int:
        return len(self._view(relation).key) if relation.kind == "view" else self.arities[relation]

    def _view(self, relation: Relation) -> View:
        return self.planner.views[int(relation.name)]

    def _index(self, relation: Relation, bound: tuple[int, ...]) -> str:
        """The name of the dictionary from bound columns to the set of the others' values."""
        self.indexes[relation, bound] = None
        return f"{self.names[relation]}_by_{'_'.join(map(str, bound))}"

    def _indexes_of(self, relation: Relation) -> list[tuple[int, ...]]:
        return sorted(bound for found, bound in self.indexes if found == relation)

    def _build_indexes(self, relation: Relation) -> None:
        for bound in self._indexes_of(relation):
            index = self._index(relation, bound)
            columns = [f"a{i}" for i in range(self._arity(relation))]
            self.emit(f"{index} = {{}}")
            self.emit(f"for {_target(columns)} in {self.names[relation]}:")
            self.depth += 1
            self._insert(index, _row([columns[i] for i in bound]), _rest(columns, bound))
            self.depth -= 1

    def _insert(self, dictionary: str, key: str, value: str) -> None:
        """One value for a key is stored as a tuple, which takes a quarter of the memory of a set; more as a set."""
        self.emit(f"found = {dictionary}.get({key})")
        self.emit(f"if found is None: {dictionary}[{key}] = ({value},)")
        self.emit(f"elif type(found) is tuple: {dictionary}[{key}] = {{*found, {value}}}")
        self.emit(f"else: found.add({value})")

    def _update_indexes(self, relation: Relation, columns: Sequence[str], present: bool) -> None:
        for bound in self._indexes_of(relation):
            index, key, value = self._index(relation, bound), _row([columns[i] for i in bound]), _rest(columns, bound)
            if present:
                self._insert(index, key, value)
            else:
                self.emit(f"found = {index}[{key}]")
                self.emit(f"if len(found) == 1: del {index}[{key}]")
                self.emit(f"else: found.discard({value})")

    def _build_view(self, view: View) -> None:
        name = self.names[view.relation]
        columns = frozenset({*view.key, view.variable})
        self.emit("")
        self.emit(f"# {name}: {self._describe(view)}")
        self.emit(f"{name} = {'{}' if view.key else 'set()'}")
        steps, _ = self.planner.join_order(view.literals, frozenset(), columns)

        def store(environment: Environment) -> None:
            value = environment[view.variable]
            if view.key:
                self._insert(name, _row([environment[k] for k in view.key]), value)
            else:
                self.emit(f"{name}.add({value})")

        before = self.depth
        self._join(steps, {}, store)
        self.depth = before
        if view in self.ordered:
            self.emit(f"{name}_heaps = {{}}" if view.key else f"{name}_heap = list({name})")
            if not view.key:
                self.emit(f"heapify({name}_heap)")

    def _describe(self, view: View) -> str:
        literals = " & ".join(self._describe_literal(literal) for literal in view.literals)
        return f"{', '.join(view.key)} -> {view.variable}: {literals}" if view.key else f"{view.variable}: {literals}"

    def _describe_literal(self, literal: Literal) -> str:
        if literal.relation == UNEQUAL:
            return " != ".join(literal.terms)
        name = self.names[literal.relation]
        return f"{'' if literal.positive else 'not '}{name}({', '.join(literal.terms)})"

    # --- joins -------------------------------------------------------------------------------------------------

    def _join(self, steps: Sequence[JoinStep], environment: Environment, inside: Callable[[Environment], None]) -> None:
        """Nested loops and checks, with `inside` written at their heart."""
        environment = dict(environment)
        for literal, bound in steps:
            if len(bound) == len(literal.terms):
                self._open(f"if {self._test(literal, environment)}:")
            else:
                self._loop(literal, bound, environment)
        inside(environment)

    def _open(self, line: str) -> None:
        self.emit(line)
        self.depth += 1

    def _test(self, literal: Literal, environment: Environment) -> str:
        values = [self._value(term, environment) for term in literal.terms]
        if literal.relation == UNEQUAL:
            return f"{values[0]} != {values[1]}"
        name = self.names[literal.relation]
        if not values:
            return name if literal.positive else f"not {name}"
        return f"{_row(values)} {'in' if literal.positive else 'not in'} {name}"

    @staticmethod
    def _value(term: str, environment: Environment) -> str:
        return environment[term] if is_variable(term) else repr(term)

    def _loop(self, literal: Literal, bound: tuple[int, ...], environment: Environment) -> None:
        """A loop over the instances of a literal that agree with what is bound."""
        free = [i for i in range(len(literal.terms)) if i not in bound]
        columns, repeated = [], []
        for i in free:
            term = literal.terms[i]
            if term in environment and term in (literal.terms[j] for j in free if j < i):
                columns.append(f"same{i}")
                repeated.append(f"same{i} == {environment[term]}")
            else:
                environment[term] = self._local(term)
                columns.append(environment[term])
        if bound:
            key = _row([self._value(literal.terms[i], environment) for i in bound])
            source = f"{self._index(literal.relation, bound)}.get({key}, ())"
        else:
            source = self.names[literal.relation]
        self._open(f"for {_target(columns)} in {source}:")
        for condition in repeated:
            self._open(f"if {condition}:")

    def _local(self, variable: str) -> str:
        """A Python name for a variable that no relation or parameter has."""
        return _unused(identifier(variable[1:]), set(self.names.values()))

    def _changes(self, relation: Relation, columns: Sequence[str], positive: bool, appearing: bool) -> None:
        """Update every view that mentions the relation (or its absence) when one of its instances comes or goes."""
        for view in self.views:
            for position, literal in enumerate(view.literals):
                if literal.relation == relation and literal.positive == positive:
                    self._change(view, position, columns, appearing)

    def _change(self, view: View, position: int, columns: Sequence[str], appearing: bool) -> None:
        literal = view.literals[position]
        others = [other for i, other in enumerate(view.literals) if i != position]
        needed = frozenset({*view.key, view.variable})
        before = self.depth
        environment: Environment = {}
        for term, column in zip(literal.terms, columns, strict=True):
            if not is_variable(term):
                self._open(f"if {column} == {term!r}:")
            elif environment.setdefault(term, column) != column:
                self._open(f"if {column} == {environment[term]}:")
        steps, _ = self.planner.join_order(others, literal.variables, needed)
        if not appearing:  # the view itself knows what it holds
            steps = [step for step in steps if len(step.bound) < len(step.literal.terms)]
        self._join(steps, environment, lambda found: self._update_view(view, found, appearing))
        self.depth = before

    def _update_view(self, view: View, environment: Environment, appearing: bool) -> None:
        name = self.names[view.relation]
        value = environment[view.variable]
        if view.key:
            arguments = ", ".join([*(environment[k] for k in view.key), value])
            self.emit(f"{name}_{'add' if appearing else 'remove'}({arguments})")
        elif not appearing:
            self.emit(f"{name}.discard({value})")
        elif view not in self.ordered:
            self.emit(f"{name}.add({value})")
        else:
            self._open(f"if {value} not in {name}:")
            self.emit(f"{name}.add({value})")
            self._push(f"{name}_heap", name, value)

    def _push(self, heap: str, members: str, value: str) -> None:
        self.emit(f"heappush({heap}, {value})")
        self.emit(f"if len({heap}) > 2 * len({members}) + 100:")
        self.emit(f"    {heap}[:] = sorted({members})")

    # --- functions that change things --------------------------------------------------------------------------

    def _view_functions(self, view: View) -> None:
        name = self.names[view.relation]
        columns = [f"a{i}" for i in range(len(view.key))]
        key, value = _row(columns), f"a{len(view.key)}"
        self.emit("")
        self.emit(f"# {name}: {self._describe(view)}")
        self._open(f"def {name}_add({', '.join([*columns, value])}):")
        self.emit(f"found = {name}.get({key})")
        self._open("if found is None:")
        self.emit(f"{name}[{key}] = ({value},)")
        self._update_indexes(view.relation, columns, True)
        self._changes(view.relation, columns, True, True)
        self.depth -= 1
        self._open(f"elif {value} not in found:")
        self.emit(f"if type(found) is tuple: {name}[{key}] = found = {{*found, {value}}}")
        self.emit(f"else: found.add({value})")
        if view in self.ordered:
            self.emit(f"heap = {name}_heaps.get({key})")
            self._open("if heap is not None:")
            self._push("heap", "found", value)
            self.depth -= 1
        self.depth -= 2
        self._open(f"def {name}_remove({', '.join([*columns, value])}):")
        self.emit(f"found = {name}.get({key})")
        self._open(f"if found is not None and {value} in found:")
        self._open("if len(found) > 1:")
        self.emit(f"found.discard({value})")
        self.depth -= 1
        self._open("else:")
        self._changes(view.relation, columns, True, False)
        self._update_indexes(view.relation, columns, False)
        self.emit(f"del {name}[{key}]")
        if view in self.ordered:
            self.emit(f"{name}_heaps.pop({key}, None)")
        self.depth -= 3

    def _fact_functions(self, predicate: str) -> None:
        """What happens when a fact comes or goes: to the state, and to the goals not yet achieved."""
        state, goal = Relation("state", predicate), Relation("goal", predicate)
        arity = self.arities[state] if state in self.arities else self.arities[goal]
        columns = [f"a{i}" for i in range(arity)]
        for appearing in (True, False):
            self.emit("")
            self._open(f"def {'add' if appearing else 'remove'}_{identifier(predicate)}({', '.join(columns)}):")
            self.emit("nonlocal fingerprint, open_goals")
            if state in self.arities:
                name = self.names[state]
                if arity == 0:
                    self.emit(f"nonlocal {name}")
                    self.emit(f"if {name} is {appearing}: return")
                else:
                    self.emit(f"if {_row(columns)} {'in' if appearing else 'not in'} {name}: return")
                self.emit(f"fingerprint ^= hash({_row([repr(predicate), *columns])})")
                self._changes(state, columns, not appearing, False)
                self._store(state, columns, appearing)
                self._changes(state, columns, appearing, True)
            if goal in self.arities:
                self._goal_change(goal, columns, appearing, state in self.arities)
            self.depth -= 1

    def _goal_change(self, goal: Relation, columns: Sequence[str], achieved: bool, hashed: bool) -> None:
        name, row = self.names[goal], _row(columns)
        before = self.depth
        if len(columns) > 1:
            self.emit(f"row = {row}")
            row = "row"
        if not columns:
            self.emit(f"nonlocal {name}")
            self._open(f"if {name}:" if achieved else f"if wanted_{name} and not {name}:")
        elif achieved:
            self._open(f"if {row} in {name}:")
        else:
            self._open(f"if {row} in wanted_{name} and {row} not in {name}:")
        if not hashed:
            self.emit(f"fingerprint ^= hash({_row([repr(goal.name), *columns])})")
        self.emit(f"open_goals {'-' if achieved else '+'}= 1")
        if achieved:
            self._changes(goal, columns, True, False)
            self._store(goal, columns, False, row)
        else:
            self._store(goal, columns, True, row)
            self._changes(goal, columns, True, True)
        self.depth = before

    def _store(self, relation: Relation, columns: Sequence[str], present: bool, row: str = "") -> None:
        name = self.names[relation]
        if columns:
            self.emit(f"{name}.{'add' if present else 'discard'}({row or _row(columns)})")
        else:
            self.emit(f"{name} = {present}")
        self._update_indexes(relation, columns, present)

    def _type_function(self, relation: Relation) -> None:
        name = self.names[relation]
        self.emit("")
        self._open(f"def add_{name}(a0):")
        self._open(f"if a0 not in {name}:")
        self._store(relation, ["a0"], True)
        self._changes(relation, ["a0"], True, True)
        self.depth -= 2

    def _apply_function(self, schema: Schema, number: int, outcome: Outcome) -> None:
        parameters = [*schema.parameters, *outcome.chosen]
        environment = {p.name: self._local(p.name) for p in parameters}
        self.emit("")
        arguments = ", ".join(environment[p.name] for p in parameters)
        self._open(f"def apply_{identifier(schema.name)}_{number}({arguments}):")
        self.emit(
            "pass" if not (outcome.add or outcome.delete) else "# additions first: fewer views fall empty between"
        )
        for atom in sorted(outcome.add):
            self._effect("add", atom, environment)
        for atom in sorted(outcome.delete - outcome.add):
            clashes = [other for other in sorted(outcome.add) if other.predicate == atom.predicate]
            before = self.depth
            for other in clashes:
                self._open(f"if {self._tuple(atom, environment)} != {self._tuple(other, environment)}:")
            self._effect("remove", atom, environment)
            self.depth = before
        self.emit("return None")
        self.depth -= 1

    def _tuple(self, atom: Atom, environment: Environment) -> str:
        return _row([self._value(term, environment) for term in atom.terms])

    def _effect(self, verb: str, atom: Atom, environment: Environment) -> None:
        tracked = {r.name for r in self.arities if r.kind in ("state", "goal")}
        if atom.predicate in tracked:
            values = ", ".join(self._value(term, environment) for term in atom.terms)
            self.emit(f"{verb}_{identifier(atom.predicate)}({values})")
        else:
            self.emit(f"pass  # no rule asks for {atom.predicate}")

    # --- functions that choose ---------------------------------------------------------------------------------

    def _rule_function(self, number: int, plan: RulePlan) -> None:
        """The first instance of a rule, as the values of its outputs, or `None`; its guards are tested before."""
        self.emit("")
        self.emit(f"# {plan.rule}")
        order = reading_order(plan.outputs, plan.uses)
        self._reading_function(f"rule_{number}", plan, order, {}, list(plan.filters))

    def _reading_function(
        self, name: str, plan: RulePlan, order: Sequence[str], environment: Environment, filters: list[Literal]
    ) -> None:
        """Read the values of the outputs in `order`, given those in `environment`.

        With nothing left to compare or check the first value will do; otherwise values are tried one by one.
        """
        parameters = ", ".join(environment.values())
        ready = [f for f in filters if f.variables <= environment.keys()]
        pending = [f for f in filters if f not in ready]
        environment = dict(environment)
        self._open(f"def {name}({parameters}):")
        for literal in ready:
            self.emit(f"if not ({self._test(literal, environment)}): return None")
        compared = inverted(plan.outputs, [*environment, *order])
        for i, variable in enumerate(order):
            use = plan.uses[variable]
            if variable not in compared and not pending:
                value = self._local(variable)
                self.emit(f"{value} = {self._first(use, environment)}")
                environment[variable] = value
                continue
            environment[variable] = self._local(variable)
            rest = f"{name}_{identifier(variable[1:])}"
            self._tried_values(rest, use, environment, variable in compared)
            self.depth -= 1
            self._reading_function(rest, plan, order[i + 1 :], environment, pending)
            return
        self.emit(f"return {_tuple_of([environment[v] for v in plan.outputs])}")
        self.depth -= 1

    def _tried_values(self, rest: str, use: ViewUse, environment: Environment, compare: bool) -> None:
        """Try each value of a variable, in order until one works, or all of them to find the first instance."""
        view, value = self.names[use.view.relation], environment[use.variable]
        call = f"{rest}({', '.join(environment.values())})"
        key = _row([environment[k] for k in use.key])
        if compare:
            self.emit("best = None")
            self._open(f"for {value} in {f'{view}.get({key}, ())' if use.key else view}:")
            self.emit(f"found = {call}")
            self.emit("if found is not None and (best is None or found < best): best = found")
            self.depth -= 1
            self.emit("return best")
        else:
            values = f"{view}.get({key}, ()), {view}_heaps, {key}" if use.key else f"{view}, {{(): {view}_heap}}, ()"
            self._open(f"for {value} in in_order({values}):")
            self.emit(f"found = {call}")
            self.emit("if found is not None: return found")
            self.depth -= 1
            self.emit("return None")

    def _first(self, use: ViewUse, environment: Environment) -> str:
        view = self.names[use.view.relation]
        if not use.key:
            return f"first({view}_heap, {view})"
        return f"first_of({view}, {view}_heaps, {_row([environment[k] for k in use.key])})"

    def _guard(self, plan: RulePlan) -> str:
        return " and ".join(self._test(guard, {}) for guard in plan.guards) or "True"

    def _choose_function(self) -> None:
        self.emit("")
        self._open("def choose():")
        for number, plan in enumerate(self.plans):
            self._open(f"if {self._guard(plan)}:")
            self.emit(f"found = rule_{number}()")
            self.emit(f"if found is not None: return {number}, found")
            self.depth -= 1
        self.emit("return None")
        self.depth -= 1

    def _serve_functions(self) -> None:
        """For each predicate of a goal: the first rule that serves a given goal fact, and its first instance."""
        by_predicate: dict[str, dict[int, list[str]]] = {}
        for number, plan in enumerate(self.plans):
            for position, atom in enumerate(sorted(plan.rule.goal_condition)):
                name = f"serve_{number}_{position}"
                self._serve_rule(name, plan, atom)
                by_predicate.setdefault(atom.predicate, {}).setdefault(number, []).append(name)
        for predicate, rules in sorted(by_predicate.items()):
            columns = ", ".join(f"a{i}" for i in range(self.arities[Relation("goal", predicate)]))
            self.emit("")
            self._open(f"def serve_{identifier(predicate)}({columns}):")
            for number, names in rules.items():
                calls = ", ".join(f"{name}({columns})" for name in names)
                found = calls if len(names) == 1 else f"min(filter(None, ({calls})), default=None)"
                self.emit(f"found = {found}")
                self.emit(f"if found is not None: return {number}, found")
            self.emit("return None")
            self.depth -= 1

    def _serve_rule(self, name: str, plan: RulePlan, atom: Atom) -> None:
        """Like a rule's function, but for instances that serve one goal fact, whose values are given.

        Variables whose views lie above the given ones are joined afresh; views below or beside are used as they are.
        """
        given = frozenset(term for term in atom.terms if is_variable(term))
        above = _above(plan, given)
        literals = [
            literal
            for variable in sorted(above)
            for literal in plan.uses[variable].literals
            if not (literal.relation.kind == "view" and self._is_use_of(plan, literal, above))
        ]
        literals = list(dict.fromkeys([*literals, *(f for f in plan.filters if f.variables <= above)]))
        guards = [g for g in plan.guards if not self._is_use_of(plan, g, above)]
        columns = [f"a{i}" for i in range(len(atom.terms))]
        self.emit("")
        self.emit(f"# {plan.rule}")
        environment: Environment = {}
        conditions = [self._test(guard, {}) for guard in guards]
        for term, column in zip(atom.terms, columns, strict=True):
            if not is_variable(term):
                conditions.append(f"{column} == {term!r}")
            elif environment.setdefault(term, column) != column:
                conditions.append(f"{column} == {environment[term]}")
        steps, _ = self.planner.join_order(literals, given, frozenset(above))
        order = [v for v in reading_order(plan.outputs, plan.uses) if v not in above]
        filters = [f for f in plan.filters if not f.variables <= above]
        known = {v: self._local(v) for v in plan.outputs if v in above}
        rest = f"{name}_rest"
        self._reading_function(rest, plan, order, known, filters)
        self._open(f"def {name}({', '.join(columns)}):")
        self.emit("best = None")
        self._open(f"if {' and '.join(conditions) or 'True'}:")

        def compare(found: Environment) -> None:
            self.emit(f"found = {rest}({', '.join(found[v] for v in known)})")
            self.emit("if found is not None and (best is None or found < best): best = found")

        depth = self.depth
        self._join(steps, environment, compare)
        self.depth = depth - 1
        self.emit("return best")
        self.depth -= 1

    @staticmethod
    def _is_use_of(plan: RulePlan, literal: Literal, variables: Iterable[str]) -> bool:
        return any(
            plan.uses[v].view.relation == literal.relation and plan.uses[v].key == literal.terms for v in variables
        )


def _above(plan: RulePlan, given: frozenset[str]) -> set[str]:
    """The given variables and all whose views depend on a view of one of them."""
    above = set(given)
    changed = True
    while changed:
        changed = False
        for variable in above.copy():
            new = set(plan.uses[variable].key) - above
            above |= new
            changed = changed or bool(new)
    return above


def _used_views(planner: Planner, plans: Sequence[RulePlan]) -> list[View]:
    """The views the plans need, each after the views it needs itself."""
    needed: dict[View, None] = {}

    def visit(view: View) -> None:
        for literal in view.literals:
            if literal.relation.kind == "view":
                visit(planner.views[int(literal.relation.name)])
        needed[view] = None

    for plan in plans:
        for use in plan.uses.values():
            visit(use.view)
    return list(needed)


# Names that the program itself uses, or may use for functions, views, indexes and columns.
RESERVED = re.compile(
    r"(add|remove|apply|rule|serve|wanted)_.*|view\d+.*|a\d+|same\d+|.*_by_.*|choose|status|engine|found|best|heap|row|"
    r"open_goals|fingerprint|hash|len|sorted|set|frozenset|list|bool|int|locals|min|filter|" + "|".join(PARAMETERS)
)


def _names(views: Sequence[View], arities: Mapping[Relation, int]) -> dict[Relation, str]:
    names = {view.relation: f"view{number}" for number, view in enumerate(views)}
    prefixes = {"state": "", "goal": "goal_", "type": "is_"}
    for relation in sorted(arities):
        names[relation] = _unused(prefixes[relation.kind] + identifier(relation.name), set(names.values()))
    return names


def _unused(name: str, taken: set[str]) -> str:
    while name in taken or RESERVED.fullmatch(name):
        name += "_"
    return name


def identifier(name: str) -> str:
    """A Python name; characters that Python does not allow are spelt so that different names stay different."""
    spelt = "".join(c if c.isalnum() and c.isascii() else "_" if c == "-" else f"_{ord(c):x}_" for c in name)
    return f"{spelt}_" if keyword.iskeyword(spelt) or not spelt[:1].isalpha() else spelt


def _row(values: Sequence[str]) -> str:
    """One value as itself, several as a tuple: how rows and keys are stored."""
    return values[0] if len(values) == 1 else _tuple_of(values)


def _tuple_of(values: Sequence[str]) -> str:
    return f"({', '.join(values)},)" if len(values) == 1 else f"({', '.join(values)})"


def _target(columns: Sequence[str]) -> str:
    return ", ".join(columns)


def _rest(columns: Sequence[str], bound: Sequence[int]) -> str:
    return _row([column for i, column in enumerate(columns) if i not in bound])
