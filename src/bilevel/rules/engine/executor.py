"""The executor in Python. It follows plans as data (see `join_plan`), as the compiled one does with the same face.

Relations are sets of rows. A view is a relation of keys, each with the sorted values that it has. What is to be done
when a row comes or goes, and how instances are read off the views, is made of small functions of the values that the
*slots*, of variables and constants, have so far.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from bilevel.rules.engine.join_plan import DIFFERENT, LIST, PRESENT, Places, Read, Relation, RulePlan, Step, ViewPlan
from bilevel.symbolic.domain import Action, Atom, Domain

Row = tuple[str, ...]
Slots = list[Any]
Visit = Callable[[Slots], Any]
Dependent = tuple[Callable[[Row], None], Callable[[Row], None]]
Terms = Sequence[int | str]  # places among given values, and constants
Effects = tuple[list[tuple[Relation, Terms]], list[tuple[Relation, Terms]]]  # what comes, and what goes
Served = tuple[Relation, Relation, Terms]  # a goal among facts, and among those that are served


class ExecutorStatus:
    """What an executor says: done, or why it stopped. To go on, it may need the plan of a rule: the one `unplanned`."""

    DONE, NO_RULE, FOUND, PLAN, CHANGED = range(5)


def picker(terms: Terms) -> Callable[[Sequence[Any]], Row]:
    """Return a function from some values to a row of those at these places, and of constants."""
    if not terms:
        return lambda values: ()
    if not all(isinstance(term, int) for term in terms):
        return lambda values: tuple([term if isinstance(term, str) else values[term] for term in terms])
    places: Any = terms
    return itemgetter(*places) if len(places) > 1 else lambda values: (values[places[0]],)


def follower(binds: Places, same: Places, then: Visit) -> Callable[[Slots, Row], None]:
    """Return a function that puts the columns of a row into slots and goes on, if others agree with theirs."""

    def follow(values: Slots, row: Row) -> None:
        for column, slot in binds:
            values[slot] = row[column]
        for column, slot in same:
            if values[slot] != row[column]:
                return
        then(values)

    return follow


class IndexedRows:
    """Rows, indexes of them, and the views that depend on them: on what is there, or on what is absent."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = set(rows)
        self.goals: IndexedRows | None = None  # that are open, of the predicate whose facts these are
        self.wanted: set[Row] = set()  # and those that are not
        self.when_present: list[Dependent] = []  # what these rows bring to views, and take from them
        self.when_absent: list[Dependent] = []
        self._indexes: dict[tuple[int, ...], tuple[Callable[[Row], Row], dict[Row, set[Row]]]] = {}

    def index(self, columns: tuple[int, ...]) -> dict[Row, set[Row]]:
        """Return the rows by their values in some columns."""
        if columns not in self._indexes:
            key, index = self._indexes[columns] = picker(columns), defaultdict(set)
            for row in self.rows:
                index[key(row)].add(row)
        return self._indexes[columns][1]

    def change(self, row: Row, present: bool) -> None:
        """Add a row that is not there, or remove one that is."""
        losing, gaining = (self.when_absent, self.when_present) if present else (self.when_present, self.when_absent)
        for _, take in losing:
            take(row)
        (self.rows.add if present else self.rows.remove)(row)
        for key, index in self._indexes.values():
            rows = index[key(row)]
            (rows.add if present else rows.remove)(row)
        for put, _ in gaining:
            put(row)


class IndexedView:
    """For each key, which is a row, the sorted values that satisfy the view's literals."""

    def __init__(self, key_slots: Sequence[int], value_slot: int) -> None:
        self.keys = IndexedRows()
        self.values: dict[Row, list[str]] = defaultdict(list)
        self._key, self._slot = picker(key_slots), value_slot

    def change(self, present: bool, values: Slots) -> None:
        """Put an entry in or take one out; whoever asks about its key hears of the first and of the last."""
        key, value = self._key(values), values[self._slot]
        found = self.values[key]
        place = bisect_left(found, value)
        if (place < len(found) and found[place] == value) == present:
            return
        if present:
            found.insert(place, value)
        else:
            del found[place]
        if len(found) == (1 if present else 0):
            self.keys.change(key, present)


@dataclass
class ExecutorRule:
    """How to find the instances of a rule, and what its action does; `place` is that of the first one like it."""

    number: int
    place: int
    needs: list[set[Row]]  # if one of them is empty the rule does not apply
    goal: Sequence[tuple[Relation, Relation, Callable[[Row], Row]]]  # among facts, among what is served, its terms
    arguments: Callable[[Row], Row]
    effects: list[tuple[Any, Any]]  # what the action adds and deletes for an instance, if that is certain
    first: Callable[[], Row | None] | None = None  # once it is planned
    every: Callable[[], list[Row]] = list


