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

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import permutations

from bilevel.rules.engine.views import (
    JoinStep,
    Literal,
    Relation,
    RulePlan,
    ServingPlan,
    Statistics,
    View,
    bound_positions,
    inverted,
    reading_order,
    rule_literals,
    variables_of,
)
from bilevel.rules.matching import output_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain

MOST_PERMUTED = 6  # outputs, of which more are ordered greedily; columns of a key, of which more stay as they are
SAVING = 100  # how many entries less per goal must be touched to pay for trying one more elimination
BLOW_UP = 0.1  # the cost of a view that is twice as large as what it joins, in entries touched per update


class Planner:
    """Chooses views for rules, shares equal ones, and estimates what they cost."""

    def __init__(self, domain: Domain, statistics: Statistics, volatile: frozenset[str], typed: bool) -> None:
        self.domain = domain
        self.statistics = statistics
        self.typed = typed
        self.volatile = volatile  # the predicates whose facts the policy's own actions change
        self._goals = statistics.goals()
        self.views: list[View] = []
        self._names: dict[Shape, str] = {}
        self.expected = cache(self._expected)
        self._view_cost = cache(self._cost)
        self._changes = cache(self._change_rate)

    def plan(self, rule: Rule) -> RulePlan:
        """Return how the instances of a rule are found: which views it needs, and in which order they are read."""
        outputs = output_variables(rule)
        literals = list(rule_literals(rule, self.domain, self.typed))
        guards = [literal for literal in literals if not literal.variables]
        filters = [x for x in literals if not x.enumerable and len(x.variables) > 1]
        literals = [literal for literal in literals if literal.variables and literal not in filters]
        uses: dict[str, View] = {}
        inner = sorted({v for literal in literals for v in literal.variables} - set(outputs))
        while inner:
            _, _, cheapest = min(self._greedy_cost(v, literals) for v in inner)
            inner.remove(cheapest)
            uses[cheapest], literals = self._eliminate(cheapest, literals, filters)
        for variable in self._best_order(outputs, literals, filters):
            uses[variable], literals = self._eliminate(variable, literals, filters)
        guards += literals  # what is left are views without a key
        checked = {literal for use in uses.values() for literal in use.literals}
        unchecked = [literal for literal in filters if literal not in checked]
        read = [*outputs, *_reached(uses, [v for literal in unchecked for v in literal.variables], outputs)]
        return RulePlan(rule, tuple(outputs), tuple(read), uses, tuple(guards), tuple(unchecked))

    def _greedy_cost(self, variable: str, literals: list[Literal]) -> tuple[int, float, str]:
        """Return what to eliminate by: narrow views first, as a view with a long key holds combinations."""
        parts, key = _gather(variable, literals, [])
        return len(key), self._view_cost(parts, frozenset({*key, variable})), variable

    def _best_order(self, outputs: Sequence[str], literals: list[Literal], filters: list[Literal]) -> tuple[str, ...]:
        """Search the orders in which the outputs can be eliminated, the most promising first, and return the best.

        The search ends when it has taken longer than a better order could save: small problems are solved meanwhile.
        """
        best: tuple[str, ...] = ()
        least = float("inf")
        tried = 0

        def search(order: tuple[str, ...], uses: dict[str, View], literals: list[Literal], cost: float) -> None:
            nonlocal best, least, tried
            left = [v for v in reversed(outputs) if v not in order]
            if not left:
                cost += self._comparisons(outputs, uses)
                if cost < least:
                    best, least = order, cost
            tried += len(left)
            for _, added, variable in sorted(self._greedy_cost(v, literals) for v in left):
                if tried > self._goals * least / SAVING:
                    break
                if cost + added >= least:
                    continue
                use, rest = self._eliminate(variable, literals, filters)
                search((*order, variable), {**uses, variable: use}, rest, cost + added)
                if len(outputs) > MOST_PERMUTED:
                    break

        search((), {}, literals, 0.0)
        return best

    def _comparisons(self, outputs: Sequence[str], uses: Mapping[str, View]) -> float:
        """Return the values compared per choice where a variable that is read later decides ties first."""
        compared = (uses[variable] for variable in inverted(outputs, reading_order(outputs, uses)))
        return sum(self.expected(use.literals, frozenset(use.key), frozenset({use.variable})) for use in compared)

    def _cost(self, parts: tuple[Literal, ...], columns: frozenset[str]) -> float:
        """Return the entries of a view that an update touches, summed over the literals whose facts change.

        A view that is larger than the relations it joins costs too, even if its facts never change: whoever asks about
        it has more to look at.
        """
        rows = self.expected(parts, frozenset(), columns)
        largest = max(self._degree(part, frozenset()) for part in parts if part.enumerable)
        return self._touched(parts, columns) + BLOW_UP * max(0.0, rows / max(largest, 1.0) - 1.0)

    def _touched(self, parts: tuple[Literal, ...], columns: frozenset[str]) -> float:
        """Return the entries that change per action in a view with these columns."""
        changing = ((part, self._changes(part.relation)) for part in parts)
        return sum(times * self.expected(parts, part.variables, columns) for part, times in changing if times)

    def _change_rate(self, relation: Relation) -> float:
        """Return how often per action an instance comes or goes; a view's key does so with its first and last value."""
        if relation.kind != "view":
            return float(relation.kind in ("state", "goal") and relation.name in self.volatile)
        view = self.views[int(relation.name)]
        columns = frozenset({*view.key, view.variable})
        values = self.expected(view.literals, frozenset(view.key), columns)
        return self._touched(view.literals, columns) / max(values, 1.0)

    def _eliminate(self, variable: str, literals: list[Literal], filters: list[Literal]) -> tuple[View, list[Literal]]:
        parts, key = _gather(variable, literals, filters)
        use = self._add_view(key, variable, parts)
        rest = [literal for literal in literals if variable not in literal.terms]
        return use, [*rest, Literal(use.relation, use.key)]

    def _add_view(self, key: tuple[str, ...], variable: str, literals: tuple[Literal, ...]) -> View:
        """Return a new view, or an old one of the same shape."""
        orders = permutations(key) if len(key) <= MOST_PERMUTED else (key,)
        shapes = {_shape(order, variable, literals): order for order in orders}
        shape = min(shapes)
        name = self._names.setdefault(shape, str(len(self.views)))
        view = View(name, shapes[shape], variable, literals)
        if int(name) == len(self.views):
            self.views.append(view)
        return view

    def join_order(
        self, literals: Sequence[Literal], bound: frozenset[str], needed: frozenset[str]
    ) -> tuple[list[JoinStep], float]:
        """Return how to list values for the needed variables, from the cheapest literal on, and how many to expect."""
        steps: list[JoinStep] = []
        expected = 1.0
        left = list(literals)

        def check() -> None:
            for literal in [x for x in left if x.variables <= bound]:
                steps.append(JoinStep(literal, tuple(range(len(literal.terms)))))
                left.remove(literal)

        check()
        while not needed <= bound:
            candidates = [x for x in left if x.enumerable and x.variables & (needed - bound)]
            best = min(candidates, key=lambda x: self._degree(x, bound))
            expected *= max(self._degree(best, bound), 1e-3)
            steps.append(JoinStep(best, bound_positions(best, bound)))
            left.remove(best)
            bound = bound | best.variables
            check()
        return steps, expected

    def plan_serving(self, plan: RulePlan, atom: Atom) -> ServingPlan:
        """Return how to find a rule's instances that serve one goal fact, which one of its goal conditions is about.

        Variables whose views lie above the given ones are joined afresh; views below or beside are used as they are.
        """
        given = variables_of(atom.terms)
        above = _above(plan, given)
        literals = [
            literal for variable in sorted(above) for literal in plan.uses[variable].literals
            if not _stands_for(plan, literal, above)
        ]  # fmt: skip
        literals += [condition for condition in plan.filters if condition.variables <= above]
        steps, _ = self.join_order(list(dict.fromkeys(literals)), given, frozenset(above))
        return ServingPlan(
            tuple(guard for guard in plan.guards if not _stands_for(plan, guard, above)),
            tuple(steps),
            tuple(v for v in plan.read if v in above),
            tuple(v for v in reading_order(plan.read, plan.uses) if v not in above),
            tuple(condition for condition in plan.filters if not condition.variables <= above),
        )

    def _expected(self, literals: tuple[Literal, ...], bound: frozenset[str], needed: frozenset[str]) -> float:
        """Return how many values of the needed variables to expect, given some."""
        return self.join_order(literals, bound, needed)[1]

    def _degree(self, literal: Literal, bound: frozenset[str]) -> float:
        """Return how many instances of the literal to expect when some variables have values."""
        if literal.relation.kind != "view":
            return self.statistics.degree(literal.relation, bound_positions(literal, bound))
        view = self.views[int(literal.relation.name)]
        inner = frozenset(k for k, term in zip(view.key, literal.terms, strict=True) if term in bound)
        key = frozenset(view.key)
        # The way from one key variable to another may lead through the variable that was eliminated.
        return min(self.expected(view.literals, inner, needed) for needed in (key, key | {view.variable}))


