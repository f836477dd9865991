"""A condition-action rule and what can be said of one on its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Action, Atom, Facts, Parameter
from bilevel.symbolic.semantics import substitute_all


def inequality(one: str, other: str) -> Atom:
    """Return the atom that, among negative conditions, says that two terms differ; the same whichever comes first."""
    return Atom(EQUALITY, (min(one, other), max(one, other)))


@dataclass(frozen=True, slots=True)
class Rule:
    """In a state and a goal that meet the conditions, do `action`; the lowest priority goes first.

    `state_condition` must be present and `negative_condition` absent from the state; `goal_condition` must be among
    the goals not yet achieved. A negative `=` atom says that two terms differ. Two different terms of the action
    always stand for different objects; other variables may coincide. An inequality's terms are kept in order.
    """

    priority: int
    variables: tuple[Parameter, ...]
    state_condition: Facts
    goal_condition: Facts
    action: Action
    negative_condition: Facts = NO_FACTS

    def __post_init__(self) -> None:
        stated = (inequality(*a.terms) if a.predicate == EQUALITY else a for a in self.negative_condition)
        object.__setattr__(self, "negative_condition", frozenset(stated))

    def __str__(self) -> str:
        return f"{self.priority}: {' & '.join(self.conditions())} -> {self.action}"

    def literals(self) -> Iterator[tuple[str, Atom]]:
        """Yield the conditions for reading: facts (""), absent facts ("not"), inequalities ("!="), goals ("goal")."""
        yield from (("", atom) for atom in self.in_reading_order(self.state_condition))
        yield from (("not", atom) for atom in self.in_reading_order(self.absent))
        yield from (("!=", atom) for atom in sorted(self.negative_condition - self.absent))
        yield from (("goal", atom) for atom in self.in_reading_order(self.goal_condition))

    def conditions(self) -> Iterator[str]:
        """Yield the conditions as text, as in a rule file."""
        for kind, atom in self.literals():
            yield " != ".join(atom.terms) if kind == "!=" else f"{kind} {atom}".lstrip()

    def in_reading_order(self, atoms: Facts) -> list[Atom]:
        """Return the atoms sorted: what is said of the action's first argument first, what has no arguments last."""
        head = self.action.arguments

        def rank(atom: Atom) -> tuple[bool, list[tuple[int, str]], str]:
            terms = [(head.index(term) if term in head else len(head), term) for term in atom.terms]
            return not terms, terms, atom.predicate

        return sorted(atoms, key=rank)

    def renamed(self, names: Mapping[str, str]) -> Rule:
        """Return the rule with all its variables renamed, listed in the order of `names`."""
        types = self.types
        return replace(
            self,
            variables=tuple(Parameter(new, types[old]) for old, new in names.items()),
            state_condition=substitute_all(self.state_condition, names),
            goal_condition=substitute_all(self.goal_condition, names),
            negative_condition=substitute_all(self.negative_condition, names),
            action=Action(self.action.name, tuple(names.get(a, a) for a in self.action.arguments)),
        )

    @property
    def types(self) -> dict[str, str]:
        """The types of the variables by their names."""
        return {variable.name: variable.type for variable in self.variables}

    @property
    def atoms(self) -> Facts:
        """The atoms of all conditions."""
        return self.state_condition | self.goal_condition | self.negative_condition

    @property
    def inequalities(self) -> frozenset[tuple[str, str]]:
        """Pairs of terms that must differ, the action's own included, each pair sorted."""
        head = set(self.action.arguments)
        stated = ((a.terms[0], a.terms[1]) for a in self.negative_condition if a.predicate == EQUALITY)
        return frozenset(stated).union((a, b) for a in head for b in head if a < b)

    @property
    def absent(self) -> frozenset[Atom]:
        """The facts that must be absent (the negative condition without its inequalities)."""
        return frozenset(atom for atom in self.negative_condition if atom.predicate != EQUALITY)
