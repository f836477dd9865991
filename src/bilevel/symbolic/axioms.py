"""Derived predicates: the facts that follow from those of a state by a domain's axioms, and why they do.

A state has them whenever one is made, so that to rules, planners and learners a derived fact is a fact like any other.
Instances of axioms, as those of actions, are found by joining each fact, as it is found, with those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product

from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Atom, BadInput, Domain, Facts, Outcome, Schema, is_variable
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground, natures_choices, progress, substitute

Binding = Mapping[str, str]


class Instances:
    """Finds the instances of schemas of which all that must hold is among facts that come one after the other."""

    def __init__(
        self,
        schemas: Iterable[Schema],
        domain: Domain,
        objects: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` is called for each piece of work."""
        self._schemas, self._check = [*schemas], check
        self._constants = {name: name for name in domain.constants}
        is_subtype = domain.is_subtype
        self._objects_of = cache(lambda kind: {name: None for name, its in objects.items() if is_subtype(its, kind)})
        self._allowed = {schema.name: self._allowed_in(schema) for schema in self._schemas}
        self._taken_up: dict[tuple[object, ...], list[Atom]] = {}  # by predicate; by predicate, place and term
        self._seen = set[tuple[str, tuple[str, ...]]]()

    def among(self, facts: Iterable[Atom], reached: Container[Atom]) -> Iterator[GroundAction]:
        """Yield each instance once; the facts, and `reached`, which has all of them, may grow meanwhile."""
        watchers: dict[str, list[tuple[Schema, Atom, list[Atom]]]] = {}  # a condition, and the others of its schema
        for schema in self._schemas:
            conditions = sorted(atom for atom in schema.precondition if atom.predicate != EQUALITY)
            for place, condition in enumerate(conditions):
                others = conditions[:place] + conditions[place + 1 :]
                watchers.setdefault(condition.predicate, []).append((schema, condition, others))
            if not conditions:
                yield from self._ground(schema, {})
        for atom in facts:
            for key in ((atom.predicate,), *((atom.predicate, *each) for each in enumerate(atom.terms))):
                self._taken_up.setdefault(key, []).append(atom)
            for schema, condition, others in watchers.get(atom.predicate, ()):
                binding = _extended(self._constants, condition, atom, self._allowed[schema.name])
                if binding is not None:
                    for found in self._join(schema, others, binding, reached):
                        yield from self._ground(schema, found)

    def _allowed_in(self, schema: Schema) -> dict[str, Collection[str]]:
        """Return the objects that each parameter may be; `(= ?x table)` settles ?x."""
        allowed: dict[str, Collection[str]] = {each.name: self._objects_of(each.type) for each in schema.parameters}
        for atom in schema.precondition:
            if atom.predicate == EQUALITY and not all(map(is_variable, atom.terms)):
                one, other = (allowed.get(term, (term,)) for term in atom.terms)
                both = [name for name in one if name in other]
                allowed |= dict.fromkeys(atom.terms, both)
        return allowed

    def _join(
        self, schema: Schema, conditions: Sequence[Atom], binding: Binding, reached: Container[Atom]
    ) -> Iterator[Binding]:
        """Every extension of the binding under which the conditions have been reached; the rarest goes first."""
        self._check()
        open_conditions = []
        for condition in conditions:
            if not binding.keys() >= {*condition.terms}:
                open_conditions.append(condition)
            elif substitute(condition, binding) not in reached:
                return
        if not open_conditions:
            yield binding
            return
        candidates = [self._candidates(condition, binding) for condition in open_conditions]
        rarest = min(range(len(candidates)), key=lambda index: len(candidates[index]))
        condition = open_conditions.pop(rarest)
        for atom in candidates[rarest]:
            extended = _extended(binding, condition, atom, self._allowed[schema.name])
            if extended is not None:
                yield from self._join(schema, open_conditions, extended, reached)

    def _candidates(self, condition: Atom, binding: Binding) -> Sequence[Atom]:
        """The shortest list at hand that has every fact which the condition can be, with the terms that are known."""
        predicate, terms = condition
        keys = [(predicate, place, binding[term]) for place, term in enumerate(terms) if term in binding]
        return min((self._taken_up.get(key, []) for key in [(predicate,), *keys]), key=len)

    def _ground(self, schema: Schema, binding: Binding) -> Iterator[GroundAction]:
        """Every new instance of the schema under the binding; parameters it leaves open range over what is allowed."""
        names, allowed = [parameter.name for parameter in schema.parameters], self._allowed[schema.name]
        for arguments in product(*([binding[name]] if name in binding else allowed[name] for name in names)):
            self._check()
            if (schema.name, arguments) not in self._seen:
                self._seen.add((schema.name, arguments))
                grounded = ground(schema, arguments)
                if grounded is not None:
                    yield grounded


