"""The executor in Python: it follows plans as data (see `lowering`), as the compiled one does, which has the same face.

Relations are sets of rows. A view is a relation of keys, each with the sorted values that it has. What is to be done
when a row comes or goes, and how instances are read off the views, is made of small functions of the values that the
*slots*, of variables and constants, have so far.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from bilevel.rules.engine.lowering import DIFFERENT, LIST, PRESENT, Places, Serving, Step

MOST_WORK = 10_000_000  # rows looked at to build a view, or to answer one question

Row = tuple[str, ...]
Values = list[str]
Visit = Callable[[Values], None]
Test = Callable[[Values], bool]
Read = Callable[[Values], Row | None]
Predicate = tuple[int, int]  # the relations of a predicate's facts and goals, -1 where no rule asks about them
Effect = tuple[int, int, Sequence[int | str]]
Changes = list[tuple[int, Row]]


class ExecutorStatus:
    """What an executor says: done, or why it stopped. To go on, it may need the plan of the rule it has `chosen`."""

    DONE, NO_RULE, FOUND, SOLVED, PLAN, CHANGED = range(6)


def picker(places: Sequence[int]) -> Callable[[Sequence[str]], Row]:
    """Return a function that picks the values at these places, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    if places:
        (place,) = places
        return lambda values: (values[place],)
    return lambda values: ()


def binder(binds: Places, same: Places) -> Callable[[Row, Values], bool]:
    """Return a function that puts the columns of a row into slots; it returns whether others agree with theirs."""

    def bind(row: Row, values: Values) -> bool:
        for column, slot in binds:
            values[slot] = row[column]
        for column, slot in same:  # noqa: SIM110 — a generator takes longer than most loops
            if values[slot] != row[column]:
                return False
        return True

    return bind


def checked(tests: Sequence[Test], then: Callable[[Values], Any]) -> Callable[[Values], Any]:
    """Return the function preceded by tests; where one of them fails it returns nothing."""
    for test in reversed(tests):
        then = _checked(test, then)
    return then


def _checked(test: Test, then: Callable[[Values], Any]) -> Callable[[Values], Any]:
    return lambda values: then(values) if test(values) else None


class IndexedRows:
    """Rows, indexes of them, and what is to be done before and after one comes or goes."""

    def __init__(self) -> None:
        self.rows: Any = set[Row]()
        self.wanted: set[Row] = set()  # of goals: all, of which `rows` are the open ones
        self.before_coming: list[Callable[[Row], None]] = []
        self.after_coming: list[Callable[[Row], None]] = []
        self.before_going: list[Callable[[Row], None]] = []
        self.after_going: list[Callable[[Row], None]] = []
        self._indexes: dict[tuple[int, ...], tuple[Callable[[Row], Row], dict[Row, set[Row]]]] = {}

    def index(self, columns: tuple[int, ...]) -> dict[Row, set[Row]]:
        """Return the rows by their values in some columns."""
        if columns not in self._indexes:
            self._indexes[columns] = picker(columns), {}
            for row in self.rows:
                self._link(row)
        return self._indexes[columns][1]

    def _link(self, row: Row) -> None:
        for key, index in self._indexes.values():
            index.setdefault(key(row), set()).add(row)

    def _unlink(self, row: Row) -> None:
        for key, index in self._indexes.values():
            found = index[key(row)]
            found.discard(row)
            if not found:
                del index[key(row)]

    def add(self, row: Row) -> None:
        """Add a row that is not there."""
        for change in self.before_coming:
            change(row)
        self.rows.add(row)
        if self._indexes:
            self._link(row)
        for change in self.after_coming:
            change(row)

    def remove(self, row: Row) -> None:
        """Remove a row that is there."""
        for change in self.before_going:
            change(row)
        self.rows.remove(row)
        if self._indexes:
            self._unlink(row)
        for change in self.after_going:
            change(row)


