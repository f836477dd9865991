"""Effects with `when` and `forall`, and the outcomes that they have in a given case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from bilevel.symbolic.adl_formulas import (
    MOST_CASES,
    Case,
    Exists,
    Formula,
    Reading,
    Test,
    TooManyCases,
    quantified,
    question,
    read_formula,
    truth,
)
from bilevel.symbolic.domain import EQUALITY, Atom, Outcome
from bilevel.symbolic.expressions import Expression, Group, Misread, as_group
from bilevel.symbolic.pddl_effects import MOST_OUTCOMES, NOTHING, Scope, read_effect, together
from bilevel.symbolic.pddl_parts import read_typed, refusal
from bilevel.symbolic.semantics import bind_outcome


@dataclass(frozen=True, slots=True)
class Plain:
    """The outcomes of an effect without conditions."""

    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Together:
    parts: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    parts: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class When:
    condition: Formula
    part: Effect


Effect = Plain | Together | OneOf | When


def read_adl_effect(expression: Expression, reading: Reading) -> Effect:
    group = as_group(expression, "an effect")
    if group.head == "and":
        return _together(group, [read_adl_effect(part, reading) for part in group.arguments])
    if group.head == "oneof" and group.arguments:
        return OneOf(tuple(read_adl_effect(part, reading) for part in group.arguments))
    if group.head == "when":
        if len(group.arguments) != 2:
            raise Misread(group.offset, f"'when' takes a condition and an effect, not {len(group.arguments)} arguments")
        condition, part = group.arguments
        return When(read_formula(condition, replace(reading, spell_out=True)), read_adl_effect(part, reading))
    if group.head == "forall":
        declared, part = quantified(group, "effect")
        variables = read_typed(declared.items, "a variable", reading.domain.types)
        readings = reading.spelt_out(group, variables)
        if not readings:  # of mistakes we want to hear all the same
            read_adl_effect(part, replace(reading, terms={**reading.terms, **variables}))
        return _together(group, [read_adl_effect(part, each) for each in readings])
    return _read_plain(group, reading)


def _together(group: Group, parts: Sequence[Effect]) -> Together:
    """The parts at once; nature's variables in them must be different ones."""
    chosen = [name for part in parts for name in sorted(_chosen(part))]
    for name in chosen:
        if chosen.count(name) > 1:
            raise Misread(group.offset, f"'{name}' is chosen twice in one outcome; rename one, or write out 'forall'")
    return Together(tuple(parts))


def _chosen(effect: Effect) -> set[str]:
    match effect:
        case Plain(outcomes):
            return {variable.name for outcome in outcomes for variable in outcome.chosen}
        case When(_, part):
            return _chosen(part)
    return set().union(*map(_chosen, effect.parts))


def _read_plain(group: Group, reading: Reading) -> Plain:
    """Facts that come and go, costs, and the existential effect, as the plain reader reads them."""
    if group.head == "exists":
        for inner in _groups(group):
            if inner.head in ("when", "forall"):
                raise refusal(inner.head, inner.offset, f"'{inner.head}' inside an existential effect")
    outcomes = read_effect(group, Scope(reading.domain, reading.terms, reading.functions))
    return Plain(tuple(bind_outcome(outcome, reading.binding) for outcome in outcomes))


def _groups(group: Group) -> Iterator[Group]:
    for item in group.items:
        if isinstance(item, Group):
            yield item
            yield from _groups(item)


def settled(effect: Effect, starts: Iterable[Case]) -> list[Case]:
    """The cases split up until each settles every condition of the effect; parts of one have no state in common."""
    done: dict[Case, None] = {}
    waiting = list(starts)[::-1]
    while waiting:
        case = waiting.pop()
        atom = _question(effect, case)
        if atom is None:
            done[case] = None
        else:
            given = [case.given(Test(atom, wanted)) for wanted in (False, True)]
            waiting += [part for part in given if part is not None]
        if len(done) + len(waiting) > MOST_CASES:
            raise TooManyCases
    return list(done)


def _question(effect: Effect, case: Case) -> Atom | None:
    """An atom that decides about the effect and that the case leaves open."""
    match effect:
        case Together(parts) | OneOf(parts):
            return next((atom for part in parts if (atom := _question(part, case)) is not None), None)
        case When(condition, part):
            holds = truth(condition, case)
            if holds is None:
                return question(condition, case)
            return _question(part, case) if holds else None
    return None


def outcomes_in(effect: Effect, case: Case) -> Sequence[Outcome]:
    """All that nature may make of the effect, in the order in which it is written, where the case settles it."""
    match effect:
        case Plain(outcomes):
            return outcomes
        case When(condition, part):
            return outcomes_in(part, case) if truth(condition, case) else (NOTHING,)
        case OneOf(parts):
            return _bounded([outcome for part in parts for outcome in outcomes_in(part, case)])
        case Together(parts):
            choices = [outcomes_in(part, case) for part in parts]
            if prod(map(len, choices)) > MOST_OUTCOMES:
                raise TooManyCases
            return [together(chosen) for chosen in product(*choices)]


def _bounded(outcomes: list[Outcome]) -> list[Outcome]:
    if len(outcomes) > MOST_OUTCOMES:
        raise TooManyCases
    return outcomes


def fixed_variables(effect: Effect, fixed: frozenset[str]) -> set[str]:
    """The variables about which conditions ask something that never changes."""
    match effect:
        case Together(parts) | OneOf(parts):
            return set().union(*(fixed_variables(part, fixed) for part in parts))
        case When(condition, part):
            return fixed_variables(part, fixed) | _variables_in(condition, fixed)
    return set()


def _variables_in(formula: Formula, fixed: frozenset[str]) -> set[str]:
    if isinstance(formula, Test):
        never_changes = formula.atom.predicate == EQUALITY or formula.atom.predicate in fixed
        return {term for term in formula.atom.terms if term.startswith("?")} if never_changes else set()
    assert not isinstance(formula, Exists), "existential quantifiers are spelt out in effects"
    return set().union(*(_variables_in(part, fixed) for part in formula.parts))
