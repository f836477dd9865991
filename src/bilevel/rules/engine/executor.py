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
from typing import Any, NamedTuple

from bilevel.rules.engine.lowering import DIFFERENT, LIST, PRESENT, Places, Reading, Step

MOST_WORK = 10_000_000  # rows looked at to build a view, or to answer one question

Row = tuple[str, ...]
Values = list[str]
Visit = Callable[[Values], Any]
Read = Callable[[Values], Row | None]
Effect = tuple[int, Sequence[int | str]]
Changes = list[tuple[int, Row]]


class ExecutorStatus:
    """What an executor says: done, or why it stopped. To go on, it may need the plan of the rule it has `chosen`."""

    DONE, NO_RULE, FOUND, PLAN, CHANGED = range(5)


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


def filled(terms: Sequence[int | str]) -> Callable[[Row], Row]:
    """Return a function from some values to a row of them, given their places, and constants by name."""
    if all(isinstance(term, int) for term in terms):
        return picker([term for term in terms if isinstance(term, int)])
    return lambda values: tuple([term if isinstance(term, str) else values[term] for term in terms])


class IndexedRows:
    """Rows, indexes of them, and what is to be done before and after one comes or goes."""

    def __init__(self, facts: IndexedRows | None = None) -> None:
        self.rows = set[Row]()
        self.goals: IndexedRows | None = None  # those of the predicate whose facts these are
        self.facts = facts  # of the predicate whose open goals these are
        self.wanted: set[Row] = set()  # of goals: all, of which `rows` are the open ones
        self.before_coming: list[Callable[[Row], None]] = []
        self.after_coming: list[Callable[[Row], None]] = []
        self.before_going: list[Callable[[Row], None]] = []
        self.after_going: list[Callable[[Row], None]] = []
        self._indexes: dict[tuple[int, ...], tuple[Callable[[Row], Row], dict[Row, set[Row]]]] = {}
        if facts is not None:
            facts.goals = self

    def index(self, columns: tuple[int, ...]) -> dict[Row, set[Row]]:
        """Return the rows by their values in some columns."""
        if columns not in self._indexes:
            key, index = self._indexes[columns] = picker(columns), {}
            for row in self.rows:
                index.setdefault(key(row), set()).add(row)
        return self._indexes[columns][1]

    def add(self, row: Row) -> None:
        """Add a row that is not there."""
        for change in self.before_coming:
            change(row)
        self.rows.add(row)
        for key, index in self._indexes.values():
            index.setdefault(key(row), set()).add(row)
        for change in self.after_coming:
            change(row)

    def remove(self, row: Row) -> None:
        """Remove a row that is there."""
        for change in self.before_going:
            change(row)
        self.rows.remove(row)
        for key, index in self._indexes.values():
            found = index[key(row)]
            found.remove(row)
            if not found:
                del index[key(row)]
        for change in self.after_going:
            change(row)


class IndexedView:
    """For each key, which is a row, the sorted values that satisfy the view's literals."""

    def __init__(self, key_slots: Sequence[int], value_slot: int) -> None:
        self.keys = IndexedRows()
        self.values: dict[Row, list[str]] = {}
        self._key, self._slot = picker(key_slots), value_slot

    def put(self, values: Values) -> None:
        """Put an entry into the view; whoever asks about the key hears of the first."""
        key, value = self._key(values), values[self._slot]
        found = self.values.get(key)
        if found is None:
            self.values[key] = [value]
            self.keys.add(key)
        else:
            place = bisect_left(found, value)
            if place == len(found) or found[place] != value:
                found.insert(place, value)

    def take(self, values: Values) -> None:
        """Take an entry out if it is there; whoever asks about the key hears of the last."""
        key, value = self._key(values), values[self._slot]
        found = self.values.get(key, ())
        place = bisect_left(found, value)
        if place < len(found) and found[place] == value:
            if len(found) == 1:
                self.keys.remove(key)
                del self.values[key]
            else:
                del self.values[key][place]


@dataclass
class LoweredRule:
    """How to find a rule's instances, and what its action does."""

    needs: list[IndexedRows]  # if one of them is empty the rule does not apply
    goals: list[tuple[IndexedRows, IndexedRows]]  # of each goal condition: open goals, and the goal that is served
    goal: Callable[[Row], Row]  # from an instance to the goal fact it serves
    arguments: Callable[[Row], Row]
    operation: int  # what the action does, if that is certain
    first: Callable[[], Row | None] | None = None  # once it is planned
    every: Callable[[], list[Row]] = list
    servings: list[Callable[[], Row | None]] = field(default_factory=list)  # for each goal condition


class Served(NamedTuple):
    """The goal fact that is being served: the relation of such goals, that of those that are served, and the row."""

    goals: IndexedRows
    served: IndexedRows
    row: Row