class IndexedView(IndexedRows):
    """For each key, which is a row, the values that satisfy the view's literals."""

    def __init__(self, key_slots: Sequence[int], value_slot: int) -> None:
        super().__init__()
        self.rows = dict[Row, list[str]]()
        self._key, self._slot = picker(key_slots), value_slot

    def put(self, values: Values) -> None:
        """Put an entry into the view; whoever asks about the key hears of the first."""
        key, value = self._key(values), values[self._slot]
        found = self.rows.get(key)
        if found is None:
            self.rows[key] = [value]
            self._link(key)
            for change in self.after_coming:
                change(key)
        else:
            place = bisect_left(found, value)
            if place == len(found) or found[place] != value:
                found.insert(place, value)

    def take(self, values: Values) -> None:
        """Take an entry out if it is there; whoever asks about the key hears of the last."""
        key, value = self._key(values), values[self._slot]
        found = self.rows.get(key)
        if found is None:
            return
        place = bisect_left(found, value)
        if place < len(found) and found[place] == value:
            if len(found) == 1:
                for change in self.before_going:
                    change(key)
                self._unlink(key)
                del self.rows[key]
            else:
                del found[place]


@dataclass
class LoweredRule:
    """How to find a rule's instances, and what its action does."""

    needs: list[IndexedRows]  # if one of them is empty the rule does not apply
    ground: Test  # the conditions without variables
    served: list[IndexedRows]  # the relation of each goal condition
    goal: Callable[[Row], Row]  # from an instance to the goal fact it serves
    arguments: Callable[[Row], Row]
    operation: int  # what the action does, if that is certain
    is_planned: bool = False
    first: Callable[[], Row | None] = lambda: None
    every: Callable[[], list[Row]] = list
    servings: list[Callable[[Row], Row | None]] = field(default_factory=list)


