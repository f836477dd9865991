"""From traces to rules: cut at every goal, regress, lift, and keep what is not said already.

A pure function of the traces: the same traces give the same rules in the same order, byte for byte. At the end stands
the paper's own algorithm exactly as it is printed, to be compared with: it does not give a working policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

from bilevel.rules.derived import MARK, closures_in, with_closures
from bilevel.rules.matching import narrowest_join
from bilevel.rules.rule import GoalOrder, Rule, canonical, inequality, orders_of
from bilevel.rules.traces import Trace, TraceStep, segments
from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    ROOT_TYPE,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Outcome,
    Parameter,
)
from bilevel.symbolic.semantics import Condition, bind_outcome, makes_object, natures_choices, regress

SINGLE_GOAL, PRINTED = ALGORITHMS = ("single-goal", "printed")
MOST_CONDITIONS = 5_000  # of the printed algorithm at one step; up to twice as many after each action of two outcomes


def learn_rules(traces: Iterable[Trace], domain: Domain, algorithm: str = SINGLE_GOAL) -> tuple[Rule, ...]:
    """Return the rules that the traces show, by priority and then by text; the order of the traces does not matter.

    A rule with inequalities that only keep its own plan from going wrong comes again relaxed, that is, without them,
    after all others: where the only objects at hand coincide, trying is better than standing still.
    """
    if algorithm not in ALGORITHMS:
        raise BadInput(f"unknown algorithm '{algorithm}'; known ones: {', '.join(ALGORITHMS)}")
    if algorithm == PRINTED:
        return printed_rules(traces, domain)
    strict, relaxed = dict[Rule, int](), dict[Rule, int]()  # the lowest priority of equal rules
    for trace in traces:
        for goal, steps in segments(trace):
            for both in rules_of_segment(goal, steps, trace.objects, domain):
                for lowest, rule in zip((strict, relaxed), both, strict=True):
                    bare = replace(rule, priority=0)
                    lowest[bare] = min(rule.priority, lowest.get(bare, rule.priority))
    longest = max(strict.values(), default=0)
    rules = [replace(bare, priority=priority) for bare, priority in strict.items()]
    rules += [replace(bare, priority=longest + p) for bare, p in relaxed.items() if bare not in strict]
    return without_subsumed(_in_order(rules), domain)


def _in_order(rules: Iterable[Rule]) -> list[Rule]:
    return sorted(rules, key=lambda rule: (rule.priority, str(rule)))


def extend_rules(rules: Sequence[Rule], traces: Iterable[Trace], domain: Domain) -> tuple[Rule, ...]:
    """Return the rules as they are, and behind all of them those that the traces show beyond them."""
    last = max((rule.priority for rule in rules), default=0)
    learned = [replace(r, priority=last + r.priority, orders=orders_of(rules)) for r in learn_rules(traces, domain)]
    return (*rules, *(new for new in learned if not any(subsumes(rule, new, domain) for rule in rules)))


def rules_of_segment(
    achieved: Atom, steps: Sequence[TraceStep], objects: Mapping[str, str], domain: Domain
) -> Iterator[tuple[Rule, Rule]]:
    """Regress the one goal fact backwards over the steps; each gives a rule, counted from the goal.

    It comes with and without the inequalities that keep actions from undoing what later ones need.
    """
    goal = frozenset({achieved})
    condition = Condition(goal)
    apart = NO_FACTS
    types = _Types(domain, objects)
    types.note(goal)
    for distance, step in enumerate(reversed(steps), 1):
        regressed = regress(condition, step.action, step.outcome)
        if regressed is None:
            return
        types.note(regressed.positive)
        types.need(step.action.action.arguments, domain.schemas[step.action.action.name].parameters)
        apart |= _kept_apart(condition, step.outcome, types)
        condition = regressed
        if not condition.positive & goal:  # an unachieved goal cannot hold too
            action = step.action.action
            known = {t for atom in condition.positive | goal for t in atom.terms} | set(action.arguments)
            stated = frozenset(atom for atom in apart if known.issuperset(atom.terms))  # of objects still at issue
            strict = replace(condition, negative=condition.negative | stated)
            rule = canonical(lift(distance, strict, goal, action, types.needed, domain), domain)
            relaxed = lift(distance, condition, goal, action, types.needed, domain)
            yield rule, canonical(relaxed, domain) if stated else rule


class _Types:
    """The types that an object needs for all it does from here to the goal, instead of the one it happens to have.

    So a rule learned with a block on the platform serves a block on any surface, unless a later action asks for a
    platform.
    """

    def __init__(self, domain: Domain, objects: Mapping[str, str]) -> None:
        self.domain = domain
        self.own = {**domain.constants, **objects}
        self.needed: dict[str, str] = {}

    def related(self, one: str, other: str) -> bool:
        """Return whether variables in place of the two objects could stand for the same object."""
        kinds = self.needed.get(one, ROOT_TYPE), self.needed.get(other, ROOT_TYPE)
        return self.domain.is_subtype(*kinds) or self.domain.is_subtype(*reversed(kinds))

    def note(self, atoms: Facts) -> None:
        for atom in sorted(atoms):
            self.need(atom.terms, self.domain.predicates[atom.predicate].parameters)

    def need(self, names: Sequence[str], parameters: Sequence[Parameter]) -> None:
        """Narrow down to what is asked for; two types that have nothing in common leave the object its own."""
        for name, parameter in zip(names, parameters, strict=True):
            known = self.needed.get(name, ROOT_TYPE)
            if self.domain.is_subtype(parameter.type, known):
                self.needed[name] = parameter.type
            elif not self.domain.is_subtype(known, parameter.type):
                self.needed[name] = self.own.get(name, known)


def _kept_apart(condition: Condition, outcome: Outcome, types: _Types) -> Facts:
    """Return the inequalities without which the outcome could undo the condition.

    On the ground it did not: no fact that the condition needs was deleted, none that must be absent was added. But two
    variables of a rule may stand for one object, and then the action might put down the very thing it needs.
    """
    deleted = outcome.delete - outcome.add
    pairs = [*product(sorted(deleted), sorted(condition.positive - outcome.add))]
    pairs += product(sorted(outcome.add), sorted(condition.negative - deleted))
    apart = set()
    for differing in differences(pairs):
        if differing and all(types.related(a, b) for a, b in differing):
            apart.add(inequality(*differing[0]))  # the first argument is most often the one that tells them apart
    return frozenset(apart)


def without_subsumed(rules: Sequence[Rule], domain: Domain) -> tuple[Rule, ...]:
    """Drop every rule that another, not later in the order, makes superfluous."""
    kept: list[Rule] = []
    for rule in rules:
        if not any(subsumes(other, rule, domain) for other in kept):
            kept = [other for other in kept if other.priority < rule.priority or not subsumes(rule, other, domain)]
            kept.append(rule)
    return tuple(kept)


@lru_cache(maxsize=10_000)
def _predicates(rule: Rule) -> frozenset[tuple[str, str]]:
    """Return what a rule's conditions are made of; a closure counts as its predicate."""
    return frozenset(
        (kind, atom.predicate.removesuffix(MARK)) for kind, atom in rule.literals() if atom.predicate != EQUALITY
    )


