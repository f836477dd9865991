"""The rule engine: finds the rule that fires while facts come and go, at a cost that does not grow with the objects.

`choose` agrees with the first of `matching.matches_in_order`, which is its definition and its test. All that rules ask
about is facts to it: those of the state, what follows from them (closures, paths, which goals wait), the types of the
objects, and goals. Two executors of the same plans have the same face: a compiled one, and one in Python, which is
quicker where objects are few.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress
from typing import Any

from bilevel.native import find
from bilevel.rules.derived import MARK, PATH, Closure, closures_in, links_of, path_of, path_rows, predicate_of
from bilevel.rules.engine.executor import Executor, ExecutorStatus
from bilevel.rules.engine.join_plan import LENGTH, UNEQUAL, Planner, Relation, Table, degrees_of, query_of, serving
from bilevel.rules.matching import Match, direct_waits, predecessors
from bilevel.rules.rule import Rule, orders_of
from bilevel.symbolic.axioms import close
from bilevel.symbolic.domain import EQUALITY, Action, Atom, BadInput, Domain, Facts, Problem
from bilevel.symbolic.packed import NUMBER, Names, PackedProblem, Rows
from bilevel.symbolic.plans import NaturesMove
from bilevel.symbolic.semantics import ground, is_trivial_equality, substitute_all

COMPILED = "bilevel.native.executor"
FEW_OBJECTS = 100  # with no more of them the executor in Python is quicker
MOST_WORK = 10_000_000  # rows looked at to build a view, or to answer one question

planner_for = lru_cache(maxsize=100)(Planner)  # made anew only where the data are of another kind than any before


class RuleTooCostly(BadInput):
    """Whether a rule applies takes too long to find out."""

    def __init__(self, rule: Rule) -> None:
        text = str(rule) if len(str(rule)) <= 100 else f"{str(rule)[:60]} … -> {rule.action}"
        super().__init__(
            f"{rule.source or 'rules'}: this rule's conditions have too many combinations, more than {MOST_WORK:,}; "
            f"link its {len(rule.variables)} variables by more conditions, or make several rules of it: {text}"
        )


def _is_safe(rule: Rule, domain: Domain) -> bool:
    """Return whether the rule's conditions imply its action's precondition, as those of learned rules do."""
    schema = domain.schemas[rule.action.name]
    binding = dict(zip((p.name for p in schema.parameters), rule.action.arguments, strict=True))
    required, forbidden = (substitute_all(a, binding) for a in (schema.precondition, schema.negative_precondition))
    absent = rule.absent | rule.goal_condition  # an open goal is an absent fact
    absent |= {Atom(EQUALITY, terms) for one, other in rule.inequalities for terms in ((one, other), (other, one))}
    return forbidden <= absent and all(a in rule.state_condition or is_trivial_equality(a) for a in required)


def effects_of(domain: Domain, action: Action, move: NaturesMove | None = None) -> tuple[Facts, Facts]:
    """Return which facts an action adds and deletes, given what nature does where there is a choice."""
    schema = domain.schemas[action.name]
    binding = dict(zip([p.name for p in schema.parameters], action.arguments, strict=True))
    outcome = schema.outcomes[move.outcome if move else 0]
    if move:
        binding |= move.binding
    added = substitute_all(outcome.add, binding)
    return added, substitute_all(outcome.delete, binding) - added


class Waiting:
    """Which goals wait for open ones; at first all goals are achieved."""

    def __init__(self, waits: Mapping[Atom, set[Atom]]) -> None:
        self._followers: dict[Atom, list[Atom]] = {}
        for goal in waits:
            for other in predecessors(waits, goal):
                self._followers.setdefault(other, []).append(goal)
        self._awaited = Counter[Atom]()  # how many open goals each waits for

    def update(self, came: Iterable[Atom], went: Iterable[Atom]) -> tuple[list[Atom], list[Atom]]:
        """Return which goals begin and which cease to wait now that facts came and went, as facts about them."""
        changes = Counter(goal for fact in went for goal in self._followers.get(fact, ()))
        changes.subtract(goal for fact in came for goal in self._followers.get(fact, ()))
        begin, cease = list[Atom](), list[Atom]()
        for goal, change in changes.items():
            before = self._awaited[goal]
            self._awaited[goal] += change
            if bool(before) != bool(before + change):
                (cease if before else begin).append(Atom(f"waiting {goal.predicate}", goal.terms))
        return begin, cease


class RuleEngine:
    """The facts and goals that the rules ask about, and an executor that keeps the rules' views of them.

    The types of the problem's objects matter where a variable's type does not follow from the facts it occurs in. With
    `commit` the goal fact that the last rule served is served until it holds or no rule serves it.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        domain: Domain,
        problem: Problem | PackedProblem,
        *,
        commit: bool = False,
    ) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: rule.priority))  # stable: ties keep the given order
        self.domain, self._commit = domain, commit
        self._closures, self._orders = sorted(closures_in(rules, domain)), orders_of(rules)
        self._paths = sorted({path.predicate for path in map(path_of, rules) if path})
        self._safe = [_is_safe(rule, domain) for rule in self.rules]
        self._queries = [(place, query_of(rule, domain)) for place, rule in enumerate(self.rules)]
        if commit:  # the rules again, for instances that serve the goal at hand
            goals = [sorted(rule.goal_condition) for rule in self.rules]
            self._queries += [(place, serving(query, goal)) for place, query in self._queries for goal in goals[place]]
        self._required = self._required_relations()
        self._kinds = [(name, name.removeprefix("type ")) for name in self._required if name.startswith("type ")]
        self._derivers: list[Closure | Waiting] = []
        self._objects = dict[str, str]()
        self._stops = False  # whether runs have to stop at each step
        self._differences: set[Atom] | None = None  # to how things stood when that was last to be kept in mind
        is_plain = not (self._closures or self._orders or self._paths or domain.axioms)
        if isinstance(problem, PackedProblem) and is_plain and find(COMPILED):
            self._begin(find(COMPILED).Executor(commit, MOST_WORK, problem.names), self._tables_of(problem))
        else:
            self._few = FEW_OBJECTS if isinstance(problem, Problem) else -1
            whole = problem.unpacked if isinstance(problem, PackedProblem) else problem
            self._start(whole.state, whole.goal, whole.all_objects(domain))

    def _required_relations(self) -> dict[Relation, int]:
        """Return the relations that rules ask about, and that unsafe rules' actions need, with their arities."""
        arities = {Relation(name): 2 for name in self._closures}
        for _, (_, literals) in self._queries:
            arities |= {each.relation: len(each.terms) for each in literals if each.relation is not UNEQUAL}
        unsafe = (r.action.name for r, safe in zip(self.rules, self._safe, strict=True) if not safe)
        for schema in (*map(self.domain.schemas.__getitem__, unsafe), *self.domain.axioms):
            needed = schema.precondition | schema.negative_precondition
            arities |= {Relation(atom.predicate): len(atom.terms) for atom in needed if atom.predicate != EQUALITY}
        return arities

    def _start(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Begin with a state, a goal and objects."""
        self._state, self._goal, self._objects = state, goal, dict(objects)
        closures = [Closure(name) for name in self._closures]
        self._derivers = [*closures]
        facts: list[Iterable[Atom]] = [closure.update(state, ())[0] for closure in closures]
        if self._orders:
            waiting = Waiting(direct_waits(self._orders, self.domain, goal, state, objects))
            facts.append(waiting.update((), goal - state)[0])
            self._derivers.append(waiting)
        tables = {path: path_rows(links_of(path, state)) for path in self._paths}
        facts += [self._types_of(objects), (Atom(f"goal {name}", terms) for name, terms in goal)]
        for name, terms in chain(state, *facts):
            tables.setdefault(name, []).append(terms)
        executor: Any = Executor(self._commit, MOST_WORK)
        if len(objects) > self._few and find(COMPILED):
            names = {name for table in tables.values() for row in table for name in row}
            executor = find(COMPILED).Executor(self._commit, MOST_WORK, Names.of(sorted(names.union(objects))))
        self._begin(executor, tables)
        self._stops = bool(self._derivers or self.domain.axioms)

    def _begin(self, executor: Any, tables: Mapping[str, Table]) -> None:
        """Hand over the rows of all relations that matter, and what can be said of rules before joins are planned."""
        self.executor = executor
        self._arities = dict(self._required)
        for name in {name.removeprefix("goal ") for name in (*self._required, *tables) if name.startswith("goal ")}:
            arity = predicate_of(name, self.domain).arity
            self._arities |= {Relation(name): arity, Relation(f"goal {name}"): arity}
        outcomes = [outcome for rule in self.rules for outcome in self.domain.schemas[rule.action.name].outcomes]
        changing = {atom.predicate for outcome in outcomes for atom in outcome.add | outcome.delete}
        changing |= self.domain.derived
        degrees = []
        for name, arity in sorted(self._arities.items(), key=lambda each: (each[0].startswith("goal "), each)):
            rows, wanted = tables.get(name, ()), tables.get(f"goal {name}", ())  # which will be among the facts
            executor.add_relation(name, arity, rows)
            degrees.append((name, degrees_of([rows, wanted], arity)))
            if name.startswith(("served ", "waiting ")) or name.endswith(MARK):
                changing.add(name)
        queries = tuple(query for _, query in self._queries)
        self._planner = planner_for(queries, frozenset(changing), tuple(degrees))
        for number in range(len(queries)):
            self._add_rule(number)

    def _add_rule(self, number: int) -> None:
        """Hand over what can be said of a rule before its joins are planned; its terms are places among the outputs."""
        place, query = self._queries[number]
        rule = self.rules[place]

        def placed(terms: Iterable[str]) -> list[int | str]:
            return [query.outputs.index(term) if term in query.outputs else term for term in terms]

        def effects(atoms: Facts) -> list[tuple[Relation, list[int | str]]]:
            return [(Relation(name), placed(terms)) for name, terms in sorted(atoms) if name in self._arities]

        needs = sorted({literal.relation for literal in query.literals if literal.enumerable})
        goals = sorted(rule.goal_condition)[:1] if self._commit else []
        served = [(Relation(name), Relation(f"served {name}"), placed(terms)) for name, terms in goals]
        is_certain = self._safe[place] and self.domain.schemas[rule.action.name].is_deterministic
        done = [tuple(map(effects, effects_of(self.domain, rule.action)))] if is_certain else []
        self.executor.add_rule(place, needs, served, placed(rule.action.arguments), done)

    def _tables_of(self, problem: PackedProblem) -> dict[str, Table]:
        """Return the rows of a problem that is numbers already, those of the types among them."""
        tables: dict[str, Table] = {**problem.state}
        tables |= {f"goal {name}": rows for name, rows in problem.goal.items() if rows.size}
        for name, kind in self._kinds:
            wanted = [self.domain.is_subtype(own, kind) for own in problem.type_names]
            found = array(NUMBER, compress(range(len(problem.types)), map(wanted.__getitem__, problem.types)))
            tables[name] = Rows(len(found), found)
        return tables

    def _types_of(self, objects: Mapping[str, str]) -> set[Atom]:
        """Return what rules ask about the types of objects, as facts."""
        kinds, is_subtype = self._kinds, self.domain.is_subtype
        return {Atom(name, (each,)) for name, kind in kinds for each, own in objects.items() if is_subtype(own, kind)}

    # Asking

    def _ask(self, question: Callable[..., Any], *given: Any) -> Any:
        """Ask the executor, and plan the rules that must be planned for the answer."""
        try:
            while (answer := question(*given)) == ExecutorStatus.PLAN:
                number = self.executor.unplanned
                self.executor.plan_rule(number, *self._planner.plan(number))
        except OverflowError:
            raise RuleTooCostly(self.rules[self.executor.chosen]) from None
        return answer

    def choose(self) -> Match | None:
        """Return the rule that fires, with its outputs alone; `None` if no rule applies."""
        if self._ask(self.executor.choose) != ExecutorStatus.FOUND:
            return None
        return self._match(self.executor.chosen, self.executor.found)

    def matches(self) -> Iterator[Match]:
        """Yield all instances, with their outputs alone, in the order in which they fire."""
        for place in range(len(self.rules)):
            self._ask(self.executor.every, place)
            has_path = self._queries[place][1].outputs[:1] == (LENGTH,)
            first: dict[tuple[str, ...], tuple[str, ...]] = {}
            for values in self.executor.instances:  # those with the shorter path come first
                first.setdefault(values[has_path:], values)
            yield from (self._match(place, values) for values in first.values())

    def _match(self, place: int, values: Sequence[str]) -> Match:
        return Match(self.rules[place], dict(zip(self._queries[place][1].outputs, values, strict=True)))

    # Following

    def follow(self, state: Facts, goal: Facts | None = None, objects: Mapping[str, str] | None = None) -> None:
        """Bring the engine up to date; where only facts and objects differ from before, these alone are handed on."""
        has_new_objects = objects is not None and objects != self._objects
        has_new_goal = goal is not None and goal is not self._goal and goal != self._goal
        has_new_links = self._paths and any(fact.predicate + PATH in self._paths for fact in state ^ self._state)
        if has_new_goal or has_new_links or (has_new_objects and self._orders):
            self._start(state, self._goal if goal is None else goal, self._objects if objects is None else objects)
            return
        self._derive(*self._ask(self.executor.set, state - self._state, self._state - state))
        self._state = state
        if objects is not None and has_new_objects:
            before, after = self._types_of(self._objects), self._types_of(objects)
            self._ask(self.executor.set, after - before, before - after)
            self._objects = dict(objects)

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make new objects known, with their types."""
        self._ask(self.executor.set, self._types_of(objects), ())
        self._objects |= objects

    def _derive(self, came: Iterable[Atom], went: Iterable[Atom]) -> None:
        """Change what follows from facts that came and went."""
        if self._differences is not None:
            self._differences.symmetric_difference_update((*came, *went))
        for deriver in self._derivers:
            self._ask(self.executor.set, *deriver.update(came, went))

    # Acting

    def run(self, bound: int) -> int:
        """Choose and act until so many actions are done, or the executor cannot go on by itself; return its status."""
        while (status := self._ask(self.executor.run, bound, self._stops)) == ExecutorStatus.CHANGED:
            self._derive(*self._with_derived(*self.executor.changes))
        return int(status)

    def _with_derived(self, came: Iterable[Atom], went: Iterable[Atom]) -> tuple[Iterable[Atom], Iterable[Atom]]:
        """Return changes of facts with those of derived facts, which are handed on to the executor."""
        if not self.domain.axioms:
            return came, went
        before, self._state = self._state, close(self._state.difference(went).union(came), self.domain, self._objects)
        self._ask(self.executor.set, self._state - before.union(came), before - self._state.union(went))
        return self._state - before, before - self._state

    @property
    def action(self) -> Action:
        """The action at which a run stopped, to be carried out from elsewhere."""
        return Action(self.rules[self.executor.chosen].action.name, self.executor.arguments)

    def is_applicable(self) -> bool:
        """Return whether that action can be carried out."""
        if self._safe[self.executor.chosen]:
            return True
        action, holds = ground(self.domain.schemas[self.action.name], self.action.arguments), self.executor.has
        if action is None or not all(map(holds, action.condition.positive)):
            return False
        return not any(holds(fact) for fact in action.condition.negative if fact.predicate != EQUALITY)

    def apply(self, added: Facts, deleted: Facts) -> None:
        """Carry out that action, which has these effects."""
        self._derive(*self._with_derived(*self._ask(self.executor.apply, added, deleted)))

    def mark(self) -> None:
        """Keep in mind how things stand: facts that rules ask about, and the goal that is being served."""
        self._stops, self._differences, self._served_then = True, set[Atom](), self.executor.served

    @property
    def is_back(self) -> bool:
        """Whether things stand as they did then."""
        return not self._differences and self.executor.served == self._served_then

    def actions(self) -> Sequence[Action]:
        """Return what was done in runs."""
        done: Sequence[Action] = self.executor.actions(self.domain, [rule.action.name for rule in self.rules])
        return done
