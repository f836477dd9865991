"""The rule engine: finds the rule that fires while facts come and go, at a cost that does not grow with the objects.

`choose` agrees with the first of `matching.best_matches`, which is its definition and its test. There are two executors
of the same plans with the same face: a compiled one, and one in Python, which is quicker where objects are few.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bilevel.compiled import find
from bilevel.rules.derived import GoalsInTurn, derivations, predicate_of
from bilevel.rules.engine.asked import Instance, is_safe, required_relations
from bilevel.rules.engine.executor import MOST_WORK, ExecutorStatus, filled
from bilevel.rules.engine.lowering import Lowering
from bilevel.rules.engine.objects import (
    COMPILED,
    EngineInput,
    NumberedObjects,
    Table,
    contents_of_facts,
    contents_of_problem,
)
from bilevel.rules.engine.plans import plans_for
from bilevel.rules.engine.views import Relation, Statistics
from bilevel.rules.matching import Match, direct_waits, output_variables
from bilevel.rules.paths import PATH, path_of, without_paths
from bilevel.rules.rule import Rule, orders_of
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Domain, Facts, Schema
from bilevel.symbolic.packed import NUMBER, PackedActions, PackedProblem, Rows

NO_ROWS = Rows(0, array(NUMBER))
FEW_OBJECTS = 100  # with no more of them the executor in Python is quicker


class RuleTooCostly(BadInput):
    """Whether a rule applies takes too long to find out."""

    def __init__(self, rule: Rule) -> None:
        text = str(rule) if len(str(rule)) <= 100 else f"{str(rule)[:60]} … -> {rule.action}"
        super().__init__(
            f"{rule.source or 'rules'}: this rule's conditions have too many combinations, more than {MOST_WORK:,}; "
            f"link its {len(rule.variables)} variables by more conditions, or make several rules of it: {text}"
        )


class RuleEngine:
    """The facts and open goals that the rules ask about, and an executor that keeps the rules' views of them.

    `state` and `goal` hold atoms; `objects` gives the types of the objects, which matter where a variable's type does
    not follow from the facts it occurs in. With `commit` the goal fact that the last rule served is served until it
    holds or no rule serves it. `is_compiled` demands one of the executors.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        domain: Domain,
        state: Collection[Atom],
        goal: Facts,
        objects: Mapping[str, str],
        *,
        commit: bool = False,
        is_compiled: bool | None = None,
    ) -> None:
        self._state, self._goal, self._kinds, self._commit = state, goal, dict(objects), commit
        self._rules, self._given, self._paths = (
            rules,
            domain,
            {p.predicate.removesuffix(PATH) for p in map(path_of, rules) if p},
        )
        found, domain, paths = without_paths(rules, domain, state)
        is_compiled = (len(objects) > FEW_OBJECTS if is_compiled is None else is_compiled) and bool(find(COMPILED))
        self._derivations, facts = derivations(rules, domain), set(state)
        for derivation in self._derivations:
            facts |= set(derivation.update([fact for fact in facts if fact.predicate in derivation.sources], ())[0])
        orders, self._turns = orders_of(rules), None
        if orders:
            waits = direct_waits(orders, domain, goal, frozenset(state), objects)
            self._turns = GoalsInTurn(goal, waits, facts)
        self._begin(found, domain, contents_of_facts(domain, facts, goal, objects, paths, is_compiled), commit)

    @classmethod
    def of_problem(cls, rules: Sequence[Rule], domain: Domain, problem: PackedProblem, commit: bool) -> RuleEngine:
        """Return a compiled engine for a problem that is numbers already; it follows its own actions alone."""
        if orders_of(rules) or any(map(path_of, rules)) or derivations(rules, domain):
            whole = problem.unpacked
            kinds = whole.all_objects(domain)
            return cls(rules, domain, whole.state, whole.goal, kinds, commit=commit, is_compiled=True)
        engine = cls.__new__(cls)
        engine._state, engine._goal, engine._kinds, engine._derivations, engine._turns = (
            NO_FACTS,
            NO_FACTS,
            {},
            [],
            None,
        )
        engine._rules, engine._given, engine._paths = rules, domain, set()
        engine._begin([(rule, rule) for rule in rules], domain, contents_of_problem(domain, problem), commit)
        return engine

    def _begin(self, rules: Sequence[tuple[Rule, Rule]], domain: Domain, contents: EngineInput, commit: bool) -> None:
        """Begin with rules as they are followed, each with the one that was written."""
        ordered = sorted(rules, key=lambda rule: rule[0].priority)  # stable: ties keep the given order
        self.rules, self.written = tuple(rule for rule, _ in ordered), tuple(rule for _, rule in ordered)
        self.domain = domain
        self._outputs = [output_variables(rule) for rule in self.rules]
        places = [{variable: place for place, variable in enumerate(outputs)} for outputs in self._outputs]
        self._heads = [
            (rule.action.name, filled([found.get(term, term) for term in rule.action.arguments]))
            for rule, found in zip(self.rules, places, strict=True)
        ]
        self._objects, self._planned = contents.objects, set[int]()
        executor: Any = contents.objects.executor(commit)
        self.executor = executor
        arities = required_relations(self.rules, domain)
        goals = [name for name, rows in contents.goal.items() if rows.size]
        arities |= {Relation("goal", name): domain.predicates[name].arity for name in sorted(goals)}
        sources = {name for each in (*self._derivations, self._turns) if each for name in each.sources}
        arities |= {Relation("state", name): predicate_of(name, domain).arity for name in sorted(sources)}
        self._relations = {r: self.executor.add_relation(n, is_goal=r.kind == "goal") for r, n in arities.items()}
        found = self._relations.get
        self._predicates = {
            name: (found(Relation("state", name), -1), found(Relation("goal", name), -1))
            for name in {relation.name for relation in arities if relation.kind != "type"}
        }
        statistics = Statistics(
            {relation: self._load(relation, arity, contents) for relation, arity in arities.items()}
        )
        if self._turns:  # they tell which goals are open, instead of the executor
            for goal in self._turns.open - self._turns.in_turn:
                self.executor.set(*self._goal_row(goal), False)
            self._predicates = {name: (state, -1) for name, (state, _) in self._predicates.items()}
        self._sources = {self._relations[Relation("state", name)]: name for name in sorted(sources)}
        for number in self._sources:
            self.executor.watch(number)
        self._fingerprint: int | None = None
        self._plans = plans_for(self.rules, domain, arities, statistics)
        self._lowering = Lowering(self.executor, self._plans.planner, self._relations, self._objects.value)
        self._operations: dict[tuple[str, int], int] = {}
        for place, rule in enumerate(self.rules):
            self._add_rule(place, rule)

    # Building

    def _load(self, relation: Relation, arity: int, contents: EngineInput) -> Table:
        """Hand over the rows of a relation; return a table of what it will come to look like: goals are among facts."""
        number = self._relations[relation]
        holding, wanted = contents.state.get(relation.name, NO_ROWS), contents.goal.get(relation.name, NO_ROWS)
        if relation.kind == "type":
            holding, wanted = contents.of_type(relation.name), NO_ROWS
        if relation.kind == "goal":
            self.executor.load(number, wanted.terms, wanted.size)
            self.executor.mark_achieved(number, holding.terms, holding.size)
            return Table(arity, wanted)
        self.executor.load(number, holding.terms, holding.size)
        return Table(arity, holding, wanted)

    def _goal_row(self, goal: Atom) -> tuple[int, int, Any]:
        """Return what the executor sets to make a goal one that is open and in turn, or not."""
        return self._relations[Relation("goal", goal.predicate)], -1, self._objects.values(goal.terms)

    def _add_rule(self, place: int, rule: Rule) -> None:
        """Hand over what can be said of a rule before its joins are planned."""
        literals = self._plans.literals(place)
        ground = [literal for literal in literals if not literal.variables]
        slots = self._lowering.slots(ground, ())
        schema = self.domain.schemas[rule.action.name]
        is_certain = schema.is_deterministic and is_safe(rule, self.domain)
        goals = sorted(rule.goal_condition)
        outputs = {variable: place for place, variable in enumerate(self._outputs[place])}
        self.executor.add_rule(
            sorted({self._relations[literal.relation] for literal in literals if literal.enumerable}),
            self._lowering.values(slots),
            self._lowering.checks(ground, slots),
            [self._relations[Relation("goal", atom.predicate)] for atom in goals],
            self._terms(goals[0].terms if goals else (), outputs),
            self._terms(rule.action.arguments, outputs),
            self._operation(schema, 0) if is_certain else -1,
        )

    def _terms(self, terms: Iterable[str], places: Mapping[str, int]) -> list[Any]:
        return [places[term] if term in places else self._objects.constant(term) for term in terms]

    def _operation(self, schema: Schema, number: int) -> int:
        key = schema.name, number
        if key not in self._operations:
            outcome = schema.outcomes[number]
            places = {p.name: place for place, p in enumerate((*schema.parameters, *outcome.chosen))}
            effects = [
                [
                    (*self._predicates[atom.predicate], self._terms(atom.terms, places))
                    for atom in sorted(atoms) if atom.predicate in self._predicates
                ]
                for atoms in (outcome.add, outcome.delete - outcome.add)
            ]  # fmt: skip
            self._operations[key] = self.executor.add_operation(*effects)
        return self._operations[key]

    # Asking

    def _ask(self, question: Callable[[], int]) -> int:
        """Ask the executor, and plan the rules that must be planned for the answer."""
        try:
            while (status := question()) == ExecutorStatus.PLAN:
                self._plan(self.executor.chosen)
        except OverflowError:
            raise RuleTooCostly(self.written[self.executor.chosen]) from None
        return status

    def _plan(self, rule: int) -> None:
        """Hand over how the instances of a rule are found, or if that is done, those that serve a goal."""
        if rule in self._planned:
            self._lowering.plan_serving(rule, self._plans.plan(rule), self._plans.servings(rule))
        else:
            self._lowering.plan_rule(rule, self._plans.plan(rule))
            self._planned.add(rule)

    def choose(self) -> Instance | None:
        """Return the instance that fires, a rule's place and the values of its outputs; `None` if no rule applies."""
        return self._found(self._ask(self.executor.choose))

    def serve(self, goal: Atom, rule: int = -1) -> Instance | None:
        """Return the first instance, of all rules or of one, that serves an open goal fact."""
        if Relation("goal", goal.predicate) not in self._relations:
            return None
        number, _, terms = self._goal_row(goal)
        return self._found(self._ask(lambda: self.executor.serve(number, terms, rule)))

    def _found(self, status: int) -> Instance | None:
        return (
            (self.executor.chosen, self._objects.names(self.executor.found)) if status == ExecutorStatus.FOUND else None
        )

    def instances(self, rule: int) -> list[tuple[str, ...]]:
        """Return the values of the outputs of all instances of a rule, in the order in which ties are decided."""
        self._ask(lambda: self.executor.every(rule))
        return [self._objects.names(found) for found in self.executor.instances]

    def matches(self) -> Iterator[Match]:
        """Yield all instances, with their outputs alone, in the order in which they fire."""
        seen = set[tuple[int, tuple[str, ...]]]()  # a rule with a path is one rule for each length
        for place, rule in enumerate(self.written):
            for values in self.instances(place):
                if (id(rule), values) not in seen:
                    seen.add((id(rule), values))
                    yield self.match((place, values))

    def match(self, instance: Instance) -> Match:
        """Return the rule and the values of the outputs of an instance."""
        place, values = instance
        return Match(self.written[place], dict(zip(self._outputs[place], values, strict=True)))

    def action(self, instance: Instance) -> Action:
        """Return the action of an instance."""
        place, values = instance
        name, arguments = self._heads[place]
        return Action(name, arguments(values))

    def open_goals(self) -> int:
        """Return how many goals do not hold."""
        found: int = self.executor.open_goals()
        return len(self._turns.open) if self._turns else found

    def holds(self, fact: Atom) -> bool:
        """Return whether a fact holds, for the predicates that some rule or the action of an unsafe one asks about."""
        state, _ = self._predicates.get(fact.predicate, (-1, -1))
        return state >= 0 and bool(self.executor.has(state, self._objects.values(fact.terms)))

    # Following

    def follow(self, state: Facts, goal: Facts | None = None, objects: Mapping[str, str] | None = None) -> None:
        """Bring the engine up to date; only what differs from before is handed on, additions first."""
        is_new_goal, is_new_object = goal not in (None, self._goal), objects not in (None, self._kinds)
        if ((is_new_goal or is_new_object) and orders_of(self.rules)) or self._has_new_links(state):
            goal, objects = self._goal if goal is None else goal, self._kinds if objects is None else objects
            self.__init__(self._rules, self._given, state, goal, objects, commit=self._commit)  # type: ignore[misc]
            return
        try:
            if state is not self._state:
                self._set(state.difference(self._state), True)
                self._set(frozenset(self._state).difference(state), False)
                self._derive()
                self._state = state
            if goal is not None and is_new_goal:
                self._aim(goal)
            if objects is not None and is_new_object:
                self._know(objects)
        except OverflowError:
            raise RuleTooCostly(self.written[self.executor.chosen]) from None

    def _has_new_links(self, state: Facts) -> bool:
        """Return whether what paths are over is no longer what it was."""
        return bool(self._paths) and any(fact.predicate in self._paths for fact in state ^ frozenset(self._state))

    def _set(self, facts: Iterable[Atom], present: bool) -> None:
        predicates, values, change = self._predicates, self._objects.values, self.executor.set
        for name, terms in facts:
            found = predicates.get(name)
            if found is not None:
                change(*found, values(terms), present)

    def _derive(self) -> None:
        """Bring up to date what follows from the facts that have changed, one derivation after another."""
        came, went = self._changes()
        for derivation in self._derivations:
            new, old = derivation.update(
                [fact for fact in came if fact.predicate in derivation.sources],
                [fact for fact in went if fact.predicate in derivation.sources],
            )
            self._set(new, True)
            self._set(old, False)
            further = self._changes()
            came += further[0]
            went += further[1]
        if self._turns:
            begun, ceased = self._turns.update(came, went)
            for goals, present in ((begun, True), (ceased, False)):
                for goal in goals:
                    self.executor.set(*self._goal_row(goal), present)
            self._changes()

    def _changes(self) -> tuple[list[Atom], list[Atom]]:
        """Return the facts that came and went of which others may follow; note that there were changes."""
        changes = self.executor.take_changes()
        if self._fingerprint is not None:
            for number, row in (*changes[0], *changes[1]):
                self._fingerprint ^= hash((number, *row))
        return self._source_facts(changes[0]), self._source_facts(changes[1])

    def _source_facts(self, rows: Iterable[tuple[int, Any]]) -> list[Atom]:
        names, sources = self._objects.names, self._sources
        return [Atom(sources[number], names(row)) for number, row in rows if number in sources]

    def _aim(self, goal: Facts) -> None:
        """Make these the goals."""
        for facts, wanted in ((goal - self._goal, True), (self._goal - goal, False)):
            for fact in facts:
                _, number = self._predicates.get(fact.predicate, (-1, -1))
                if number >= 0:
                    self.executor.want(number, self._objects.values(fact.terms), wanted, fact in self._state)
        self._goal = goal

    def _know(self, objects: Mapping[str, str]) -> None:
        """Make these the objects there are."""
        for kinds, others, present in ((objects, self._kinds, True), (self._kinds, objects, False)):
            for name, kind in kinds.items():
                if others.get(name) != kind:
                    self._set_types(name, kind, present)
        self._kinds = dict(objects)

    def declare(self, name: str, kind: str) -> None:
        """Make a new object of a type known."""
        self._kinds[name] = kind
        self._set_types(name, kind, True)

    def _set_types(self, name: str, kind: str, present: bool) -> None:
        for relation, number in self._relations.items():
            if relation.kind == "type" and self.domain.is_subtype(kind, relation.name):
                self.executor.set(number, -1, self._objects.values((name,)), present)

    # Acting

    def apply(self, schema: Schema, outcome: int, values: tuple[str, ...]) -> None:
        """Carry out this outcome of the schema, given its arguments and what nature chose."""
        operation = self._operation(schema, outcome)
        try:
            self.executor.apply(operation, self._objects.values(values))
            self._derive()
        except OverflowError:
            raise RuleTooCostly(self.written[self.executor.chosen]) from None

    def run(self, bound: int) -> int:
        """Choose and act until so many actions are done, or the executor cannot go on by itself; return its status."""
        while (status := self._ask(lambda: self.executor.run(bound))) == ExecutorStatus.CHANGED:
            self._derive()
        return ExecutorStatus.NO_RULE if status == ExecutorStatus.SOLVED and self.open_goals() else status

    @property
    def steps(self) -> int:
        """How many actions were done in runs."""
        count: int = self.executor.steps
        return count

    def fingerprint(self) -> object:
        """Return what tells states, and the goals served in them, apart; it counts changes from the first call on."""
        if self._fingerprint is None:
            self._fingerprint = 0
            for number in set(self._relations.values()) - self._sources.keys():
                self.executor.watch(number)
        return self._fingerprint, self.executor.committed

    def chosen(self) -> tuple[int, tuple[str, ...]]:
        """Return the rule whose action is to be done when a run stops at one, and the action's arguments."""
        return self.executor.chosen, self._objects.names(self.executor.arguments)

    def actions(self) -> Sequence[Action]:
        """Return what was done in runs."""
        if isinstance(self._objects, NumberedObjects):
            places = {name: place for place, name in enumerate(self.domain.schemas)}
            done = self.executor.actions([places[rule.action.name] for rule in self.rules])
            return PackedActions(self.domain, self._objects.by_number(), *done)
        return [Action(self.rules[rule].action.name, arguments) for rule, arguments in self.executor.done]
