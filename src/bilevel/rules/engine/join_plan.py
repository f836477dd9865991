"""How to keep finding the instances of a rule that apply, while facts come and go.

A rule is a conjunctive query. Its variables are eliminated one at a time. Eliminating `?l` from

    clear(?x) & clear(?l) & goal at(?x, ?l)

gathers the literals that mention it into a *view*, "for each ?x, the ?l with goal at(?x, ?l) and clear(?l)", and puts
in their place one literal, "the view has something for ?x". When all variables are gone the rule applies if the last
views have something in them. A fact that comes or goes changes a few entries of the views that mention it, and is
passed on only where an entry's set becomes empty or stops being so: no product of relations is ever stored.

How much work an update makes depends on the order of elimination, and the best order depends on the data: a robot is
at one place, and ten thousand blocks may be there with it. So the order is chosen by the expected number of entries
that an update touches, estimated from samples of the state and the goal. The choice affects speed only: which
instance fires is fixed by `matching`.

Executors follow plans of integers. A *slot* holds the value of a variable or a constant while a join runs. A step is
(kind, relation, columns to list by, slots of the terms that have values, and for the other terms pairs of column and
slot: where values go, and with what they must agree). Lists may have any length, tuples have their parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

from bilevel.rules.derived import PATH, path_of
from bilevel.rules.matching import checked_types, free_variables, output_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, is_variable
from bilevel.symbolic.packed import Rows

SAMPLE = 2000  # rows by which relations are judged
MOST_PERMUTED = 6  # columns of a key, of which more stay in their order
LENGTH = "?>"  # the variable that has the length of a rule's path

PRESENT, ABSENT, DIFFERENT, LIST = range(4)
Places = list[tuple[int, int]]


class Relation(str):
    """The name of a relation: a predicate for its facts, or with a word before it.

    `goal at` has all goals, `served at` the goal that is being served, `waiting at` the goals that wait for others,
    `type box` has objects and `view 3` the keys of a view.
    """

    __slots__ = ()


UNEQUAL = Relation("!=")


class Literal(NamedTuple):
    """A condition of a rule, or that a view has something for a key."""

    relation: Relation
    terms: tuple[str, ...]
    positive: bool = True

    @property
    def variables(self) -> frozenset[str]:
        """The variables among its terms."""
        return _variables_of(self.terms)

    @property
    def enumerable(self) -> bool:
        """Whether its instances can be listed: not those of an absence or an inequality."""
        return self.positive and self.relation is not UNEQUAL

    def bound_positions(self, bound: frozenset[str]) -> tuple[int, ...]:
        """Return the places of the terms that are known once these variables are."""
        return tuple(i for i, term in enumerate(self.terms) if term in bound or not is_variable(term))


@cache
def _variables_of(terms: tuple[str, ...]) -> frozenset[str]:
    return frozenset(term for term in terms if is_variable(term))


class Query(NamedTuple):
    """What a rule asks: for values of some variables, those that decide ties first, that meet all literals."""

    outputs: tuple[str, ...]
    literals: tuple[Literal, ...]


def query_of(rule: Rule, domain: Domain) -> Query:
    """Return what a rule asks; of several paths it asks for a short one first."""
    path = path_of(rule)
    outputs = [LENGTH, *output_variables(rule)] if path else output_variables(rule)
    return Query(tuple(outputs), tuple(dict.fromkeys(_literals(rule, domain))))


def _literals(rule: Rule, domain: Domain) -> Iterator[Literal]:
    """Yield the rule's conditions, its checks of types and the inequalities of its terms."""
    waiting = {order.later.predicate for order in rule.orders}
    for name, terms in sorted(rule.state_condition):
        yield Literal(Relation(name), (*terms, LENGTH) if name.endswith(PATH) else terms)
    for name, terms in sorted(rule.goal_condition):
        yield Literal(Relation(f"goal {name}"), terms)
        if name in waiting:
            yield Literal(Relation(f"waiting {name}"), terms, False)
    yield from (Literal(Relation(atom.predicate), atom.terms, False) for atom in sorted(rule.absent))
    asked = checked_types(rule, domain) | {variable: rule.types[variable] for variable in free_variables(rule)}
    for variable, kind in sorted(asked.items()):
        yield Literal(Relation(f"type {kind}"), (variable,))
    yield from (Literal(UNEQUAL, pair) for pair in sorted(rule.inequalities))


