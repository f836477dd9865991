"""Search for the instances of one rule, where the rule has so many variables that they cannot all be listed.

The conditions of a rule are a constraint satisfaction problem: each variable has a domain of objects, each literal
links some variables. A value that a literal does not allow, whatever its other variables are, is dropped at once (arc
consistency). What is left falls apart into components that share no literal; each is searched by itself, the variable
with the fewest values first, until there is one witness. That a component has none for some values of the variables
around it is remembered, so no failure is found twice. The first instance is then found value by value, without ever
going back: the smallest value of the first output for which there is a witness, of the second given the first, and on.

The work is counted in values looked at, and bounded: beyond `MOST_WORK` there is `TooMuchWork`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bilevel.rules.engine.indexed_relations import IndexedRelation
from bilevel.rules.engine.search_links import AllDifferent, Domains, Link, Unequal, all_different, link_of
from bilevel.rules.engine.views import UNEQUAL, Literal, Relation
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import BadInput, is_variable

MOST_WORK = 20_000_000  # values looked at in one search: a few seconds

Case = tuple[int, tuple[str, ...]]


class TooMuchWork(Exception):
    """A search was given up."""


class RuleTooCostly(BadInput):
    """Whether a rule applies takes too long to find out."""

    def __init__(self, rule: Rule) -> None:
        text = str(rule)
        super().__init__(
            f"{rule.source or 'rules'}: whether this rule applies is not found out by looking at {MOST_WORK:,} values; "
            f"link its {len(rule.variables)} variables by more conditions, or make several rules of it: "
            f"{text if len(text) <= 100 else f'{text[:60]} … -> {rule.action}'}"
        )


def first_solution(
    rule: Rule,
    literals: Iterable[Literal],
    relations: Mapping[Relation, IndexedRelation],
    given: Mapping[str, str],
    order: Iterable[str],
) -> dict[str, str] | None:
    """Return the first binding in this order for which a rule's literals hold, given the values of some variables."""
    try:
        found = Search(literals, relations, given).first([variable for variable in order if variable not in given])
    except TooMuchWork:
        raise RuleTooCostly(rule) from None
    return None if found is None else {**given, **found}


