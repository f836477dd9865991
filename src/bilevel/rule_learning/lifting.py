"""The rule for the first step of a way to a goal: what the way needs, said of variables.

Two variables stand for one object only where the way needs that: where one action makes the fact that another asks for,
or both ask for the same fact. That a sample lies where the lander stands is chance, and the rule does not say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Action, Applied, Atom, Domain, Parameter, is_variable
from bilevel.symbolic.semantics import substitute, substitute_all


class _Variables:
    """Variables, the objects that they stand for on the way, and which of them are the same."""

    def __init__(self, domain: Domain, objects: Mapping[str, str]) -> None:
        self.domain, self.types_of_objects = domain, objects
        self.types: dict[str, str] = {}
        self.objects: dict[str, str] = {}
        self._same: dict[str, str] = {}

    def new(self, parameters: Sequence[Parameter], names: Sequence[str]) -> dict[str, str]:
        """Return a new variable for each parameter, which stands for the object of that name."""
        found = {}
        for parameter, name in zip(parameters, names, strict=True):
            found[parameter.name] = variable = f"?{len(self.objects)}"
            self.types[variable], self.objects[variable] = parameter.type, name
        return found

    def root(self, term: str) -> str:
        """Return the term for all that are the same as this one."""
        while term in self._same:
            term = self._same[term]
        return term

    def unite(self, one: Atom, other: Atom) -> None:
        """Let the terms of two atoms be the same; their types become what both ask for."""
        for pair in zip(one.terms, other.terms, strict=True):
            first, second = sorted(map(self.root, pair), key=is_variable)  # a name stays
            if first == second:
                continue
            self._same[second] = first
            if is_variable(first):
                kinds = self.types[first], self.types[second]
                if not self.domain.is_subtype(*kinds):
                    own = self.types_of_objects[self.objects[first]]
                    self.types[first] = kinds[1] if self.domain.is_subtype(kinds[1], kinds[0]) else own

    def ground(self, atom: Atom) -> Atom:
        return substitute(atom, self.objects)


def lifted_rule(goal: Atom, way: Sequence[Applied], objects: Mapping[str, str], domain: Domain) -> Rule:
    """Return the rule for the first of the actions that lead to the goal, with axioms between where facts follow."""
    variables = _Variables(domain, objects)
    names = variables.new(domain.predicates[goal.predicate].parameters, goal.terms)
    goal = Atom(goal.predicate, tuple(names.values()))
    needs, absent = {goal}, set[Atom]()
    head = Action("")
    for schema, arguments in reversed(way):
        names = variables.new(schema.parameters, arguments)
        head = Action(schema.name, tuple(names.values()))
        outcome = schema.outcomes[0]
        adds, deletes = (substitute_all(atoms, names) for atoms in (outcome.add, outcome.delete))
        effects = ((adds, needs), (deletes - adds, absent))
        grounded = [[{*map(variables.ground, atoms)} for atoms in pair] for pair in effects]
        if schema.name not in domain.schemas and all(made.isdisjoint(wanted) for made, wanted in grounded):
            continue
        for made, wanted in effects:
            for atom in sorted(wanted):
                same = [each for each in sorted(made) if variables.ground(each) == variables.ground(atom)]
                if same:
                    variables.unite(atom, same[0])
                    wanted.remove(atom)
        for atom in sorted(substitute_all(schema.precondition, names)):
            if atom.predicate == EQUALITY:
                variables.unite(Atom("", atom.terms[:1]), Atom("", atom.terms[1:]))
            else:
                for known in [each for each in sorted(needs) if variables.ground(each) == variables.ground(atom)]:
                    variables.unite(atom, known)
                needs.add(atom)
        absent |= substitute_all(schema.negative_precondition, names)
    for one, other in combinations(head.arguments, 2):
        if variables.objects[one] == variables.objects[other]:  # terms of an action stand for different things
            variables.unite(Atom("", (one,)), Atom("", (other,)))
    swap = {variable: variables.root(variable) for variable in variables.objects}
    condition, goals = substitute_all(frozenset(needs), swap), substitute_all(frozenset({goal}), swap)
    head = head._replace(arguments=tuple(swap[term] for term in head.arguments))
    negative = substitute_all(frozenset(absent), swap) - goals
    used = {t for atom in condition | goals for t in atom.terms} | set(head.arguments)
    used |= {t for atom in negative for t in atom.terms}
    return Rule(
        priority=1,
        variables=tuple(Parameter(term, variables.types[term]) for term in sorted(used) if is_variable(term)),
        state_condition=condition,
        goal_condition=goals,
        action=head,
        negative_condition=negative,
    )
