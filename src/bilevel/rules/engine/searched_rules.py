"""Rules that are searched: their instances are looked for when they are asked for, and remembered.

That is for rules whose views would be too large. See `explosion` for which these are, and `search` for how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bilevel.rules.closures import MARK, closures_in, with_closures
from bilevel.rules.engine.asked import relations_asked
from bilevel.rules.engine.indexed_relations import IndexedRelation, Row
from bilevel.rules.engine.rows import rows_of
from bilevel.rules.engine.search import first_solution
from bilevel.rules.engine.views import Relation, rule_literals
from bilevel.rules.matching import output_variables, unify
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts

Values = tuple[str, ...]


class SearchedRules:
    """The facts and open goals that some rules ask about, and the first instances that were found.

    Rules go by their places among all rules. What was found is forgotten when a fact of a predicate that the rule
    mentions comes or goes.
    """

    def __init__(
        self, rules: Mapping[int, Rule], domain: Domain, state: Iterable[Atom], goal: Facts, objects: Mapping[str, str]
    ) -> None:
        self.places = sorted(rules)
        self._rules, self._domain, self._goal = rules, domain, goal
        self._outputs = {place: output_variables(rule) for place, rule in rules.items()}
        self._literals = {place: list(rule_literals(rule, domain, typed=False)) for place, rule in rules.items()}
        asked = relations_asked([*rules.values()], domain)
        self._asking: dict[Relation, set[int]] = {relation: set() for relation in asked}
        for place, literals in self._literals.items():
            for literal in literals:
                self._asking.setdefault(literal.relation, set()).add(place)
        self._closures = closures_in(rules.values(), domain)
        self._stale = set(self._closures)
        for name in self._closures:
            self._asking.setdefault(Relation("state", name), set())
        rows = rows_of(self._asking, domain, state, goal, objects)
        self._relations = {relation: IndexedRelation(found) for relation, found in rows.items()}
        self._found: dict[tuple[int, Atom | None], Values | None] = {}

    def first(self, place: int, served: Atom | None = None) -> Values | None:
        """Return the values of the outputs of a rule's first instance, of those that serve a goal fact if one is given.

        `None` if there is no such instance.
        """
        self._refresh_closures()
        if (place, served) not in self._found:
            rule, outputs = self._rules[place], self._outputs[place]
            begun = [unify(atom, served) for atom in rule.goal_condition] if served else [{}]
            found = [
                first_solution(rule, self._literals[place], self._relations, given, outputs)
                for given in begun if given is not None
            ]  # fmt: skip
            values = (tuple(solution[v] for v in outputs) for solution in found if solution is not None)
            self._found[place, served] = min(values, default=None)
        return self._found[place, served]

    def keeps(self, fact: Atom) -> bool:
        """Return whether it is known of facts of this predicate whether they hold."""
        return Relation("state", fact.predicate) in self._relations

    def holds(self, fact: Atom) -> bool:
        """Return whether a fact is true."""
        return fact.terms in self._relations[Relation("state", fact.predicate)].rows

    def add(self, fact: Atom) -> None:
        """Make a fact true."""
        self._set(fact, True)

    def remove(self, fact: Atom) -> None:
        """Make a fact false."""
        self._set(fact, False)

    def _set(self, fact: Atom, holds: bool) -> None:
        self._change(Relation("state", fact.predicate), fact.terms, holds)
        if fact in self._goal:
            self._change(Relation("goal", fact.predicate), fact.terms, not holds)
        if fact.predicate in self._closures:
            self._stale.add(fact.predicate)

    def declare(self, name: str, kind: str) -> None:
        """Make an object of a type known."""
        for relation in self._relations:
            if relation.kind == "type" and self._domain.is_subtype(kind, relation.name):
                self._change(relation, (name,), True)

    def _change(self, relation: Relation, row: Row, present: bool) -> None:
        kept = self._relations.get(relation)
        if kept is not None and kept.set(row, present):
            self._forget(relation)

    def _forget(self, relation: Relation) -> None:
        for key in [key for key in self._found if key[0] in self._asking[relation]]:
            del self._found[key]

    def _refresh_closures(self) -> None:
        for name in self._stale:
            steps = frozenset(Atom(name, row) for row in self._relations[Relation("state", name)].rows)
            chains = with_closures(steps, frozenset({name})) - steps
            relation = Relation("state", name + MARK)
            self._relations[relation] = IndexedRelation(atom.terms for atom in chains)
            self._forget(relation)
        self._stale.clear()