def serving(query: Query, goal: Atom) -> Query:
    """Return what a rule asks when its goal condition is to be the goal that is being served."""
    return query._replace(literals=(*query.literals, Literal(Relation(f"served {goal.predicate}"), goal.terms)))


Table = Rows | Sequence[tuple[str, ...]]  # rows of a relation
Degrees = tuple[tuple[Relation, tuple[int, ...]], ...]  # of each relation


def degrees_of(tables: Sequence[Table], arity: int) -> tuple[int, ...]:
    """Return how many rows there are and, by column, how many agree with one of them in it, all in powers of four."""
    sample = list[Sequence[object]]()
    sizes = [table.size if isinstance(table, Rows) else len(table) for table in tables]
    step = max(1, sum(sizes) // SAMPLE)
    for table, size in zip(tables, sizes, strict=True):
        if isinstance(table, Rows):
            sample += [table.terms[place : place + arity] for place in range(0, size * arity, step * arity or 1)]
        else:
            sample += table[::step]
    degrees, pairs = [sum(sizes)], len(sample) * (len(sample) - 1)
    for column in zip(*sample, strict=True) if pairs else ():
        agreeing = sum(count * (count - 1) for count in Counter(column).values())
        degrees.append(1 + (sum(sizes) - 1) * agreeing // pairs)
    return tuple(1 << (number.bit_length() & ~1) for number in degrees)


# What executors are handed

Step = tuple[int, Relation, list[int], list[int], Places, Places]
Change = tuple[Relation, bool, list[Step], Places, Places]  # what follows for a view when rows of a relation change
Read = tuple[Relation, list[int], int, bool, list[Step]]  # a view, its key, the slot of its value, whether to compare
Values = list[int | str]  # what the slots hold at first: constants


class ViewPlan(NamedTuple):
    """How to build a view and to keep it up to date: its key is in some slots, its value in one."""

    relation: Relation
    values: Values
    steps: list[Step]
    key: list[int]
    value: int
    changes: list[Change]


class RulePlan(NamedTuple):
    """How a rule's instances are found.

    The views are those that it needs. The guards, which have no variables or need something in a view, are checked
    first. Then variables are read off their views; of one to compare all values must be looked at, as an output that
    is read later decides ties earlier. What ties variables of different views, absences and inequalities, is checked
    once they have values, as a view of them all would be a product. In the end the outputs are in their slots.
    """

    views: list[ViewPlan]
    values: Values
    guards: list[Step]
    reads: list[Read]
    outputs: list[int]


class View(NamedTuple):
    """For each value of `key`, the values of `variable` that satisfy the literals.

    Rules share views: a rule's own copy has the same relation, and the rule's variables in the key and the literals.
    """

    relation: Relation
    key: tuple[str, ...]
    variable: str
    literals: tuple[Literal, ...]


class Planner:
    """Chooses views for queries, shares equal ones, and estimates what they cost.

    `changing` are the relations whose rows come and go.
    """

    def __init__(self, queries: tuple[Query, ...], changing: frozenset[str], degrees: Degrees) -> None:
        self._queries, self._changing, self._degrees = queries, changing, dict(degrees)
        self._views: dict[Relation, View] = {}
        self._names: dict[Shape, Relation] = {}
        self.plan = cache(self._plan)
        self._view_plan = cache(self._plan_view)
        self._expected = cache(lambda literals, bound, needed: self._join_order(literals, bound, needed)[1])
        self._view_cost = cache(self._find_cost)
        self._changes = cache(self._change_rate)

    def _plan(self, number: int) -> RulePlan:
        """Return how the instances of what a query asks for are found."""
        outputs, literals = self._queries[number][0], list(self._queries[number][1])
        guards = [literal for literal in literals if not literal.variables]
        filters = [x for x in literals if not x.enumerable and len(x.variables) > 1]
        literals = [literal for literal in literals if literal.variables and literal not in filters]
        uses: dict[str, View] = {}
        inner = sorted({v for literal in literals for v in literal.variables} - set(outputs))
        for left in (inner, list(outputs)):
            while left:
                cheapest = min(left, key=lambda variable: self._elimination_cost(variable, literals, outputs))
                left.remove(cheapest)
                uses[cheapest], literals = self._eliminate(cheapest, literals, filters)
        guards += literals  # what is left are views without a key
        checked = {literal for use in uses.values() for literal in use.literals}
        filters = [literal for literal in filters if literal not in checked]
        slots = _slots([*guards, *filters], uses)
        reads, order, bound = list[Read](), _reading_order(outputs, filters, uses), set[str]()
        ranks = [outputs.index(variable) if variable in outputs else len(outputs) for variable in order]
        for place, variable in enumerate(order):
            bound.add(variable)
            ready = [self._check(x, slots) for x in filters if variable in x.variables and x.variables <= bound]
            key, compares = [slots[v] for v in uses[variable].key], min(ranks[place:]) < ranks[place]
            reads.append((uses[variable].relation, key, slots[variable], compares, ready))
        views = [self._view_plan(use.relation) for use in uses.values()]
        checks = [self._check(guard, slots) for guard in guards]
        return RulePlan(views, _values(slots), checks, reads, [slots[v] for v in outputs])

    # Which views there are

    def _elimination_cost(
        self, variable: str, literals: Sequence[Literal], outputs: Sequence[str]
    ) -> tuple[int, float, str]:
        """Return what to eliminate by: narrow views first, as a view with a long key holds combinations.

        If outputs that decide ties later are read before the variable, all their values have to be compared.
        """
        parts, key = _gather(variable, literals, [])
        cost = self._view_cost(parts, frozenset({*key, variable}))
        if variable in outputs:
            for later in set(outputs[outputs.index(variable) :]).intersection(key):
                about = tuple(literal for literal in literals if later in literal.terms)
                cost += self._expected(about, frozenset(), frozenset({later}))
        return len(key), cost, variable

    def _find_cost(self, parts: tuple[Literal, ...], columns: frozenset[str]) -> float:
        """Return the entries that change per action in a view with these columns, for all its parts."""
        changing = ((part, self._changes(part.relation)) for part in parts)
        return sum(times * self._expected(parts, part.variables, columns) for part, times in changing if times)

    def _change_rate(self, relation: Relation) -> float:
        """Return how often per action an instance comes or goes; a view's key does so with its first and last value."""
        view = self._views.get(relation)
        if view is None:
            return float(relation in self._changing)
        columns = frozenset({*view.key, view.variable})
        values = self._expected(view.literals, frozenset(view.key), columns)
        return self._view_cost(view.literals, columns) / max(values, 1.0)

    def _eliminate(
        self, variable: str, literals: Sequence[Literal], filters: Sequence[Literal]
    ) -> tuple[View, list[Literal]]:
        """Return the view that has a variable's values, new or of the same shape, and the literals that are left."""
        parts, key = _gather(variable, literals, filters)
        orders = permutations(key) if len(key) <= MOST_PERMUTED else (key,)
        shapes = {_shape(order, variable, parts): order for order in orders}
        shape = min(shapes)
        name = self._names.setdefault(shape, Relation(f"view {len(self._names)}"))
        view = View(name, shapes[shape], variable, parts)
        self._views.setdefault(name, view)
        rest = [literal for literal in literals if variable not in literal.terms]
        return view, [*rest, Literal(view.relation, view.key)]

    # How literals are joined

    def _join_order(
        self, literals: Sequence[Literal], bound: frozenset[str], needed: frozenset[str]
    ) -> tuple[list[tuple[Literal, tuple[int, ...]]], float]:
        """Return how to list values for the needed variables, from the cheapest literal on, and how many to expect.

        A literal comes with the places of the terms that have values by then; it is checked when all of them do.
        """
        steps: list[tuple[Literal, tuple[int, ...]]] = []
        expected = 1.0
        left = list(literals)
        while True:
            for literal in [x for x in left if x.variables <= bound]:
                steps.append((literal, tuple(range(len(literal.terms)))))
                left.remove(literal)
            if needed <= bound:
                return steps, expected
            candidates = [x for x in left if x.enumerable and x.variables & (needed - bound)]
            best = min(candidates, key=lambda x: self._degree(x, bound))
            expected *= self._degree(best, bound)
            steps.append((best, best.bound_positions(bound)))
            left.remove(best)
            bound = bound | best.variables

    def _degree(self, literal: Literal, bound: frozenset[str]) -> float:
        """Return how many instances of the literal to expect when some variables have values."""
        view = self._views.get(literal.relation)
        if view is None:
            size, *agreeing = self._degrees[literal.relation]
            return min([size, *(agreeing[place] for place in literal.bound_positions(bound) if agreeing)])
        inner = frozenset(k for k, term in zip(view.key, literal.terms, strict=True) if term in bound)
        key = frozenset(view.key)
        # The way from one key variable to another may lead through the variable that was eliminated.
        return min(self._expected(view.literals, inner, needed) for needed in (key, key | {view.variable}))

    # In integers

    def _plan_view(self, relation: Relation) -> ViewPlan:
        _, key, variable, literals = self._views[relation]
        columns = [*key, variable]
        slots = _slots(literals, columns)
        changes = list[Change]()
        for literal in literals:
            if literal.relation is not UNEQUAL:
                others = [other for other in literals if other is not literal]
                steps = self._steps(others, literal.variables, columns, slots)
                changes.append((literal.relation, literal.positive, steps, *_unified(literal, slots)))
        steps = self._steps(literals, frozenset(), columns, slots)
        return ViewPlan(relation, _values(slots), steps, [slots[v] for v in key], slots[variable], changes)

    def _steps(
        self, literals: Sequence[Literal], bound: frozenset[str], needed: Iterable[str], slots: Mapping[str, int]
    ) -> list[Step]:
        found = list[Step]()
        for literal, places in self._join_order(literals, bound, frozenset(needed))[0]:
            if len(places) == len(literal.terms):
                found.append(self._check(literal, slots))
            else:
                given = [slots[literal.terms[place]] for place in places]
                found.append((LIST, literal.relation, [*places], given, *_unified(literal, slots, places)))
        return found

    def _check(self, literal: Literal, slots: Mapping[str, int]) -> Step:
        """Return the step that tests a literal whose terms are all known."""
        kind = DIFFERENT if literal.relation is UNEQUAL else PRESENT if literal.positive else ABSENT
        return kind, literal.relation, [], [slots[term] for term in literal.terms], [], []


def _slots(literals: Iterable[Literal], variables: Iterable[str]) -> dict[str, int]:
    """Return a place for each variable, and for each other term of the literals."""
    terms = [*variables, *(term for literal in literals for term in literal.terms)]
    return {term: slot for slot, term in enumerate(dict.fromkeys(terms))}


def _values(slots: Iterable[str]) -> Values:
    return [0 if is_variable(term) else term for term in slots]


def _unified(literal: Literal, slots: Mapping[str, int], bound: Sequence[int] = ()) -> tuple[Places, Places]:
    """Return where the columns of a row go, those aside that have values, and which must agree with others."""
    binds: Places = []
    same: Places = []
    seen: set[str] = set()
    for column, term in enumerate(literal.terms):
        if column not in bound:
            (same if term in seen or not is_variable(term) else binds).append((column, slots[term]))
            seen.add(term)
    return binds, same


def _reading_order(outputs: Sequence[str], filters: Iterable[Literal], uses: Mapping[str, View]) -> list[str]:
    """Return the outputs, the variables of the filters and those that lead to them, each after those in its key."""
    wanted = [*outputs, *sorted({v for literal in filters for v in literal.variables}.difference(outputs))]
    for variable in wanted:  # grows while it is read
        wanted += [v for v in uses[variable].key if v not in wanted]
    order: list[str] = []
    while len(order) < len(wanted):
        order.append(next(v for v in wanted if v not in order and set(uses[v].key) <= set(order)))
    return order


def _gather(
    variable: str, literals: Sequence[Literal], filters: Sequence[Literal]
) -> tuple[tuple[Literal, ...], tuple[str, ...]]:
    """Return the literals of the view that eliminates a variable, and the view's key.

    Checks of types and filters join where the view has all their variables.
    """
    parts = [literal for literal in literals if variable in literal.terms]
    columns = frozenset[str]().union(*(literal.variables for literal in parts))
    parts += [x for x in literals if x.relation.startswith("type ") and x not in parts and x.variables <= columns]
    parts += [x for x in filters if variable in x.terms and x.variables <= columns]
    return tuple(parts), tuple(sorted(columns - {variable}))


Shape = tuple[tuple[Relation, tuple[str, ...], bool], ...]


def _shape(key: tuple[str, ...], variable: str, literals: Sequence[Literal]) -> Shape:
    """Return what two views must share to be one: their literals, with variables replaced by their columns."""
    columns = {name: f"?{i}" for i, name in enumerate((*key, variable))}
    return tuple(sorted((x.relation, tuple(columns.get(t, t) for t in x.terms), x.positive) for x in literals))
