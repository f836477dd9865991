"""Why does no rule apply? The rules that came closest, and what each of them lacks.

For each rule, a depth-first search over its conditions looks for the binding that leaves the fewest unmet. It always
takes the condition with the fewest facts left to choose from, so that of two bindings that lack one condition each, it
finds the one that meets the more telling conditions: the block in the gripper rather than any block that could be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bilevel.rules.closures import closures_in, with_closures
from bilevel.rules.matching import Binding, Match, checked_types, free_variables, unify
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import NO_FACTS, ROOT_TYPE, Atom, Domain, Facts, is_variable
from bilevel.symbolic.semantics import substitute

_KNOWN = "known object"  # said of every object, to bind the variables that no condition binds
_MAX_VISITS = 10_000  # nodes of one rule's search: bounds the time in a large state, at the price of a best guess


@dataclass(frozen=True)
class NearMiss:
    """A rule with the binding that came closest, and its unmet conditions, in the order in which the rule prints them.

    Variables that no fact could bind are left out of the binding. `serves` says whether the rule's goal condition is
    met, that is, whether the rule speaks about a goal at hand.
    """

    match: Match
    missing: tuple[str, ...]
    serves: bool

    def __str__(self) -> str:
        more = len(self.missing) - 1
        suffix = f" (and {more} more unmet)" if more > 0 else ""
        return f"rule {self.match.rule.priority} {self.match.action}: {self.missing[0]}{suffix}"


def why_not(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str], limit: int = 3
) -> str:
    """Return why no rule applies, a line for each reason."""
    if goal <= state:
        return "every goal is achieved already"
    if not rules:
        return "there are no rules"
    found = nearest(rules, domain, state, goal, objects, limit)
    if not found:
        return "some rule applies"
    if any(miss.serves for miss in found):
        return "\n".join(str(miss) for miss in found)
    unachieved = sorted(goal - state)
    more = f" (and {len(unachieved) - limit} more)" if len(unachieved) > limit else ""
    return f"no rule speaks about an unachieved goal: {', '.join(map(str, unachieved[:limit]))}{more}"


def nearest(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str], limit: int = 3
) -> list[NearMiss]:
    """Return the rules that came closest to applying, nearest first.

    These are those that serve a goal at hand, then those that lack the fewest conditions, then by priority and place
    in the list. Rules that do apply are left out.
    """
    predicates = {atom.predicate for rule in rules for atom in rule.state_condition | rule.goal_condition}
    known = frozenset(Atom(_KNOWN, (name,)) for name in objects) if any(map(free_variables, rules)) else NO_FACTS
    present = with_closures(state, closures_in(rules, domain))
    indexes = _Index(present, predicates), _Index(goal - state, predicates), _Index(known, {_KNOWN})
    misses = [_Search(rule, domain, *indexes, objects).run() for rule in rules]
    found = [miss for miss in misses if miss.missing]
    found.sort(key=lambda miss: (not miss.serves, len(miss.missing), miss.match.rule.priority))
    return found[:limit]


class _Index:
    """Facts by predicate, and by predicate and argument, each list in alphabetical order."""

    def __init__(self, facts: Facts, predicates: Iterable[str]) -> None:
        wanted = set(predicates)
        self.facts = facts
        self.found: defaultdict[tuple[str | int, ...], list[Atom]] = defaultdict(list)
        for fact in sorted(fact for fact in facts if fact.predicate in wanted):
            self.found[fact.predicate,].append(fact)
            for position, term in enumerate(fact.terms):
                self.found[fact.predicate, position, term].append(fact)

    def candidates(self, atom: Atom) -> Sequence[Atom]:
        """Return facts among which are all that the atom may be; exactly those where it has at most one constant."""
        constants = [(atom.predicate, i, term) for i, term in enumerate(atom.terms) if not is_variable(term)]
        if len(constants) == len(atom.terms):
            return [atom] if atom in self.facts else []
        return min((self.found.get(key, []) for key in (*constants, (atom.predicate,))), key=len)


class _Search:
    """The search for the binding of one rule that leaves the fewest conditions unmet."""

    def __init__(
        self, rule: Rule, domain: Domain, present: _Index, wanted: _Index, known: _Index, objects: Mapping[str, str]
    ) -> None:
        self.rule = rule
        self.domain = domain
        self.present = present
        self.wanted = wanted
        self.known = known
        self.objects = objects
        self.conditions = [(atom, wanted) for atom in sorted(rule.goal_condition)]
        self.conditions += [(atom, present) for atom in sorted(rule.state_condition)]
        self.conditions += [(Atom(_KNOWN, (variable,)), known) for variable in free_variables(rule)]
        self.types, self.declared = checked_types(rule, domain), rule.types
        self.visits = 0
        self.best: NearMiss | None = None
        self.goals_required = True

    def run(self) -> NearMiss:
        """Try first with the goal condition met, whatever else is not; only if it cannot be, give it up too."""
        for self.goals_required in (True, False):
            self.visits = 0
            self.explore(self.conditions, {}, 0)
            if self.best is not None:
                return self.best
        return NearMiss(Match(self.rule, {}), tuple(self.unmet({})), serves=False)

    def explore(self, pending: list[tuple[Atom, _Index]], binding: Binding, unmet: int) -> None:
        """Meet or give up the pending conditions in every way that could beat the best binding so far."""
        if self.is_over(unmet):
            return
        if not pending:
            missing = tuple(self.unmet(binding))
            if self.best is None or len(missing) < len(self.best.missing):
                self.best = NearMiss(Match(self.rule, binding), missing, self.goals_required)
            return
        atoms = [substitute(atom, binding) for atom, _ in pending]
        choices = [index.candidates(atom) for atom, (_, index) in zip(atoms, pending, strict=True)]
        chosen = min(range(len(pending)), key=lambda i: (pending[i][1] is self.known, len(choices[i])))
        rest = pending[:chosen] + pending[chosen + 1 :]
        is_required = pending[chosen][1] is self.wanted and self.goals_required
        for fact in choices[chosen]:
            self.visits += 1
            found = unify(atoms[chosen], fact)
            if found is not None and self.fits(found):
                is_required |= pending[chosen][1] is self.known
                self.explore(rest, binding | found, unmet)
            if self.is_over(unmet):
                return
        if not is_required:
            self.explore(rest, binding, unmet + 1)

    def fits(self, found: Binding) -> bool:
        """Return whether no variable gets an object that is known to be of another type."""
        known = ((variable, self.objects.get(value)) for variable, value in found.items())
        return all(kind is None or self.domain.is_subtype(kind, self.declared.get(v, ROOT_TYPE)) for v, kind in known)

    def is_over(self, unmet: int) -> bool:
        """Return whether going on with this many unmet conditions cannot beat the best, or would take too long."""
        too_long = self.visits > _MAX_VISITS
        return too_long if self.best is None else too_long or len(self.best.missing) <= max(unmet, 1)

    def unmet(self, binding: Binding) -> Iterator[str]:
        """Yield what the rule still lacks with this binding, in the order in which it prints its conditions."""

        def bound(atoms: Facts) -> Iterator[tuple[Atom, bool]]:
            for atom in self.rule.in_reading_order(atoms):
                found = substitute(atom, binding)
                yield found, not any(map(is_variable, found.terms))

        for atom, is_ground in bound(self.rule.state_condition):
            if atom not in self.present.facts:
                kinds = [f"{term} a {self.types[term]}" for term in dict.fromkeys(atom.terms) if term in self.types]
                types = f" with {' and '.join(kinds)}" if kinds else ""
                yield f"{atom} does not hold" if is_ground else f"no fact matches {atom}{types}"
        for atom, _ in bound(self.rule.absent):
            if atom in self.present.facts:
                yield f"{atom} holds but must be absent"
        for left, right in sorted(self.rule.inequalities):
            if binding.get(left, left) == binding.get(right, right):
                yield f"{left} and {right} are both {binding.get(right, right)}"
        for variable, kind in self.types.items():
            value = binding.get(variable)
            if value is not None and not self.domain.is_subtype(self.objects.get(value, ROOT_TYPE), kind):
                yield f"{value} is not of type {kind}"
        for variable in free_variables(self.rule):
            if variable not in binding:
                yield f"there is no {self.types.get(variable, ROOT_TYPE)} for {variable}"
        for atom, is_ground in bound(self.rule.goal_condition):
            if atom not in self.wanted.facts:
                yield f"{atom} is not an unachieved goal" if is_ground else f"no unachieved goal matches {atom}"
