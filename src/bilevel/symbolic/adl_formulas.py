"""Conditions with `or`, `imply` and quantifiers, and the plain cases in which they hold.

A formula is in negation normal form and free of universal quantifiers: those are spelt out over a problem's objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Atom, Domain, Facts, Parameter, is_variable
from bilevel.symbolic.expressions import Expression, Group, Misread, as_group
from bilevel.symbolic.pddl_parts import read_literal, read_typed
from bilevel.symbolic.semantics import substitute

MOST_CASES = 4096  # of one condition, and of one action
MOST_BINDINGS = 100_000  # of the quantifiers around one atom


@dataclass(frozen=True, slots=True)
class Test:
    """Whether an atom holds or, where it is not `wanted`, whether it does not."""

    atom: Atom
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Exists:
    """The part holds for some objects; the variables have names that occur nowhere else."""

    variables: tuple[Parameter, ...]
    part: Formula


Formula = Test | AllOf | AnyOf | Exists

TRUE, FALSE = AllOf(), AnyOf()


class TooManyCases(Exception):
    """A formula or an effect that would be spelt out without end."""


# --- Reading


@dataclass(frozen=True)
class Reading:
    """What can be said where a condition or an effect stands.

    `terms` has the types of all terms in scope. Variables in `binding` stand for these objects, or for variables that
    have got another name. `fixed` are the predicates that no action changes, and `state` tells which of their facts
    hold. Existential quantifiers are spelt out too if `spell_out`.
    """

    domain: Domain
    objects: Mapping[str, str]
    terms: Mapping[str, str]
    state: Facts
    fixed: frozenset[str]
    functions: frozenset[str] = frozenset()
    binding: Mapping[str, str] = field(default_factory=dict)
    spell_out: bool = False
    bindings: int = 1  # that the quantifiers around have

    def atom(self, atom: Atom) -> Atom:
        return substitute(atom, self.binding)

    def test(self, atom: Atom, wanted: bool) -> Formula:
        """The test of an atom, decided where its truth never changes."""
        atom = self.atom(atom)
        if any(map(is_variable, atom.terms)) or not (atom.predicate == EQUALITY or atom.predicate in self.fixed):
            return Test(atom, wanted)
        holds = atom in self.state if atom.predicate != EQUALITY else atom.terms[0] == atom.terms[1]
        return TRUE if holds == wanted else FALSE

    def spelt_out(self, group: Group, variables: Mapping[str, str]) -> list[Reading]:
        """One reading for each way to choose objects for the variables."""
        fitting = [self.fitting(kind) for kind in variables.values()]
        count = self.bindings * prod(map(len, fitting))
        if count > MOST_BINDINGS:
            raise Misread(group.offset, f"the objects make more than {MOST_BINDINGS} cases of this '{group.head}'")
        return [
            replace(
                self,
                terms={**self.terms, **variables},
                binding={**self.binding, **dict(zip(variables, values, strict=True))},
                bindings=count,
            )
            for values in product(*fitting)
        ]

    def fitting(self, kind: str) -> list[str]:
        """The objects of a type."""
        return [name for name, its in self.objects.items() if self.domain.is_subtype(its, kind)]

    def renamed(self, group: Group, variables: Mapping[str, str]) -> tuple[Reading, tuple[Parameter, ...]]:
        """A reading in which the variables have names of their own, by the place and by what is bound around it."""
        suffix = ":".join([str(group.offset), *self.binding.values()])
        fresh = {name: f"{name}:{suffix}" for name in variables}  # no user's names have a colon
        scope = replace(self, terms={**self.terms, **variables}, binding={**self.binding, **fresh})
        return scope, tuple(Parameter(fresh[name], kind) for name, kind in variables.items())


def quantified(group: Group, what: str) -> tuple[Group, Expression]:
    """The list of variables and the part of `(forall (?x - t) part)`."""
    if len(group.arguments) != 2:
        raise Misread(group.offset, f"'{group.head}' takes a list of variables and one {what}")
    return as_group(group.arguments[0], "a list of variables"), group.arguments[1]


def read_formula(expression: Expression, reading: Reading, wanted: bool = True) -> Formula:
    """The condition or, where it is not `wanted`, its opposite."""
    group = as_group(expression, "a condition")
    match group.head if group.items else "and":
        case "and":
            return joined(wanted, [read_formula(part, reading, wanted) for part in group.arguments])
        case "or":
            return joined(not wanted, [read_formula(part, reading, wanted) for part in group.arguments])
        case "imply":
            _require_arguments(group, 2)
            premise, conclusion = group.arguments
            parts = [read_formula(premise, reading, not wanted), read_formula(conclusion, reading, wanted)]
            return joined(not wanted, parts)
        case "not":
            _require_arguments(group, 1)
            return read_formula(group.arguments[0], reading, not wanted)
        case "forall" | "exists":
            return _read_quantifier(group, reading, wanted)
    return reading.test(read_literal(group, reading.domain, reading.terms), wanted)


def _require_arguments(group: Group, count: int) -> None:
    if len(group.arguments) != count:
        takes = "one condition" if count == 1 else f"{count} conditions"
        raise Misread(group.offset, f"'{group.head}' takes {takes}, not {len(group.arguments)}")


def _read_quantifier(group: Group, reading: Reading, wanted: bool) -> Formula:
    declared, part = quantified(group, "condition")
    variables = read_typed(declared.items, "a variable", reading.domain.types)
    for_all = (group.head == "forall") == wanted
    if for_all or reading.spell_out:
        readings = reading.spelt_out(group, variables)
        if not readings:  # of mistakes we want to hear all the same
            read_formula(part, replace(reading, terms={**reading.terms, **variables}))
        return joined(for_all, [read_formula(part, each, wanted) for each in readings])
    inner, parameters = reading.renamed(group, variables)
    return Exists(parameters, read_formula(part, inner, wanted))


def joined(for_all: bool, parts: Sequence[Formula]) -> Formula:
    """All of the parts or any of them; `TRUE` and `FALSE` are left out or decide."""
    decisive, neutral = (FALSE, TRUE) if for_all else (TRUE, FALSE)
    if decisive in parts:
        return decisive
    kept = tuple(dict.fromkeys(part for part in parts if part != neutral))
    if len(kept) == 1:
        return kept[0]
    return AllOf(kept) if for_all else AnyOf(kept)


# --- Cases


@dataclass(frozen=True, slots=True)
class Case:
    """A conjunction of literals, with the variables of existential quantifiers that it mentions.

    Variables in `same` are known to be equal to another term, which stands in their place.
    """

    positive: Facts = NO_FACTS
    negative: Facts = NO_FACTS
    variables: tuple[Parameter, ...] = ()
    same: tuple[tuple[str, str], ...] = ()

    def standing(self, atom: Atom) -> Atom:
        """The atom with each variable replaced by the term that stands for it; the terms of `=` are in order."""
        for variable, term in self.same:  # a term that stands for another one now may have to give way later
            atom = substitute(atom, {variable: term})
        if atom.predicate == EQUALITY:
            return atom._replace(terms=tuple(sorted(atom.terms)))
        return atom

    def value(self, atom: Atom) -> bool | None:
        """Whether the atom holds in this case; `None` where it may or may not."""
        atom = self.standing(atom)
        if atom.predicate == EQUALITY:
            if atom.terms[0] == atom.terms[1]:
                return True
            if not any(map(is_variable, atom.terms)):
                return False
        if atom in self.positive:
            return True
        return False if atom in self.negative else None

    def given(self, test: Test) -> Case | None:
        """The case in which the test holds as well, if there is one."""
        known = self.value(test.atom)
        if known is not None:
            return self if known == test.wanted else None
        atom = self.standing(test.atom)
        if not test.wanted:
            return replace(self, negative=self.negative | {atom})
        if atom.predicate != EQUALITY:
            return replace(self, positive=self.positive | {atom})
        variable, term = atom.terms if is_variable(atom.terms[0]) else atom.terms[::-1]
        equal = replace(self, same=(*self.same, (variable, term)))
        return equal._restated()

    def _restated(self) -> Case | None:
        """With every literal about the terms that stand now; `None` where two of them contradict each other."""
        positive = frozenset(map(self.standing, self.positive))
        negative = frozenset(map(self.standing, self.negative))
        restated = replace(self, positive=NO_FACTS, negative=NO_FACTS)
        if positive & negative or any(restated.value(atom) is True for atom in negative):
            return None
        return replace(self, positive=positive, negative=negative)

    @property
    def precondition(self) -> Facts:
        return self.positive | {Atom(EQUALITY, pair) for pair in self.same}


def truth(formula: Formula, case: Case) -> bool | None:
    """Whether the formula holds in the case; `None` where it may or may not."""
    match formula:
        case Test(atom, wanted):
            value = case.value(atom)
            return None if value is None else value == wanted
        case AllOf(parts) | AnyOf(parts):
            decisive = isinstance(formula, AnyOf)
            values = [truth(part, case) for part in parts]
            return decisive if decisive in values else None if None in values else not decisive
    raise AssertionError("existential quantifiers are spelt out where truth matters")


def question(formula: Formula, case: Case) -> Atom | None:
    """An atom on which the formula's truth depends; `None` where the case settles it."""
    if truth(formula, case) is not None:
        return None
    if isinstance(formula, Test):
        return formula.atom
    assert isinstance(formula, AllOf | AnyOf)
    return next(atom for part in formula.parts if (atom := question(part, case)) is not None)


def cases(formula: Formula, start: Case = Case()) -> list[Case]:  # noqa: B008 (a constant)
    """Cases, more special than the given one, of which one applies wherever the formula holds."""
    return _bounded(_cases(formula, start))


def _cases(formula: Formula, start: Case) -> Iterable[Case]:
    match formula:
        case Test():
            given = start.given(formula)
            return () if given is None else (given,)
        case AllOf(parts):
            found: Iterable[Case] = (start,)
            for part in sorted(
                parts, key=lambda part: not isinstance(part, Test)
            ):  # literals first: they rule out most
                found = _bounded(after for before in found for after in _cases(part, before))
            return found
        case AnyOf(parts):
            return (found for part in parts for found in _cases(part, start))
        case Exists(variables, part):
            return _cases(part, replace(start, variables=start.variables + variables))


def _bounded(found: Iterable[Case]) -> list[Case]:
    """Without repetitions."""
    different: dict[Case, None] = {}
    for case in found:
        different[case] = None
        if len(different) > MOST_CASES:
            raise TooManyCases
    return list(different)
