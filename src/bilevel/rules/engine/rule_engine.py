"""The rule engine: finds the rule that fires while facts come and go, at a cost that does not grow with the objects.

`choose` agrees with the first of `matching.matches_in_order`, which is its definition and its test. Two executors of
the same plans have the same face: a compiled one, and one in Python, which is quicker where objects are few.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bilevel.native import find
from bilevel.rules.derived import PATH, Closure, closures_in, path_of, predicate_of, without_paths
from bilevel.rules.engine.executor import MOST_WORK, ExecutorStatus, filled
from bilevel.rules.engine.join_plan import Relation, Statistics, is_safe, planner_for, required_relations, rule_literals
from bilevel.rules.engine.lowering import Lowering
from bilevel.rules.engine.objects import (
    COMPILED,
    EngineInput,
    NumberedObjects,
    contents_of_facts,
    contents_of_problem,
)
from bilevel.rules.matching import Match, direct_waits, output_variables, predecessors
from bilevel.rules.rule import Rule, orders_of
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Domain, Facts, Schema
from bilevel.symbolic.packed import NUMBER, PackedActions, PackedProblem, Rows

# An instance of a rule: the rule's place among the engine's, and the values of its outputs (see `output_variables`).
Instance = tuple[int, tuple[str, ...]]

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


class GoalsInTurn:
    """The open goals that wait for no other; `waits` says for which each waits, and `facts` what holds at first."""

    def __init__(self, goals: Facts, waits: Mapping[Atom, set[Atom]], facts: Collection[Atom]) -> None:
        self._goals = goals
        self.open = {goal for goal in goals if goal not in facts}
        awaited = {goal: predecessors(waits, goal) for goal in waits}
        self._waiting = {goal: len(others & self.open) for goal, others in awaited.items()}
        self._followers: dict[Atom, list[Atom]] = {}
        for goal, others in awaited.items():
            for other in others:
                self._followers.setdefault(other, []).append(goal)
        self.in_turn = {goal for goal in self.open if not self._waiting.get(goal)}

    def update(self, came: Iterable[Atom], went: Iterable[Atom]) -> tuple[set[Atom], set[Atom]]:
        """Return which goals have come to be in turn, and which have ceased to be, now that facts came and went."""
        affected = set[Atom]()
        for facts, opens in ((came, False), (went, True)):
            for goal in facts:
                if goal in self._goals and (goal in self.open) != opens:
                    (self.open.add if opens else self.open.remove)(goal)
                    followers = self._followers.get(goal, ())
                    affected.update((goal, *followers))
                    for follower in followers:
                        self._waiting[follower] += 1 if opens else -1
        now = {goal for goal in affected if goal in self.open and not self._waiting.get(goal)}
        begun, ceased = now - self.in_turn, (affected & self.in_turn) - now
        self.in_turn -= ceased
        self.in_turn |= begun
        return begun, ceased


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
        self._given, self._commit, self._is_compiled = (tuple(rules), domain), commit, is_compiled
        self._start(state, goal, objects)

    @classmethod
    def of_problem(cls, rules: Sequence[Rule], domain: Domain, problem: PackedProblem, commit: bool) -> RuleEngine:
        """Return a compiled engine for a problem that is numbers already; it follows its own actions alone."""
        if orders_of(rules) or any(map(path_of, rules)) or closures_in(rules, domain):
            whole, kinds = problem.unpacked, problem.all_objects(domain)
            return cls(rules, domain, whole.state, whole.goal, kinds, commit=commit, is_compiled=True)
        engine = cls((), domain, NO_FACTS, NO_FACTS, {}, commit=commit)
        engine._begin([(rule, rule) for rule in rules], domain, contents_of_problem(domain, problem))
        return engine

    def _start(self, state: Collection[Atom], goal: Facts, objects: Mapping[str, str]) -> None:
        """Begin with a state, a goal and objects."""
        rules, given = self._given
        self._state, self._goal, self._kinds = state, goal, dict(objects)
        self._paths = {path.predicate.removesuffix(PATH) for path in map(path_of, rules) if path}
        self._closures, facts = [Closure(name) for name in sorted(closures_in(rules, given))], set(state)
        for closure in self._closures:
            facts |= set(closure.update(state, ())[0])
        orders = orders_of(rules)
        waits = direct_waits(orders, given, goal, frozenset(state), objects) if orders else {}
        self._turns = GoalsInTurn(goal, waits, facts) if orders else None
        followed, domain, paths = without_paths(rules, given, state)
        is_compiled = len(objects) > FEW_OBJECTS if self._is_compiled is None else self._is_compiled
        contents = contents_of_facts(domain, facts, goal, objects, paths, is_compiled and find(COMPILED) is not None)
        self._begin(followed, domain, contents)

    def _begin(self, rules: Sequence[tuple[Rule, Rule]], domain: Domain, contents: EngineInput) -> None:
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
        self.executor: Any = contents.objects.executor(self._commit)
        self._fingerprint: int | None = None
        self._operations: dict[tuple[str, int], int] = {}
        self._planner = planner_for(self.rules, domain, self._load(contents))
        self._lowering = Lowering(self.executor, self._planner, self._relations, self._objects.value)
        for rule, found in zip(self.rules, places, strict=True):
            self._add_rule(rule, found)

    # Building

    def _load(self, contents: EngineInput) -> Statistics:
        """Hand over the rows of the relations that matter; return what these will come to look like."""
        statistics, arities = Statistics(), required_relations(self.rules, self.domain)
        names = {name for name, rows in contents.goal.items() if rows.size} | {
            closure.name for closure in self._closures
        }
        names |= {relation.name for relation in arities if relation.kind == "goal"}
        for name in sorted(names):
            kinds = ("state", "goal", "served") if self._commit else ("state", "goal")
            arities |= dict.fromkeys((Relation(kind, name) for kind in kinds), predicate_of(name, self.domain).arity)
        self._relations: dict[Relation, int] = {}
        for relation in sorted(arities, key=lambda relation: relation.kind == "goal"):  # goals after facts
            (kind, name), arity, facts = relation, arities[relation], -1
            rows, wanted = contents.state.get(name, NO_ROWS), contents.goal.get(name, NO_ROWS)
            if kind == "goal" and not self._turns:  # else it is told here which goals are open
                facts = self._relations[Relation("state", name)]
            number = self._relations[relation] = self.executor.add_relation(arity, kind == "goal", facts)
            found = {"state": (rows, wanted), "goal": (wanted,), "served": (NO_ROWS,)}  # goals will be among the facts
            parts = found.get(kind) or (contents.of_type(name),)
            self.executor.load(number, parts[0].terms, parts[0].size)
            statistics.add(relation, arity, *parts)
        if self._turns:
            for goal in self._goal - self._turns.in_turn:
                self._set_goal(goal, False)
        self._predicates = {relation.name: n for relation, n in self._relations.items() if relation.kind == "state"}
        sources = {closure.name for closure in self._closures} | (names if self._turns else set())
        self._sources = {self._predicates[name]: name for name in sorted(sources)}
        for number in self._sources:
            self.executor.watch(number)
        return statistics

    def _add_rule(self, rule: Rule, outputs: Mapping[str, int]) -> None:
        """Hand over what can be said of a rule before its joins are planned."""
        needs = {self._relations[x.relation] for x in rule_literals(rule, self.domain) if x.enumerable}
        schema, goals = self.domain.schemas[rule.action.name], sorted(rule.goal_condition) if self._commit else []
        is_certain = schema.is_deterministic and is_safe(rule, self.domain)
        self.executor.add_rule(
            sorted(needs),
            [tuple(self._relations[Relation(kind, atom.predicate)] for kind in ("goal", "served")) for atom in goals],
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
                    (self._predicates[atom.predicate], self._terms(atom.terms, places))
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
                rule = self.executor.chosen
                if rule in self._planned:  # but not how it serves a goal
                    for place in range(len(self.rules[rule].goal_condition)):
                        self._lowering.plan_rule(rule, place)
                else:
                    self._lowering.plan_rule(rule)
                    self._planned.add(rule)
        except OverflowError:
            raise RuleTooCostly(self.written[self.executor.chosen]) from None
        return status

    def choose(self) -> Instance | None:
        """Return the instance that fires, a rule's place and the values of its outputs; `None` if no rule applies."""
        if self._ask(self.executor.choose) != ExecutorStatus.FOUND:
            return None
        return self.executor.chosen, self._objects.names(self.executor.found)

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
        return len(self._turns.open) if self._turns else int(self.executor.open_goals())

    def holds(self, fact: Atom) -> bool:
        """Return whether a fact holds, for the predicates that some rule or the action of an unsafe one asks about."""
        number = self._predicates.get(fact.predicate)
        return number is not None and bool(self.executor.has(number, self._objects.values(fact.terms)))

    # Following

    def follow(self, state: Facts, goal: Facts | None = None, objects: Mapping[str, str] | None = None) -> None:
        """Bring the engine up to date; where only facts and objects differ from before, these alone are handed on."""
        goal, objects = self._goal if goal is None else goal, self._kinds if objects is None else objects
        is_new_object = objects != self._kinds
        if goal != self._goal or (is_new_object and self._turns) or self._has_new_links(state):
            self._start(state, goal, objects)
            return
        try:
            if state is not self._state:
                self._set(state.difference(self._state), True)  # first, so that fewer views fall empty in between
                self._set(frozenset(self._state).difference(state), False)
                self._derive()
                self._state = state
            if is_new_object:
                self._set_types(objects.items() - self._kinds.items(), True)
                self._set_types(self._kinds.items() - objects.items(), False)
                self._kinds = dict(objects)
        except OverflowError:
            raise RuleTooCostly(self.written[self.executor.chosen]) from None

    def _has_new_links(self, state: Facts) -> bool:
        """Return whether what paths are over is no longer what it was."""
        return bool(self._paths) and any(fact.predicate in self._paths for fact in state ^ frozenset(self._state))

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make new objects known, with their types."""
        self._set_types(objects.items(), True)
        self._kinds |= objects

    def _set_types(self, kinds: Iterable[tuple[str, str]], present: bool) -> None:
        for relation, number in self._relations.items():
            for name, kind in kinds if relation.kind == "type" else ():
                if self.domain.is_subtype(kind, relation.name):
                    self.executor.set(number, self._objects.values((name,)), present)

    def _set(self, facts: Iterable[Atom], present: bool) -> None:
        predicates, values, change = self._predicates, self._objects.values, self.executor.set
        for name, terms in facts:
            found = predicates.get(name)
            if found is not None:
                change(found, values(terms), present)

    def _set_goal(self, goal: Atom, is_in_turn: bool) -> None:
        self.executor.set(
            self._relations[Relation("goal", goal.predicate)], self._objects.values(goal.terms), is_in_turn
        )

    def _derive(self) -> None:
        """Bring up to date what follows from the facts that have changed."""
        came, went = self._changes()
        for closure in self._closures:
            new, old = closure.update(came, went)
            self._set(new, True)
            self._set(old, False)
        if self._turns:
            begun, ceased = self._turns.update(came, went)
            for goals, present in ((begun, True), (ceased, False)):
                for goal in goals:
                    self._set_goal(goal, present)
        self._changes()

    def _changes(self) -> tuple[list[Atom], list[Atom]]:
        """Return the facts that came and went of which others may follow; note that there were changes."""
        came, went = self.executor.take_changes()
        if self._fingerprint is not None:
            for number, row in (*came, *went):
                self._fingerprint ^= hash((number, *row))
        return self._source_facts(came), self._source_facts(went)

    def _source_facts(self, rows: Iterable[tuple[int, Any]]) -> list[Atom]:
        names, sources = self._objects.names, self._sources
        return [Atom(sources[number], names(row)) for number, row in rows if number in sources]

    # Acting

    def apply(self, schema: Schema, outcome: int, values: tuple[str, ...]) -> None:
        """Carry out the chosen action with this outcome of its schema, given its arguments and what nature chose."""
        operation = self._operation(schema, outcome)
        try:
            self.executor.apply(operation, self._objects.values(values))
            self._derive()
        except OverflowError:
            raise RuleTooCostly(self.written[self.executor.chosen]) from None

    def run(self, bound: int) -> int:
        """Choose and act until so many actions are done, or the executor cannot go on by itself; return its status."""

        def advance() -> int:
            status: int = self.executor.run(bound)
            if status == ExecutorStatus.CHANGED:
                self._derive()
            return status

        while (status := self._ask(advance)) == ExecutorStatus.CHANGED:
            pass
        return status

    @property
    def steps(self) -> int:
        """How many actions were done in runs."""
        return int(self.executor.steps)

    def fingerprint(self) -> int:
        """Return what tells states, and the goals served in them, apart; it counts changes from the first call on."""
        if self._fingerprint is None:
            self._fingerprint = 0
            for number in set(self._relations.values()) - self._sources.keys():
                self.executor.watch(number)
        return self._fingerprint

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