class Search:
    """One search: the domains of a rule's variables, and what links them. Domains are replaced, never changed."""

    def __init__(
        self, literals: Iterable[Literal], relations: Mapping[Relation, IndexedRelation], given: Mapping[str, str]
    ) -> None:
        self.work = 0
        self.domains: Domains = {}
        self._links: dict[str, list[Link]] = {}
        self._trail: list[tuple[str, set[str]]] = []
        self._failed: set[Case] = set()
        self._around: dict[int, list[str]] = {}
        literals = [literal._replace(terms=tuple(given.get(t, t) for t in literal.terms)) for literal in literals]
        self.is_consistent = all(self._note(literal, relations) for literal in sorted(literals, key=_rank))
        different = all_different(literals)
        for variable in different:
            self._links.setdefault(variable, []).append(AllDifferent(different))
        self.is_consistent = self.is_consistent and self._propagate(self.domains)
        self._bits = {variable: 1 << number for number, variable in enumerate(self.domains)}

    def _note(self, literal: Literal, relations: Mapping[Relation, IndexedRelation]) -> bool:
        """Narrow the domains of a literal's variables, and link them; return whether all of them have values."""
        variables = list(dict.fromkeys(filter(is_variable, literal.terms)))
        if literal.relation == UNEQUAL:
            if len(variables) < 2:
                names = [term for term in literal.terms if not is_variable(term)]
                different = len(set(literal.terms)) == 2
                return different and not self._narrow(variables, [names] if variables else [], False)
            link: Link = Unequal(variables)
        else:
            table = relations[literal.relation].table(literal.terms)
            if not variables:
                return bool(table.rows) == literal.positive
            if literal.positive or len(variables) == 1:
                values = [column.keys() for column in table.columns]
                if self._narrow(variables, values, literal.positive):
                    return False
            link = link_of(literal, variables, table)
        if len(variables) > 1:
            for variable in variables:
                self._links.setdefault(variable, []).append(link)
        return True

    def _narrow(self, variables: Sequence[str], values: Sequence[Iterable[str]], keep: bool) -> bool:
        """Keep or drop these values of the variables; return whether one has none left."""
        for variable, found in zip(variables, values, strict=True):
            domain = self.domains.get(variable)
            if keep:
                self.domains[variable] = set(found) if domain is None else domain & set(found)
            else:
                self.domains[variable] = (domain or set()).difference(found)
            self.work += len(self.domains[variable])
        return not all(self.domains[variable] for variable in variables)

    # Instances

    def first(self, order: Sequence[str]) -> dict[str, str] | None:
        """Return the values of all variables in the first solution: the smallest in this order, others as they come."""
        begin = len(self._trail)
        witness = self._witness()
        if witness is not None:
            for variable in order:
                witness = self._smallest(variable, witness)
        self._undo(begin)
        return witness

    def _smallest(self, variable: str, witness: dict[str, str]) -> dict[str, str]:
        """Give a variable its smallest value, given a solution with some value, and return a solution with that."""
        for value in sorted(self.domains[variable]):
            mark = len(self._trail)
            if self._assign(variable, value):
                found = witness if value == witness[variable] else self._witness()
                if found is not None:
                    return found
            self._undo(mark)
        raise AssertionError("a witness is a solution")

    def solutions(
        self, order: Sequence[str], then: Sequence[str] = (), witness: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, str]]:
        """Yield for all values of the variables in `order`, in order, the first solution by those in `then`.

        A witness is any solution, if one is known already.
        """
        if not self.is_consistent:
            return
        if not order:
            found = self.first(then)
            if found is not None:
                yield found
            return
        variable, *rest = order
        for value in sorted(self.domains[variable]):
            mark = len(self._trail)
            if self._assign(variable, value):
                known = witness if witness and witness[variable] == value else self._witness()
                if known is not None:
                    yield from self.solutions(rest, then, known)
            self._undo(mark)

    def _witness(self) -> dict[str, str] | None:
        """Return any solution, and leave the domains as they are."""
        if not self.is_consistent:
            return None
        mark = len(self._trail)
        try:
            found = self._complete(self.domains)
        except RecursionError:
            raise TooMuchWork from None
        witness = {variable: next(iter(domain)) for variable, domain in self.domains.items()} if found else None
        self._undo(mark)
        return witness

    # The search for a witness

    def _complete(self, variables: Iterable[str]) -> bool:
        """Give all variables values; return whether that is possible."""
        unsettled = {variable for variable in variables if len(self.domains[variable]) > 1}
        while unsettled:
            component = self._component(unsettled)
            unsettled -= component
            if not self._settle(component):
                return False
        return True

    def _component(self, unsettled: set[str]) -> set[str]:
        """Return one of these variables, the first by name, and those that literals link it to."""
        queue = [min(unsettled)]
        component = set(queue)
        for variable in queue:  # which grows meanwhile
            for link in self._links.get(variable, ()):
                new = [other for other in link.variables if other in unsettled and other not in component]
                component.update(new)
                queue += new
        return component

    def _settle(self, component: set[str]) -> bool:
        """Give the variables of a component values; return whether that is possible."""
        case = self._case(component)
        if case in self._failed:
            return False
        variable = min(component, key=lambda v: (len(self.domains[v]), -len(self._links.get(v, ())), v))
        for value in sorted(self.domains[variable]):
            mark = len(self._trail)
            if self._assign(variable, value) and self._complete(component):
                return True
            self._undo(mark)
        self._failed.add(case)
        return False

    def _case(self, component: set[str]) -> Case:
        """Return a component, as bits, and the values of the variables around it, on which its solutions depend."""
        bits = sum(self._bits[variable] for variable in component)
        if bits not in self._around:
            links = (link for variable in component for link in self._links.get(variable, ()))
            self._around[bits] = sorted({variable for link in links for variable in link.variables} - component)
        return bits, tuple(next(iter(self.domains[variable])) for variable in self._around[bits])

    def _assign(self, variable: str, value: str) -> bool:
        """Give a variable a value; return whether every variable still has one."""
        if len(self.domains[variable]) > 1:
            self._replace(variable, {value})
            return self._propagate((variable,))
        return value in self.domains[variable]

    def _propagate(self, changed: Iterable[str]) -> bool:
        """Drop what is not consistent with domains that have changed; return whether every variable has values left."""
        queue = deque(changed)
        while queue:
            variable = queue.popleft()
            for link in self._links.get(variable, ()):
                for other, domain in link.narrowed(variable, self.domains):
                    self.work += len(self.domains[other]) + 1
                    if len(domain) < len(self.domains[other]):
                        self._replace(other, domain)
                        if not domain:
                            return False
                        queue.append(other)
            if self.work > MOST_WORK:
                raise TooMuchWork
        return True

    def _replace(self, variable: str, domain: set[str]) -> None:
        self._trail.append((variable, self.domains[variable]))
        self.domains[variable] = domain

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            variable, domain = self._trail.pop()
            self.domains[variable] = domain


def _rank(literal: Literal) -> tuple[bool, int]:
    """Return an order in which positive literals, few variables first, give domains to those that narrow them."""
    return not literal.enumerable, len(literal.variables)
