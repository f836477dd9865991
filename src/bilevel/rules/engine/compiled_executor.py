"""The compiled executor's Python side: it numbers objects and relations, and plans a rule when it is first needed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain

from bilevel.compiled import find
from bilevel.rules.closures import MARK, closures_in
from bilevel.rules.engine.asked import Instance, is_safe, relations_asked
from bilevel.rules.engine.explosion import RuleExplodes, explodes, is_suspect
from bilevel.rules.engine.lowering import Lowering
from bilevel.rules.engine.numbering import COMPILED, Objects, Table, numbered_facts
from bilevel.rules.engine.rule_plans import plans_for
from bilevel.rules.engine.views import Relation, Statistics
from bilevel.rules.matching import output_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts, Schema
from bilevel.symbolic.packed import NUMBER, PackedProblem, Rows

NO_ROWS = Rows(0, array(NUMBER))


class Status:
    """What the compiled executor says: see `executor.hpp`."""

    DONE, NO_RULE, FOUND, SOLVED, LOOP, PLAN, PLAN_SERVING = range(7)


class CompiledExecutor:
    """The facts and open goals that the rules ask about, as numbers, and the compiled executor that keeps them."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        domain: Domain,
        objects: Objects,
        state: Mapping[str, Rows],
        goal: Mapping[str, Rows],
        of_type: Callable[[str], Rows],
        commit: bool,
    ) -> None:
        """Begin with the facts of each predicate and the objects of each type."""
        self.rules, self.domain, self.objects = rules, domain, objects
        self.refuses_explosions = False  # that is, raises `RuleExplodes` instead of planning one that does
        self.it = find(COMPILED).Executor(objects.size, commit)
        arities = relations_to_keep(rules, domain, [name for name, rows in goal.items() if rows.size])
        self._relations = {r: self.it.add_relation(arity, is_goal=r.kind == "goal") for r, arity in arities.items()}
        tables: dict[Relation, Table] = {}
        for relation, number in self._relations.items():
            wanted = goal.get(relation.name, NO_ROWS)
            rows = {"state": state, "goal": goal}.get(relation.kind, {}).get(relation.name, NO_ROWS)
            if relation.kind == "type":
                rows = of_type(relation.name)
            self.it.load(number, rows.terms, rows.size)
            if relation.kind == "goal":
                achieved = state.get(relation.name, NO_ROWS)
                self.it.mark_achieved(number, achieved.terms, achieved.size)
            # Goals are counted among the facts too: that is what the state will come to look like.
            tables[relation] = Table(arities[relation], rows, *([wanted] if relation.kind == "state" else []))
        for name in sorted(closures_in(rules, domain)):
            closure = Relation("state", name + MARK)
            self.it.close(self._relations[Relation("state", name)], self._relations[closure])
            pairs = self.it.rows(self._relations[closure])
            tables[closure] = Table(2, Rows(len(pairs) // 2, pairs))
        self._plans = plans_for(rules, domain, arities, Statistics(tables))
        self._lowering = Lowering(self.it, self._plans.planner, self._relations, self._constant)
        self._operations: dict[tuple[str, int], int] = {}
        for place, rule in enumerate(rules):
            self._add_rule(place, rule)

    @classmethod
    def of_facts(
        cls,
        rules: tuple[Rule, ...],
        domain: Domain,
        state: Collection[Atom],
        goal: Facts,
        objects: Mapping[str, str],
        commit: bool,
    ) -> CompiledExecutor:
        """Begin with facts as atoms, and the types of the objects."""
        goals = {atom.predicate for atom in goal}
        asked = sorted({r.name for r in relations_to_keep(rules, domain, goals) if r.kind != "type"})
        try:
            names, (holding, wanted) = numbered_facts(objects, (state, goal), asked)
        except KeyError:  # a label speaks of an object that nobody has declared
            mentioned = {term for atom in chain(state, goal) for term in atom.terms}.union(objects)
            names, (holding, wanted) = numbered_facts(mentioned, (state, goal), asked)
        numbered = Objects(names, len(names))

        def of_type(kind: str) -> Rows:
            found = [numbered.numbers[name] for name, own in objects.items() if domain.is_subtype(own, kind)]
            return Rows(len(found), array(NUMBER, found))

        return cls(rules, domain, numbered, holding, wanted, of_type, commit)

    @classmethod
    def of_packed(
        cls, rules: tuple[Rule, ...], domain: Domain, problem: PackedProblem, commit: bool
    ) -> CompiledExecutor:
        """Begin with a problem that is numbers already."""

        def of_type(kind: str) -> Rows:
            wanted = [domain.is_subtype(own, kind) for own in problem.type_names]
            found = find(COMPILED).objects_of(problem.types, wanted)
            return Rows(len(found), found)

        objects = Objects(problem.names, len(problem.types))
        return cls(rules, domain, objects, problem.state, problem.goal, of_type, commit)

    # Rules and actions

    def _add_rule(self, place: int, rule: Rule) -> None:
        """Hand over what can be said of a rule before its joins are planned."""
        literals = self._plans.literals(place)
        ground = [literal for literal in literals if not literal.variables]
        slots = self._lowering.slots(ground, ())
        schema = self.domain.schemas[rule.action.name]
        is_certain = schema.is_deterministic and is_safe(rule, self.domain)
        goals = sorted(rule.goal_condition)
        outputs = {variable: i for i, variable in enumerate(output_variables(rule))}
        self.it.add_rule(
            sorted({self._relations[literal.relation] for literal in literals if literal.enumerable}),
            self._lowering.values(slots),
            self._lowering.checks(ground, slots),
            [self._relations[Relation("goal", atom.predicate)] for atom in goals],
            self._terms(goals[0].terms if goals else (), outputs),
            self._terms(rule.action.arguments, outputs),
            self._operation(schema, 0) if is_certain else -1,
        )

    def _terms(self, terms: Iterable[str], places: Mapping[str, int]) -> list[int]:
        """Return the places of variables, and constants as negative numbers."""
        return [places[term] if term in places else -1 - self._constant(term) for term in terms]

    def _operation(self, schema: Schema, number: int) -> int:
        key = schema.name, number
        if key not in self._operations:
            outcome = schema.outcomes[number]
            places = {p.name: i for i, p in enumerate((*schema.parameters, *outcome.chosen))}
            effects = [
                [(*self._predicate(a.predicate), self._terms(a.terms, places)) for a in sorted(atoms)]
                for atoms in (outcome.add, outcome.delete - outcome.add)
            ]
            kept = [[effect for effect in found if effect[:2] != (-1, -1)] for found in effects]
            self._operations[key] = self.it.add_operation(*kept)
        return self._operations[key]

    def _predicate(self, name: str) -> tuple[int, int]:
        """Return the numbers of the relations that hold a predicate's facts and goals, or -1."""
        return self._relations.get(Relation("state", name), -1), self._relations.get(Relation("goal", name), -1)

    def _constant(self, name: str) -> int:
        return self.objects.constant(name, self.it)

    def _numbers(self, names: Iterable[str]) -> list[int]:
        return [self.objects.number(name, self.it) for name in names]

    # What an engine does

    def _ask(self, question: Callable[[], int]) -> Instance | None:
        """Ask for an instance, and plan the rules that must be planned for the answer."""
        status = question()
        while self.plan(status):
            status = question()
        if status != Status.FOUND:
            return None
        names = self.objects.names
        return self.it.chosen, tuple([names[number] for number in self.it.found])

    def plan(self, status: int) -> bool:
        """Plan the rule that the executor got to, if that is why it stopped; return whether it is."""
        rule = self.it.chosen
        if status == Status.PLAN:
            if self.refuses_explosions and self._explodes(rule):
                raise RuleExplodes
            self._lowering.plan_rule(rule, self._plans.plan(rule))
        elif status == Status.PLAN_SERVING:
            self._lowering.plan_serving(rule, self._plans.plan(rule), self._plans.servings(rule))
        return status in (Status.PLAN, Status.PLAN_SERVING)

    def actions(self) -> tuple[array[int], array[int]]:
        """Return the schemas, by their places in the domain, and arguments of what was done, one after another."""
        places = {name: place for place, name in enumerate(self.domain.schemas)}
        done: tuple[array[int], array[int]] = self.it.actions([places[rule.action.name] for rule in self.rules])
        return done

    def _explodes(self, place: int) -> bool:
        rule, plans = self.rules[place], self._plans
        return is_suspect(rule, self.objects.size) and explodes(
            rule, plans.literals(place), plans.planner, lambda _: plans.plan(place)
        )

    def choose(self) -> Instance | None:
        """Return the instance of the first rule that applies."""
        return self._ask(self.it.choose)

    def open_goals(self) -> int:
        """Return how many goals do not hold."""
        count: int = self.it.open_goals()
        return count

    def server(self, predicate: str) -> Callable[..., Instance | None]:
        """Return what finds the first instance that serves a goal of this predicate."""
        _, goal = self._predicate(predicate)

        def serve(*terms: str) -> Instance | None:
            numbers = self._numbers(terms)
            return None if goal < 0 else self._ask(lambda: self.it.serve(goal, numbers))

        return serve

    def add(self, fact: Atom) -> None:
        """Make a fact true."""
        self._set(fact, True)

    def remove(self, fact: Atom) -> None:
        """Make a fact false."""
        self._set(fact, False)

    def _set(self, fact: Atom, present: bool) -> None:
        predicate = self._predicate(fact.predicate)
        if predicate != (-1, -1):
            self.it.set(*predicate, self._numbers(fact.terms), present)

    def declare(self, name: str, kind: str) -> None:
        """Make an object of a type known."""
        for number in self._types(kind):
            self.it.set(number, -1, self._numbers([name]), True)

    def _types(self, kind: str) -> list[int]:
        """Return the relations that hold the objects of a type."""
        types = [relation for relation in self._relations if relation.kind == "type"]
        return [self._relations[relation] for relation in types if self.domain.is_subtype(kind, relation.name)]

    def follower(self, schema: Schema, outcome: int) -> Callable[[Iterable[str]], int]:
        """Return a function that does the chosen action, given what nature chose in an outcome; it gives a status."""
        operation = self._operation(schema, outcome)
        types = [self._types(variable.type) for variable in schema.outcomes[outcome].chosen]

        def follow(chosen: Iterable[str]) -> int:
            status: int = self.it.follow_chance(operation, self._numbers(chosen), types)
            return status

        return follow

    def applier(self, schema: Schema, outcome: int) -> Callable[..., None]:
        """Return what carries out this outcome of the schema, given its arguments and what nature chose."""
        operation = self._operation(schema, outcome)
        return lambda *values: self.it.apply(operation, self._numbers(values))

    def holds(self, fact: Atom) -> bool:
        """Return whether a fact is true."""
        state, _ = self._predicate(fact.predicate)
        return state >= 0 and bool(self.it.has(state, self._numbers(fact.terms)))


def relations_to_keep(rules: Sequence[Rule], domain: Domain, goals: Iterable[str]) -> dict[Relation, int]:
    """Return the relations with their arities: what rules ask about, goals, and what closures follow from."""
    arities = relations_asked(rules, domain)
    arities |= {Relation("goal", name): domain.predicates[name].arity for name in sorted(goals)}
    return arities | {Relation("state", name): 2 for name in sorted(closures_in(rules, domain))}