class Executor:
    """Relations and views by name, rules by number, all that is known of the state, and what has been done."""

    def __init__(self, commits: bool, most_work: int) -> None:
        self._commits, self._most_work = commits, most_work
        self._relations: dict[str, IndexedRows] = {}
        self._views: dict[Relation, IndexedView] = {}
        self._rules: list[ExecutorRule] = []
        self._at_first: list[ExecutorRule] = []  # those that come for the first time
        self._serving: list[ExecutorRule] = []  # and those that come again
        self._done: list[tuple[int, Row]] = []
        self._work = 0
        self.open_goals = 0
        self.served: list[Atom] = []  # the goal fact that is being served, and that it is
        self.unplanned = -1  # the number of the rule whose plan is needed
        self.chosen = -1  # the place of the rule found last, or to blame for too much work
        self.found: Row = ()
        self.arguments: Row = ()
        self.instances: list[Row] = []
        self.changes: tuple[list[Atom], list[Atom]] = [], []  # what the last action of a run has changed

    # Building

    def add_relation(self, name: Relation, arity: int, rows: Iterable[Row]) -> None:
        """Add a relation with its rows; one of goals comes after that of the facts that achieve them."""
        relation = self._relations[name] = IndexedRows(rows)
        if name.startswith("goal "):
            facts = self._relations[name.removeprefix("goal ")]
            facts.goals, facts.wanted = relation, set(relation.rows)
            relation.rows -= facts.rows
            self.open_goals += len(relation.rows)

    def add_rule(
        self, place: int, needs: Iterable[str], goal: Iterable[Served], arguments: Terms, effects: Iterable[Effects]
    ) -> None:
        """Add what can be said of a rule before its joins are planned.

        After all rules, some may come again, with the place of the first time: for instances that serve a goal.
        """
        served = [(facts, served, picker(terms)) for facts, served, terms in goal]
        needed = [self._relations[name].rows for name in needs]
        done = [([(r, picker(t)) for r, t in adds], [(r, picker(t)) for r, t in deletes]) for adds, deletes in effects]
        rule = ExecutorRule(len(self._rules), place, needed, served, picker(arguments), done)
        self._rules.append(rule)
        (self._at_first if rule.number == place else self._serving).append(rule)

    def plan_rule(self, number: int, *parts: Any) -> None:
        """Say how the instances of a rule are found, by the parts of a `RulePlan`."""
        plan = RulePlan(*parts)
        rule, slots, found, pick = self._rules[number], list(plan.values), set[Row](), picker(plan.outputs)
        self.chosen = rule.place
        for view in plan.views:
            if view.relation not in self._relations:
                self._add_view(view)
        first = self._join(plan.guards, self._reader(plan.reads, pick))
        note = self._join(plan.guards, self._reader(plan.reads, lambda values: found.add(pick(values))))

        def every() -> list[Row]:
            found.clear()
            note(slots)
            return sorted(found)

        rule.first, rule.every = lambda: first(slots), every

    def _add_view(self, plan: ViewPlan) -> None:
        """Build a view, and keep it up to date with the relations it is made of."""
        view = self._views[plan.relation] = IndexedView(plan.key, plan.value)
        self._work = 0
        put, take = partial(view.change, True), partial(view.change, False)
        self._join(plan.steps, put)(list(plan.values))
        for name, positive, others, binds, same in plan.changes:
            relation, slots = self._relations[name], list(plan.values)
            come, go = (partial(follower(binds, same, self._join(others, then)), slots) for then in (put, take))
            (relation.when_present if positive else relation.when_absent).append((come, go))
        self._relations[plan.relation] = view.keys

    def _join(self, steps: Sequence[Step], then: Visit) -> Visit:
        """Return a function that calls another for all values that the steps allow, and returns what it last did."""
        for step in reversed(steps):
            then = (self._listing if step[0] == LIST else self._checked)(step, then)
        return then

    def _checked(self, step: Step, then: Visit) -> Visit:
        """Return the function preceded by a test; where it fails nothing is returned."""
        kind, name, _, slots, _, _ = step
        if kind == DIFFERENT:
            one, other = slots
            return lambda values: then(values) if values[one] != values[other] else None
        rows, key = self._relations[name].rows, picker(slots)
        if kind == PRESENT:
            return lambda values: then(values) if key(values) in rows else None
        return lambda values: then(values) if key(values) not in rows else None

    def _listing(self, step: Step, then: Visit) -> Visit:
        _, name, columns, slots, binds, same = step
        relation, key, rule, follow = self._relations[name], picker(slots), self.chosen, follower(binds, same, then)
        index: Any = relation.index(tuple(columns)) if columns else {(): relation.rows}

        def visit(values: Slots) -> None:
            rows = index.get(key(values), ())
            self._count(len(rows), rule)
            for row in rows:
                follow(values, row)

        return visit

    def _count(self, rows: int, rule: int) -> None:
        self._work += rows
        if self._work > self._most_work:
            self.chosen = rule
            raise OverflowError

    def _reader(self, reads: Sequence[Read], then: Visit) -> Visit:
        """Return a function for the first result that another, which may have none, has for values of the variables."""
        for read in reversed(reads):
            then = self._reading(read, then)
        return then

    def _reading(self, plan: Read, then: Visit) -> Visit:
        """Return a function that tries the values of a variable; all of them if a later variable decides ties first."""
        name, key_slots, slot, compares, filters = plan
        view, key, rule, then = self._views[name].values, picker(key_slots), self.chosen, self._join(filters, then)

        def read(values: Slots) -> Row | None:
            best: Row | None = None
            for value in view.get(key(values), ()):
                values[slot] = value
                found: Row | None = then(values)
                if found is not None:
                    if not compares:
                        return found
                    if best is None or found < best:
                        best = found
                self._count(1, rule)
            return best

        return read

    # Asking

    def choose(self) -> int:
        """Find the first instance of the first rule that has one; stay with the last goal while some rule serves it."""
        self._work = 0
        status = self._find(self._at_first)
        return self._stay() if status == ExecutorStatus.FOUND and self._commits else status

    def _find(self, rules: Iterable[ExecutorRule]) -> int:
        """Find the first instance of the first rule that has one, if it comes several times the first of them all."""
        first: Row | None = None
        for rule in rules:
            if first is not None and rule.place != self.chosen:
                break
            if all(rule.needs):
                if rule.first is None:
                    self.unplanned = rule.number
                    return ExecutorStatus.PLAN
                found = rule.first()
                if found is not None and (first is None or found < first):
                    self.chosen, self.found, first = rule.place, found, found
        return ExecutorStatus.NO_RULE if first is None else ExecutorStatus.FOUND

    def _stay(self) -> int:
        """Replace what was chosen by what serves the goal that the last choice served, if it serves another one."""
        chosen, found, before = self.chosen, self.found, self.served
        goal = [
            Atom(name, terms(found)) for facts, served, terms in self._rules[chosen].goal for name in (facts, served)
        ]
        if before and before != goal:
            status = ExecutorStatus.NO_RULE if self.has(before[0]) else self._find(self._serving)
            if status != ExecutorStatus.NO_RULE:
                return status
            self.chosen, self.found = chosen, found
        if before != goal:
            self.set(goal[1:], before[1:])
            self.served = goal
        return ExecutorStatus.FOUND

    def every(self, number: int) -> int:
        """Find all instances of a rule, in order: they are the `instances`."""
        self._work = 0
        self.unplanned = number
        rule = self._rules[number]
        if rule.first is None and all(rule.needs):
            return ExecutorStatus.PLAN
        self.instances = rule.every()
        return ExecutorStatus.FOUND

    def has(self, fact: Atom) -> bool:
        """Return whether a fact holds, of a predicate whose relation there is."""
        return fact.terms in self._relations[fact.predicate].rows

    # Acting

    def set(self, came: Iterable[Atom], went: Iterable[Atom]) -> tuple[list[Atom], list[Atom]]:
        """Make facts hold and others cease to, as far as they are in relations; return what has changed."""
        return self._change(came, True), self._change(went, False)  # in this order fewer views fall empty in between

    def _change(self, facts: Iterable[Atom], present: bool) -> list[Atom]:
        changed = []
        for fact in facts:
            relation, row = self._relations.get(fact[0]), fact[1]
            if relation is not None and (row in relation.rows) != present:
                relation.change(row, present)
                if relation.goals is not None and row in relation.wanted:
                    relation.goals.change(row, not present)
                    self.open_goals += -1 if present else 1
                changed.append(fact)
        return changed

    def apply(self, came: Iterable[Atom], went: Iterable[Atom]) -> tuple[list[Atom], list[Atom]]:
        """Note that the chosen action is carried out, with these effects; return what has changed."""
        self._done.append((self.chosen, self.arguments))
        return self.set(came, went)

    def run(self, bound: int, stops: bool) -> int:
        """Choose and act until there are `bound` actions, or one is to be carried out elsewhere; or for one step."""
        while len(self._done) < bound:
            status = self.choose() if self.open_goals else ExecutorStatus.NO_RULE
            if status != ExecutorStatus.FOUND:
                return status
            rule = self._rules[self.chosen]
            self.arguments = rule.arguments(self.found)
            if not rule.effects:
                return ExecutorStatus.FOUND
            added, deleted = ([Atom(r, terms(self.found)) for r, terms in each] for each in rule.effects[0])
            self.changes = self.apply(added, [fact for fact in deleted if fact not in added])
            if stops:
                return ExecutorStatus.CHANGED
        return ExecutorStatus.DONE

    @property
    def steps(self) -> int:
        """How many actions have been done."""
        return len(self._done)

    def actions(self, domain: Domain, schemas: Sequence[str]) -> Sequence[Action]:
        """Return the actions done, given the schemas of the rules at each place."""
        return [Action(schemas[place], arguments) for place, arguments in self._done]