def _extended(
    binding: Binding, condition: Atom, atom: Atom, allowed: Mapping[str, Collection[str]]
) -> dict[str, str] | None:
    """The binding extended so that the condition becomes the atom, with what is allowed, if that is possible."""
    extended = dict(binding)
    for term, name in zip(condition.terms, atom.terms, strict=True):
        if name not in allowed.get(term, (term,)) or extended.setdefault(term, name) != name:
            return None
    return extended


@lru_cache(maxsize=16)
def levels(axioms: tuple[Schema, ...]) -> Mapping[str, int]:
    """Return for each axiom a number, so that it asks for the absence only of facts that lower ones derive."""
    heads = [min(axiom.outcomes[0].add).predicate for axiom in axioms]
    found = dict.fromkeys(heads, 0)
    for _ in range(len(found) + 1):
        before = dict(found)
        for head, axiom in zip(heads, axioms, strict=True):
            needed = [found.get(atom.predicate, 0) for atom in axiom.precondition]
            needed += [found[atom.predicate] + 1 for atom in axiom.negative_precondition if atom.predicate in found]
            found[head] = max(found[head], *needed, 0)
        if found == before:
            return {axiom.name: found[head] for head, axiom in zip(heads, axioms, strict=True)}
    raise BadInput(f"'{max(found, key=found.__getitem__)}' follows from its own absence")


def derivation(facts: Iterable[Atom], domain: Domain, objects: Mapping[str, str]) -> dict[Atom, GroundAction]:
    """Return each derived fact with the instance of an axiom that it follows by, after those that it follows from."""
    known = {fact for fact in facts if fact.predicate not in domain.derived}
    found: dict[Atom, GroundAction] = {}
    level = levels(domain.axioms)
    for number in sorted({*level.values()}):
        queue, axioms = sorted(known), [axiom for axiom in domain.axioms if level[axiom.name] == number]
        for instance in Instances(axioms, domain, objects).among(queue, known):
            (fact,) = instance.outcomes[0].add
            if fact not in known and instance.condition.negative.isdisjoint(known):
                found[fact] = instance
                known.add(fact)
                queue.append(fact)
    return found


def close(facts: Facts, domain: Domain, objects: Mapping[str, str]) -> Facts:
    """Return the facts with all derived facts that follow from them, and no others."""
    if not domain.axioms:
        return facts
    return frozenset(f for f in facts if f.predicate not in domain.derived).union(derivation(facts, domain, objects))


def outcome_in(state: Facts, outcome: Outcome, domain: Domain, objects: Mapping[str, str]) -> Outcome:
    """Return the outcome with the derived facts that come and go with it in a state, and why they do."""
    if not domain.axioms:
        return outcome
    axioms, basic = {axiom.name: axiom for axiom in domain.axioms}, progress(state, outcome)
    before, after = derivation(state, domain, objects), derivation(basic, domain, objects)
    reasons = [(axioms[by.action.name], by.action.arguments) for fact, by in after.items() if fact not in before]
    holding = basic.difference(before).union(after)
    for fact, by in before.items():
        if fact not in after:  # as conditions of the axiom do not hold any more
            axiom, arguments = axioms[by.action.name], by.action.arguments
            binding = dict(zip([p.name for p in axiom.parameters], arguments, strict=True))
            came, went = by.condition.negative & holding, by.condition.positive - holding
            ending = Schema(
                axiom.name,
                axiom.parameters,
                frozenset(atom for atom in axiom.negative_precondition if substitute(atom, binding) in came),
                (Outcome(NO_FACTS, axiom.outcomes[0].add),),
                frozenset(atom for atom in axiom.precondition if substitute(atom, binding) in went),
            )
            reasons.append((ending, arguments))
    reasons.sort(key=lambda reason: levels(domain.axioms)[reason[0].name])
    new, gone = after.keys() - before.keys(), before.keys() - after.keys()
    return replace(outcome, add=outcome.add | new, delete=outcome.delete | gone, reasons=tuple(reasons))


def successors(state: Facts, action: GroundAction, domain: Domain, objects: Mapping[str, str]) -> Iterator[Facts]:
    """Every state the action may lead to; nature chooses among `objects` or makes new ones."""
    for outcome in action.outcomes:
        for choice in natures_choices(outcome, domain, objects):
            yield progress(state, outcome_in(state, bind_outcome(outcome, choice), domain, objects))