def subsumes(general: Rule, special: Rule, domain: Domain) -> bool:
    """Return whether `general` does the same wherever `special` applies, and no later.

    The variables of `special` are taken for objects of which no more is known than its conditions say; `general` must
    apply to them, and name the same action.
    """
    if general.priority > special.priority or general.action.name != special.action.name:
        return False
    if not _predicates(general) <= _predicates(special):
        return False
    known = special.renamed({variable.name: f"={variable.name}" for variable in special.variables})
    types = {**domain.constants, **known.types}
    facts = with_closures(known.state_condition, closures_in([general], domain))
    apart = [Atom(EQUALITY, pair) for one, other in known.inequalities for pair in ((one, other), (other, one))]
    conditions = [(Atom(*general.action), [Atom(*known.action)])]
    conditions += [(atom, [*known.goal_condition]) for atom in sorted(general.goal_condition)]
    conditions += [(atom, [*facts]) for atom in sorted(general.state_condition)]
    conditions += [(atom, [*known.absent]) for atom in sorted(general.absent)]
    conditions += [(Atom(EQUALITY, pair), apart) for pair in sorted(general.inequalities)]
    used = {term for atom, _ in conditions for term in atom.terms}
    for name, kind in general.types.items():
        if name in used and kind != ROOT_TYPE:
            fitting = [Atom(kind, (each,)) for each, own in types.items() if domain.is_subtype(own, kind)]
            conditions.append((Atom(kind, (name,)), fitting))
    return any(True for _ in narrowest_join(conditions, {}))


# From ground conditions to rules: variables in place of objects