class Executor:
    """Relations, views and rules by number, all that is known of the state, and what has been done."""

    def __init__(self, commits: bool) -> None:
        self.commits = commits
        self.relations: list[IndexedRows] = []
        self.rules: list[LoweredRule] = []
        self.chosen = -1  # the rule found last, or to blame for too much work
        self.found: Row = ()
        self.arguments: Row = ()
        self.instances: list[Row] = []
        self.done: list[tuple[int, Row]] = []
        self.came: Changes = []  # rows of watched relations, since they were last taken
        self.went: Changes = []
        self.committed: tuple[IndexedRows, Row] | None = None
        self._goals: list[IndexedRows] = []
        self._operations: list[tuple[list[tuple[Predicate, Any]], list[tuple[Predicate, Any]]]] = []
        self._goals_end_it = True  # all rules have a goal condition
        self._work = 0

    # Building

    def add_relation(self, arity: int, *, is_goal: bool = False) -> int:
        """Add a relation, of facts or of goals, and return its number."""
        self.relations.append(IndexedRows())
        if is_goal:
            self._goals.append(self.relations[-1])
        return len(self.relations) - 1

    def load(self, relation: int, terms: Sequence[str], count: int) -> None:
        """Add rows, the terms of one after another."""
        found = self.relations[relation]
        found.rows.update(rows_of(terms, count))
        found.wanted = set(found.rows)

    def mark_achieved(self, goal: int, terms: Sequence[str], count: int) -> None:
        """Take out the goals that are among these facts; they stay wanted."""
        self.relations[goal].rows.difference_update(rows_of(terms, count))

    def watch(self, number: int) -> None:
        """From now on, note what changes in a relation."""
        relation = self.relations[number]
        relation.after_coming.append(lambda row: self.came.append((number, row)))
        relation.after_going.append(lambda row: self.went.append((number, row)))

    def add_view(
        self,
        values: Sequence[str],
        steps: Sequence[Step],
        key_slots: Sequence[int],
        value_slot: int,
        changes: Iterable[tuple[int, bool, Sequence[Step], Places, Places]],
    ) -> int:
        """Build a view, and keep it up to date with the relations it is made of; return the number of its keys."""
        view = IndexedView(key_slots, value_slot)
        self._work = 0
        self._join(steps, view.put)(list(values))
        for number, positive, others, binds, same in changes:
            relation = self.relations[number]
            gains = self._change(values, others, binds, same, view.put, True)
            losses = self._change(values, others, binds, same, view.take, False)
            (relation.after_coming if positive else relation.after_going).append(gains)
            (relation.before_going if positive else relation.before_coming).append(losses)
        self.relations.append(view)
        return len(self.relations) - 1

    def _change(
        self, values: Sequence[str], steps: Sequence[Step], binds: Places, same: Places, then: Visit, checks: bool
    ) -> Callable[[Row], None]:
        bind, join, slots = binder(binds, same), self._join(steps, then, checks), list(values)
        if same or len(binds) != 1:
            return lambda row: join(slots) if bind(row, slots) else None
        ((column, slot),) = binds

        def change(row: Row) -> None:  # the most frequent case, without a detour
            slots[slot] = row[column]
            join(slots)

        return change

    def _join(self, steps: Sequence[Step], then: Visit, checks: bool = True) -> Visit:
        """Return a function that calls another for all values that the steps allow; the view knows what it can lose."""
        for step in reversed(steps):
            if step[0] == LIST:
                then = self._listing(step, then)
            elif checks and step[0] == PRESENT:
                then = self._present(step, then)
            elif checks:
                then = _checked(self._test(step), then)
        return then

    def _present(self, step: Step, then: Visit) -> Visit:
        """Return a function that calls another if a row is there: a test without a detour, as most steps are tests."""
        rows, key = self.relations[step[1]].rows, picker(step[3])
        return lambda values: then(values) if key(values) in rows else None

    def _listing(self, step: Step, then: Visit) -> Visit:
        _, number, columns, slots, binds, same = step
        relation, key, bind, rule = self.relations[number], picker(slots), binder(binds, same), self.chosen
        index: Any = relation.index(tuple(columns)) if columns else {(): relation.rows}

        def visit(values: Values) -> None:
            rows = index.get(key(values), ())
            self._count(len(rows), rule)
            for row in rows:
                if bind(row, values):
                    then(values)

        return visit

    def _count(self, rows: int, rule: int) -> None:
        self._work += rows
        if self._work > MOST_WORK:
            self.chosen = rule
            raise OverflowError

    def _test(self, step: Step) -> Test:
        kind, number, _, slots, _, _ = step
        if kind == DIFFERENT:
            one, other = slots
            return lambda values: values[one] != values[other]
        rows, key = self.relations[number].rows, picker(slots)
        if kind == PRESENT:
            return lambda values: key(values) in rows
        return lambda values: key(values) not in rows

    def _tests(self, steps: Iterable[Step]) -> list[Test]:
        return [self._test(step) for step in steps]

    def add_operation(self, adds: Iterable[Effect], deletes: Iterable[Effect]) -> int:
        """Add what an action does: for each effect the relations and its terms, which are places or constants."""
        effects = [[((state, goal), filled(terms)) for state, goal, terms in found] for found in (adds, deletes)]
        self._operations.append((effects[0], effects[1]))
        return len(self._operations) - 1

    def add_rule(
        self,
        needs: Iterable[int],
        ground_values: Sequence[str],
        ground_steps: Iterable[Step],
        served: Sequence[int],
        goal: Sequence[int | str],
        arguments: Sequence[int | str],
        operation: int,
    ) -> None:
        """Add what can be said of a rule before its joins are planned."""
        tests, values = self._tests(ground_steps), list(ground_values)
        self.rules.append(
            LoweredRule(
                [self.relations[number] for number in needs],
                lambda _: all(test(values) for test in tests),
                [self.relations[number] for number in served],
                filled(goal),
                filled(arguments),
                operation,
            )
        )
        self._goals_end_it = self._goals_end_it and bool(served)

    def plan_rule(self, number: int, values: Sequence[str], guards: Iterable[Step], reading: Any) -> None:
        """Say how the instances of a rule are found."""
        rule, slots, tests = self.rules[number], list(values), self._tests(guards)
        found = set[Row]()
        first, every = checked(tests, self._first(reading)), checked(tests, self._every(reading, found))

        def list_every() -> list[Row]:
            found.clear()
            every(slots)
            return sorted(found)

        rule.first, rule.every = lambda: first(slots), list_every
        rule.is_planned = True

    def plan_serving(self, number: int, servings: Iterable[Serving]) -> None:
        """Say how the instances of a rule are found that serve a goal fact with each goal condition."""
        self.rules[number].servings = [self._serving(serving) for serving in servings]

    def _first(self, reading: Any) -> Read:
        """Return a function for the first instance that the values so far allow."""
        at_first, reads, outputs = reading
        read: Read = picker(outputs)
        for number, key, slot, compares, filters in reversed(reads):
            read = self._reading(self.relations[number].rows, picker(key), slot, compares, self._tests(filters), read)
        return checked(self._tests(at_first), read)

    def _reading(
        self, view: dict[Row, list[str]], key: Any, slot: int, compares: bool, tests: Sequence[Test], then: Read
    ) -> Read:
        """Return a function that tries the values of a variable; all of them if a later variable decides ties first."""
        rule = self.chosen
        then = checked(tests, then)

        def read(values: Values) -> Row | None:
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

    def _every(self, reading: Any, found: set[Row]) -> Visit:
        """Return a function that notes all instances that the values so far allow."""
        at_first, reads, outputs = reading
        pick = picker(outputs)
        visit: Visit = lambda values: found.add(pick(values))  # noqa: E731
        for number, key, slot, _, filters in reversed(reads):
            visit = self._noting(self.relations[number].rows, picker(key), slot, self._tests(filters), visit)
        return checked(self._tests(at_first), visit)

    def _noting(self, view: dict[Row, list[str]], key: Any, slot: int, tests: Sequence[Test], then: Visit) -> Visit:
        rule, then = self.chosen, checked(tests, then)

        def visit(values: Values) -> None:
            for value in view.get(key(values), ()):
                values[slot] = value
                self._count(1, rule)
                then(values)

        return visit

    def _serving(self, serving: Serving) -> Callable[[Row], Row | None]:
        """Return a function from a goal fact to the first instance that serves it."""
        binds, same, guards, values, steps, rest = serving
        slots, bind, read = list(values), binder(binds, same), self._first(rest)
        best: Row | None = None

        def visit(values: Values) -> None:
            nonlocal best
            found = read(values)
            if found is not None and (best is None or found < best):
                best = found

        join = checked(self._tests(guards), self._join(steps, visit))

        def serve(goal: Row) -> Row | None:
            nonlocal best
            best = None
            if bind(goal, slots):
                join(slots)
            return best

        return serve

    # Asking

    def _can_apply(self, rule: LoweredRule) -> bool:
        for relation in rule.needs:
            if not relation.rows:
                return False
        return rule.ground([])

    def choose(self) -> int:
        """Find the first instance of the first rule that has one; stay with the last goal while some rule serves it."""
        self._work = 0
        for number, rule in enumerate(self.rules):
            if self._can_apply(rule):
                if not rule.is_planned:
                    self.chosen = number
                    return ExecutorStatus.PLAN
                found = rule.first()
                if found is not None:
                    self.chosen, self.found = number, found
                    return self._stay() if self.commits else ExecutorStatus.FOUND
        return ExecutorStatus.NO_RULE

    def _stay(self) -> int:
        """Replace what was chosen by what serves the goal that the last choice served, if it serves another one."""
        chosen, found, rule = self.chosen, self.found, self.rules[self.chosen]
        goal = (rule.served[0], rule.goal(found)) if rule.served else None
        if self.committed is not None and goal != self.committed:
            status = self._serve(*self.committed, self.rules)
            if status != ExecutorStatus.NO_RULE:
                return status
        self.chosen, self.found, self.committed = chosen, found, goal
        return ExecutorStatus.FOUND

    def serve(self, goal: int, terms: Row, rule: int = -1) -> int:
        """Find the first instance, of the first rule that has one or of one rule, that serves a goal fact."""
        self._work = 0
        return self._serve(self.relations[goal], terms, self.rules if rule < 0 else self.rules[rule : rule + 1], rule)

    def _serve(self, goal: IndexedRows, terms: Row, rules: Sequence[LoweredRule], start: int = 0) -> int:
        for number, rule in enumerate(rules, max(start, 0)):
            if goal in rule.served and self._can_apply(rule):
                self.chosen = number
                if not rule.is_planned or not rule.servings:
                    return ExecutorStatus.PLAN
                serving = (
                    serve(terms) for served, serve in zip(rule.served, rule.servings, strict=True) if served is goal
                )
                found = [instance for instance in serving if instance is not None]
                if found:
                    self.found = min(found)
                    return ExecutorStatus.FOUND
        return ExecutorStatus.NO_RULE

    def every(self, number: int) -> int:
        """Find all instances of a rule, in order: they are the `instances`."""
        self._work = 0
        self.chosen, rule = number, self.rules[number]
        if not self._can_apply(rule):
            self.instances = []
            return ExecutorStatus.NO_RULE
        if not rule.is_planned:
            return ExecutorStatus.PLAN
        self.instances = rule.every()
        return ExecutorStatus.FOUND

    def open_goals(self) -> int:
        """Return how many goals do not hold."""
        return sum(len(goal.rows) for goal in self._goals)

    def has(self, relation: int, row: Row) -> bool:
        """Return whether a row is there."""
        return row in self.relations[relation].rows

    # Acting

    def set(self, state: int, goal: int, row: Row, present: bool) -> None:
        """Make a fact hold or cease to."""
        if state >= 0:
            relation = self.relations[state]
            if (row in relation.rows) == present:
                return
            (relation.add if present else relation.remove)(row)
        if goal >= 0:
            relation = self.relations[goal]
            if row in relation.wanted and (row in relation.rows) == present:
                (relation.remove if present else relation.add)(row)

    def want(self, goal: int, row: Row, wanted: bool, holds: bool) -> None:
        """Make a fact a goal, which may hold already, or no goal any more."""
        relation = self.relations[goal]
        (relation.wanted.add if wanted else relation.wanted.discard)(row)
        if (row in relation.rows) != (wanted and not holds):
            (relation.remove if row in relation.rows else relation.add)(row)

    def apply(self, operation: int, arguments: Row) -> None:
        """Carry out an action: additions first, so that fewer views fall empty in between."""
        adds, deletes = self._operations[operation]
        added = [(predicate, terms(arguments)) for predicate, terms in adds]
        for (state, goal), row in added:
            self.set(state, goal, row, True)
        for predicate, terms in deletes:
            row = terms(arguments)
            if (predicate, row) not in added:
                self.set(*predicate, row, False)

    def run(self, bound: int) -> int:
        """Choose and act until there are `bound` actions, or something is to be done or decided elsewhere."""
        while len(self.done) < bound:
            if not self._goals_end_it and not self.open_goals():
                return ExecutorStatus.SOLVED
            status = self.choose()
            if status == ExecutorStatus.NO_RULE:
                return ExecutorStatus.NO_RULE if self.open_goals() else ExecutorStatus.SOLVED
            if status != ExecutorStatus.FOUND:
                return status
            rule = self.rules[self.chosen]
            self.arguments = rule.arguments(self.found)
            if rule.operation < 0:
                return ExecutorStatus.FOUND
            self.apply(rule.operation, self.arguments)
            self.note_done()
            if self.came or self.went:
                return ExecutorStatus.CHANGED
        return ExecutorStatus.DONE

    def take_changes(self) -> tuple[Changes, Changes]:
        """Return the rows that came to watched relations and those that went, since they were last taken."""
        changes = self.came, self.went
        self.came, self.went = [], []
        return changes

    def note_done(self) -> None:
        """Note that the chosen action was done."""
        self.done.append((self.chosen, self.arguments))

    @property
    def steps(self) -> int:
        """How many actions have been done."""
        return len(self.done)


def rows_of(terms: Sequence[str], count: int) -> Iterable[Row]:
    """Return the rows whose terms stand one after another."""
    arity = len(terms) // count if count else 0
    return zip(*(terms[column::arity] for column in range(arity)), strict=True) if arity else [()] * count


def filled(terms: Sequence[int | str]) -> Callable[[Row], Row]:
    """Return a function from some values to a row of them, given their places, and constants by name."""
    if all(isinstance(term, int) for term in terms):
        return picker([term for term in terms if isinstance(term, int)])
    return lambda values: tuple([term if isinstance(term, str) else values[term] for term in terms])
