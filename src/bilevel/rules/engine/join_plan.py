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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

from bilevel.rules.derived import MARK
from bilevel.rules.matching import asked_types, output_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Atom, Domain, is_variable
from bilevel.symbolic.packed import Rows
from bilevel.symbolic.semantics import is_trivial_equality, substitute_all

SAMPLE = 2000
MOST_PERMUTED = 6  # columns of a key, of which more stay in their order
BLOW_UP = 0.1  # the cost of a view that is twice as large as what it joins, in entries touched per update


# What rules ask of the data


class Relation(NamedTuple):
    """Facts of the state, goals not yet achieved, the goal fact being served, objects of a type, or a view's keys."""

    kind: str
    name: str


UNEQUAL = Relation("unequal", "!=")


class Literal(NamedTuple):
    """A condition of a rule, or that a view has something for a key."""

    relation: Relation
    terms: tuple[str, ...]
    positive: bool = True

    @property
    def variables(self) -> frozenset[str]:
        """The variables among its terms."""
        return variables_of(self.terms)

    @property
    def enumerable(self) -> bool:
        """Whether its instances can be listed: not those of an absence or an inequality."""
        return self.positive and self.relation is not UNEQUAL

    def bound_positions(self, bound: frozenset[str]) -> tuple[int, ...]:
        """Return the places of the terms that are known once these variables are."""
        return tuple(i for i, term in enumerate(self.terms) if term in bound or not is_variable(term))


@cache
def variables_of(terms: tuple[str, ...]) -> frozenset[str]:
    """Return the variables among these terms."""
    return frozenset(term for term in terms if is_variable(term))


def rule_literals(rule: Rule, domain: Domain) -> Iterator[Literal]:
    """Yield the rule's conditions, its checks of types and the inequalities of its terms."""
    yield from (Literal(Relation("state", atom.predicate), atom.terms) for atom in sorted(rule.state_condition))
    yield from (Literal(Relation("goal", atom.predicate), atom.terms) for atom in sorted(rule.goal_condition))
    yield from (Literal(Relation("state", atom.predicate), atom.terms, False) for atom in sorted(rule.absent))
    asked = sorted(asked_types(rule, domain).items())
    yield from (Literal(Relation("type", kind), (variable,)) for variable, kind in asked)
    yield from (Literal(UNEQUAL, pair) for pair in sorted(rule.inequalities))


def required_relations(rules: Sequence[Rule], domain: Domain) -> dict[Relation, int]:
    """Return the relations to keep with their arities: what rules ask about, and what unsafe rules' actions need."""
    arities: dict[Relation, int] = {}
    for rule in rules:
        schema, literals = domain.schemas[rule.action.name], rule_literals(rule, domain)
        arities |= {each.relation: len(each.terms) for each in literals if each.relation != UNEQUAL}
        if not is_safe(rule, domain):
            needed: set[Atom] = {*schema.precondition, *schema.negative_precondition}
            arities |= {Relation("state", a.predicate): len(a.terms) for a in needed if a.predicate != EQUALITY}
    return arities


def is_safe(rule: Rule, domain: Domain) -> bool:
    """Return whether the rule's conditions imply its action's precondition, as those of learned rules do."""
    schema = domain.schemas[rule.action.name]
    binding = dict(zip((p.name for p in schema.parameters), rule.action.arguments, strict=True))
    required, forbidden = (substitute_all(a, binding) for a in (schema.precondition, schema.negative_precondition))
    absent = rule.absent | rule.goal_condition  # an open goal is an absent fact
    absent |= {Atom(EQUALITY, terms) for one, other in rule.inequalities for terms in ((one, other), (other, one))}
    return forbidden <= absent and all(a in rule.state_condition or is_trivial_equality(a) for a in required)