def lift(
    priority: int, condition: Condition, goal: Facts, action: Action, types: Mapping[str, str], domain: Domain
) -> Rule:
    """Return a rule with variables in place of objects, except constants that the schemas mention by name."""
    arguments = action.arguments
    implied = {inequality(a, b) for a in arguments for b in arguments if a != b} | _implied(goal, condition.positive)
    stated = (inequality(*atom.terms) if atom.predicate == EQUALITY else atom for atom in condition.negative)
    negative = frozenset(stated) - goal - implied  # an unachieved goal is absent anyway
    everything = condition.positive | negative | goal
    names = sorted({term for atom in everything for term in atom.terms} | set(arguments))
    kept = domain.named_constants
    variables = {name: f"?{i}" for i, name in enumerate(name for name in names if name not in kept)}
    of_objects = tuple(Parameter(name, types.get(name, ROOT_TYPE)) for name in variables)
    return Rule(priority, of_objects, condition.positive, goal, action, negative).renamed(variables)


def _implied(goal: Facts, state: Facts) -> Facts:
    """Return what must differ because a goal is not achieved: with at(?c, ?l) and goal at(?c, ?m), ?l is not ?m."""
    return frozenset(inequality(*found[0]) for found in differences(product(goal, state)) if len(found) == 1)


def differences(pairs: Iterable[tuple[Atom, Atom]]) -> Iterator[list[tuple[str, str]]]:
    """Yield for each pair of atoms of the same predicate the terms in which they differ."""
    for one, other in pairs:
        if one.predicate == other.predicate:
            yield [(a, b) for a, b in zip(one.terms, other.terms, strict=True) if a != b]


def lifted_order(later: Atom, earlier: Atom, domain: Domain, condition: Facts = NO_FACTS) -> GoalOrder:
    """Return the order of two goals with variables, of the types that their predicates ask for, named as in rules."""
    types = _Types(domain, {})
    types.note(frozenset({later, earlier}))
    lifted = lift(1, Condition(condition), frozenset({earlier}), Action(*later), types.needed, domain)
    return GoalOrder.from_rule(canonical(replace(lifted, negative_condition=NO_FACTS), domain))


# Algorithm 1 as it is printed: the whole goal is regressed, over every outcome of every action. Line 10 is left out, as
# line 11 makes no use of its result.


def printed_rules(traces: Iterable[Trace], domain: Domain) -> tuple[Rule, ...]:
    """Return the rules of Algorithm 1; `BadInput` where a trace has too many conditions.

    Priorities are counted from 1, as in the paper's appendix.
    """
    for schema in domain.schemas.values():
        if schema.negative_precondition:
            raise BadInput(f"Algorithm 1 knows no negative preconditions, but '{schema.name}' has one")
    return tuple(_in_order({rule for trace in traces for rule in _printed_rules_of(trace, domain)}))


def _printed_rules_of(trace: Trace, domain: Domain) -> Iterator[Rule]:
    goal, types = trace.steps[-1].goal, {**domain.constants, **trace.objects}
    conditions = {goal}
    for distance, step in enumerate(reversed(trace.steps), 1):
        outcomes = set(_possible_outcomes(step, domain, types))
        deleted = NO_FACTS.union(*(outcome.delete for outcome in outcomes))
        conditions = {  # the paper's regr: nothing where an outcome deletes what must hold
            (condition - outcome.add) | step.action.condition.positive
            for condition in conditions
            if not deleted & condition
            for outcome in outcomes
        }
        if len(conditions) > MOST_CONDITIONS:
            raise BadInput(
                f"Algorithm 1 as printed follows every outcome of every action: {distance} actions before the end of a "
                f"trace of {len(trace.steps)} it has more than {MOST_CONDITIONS:,} conditions, and is given up"
            )
        for condition in conditions:
            yield lift(distance, Condition(condition), goal, step.action.action, types, domain)


def _possible_outcomes(step: TraceStep, domain: Domain, types: Mapping[str, str]) -> Iterator[Outcome]:
    """Yield all that could have come of an action: what nature can choose are the objects of the trace.

    Where she makes an object, it is the one that she has made.
    """
    seen = {term for fact in step.state for term in fact.terms}
    made = [term for fact in sorted(step.outcome.add) for term in fact.terms if term not in seen]
    for outcome in step.action.outcomes:
        variables = [variable for variable in outcome.chosen if makes_object(variable, outcome, domain, types)]
        own = {v.name: name for v in variables for name in reversed(made) if domain.is_subtype(types[name], v.type)}
        for choice in natures_choices(outcome, domain, types):
            yield bind_outcome(outcome, choice | own)