def _reached(uses: Mapping[str, View], wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the wanted variables and those that lead to their views, without the known ones."""
    found: dict[str, None] = {}
    rest = sorted(wanted)
    while rest:
        variable = rest.pop()
        if variable not in known and variable not in found:
            found[variable] = None
            rest += uses[variable].key
    return list(found)


def _stands_for(plan: RulePlan, literal: Literal, variables: Collection[str]) -> bool:
    """Return whether the literal says that the view of one of the variables has something."""
    uses = (plan.uses[variable] for variable in variables)
    return any(use.relation == literal.relation and use.key == literal.terms for use in uses)


def _above(plan: RulePlan, given: frozenset[str]) -> set[str]:
    """Return the given variables and those whose views depend on a view of one of them."""
    above, rest = set(given), list(given)
    while rest:
        new = set(plan.uses[rest.pop()].key) - above
        above |= new
        rest += new
    return above


def _gather(
    variable: str, literals: Sequence[Literal], filters: Sequence[Literal]
) -> tuple[tuple[Literal, ...], tuple[str, ...]]:
    """Return the literals of the view that eliminates a variable, and the view's key.

    Filters join where the view has all their variables.
    """
    parts: list[Literal] = []
    columns: set[str] = set()
    for literal in literals:
        variables = variables_of(literal.terms)
        if variable in variables:
            parts.append(literal)
            columns |= variables
    parts += [x for x in literals if x.relation.kind == "type" and x not in parts and columns.issuperset(x.terms)]
    parts += [x for x in filters if variable in x.terms and x.variables <= columns]
    return tuple(parts), tuple(sorted(columns - {variable}))


Shape = tuple[tuple[Relation, tuple[str, ...], bool], ...]


def _shape(key: tuple[str, ...], variable: str, literals: Sequence[Literal]) -> Shape:
    """Return what two views must share to be one: their literals, with variables replaced by their columns."""
    columns = {name: f"?{i}" for i, name in enumerate((*key, variable))}
    return tuple(sorted((x.relation, tuple(columns.get(t, t) for t in x.terms), x.positive) for x in literals))