class Executor:
    """Relations, views and rules by number, all that is known of the state, and what has been done."""

    def __init__(self, commits: bool) -> None:
        self._commits = commits
        self.relations: list[IndexedRows] = []
        self.rules: list[LoweredRule] = []
        self.chosen = -1  # the rule found last, or to blame for too much work
        self.found: Row = ()
        self.arguments: Row = ()
        self.instances: list[Row] = []
        self.done: list[tuple[int, Row]] = []
        self.came: Changes = []  # rows of watched relations, since they were last taken
        self.went: Changes = []
        self._committed: Served | None = None
        self._goals: list[IndexedRows] = []
        self._views: dict[int, IndexedView] = {}
        self._operations: list[tuple[list[tuple[int, Any]], list[tuple[int, Any]]]] = []
        self._work = 0

    # Building

    def add_relation(self, arity: int, is_goal: bool = False, facts: int = -1) -> int:
        """Add a relation, return its number. Goals are open while they are not among some facts, if these are given."""
        self.relations.append(IndexedRows(self.relations[facts] if facts >= 0 else None))
        if is_goal:
            self._goals.append(self.relations[-1])
        return len(self.relations) - 1

    def load(self, relation: int, terms: Sequence[str], count: int) -> None:
        """Add rows, the terms of one after another; goals after facts."""
        found = self.relations[relation]
        found.rows.update(rows_of(terms, count))
        if found.facts is not None:
            found.wanted = set(found.rows)
            found.rows -= found.facts.rows

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
            relation, bind = self.relations[number], binder(binds, same)
            gains = self._change(bind, self._join(others, view.put), list(values))
            # The view knows what it can lose, so nothing is checked then.
            losses = self._change(bind, self._join([s for s in others if s[0] == LIST], view.take), list(values))
            (relation.after_coming if positive else relation.after_going).append(gains)
            (relation.before_going if positive else relation.before_coming).append(losses)
        self.relations.append(view.keys)
        self._views[len(self.relations) - 1] = view
        return len(self.relations) - 1

    def _change(self, bind: Callable[[Row, Values], bool], join: Visit, slots: Values) -> Callable[[Row], None]:
        return lambda row: join(slots) if bind(row, slots) else None

    def _join(self, steps: Sequence[Step], then: Visit) -> Visit:
        """Return a function that calls another for all values that the steps allow, and returns what it last did."""
        for step in reversed(steps):
            then = (self._listing if step[0] == LIST else self._checked)(step, then)
        return then

    def _checked(self, step: Step, then: Visit) -> Visit:
        """Return the function preceded by a test; where it fails nothing is returned."""
        kind, number, _, slots, _, _ = step
        if kind == DIFFERENT:
            one, other = slots
            return lambda values: then(values) if values[one] != values[other] else None
        rows, key = self.relations[number].rows, picker(slots)
        if kind == PRESENT:
            return lambda values: then(values) if key(values) in rows else None
        return lambda values: then(values) if key(values) not in rows else None

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

    def add_operation(self, adds: Iterable[Effect], deletes: Iterable[Effect]) -> int:
        """Add what an action does: for each effect the relation and its terms, which are places or constants."""
        added, deleted = ([(number, filled(terms)) for number, terms in effects] for effects in (adds, deletes))
        self._operations.append((added, deleted))
        return len(self._operations) - 1

    def add_rule(
        self,
        needs: Iterable[int],
        goals: Iterable[tuple[int, int]],
        goal: Sequence[int | str],
        arguments: Sequence[int | str],
        operation: int,
    ) -> None:
        """Add what can be said of a rule before its joins are planned."""
        pairs = [(self.relations[open_goals], self.relations[served]) for open_goals, served in goals]
        needed = [self.relations[number] for number in needs]
        self.rules.append(LoweredRule(needed, pairs, filled(goal), filled(arguments), operation))

    def plan_rule(
        self, number: int, serving: bool, values: Sequence[str], guards: Sequence[Step], reading: Reading
    ) -> None:
        """Say how the instances of a rule are found, or those that serve a goal with its next goal condition."""
        rule, slots, found = self.rules[number], list(values), set[Row]()
        pick = picker(reading[2])
        first = self._join(guards, self._reader(reading, pick))
        if serving:
            rule.servings.append(lambda: first(slots))
            return
        note = self._join(guards, self._reader(reading, lambda values: found.add(pick(values))))

        def every() -> list[Row]:
            found.clear()
            note(slots)
            return sorted(found)

        rule.first, rule.every = lambda: first(slots), every

    def _reader(self, reading: Reading, then: Visit) -> Visit:
        """Return a function for the first result that another, which may have none, has for values of the variables."""
        at_first, reads, _ = reading
        for number, key, slot, compares, filters in reversed(reads):
            then = self._reading(self._views[number].values, picker(key), slot, compares, self._join(filters, then))
        return self._join(at_first, then)

    def _reading(
        self, view: dict[Row, list[str]], key: Callable[[Values], Row], slot: int, compares: bool, then: Read
    ) -> Read:
        """Return a function that tries the values of a variable; all of them if a later variable decides ties first."""
        rule = self.chosen

        def read(values: Values) -> Row | None:
            best: Row | None = None
            for value in view.get(key(values), ()):
                values[slot] = value
                found = then(values)
                if found is not None:
                    if not compares:
                        return found
                    if best is None or found < best:
                        best = found
                self._count(1, rule)
            return best

        return read

    # Asking

    def _can_apply(self, rule: LoweredRule) -> bool:
        for relation in rule.needs:  # noqa: SIM110 — a generator takes longer than most loops
            if not relation.rows:
                return False
        return True

    def choose(self) -> int:
        """Find the first instance of the first rule that has one; stay with the last goal while some rule serves it."""
        self._work = 0
        for number, rule in enumerate(self.rules):
            if self._can_apply(rule):
                if rule.first is None:
                    self.chosen = number
                    return ExecutorStatus.PLAN
                found = rule.first()
                if found is not None:
                    self.chosen, self.found = number, found
                    return self._stay(rule) if self._commits else ExecutorStatus.FOUND
        return ExecutorStatus.NO_RULE

    def _stay(self, rule: LoweredRule) -> int:
        """Replace what was chosen by what serves the goal that the last choice served, if it serves another one."""
        committed = self._committed
        goal = Served(*rule.goals[0], rule.goal(self.found)) if rule.goals else None
        if committed is not None and committed != goal:
            status = self._serve(committed) if committed.row in committed.goals.rows else ExecutorStatus.NO_RULE
            if status != ExecutorStatus.NO_RULE:
                return status
            committed.served.remove(committed.row)
        if goal is not None and committed != goal:
            goal.served.add(goal.row)
        self._committed = goal
        return ExecutorStatus.FOUND

    def _serve(self, committed: Served) -> int:
        """Find the first instance of the first rule that has one that serves the goal fact, if there is any."""
        for number, rule in enumerate(self.rules):
            if any(goals is committed.goals for goals, _ in rule.goals) and self._can_apply(rule):
                if len(rule.servings) < len(rule.goals):
                    self.chosen = number
                    return ExecutorStatus.PLAN
                pairs = zip(rule.goals, rule.servings, strict=True)
                tried = [serving() for (goals, _), serving in pairs if goals is committed.goals]
                found = [instance for instance in tried if instance is not None]
                if found:
                    self.chosen, self.found = number, min(found)
                    return ExecutorStatus.FOUND
        return ExecutorStatus.NO_RULE

    def every(self, number: int) -> int:
        """Find all instances of a rule, in order: they are the `instances`."""
        self._work = 0
        self.chosen, rule = number, self.rules[number]
        if self._can_apply(rule) and rule.first is None:
            return ExecutorStatus.PLAN
        self.instances = rule.every() if self._can_apply(rule) else []
        return ExecutorStatus.FOUND

    def open_goals(self) -> int:
        """Return how many goals do not hold."""
        return sum(len(goal.rows) for goal in self._goals)

    def has(self, relation: int, row: Row) -> bool:
        """Return whether a row is there."""
        return row in self.relations[relation].rows

    # Acting

    def set(self, number: int, row: Row, present: bool) -> None:
        """Make a fact hold or cease to; a goal that it is opens or closes."""
        relation = self.relations[number]
        if (row in relation.rows) != present:
            (relation.add if present else relation.remove)(row)
            goals = relation.goals
            if goals is not None and row in goals.wanted:
                (goals.remove if present else goals.add)(row)

    def apply(self, operation: int, arguments: Row) -> None:
        """Carry out the chosen action: additions first, so that fewer views fall empty in between."""
        adds, deletes = self._operations[operation]
        added = [(number, terms(arguments)) for number, terms in adds]
        for number, row in added:
            self.set(number, row, True)
        for number, terms in deletes:
            row = terms(arguments)
            if (number, row) not in added:
                self.set(number, row, False)
        self.done.append((self.chosen, self.arguments))

    def run(self, bound: int) -> int:
        """Choose and act until there are `bound` actions, or something is to be done or decided elsewhere."""
        while len(self.done) < bound:
            status = self.choose() if self.open_goals() else ExecutorStatus.NO_RULE
            if status != ExecutorStatus.FOUND:
                return status
            rule = self.rules[self.chosen]
            self.arguments = rule.arguments(self.found)
            if rule.operation < 0:
                return ExecutorStatus.FOUND
            self.apply(rule.operation, self.arguments)
            if self.came or self.went:
                return ExecutorStatus.CHANGED
        return ExecutorStatus.DONE

    @property
    def steps(self) -> int:
        """How many actions have been done."""
        return len(self.done)

    def take_changes(self) -> tuple[Changes, Changes]:
        """Return the rows that came to watched relations and those that went, since they were last taken."""
        changes = self.came, self.went
        self.came, self.went = [], []
        return changes


def rows_of(terms: Sequence[str], count: int) -> Iterable[Row]:
    """Return the rows whose terms stand one after another."""
    arity = len(terms) // count if count else 0
    return zip(*(terms[column::arity] for column in range(arity)), strict=True) if arity else [()] * count