class Statistics:
    """How many rows relations have, and how many rows agree in some columns, estimated from samples."""

    def __init__(self) -> None:
        self._sizes: dict[Relation, int] = {}
        self._samples: dict[Relation, list[Any]] = {}
        self.degree = cache(self._degree)

    def add(self, relation: Relation, arity: int, *parts: Rows) -> None:
        """Count these rows as those of a relation."""
        size = sum(rows.size for rows in parts)
        step = max(1, size // SAMPLE) * arity
        self._sizes[relation] = size
        self._samples[relation] = [
            tuple(rows.terms[place : place + arity])
            for rows in parts
            for place in range(0, rows.size * arity, step or 1)
        ]

    def _degree(self, relation: Relation, bound: tuple[int, ...]) -> float:
        """Return the expected number of rows that agree with a random row in the bound positions."""
        size, sample = self._sizes.get(relation, 0), self._samples.get(relation, ())
        if not bound:
            return float(size)
        if len(sample) < 2 or len(sample[0]) < 2:
            return 1.0
        counts = Counter(tuple(row[i] for i in bound) for row in sample)
        agreeing_pairs = sum(n * (n - 1) for n in counts.values())
        return 1.0 + (size - 1) * agreeing_pairs / (len(sample) * (len(sample) - 1))

    def magnitudes(self) -> frozenset[object]:
        """Return sizes, and degrees by each argument, in powers of eight: data that agree in these are joined alike."""

        def magnitude(number: float) -> int:
            return int(number).bit_length() // 3

        def degrees(relation: Relation) -> tuple[int, ...]:
            columns = range(len(self._samples[relation][0]) if self._samples[relation] else 0)
            return tuple(magnitude(self.degree(relation, (column,))) for column in columns)

        return frozenset((relation, magnitude(size), degrees(relation)) for relation, size in self._sizes.items())


# Views


@dataclass(frozen=True)
class View:
    """For each value of `key`, the values of `variable` that satisfy the literals.

    Rules share views: a rule's own copy has the same name, and the rule's variables in the key and the literals.
    """

    name: str
    key: tuple[str, ...]
    variable: str
    literals: tuple[Literal, ...]

    @property
    def relation(self) -> Relation:
        """The relation that the view is kept as."""
        return Relation("view", self.name)


class RulePlan(NamedTuple):
    """A rule's guards (ground literals and views without a key), its views, and how to read off an instance.

    `outputs` are the variables an instance must name, in the order that decides ties. `uses` maps each variable to its
    view. `filters` are absences and inequalities that tie variables of different views; they are checked when an
    instance is read off, as a view of all the variables would be a product. `order` is that in which variables are
    read: the outputs, and what must be read for the filters. All values of those in `compared` must be looked at, as
    an output that is read later decides ties earlier.
    """

    outputs: tuple[str, ...]
    uses: Mapping[str, View]
    guards: tuple[Literal, ...]
    filters: tuple[Literal, ...]
    order: tuple[str, ...]
    compared: frozenset[str]


class JoinStep(NamedTuple):
    """List the instances of a literal given some bound positions, or check it when all are bound."""

    literal: Literal
    bound: tuple[int, ...]


class Planner:
    """Chooses views for rules, shares equal ones, and estimates what they cost."""

    def __init__(self, rules: Sequence[Rule], domain: Domain, statistics: Statistics) -> None:
        self._rules, self.domain, self._statistics = rules, domain, statistics
        outcomes = [outcome for rule in rules for outcome in domain.schemas[rule.action.name].outcomes]
        self._changed = {atom.predicate for outcome in outcomes for atom in outcome.add | outcome.delete}
        self.views: list[View] = []
        self._names: dict[Shape, str] = {}
        self.plan = cache(self._plan)
        self._expected = cache(lambda literals, bound, needed: self.join_order(literals, bound, needed)[1])
        self._view_cost = cache(self._cost)
        self._changes = cache(self._change_rate)

    def _plan(self, place: int, served: int | None = None) -> RulePlan:
        """Return how the instances of a rule are found, or those in which one goal condition is about the goal served.

        `served` is the condition's place among the rule's sorted goal conditions.
        """
        rule = self._rules[place]
        outputs, literals = output_variables(rule), list(rule_literals(rule, self.domain))
        if served is not None:
            goal = sorted(rule.goal_condition)[served]
            literals.append(Literal(Relation("served", goal.predicate), goal.terms))
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
        unchecked = tuple(literal for literal in filters if literal not in checked)
        order = _reading_order([*outputs, *_leading_to(unchecked, uses, outputs)], uses)
        return RulePlan(tuple(outputs), uses, tuple(guards), unchecked, order, _inverted(outputs, order))

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

    def _cost(self, parts: tuple[Literal, ...], columns: frozenset[str]) -> float:
        """Return the entries of a view that an update touches, summed over the literals whose facts change.

        A view that is larger than the relations it joins costs too, even if its facts never change: whoever asks about
        it has more to look at.
        """
        rows = self._expected(parts, frozenset(), columns)
        largest = max(self._degree(part, frozenset()) for part in parts if part.enumerable)
        return self._touched(parts, columns) + BLOW_UP * max(0.0, rows / max(largest, 1.0) - 1.0)

    def _touched(self, parts: tuple[Literal, ...], columns: frozenset[str]) -> float:
        """Return the entries that change per action in a view with these columns."""
        changing = ((part, self._changes(part.relation)) for part in parts)
        return sum(times * self._expected(parts, part.variables, columns) for part, times in changing if times)

    def _change_rate(self, relation: Relation) -> float:
        """Return how often per action an instance comes or goes; a view's key does so with its first and last value."""
        if relation.kind != "view":
            changes = relation.name in self._changed or relation.name.endswith(MARK)
            return float(relation.kind == "served" or (relation.kind in ("state", "goal") and changes))
        view = self.views[int(relation.name)]
        columns = frozenset({*view.key, view.variable})
        values = self._expected(view.literals, frozenset(view.key), columns)
        return self._touched(view.literals, columns) / max(values, 1.0)

    def _eliminate(
        self, variable: str, literals: Sequence[Literal], filters: Sequence[Literal]
    ) -> tuple[View, list[Literal]]:
        """Return the view that has a variable's values, new or of the same shape, and the literals that are left."""
        parts, key = _gather(variable, literals, filters)
        orders = permutations(key) if len(key) <= MOST_PERMUTED else (key,)
        shapes = {_shape(order, variable, parts): order for order in orders}
        shape = min(shapes)
        name = self._names.setdefault(shape, str(len(self.views)))
        view = View(name, shapes[shape], variable, parts)
        if int(name) == len(self.views):
            self.views.append(view)
        rest = [literal for literal in literals if variable not in literal.terms]
        return view, [*rest, Literal(view.relation, view.key)]

    def join_order(
        self, literals: Sequence[Literal], bound: frozenset[str], needed: frozenset[str]
    ) -> tuple[list[JoinStep], float]:
        """Return how to list values for the needed variables, from the cheapest literal on, and how many to expect."""
        steps: list[JoinStep] = []
        expected = 1.0
        left = list(literals)
        while True:
            for literal in [x for x in left if x.variables <= bound]:
                steps.append(JoinStep(literal, tuple(range(len(literal.terms)))))
                left.remove(literal)
            if needed <= bound:
                return steps, expected
            candidates = [x for x in left if x.enumerable and x.variables & (needed - bound)]
            best = min(candidates, key=lambda x: self._degree(x, bound))
            expected *= max(self._degree(best, bound), 1e-3)
            steps.append(JoinStep(best, best.bound_positions(bound)))
            left.remove(best)
            bound = bound | best.variables

    def _degree(self, literal: Literal, bound: frozenset[str]) -> float:
        """Return how many instances of the literal to expect when some variables have values."""
        if literal.relation.kind == "served":
            return 1.0
        if literal.relation.kind != "view":
            return self._statistics.degree(literal.relation, literal.bound_positions(bound))
        view = self.views[int(literal.relation.name)]
        inner = frozenset(k for k, term in zip(view.key, literal.terms, strict=True) if term in bound)
        key = frozenset(view.key)
        # The way from one key variable to another may lead through the variable that was eliminated.
        return min(self._expected(view.literals, inner, needed) for needed in (key, key | {view.variable}))


def _reading_order(read: Sequence[str], uses: Mapping[str, View]) -> tuple[str, ...]:
    """Return the variables, each after those that its view's key needs, otherwise in the order given."""
    order: list[str] = []
    while len(order) < len(read):
        order.append(next(v for v in read if v not in order and set(uses[v].key) <= set(order)))
    return tuple(order)


def _inverted(outputs: Sequence[str], order: Sequence[str]) -> frozenset[str]:
    """Return the outputs read before one that decides ties earlier."""
    rank = {variable: place for place, variable in enumerate(outputs)}
    read = [rank[variable] for variable in order if variable in rank]
    return frozenset(outputs[one] for place, one in enumerate(read) if any(other < one for other in read[place:]))


def _leading_to(filters: Collection[Literal], uses: Mapping[str, View], known: Sequence[str]) -> list[str]:
    """Return the variables of the filters and those that lead to their views, without the known ones."""
    found: dict[str, None] = {}
    rest = sorted(variable for literal in filters for variable in literal.variables)
    while rest:
        variable = rest.pop()
        if variable not in known and variable not in found:
            found[variable] = None
            rest += uses[variable].key
    return list(found)


def _gather(
    variable: str, literals: Sequence[Literal], filters: Sequence[Literal]
) -> tuple[tuple[Literal, ...], tuple[str, ...]]:
    """Return the literals of the view that eliminates a variable, and the view's key.

    Checks of types and filters join where the view has all their variables.
    """
    parts = [literal for literal in literals if variable in literal.terms]
    columns = frozenset[str]().union(*(literal.variables for literal in parts))
    parts += [x for x in literals if x.relation.kind == "type" and x not in parts and x.variables <= columns]
    parts += [x for x in filters if variable in x.terms and x.variables <= columns]
    return tuple(parts), tuple(sorted(columns - {variable}))


Shape = tuple[tuple[Relation, tuple[str, ...], bool], ...]


def _shape(key: tuple[str, ...], variable: str, literals: Sequence[Literal]) -> Shape:
    """Return what two views must share to be one: their literals, with variables replaced by their columns."""
    columns = {name: f"?{i}" for i, name in enumerate((*key, variable))}
    return tuple(sorted((x.relation, tuple(columns.get(t, t) for t in x.terms), x.positive) for x in literals))


_kept: dict[object, tuple[Domain, Planner]] = {}  # with the domain, so that its identity is not used again
MOST_KEPT = 100


def planner_for(rules: tuple[Rule, ...], domain: Domain, statistics: Statistics) -> Planner:
    """Return a planner for these rules, made anew only if the data are of another kind than any before."""
    key = (rules, id(domain), statistics.magnitudes())
    if key not in _kept:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        _kept[key] = domain, Planner(rules, domain, statistics)
    return _kept[key][1]
