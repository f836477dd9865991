"""From traces to rules: cut at every goal, regress, lift, and keep what is not said already.

A pure function of the traces: the same traces give the same rules in the same order, byte for byte. The paper's own
algorithm, which does not give a working policy, is in `printed_algorithm`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

from bilevel.rules.closures import MARK, closures_in
from bilevel.rules.derived import with_closures
from bilevel.rules.lifting import differences, lift
from bilevel.rules.matching import Binding, join
from bilevel.rules.printed_algorithm import printed_rules
from bilevel.rules.rule import Rule, canonical, inequality
from bilevel.rules.traces import Trace, TraceStep, segments
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Atom, BadInput, Domain, Facts, Outcome, Parameter, is_variable
from bilevel.symbolic.semantics import Condition, GroundAction, regress

SINGLE_GOAL, PRINTED = ALGORITHMS = ("single-goal", "printed")


def learn_rules(traces: Iterable[Trace], domain: Domain, algorithm: str = SINGLE_GOAL) -> tuple[Rule, ...]:
    """Return the rules that the traces show, by priority and then by text.

    With the `algorithm` "printed" they are those of Algorithm 1 as the paper prints it, to be compared with.
    """
    if algorithm not in ALGORITHMS:
        raise BadInput(f"unknown algorithm '{algorithm}'; known ones: {', '.join(ALGORITHMS)}")
    if algorithm == PRINTED:
        return printed_rules(traces, domain)
    learner = RuleLearner(domain)
    for trace in traces:
        learner.add(trace)
    return learner.rules()


class RuleLearner:
    """Learns from one trace after the other; in which order they come does not matter for the rules.

    A rule with inequalities that only keep its own plan from going wrong comes again relaxed, that is, without them,
    after all others: where the only objects at hand coincide, trying is better than standing still.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._strict: dict[Rule, int] = {}
        self._relaxed: dict[Rule, int] = {}

    def add(self, trace: Trace) -> bool:
        """Learn from a trace; return whether it shows a rule that is new or has a lower priority than before."""
        found = [
            (rule, without_inequalities)
            for goal, steps in segments(trace)
            for rule, without_inequalities in rules_of_segment(goal, steps, trace.objects, self._domain)
        ]
        news = [_note(self._strict, rule) for rule, _ in found]
        news += [_note(self._relaxed, relaxed) for _, relaxed in found]
        return any(news)

    def rules(self) -> tuple[Rule, ...]:
        """Return the rules of all traces so far, by priority and then by text."""
        longest = max(self._strict.values(), default=0)
        rules = [replace(bare, priority=p) for bare, p in self._strict.items()]
        rules += [replace(bare, priority=longest + p) for bare, p in self._relaxed.items() if bare not in self._strict]
        return without_subsumed(sorted(rules, key=lambda rule: (rule.priority, str(rule))), self._domain)


def extend_rules(rules: Sequence[Rule], traces: Iterable[Trace], domain: Domain) -> tuple[Rule, ...]:
    """Return the rules as they are, and behind all of them those that the traces show beyond them."""
    last = max((rule.priority for rule in rules), default=0)
    learned = [replace(rule, priority=last + rule.priority) for rule in learn_rules(traces, domain)]
    return (*rules, *(new for new in learned if not any(subsumes(rule, new, domain) for rule in rules)))


def _note(lowest: dict[Rule, int], rule: Rule) -> bool:
    """Keep the lowest priority of equal rules; return whether this one's is lower than those before."""
    bare = replace(rule, priority=0)
    if bare in lowest and lowest[bare] <= rule.priority:
        return False
    lowest[bare] = rule.priority
    return True


def rules_of_segment(
    achieved: Atom, steps: Sequence[TraceStep], objects: Mapping[str, str], domain: Domain
) -> Iterator[tuple[Rule, Rule]]:
    """Regress the one goal fact backwards over the steps; each gives a rule, counted from the goal.

    It comes with and without the inequalities that keep actions from undoing what later ones need.
    """
    goal = frozenset({achieved})
    condition = Condition(goal)
    apart: Facts = frozenset()
    types = _Types(domain, objects)
    types.note(goal)
    for distance, step in enumerate(reversed(steps), 1):
        regressed = regress(condition, step.action, step.outcome)
        if regressed is None:
            return
        types.note(regressed.positive)
        types.note_arguments(step.action)
        apart |= _kept_apart(condition, step.outcome, types)
        condition = regressed
        if not condition.positive & goal:  # an unachieved goal cannot hold too
            known = {t for atom in condition.positive | goal for t in atom.terms} | set(step.action.action.arguments)
            stated = frozenset(atom for atom in apart if known.issuperset(atom.terms))  # of objects still at issue
            strict = replace(condition, negative=condition.negative | stated)
            rule = canonical(lift(distance, strict, goal, step.action, types.needed, domain), domain)
            relaxed = lift(distance, condition, goal, step.action, types.needed, domain)
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
            self._need(atom.terms, self.domain.predicates[atom.predicate].parameters)

    def note_arguments(self, action: GroundAction) -> None:
        self._need(action.action.arguments, self.domain.schemas[action.action.name].parameters)

    def _need(self, names: Sequence[str], parameters: Sequence[Parameter]) -> None:
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
    objects = {variable.name: f"={variable.name}" for variable in special.variables}
    known = special.renamed(objects)
    types = {**domain.constants, **known.types}
    facts = with_closures(known.state_condition, closures_in([general], domain))
    conditions = [(Atom(*general.action), frozenset({Atom(*known.action)}))]
    conditions += [(atom, known.goal_condition) for atom in sorted(general.goal_condition)]
    conditions += [(atom, facts) for atom in sorted(general.state_condition)]
    conditions += [(atom, known.absent) for atom in sorted(general.absent)]

    def holds(binding: Binding, is_whole: bool = False) -> bool:
        differing = (tuple(binding.get(term, term) for term in pair) for pair in general.inequalities)
        settled = (pair for pair in differing if is_whole or not any(map(is_variable, pair)))
        return {tuple(sorted(pair)) for pair in settled} <= known.inequalities and all(
            domain.is_subtype(types.get(binding[variable.name], ROOT_TYPE), variable.type)
            for variable in general.variables
            if variable.name in binding
        )

    def is_met(rest: Sequence[tuple[Atom, Facts]], binding: Binding) -> bool:
        """Return whether the rest can be met, too, beginning with what can be met in the fewest ways."""
        if not rest:
            return holds(binding, is_whole=True)
        found = [[*join([condition], binding)] for condition in rest]
        fewest = min(range(len(rest)), key=lambda place: len(found[place]))
        others = [*rest[:fewest], *rest[fewest + 1 :]]
        return any(holds(extended) and is_met(others, extended) for extended in found[fewest])

    return is_met(conditions, {})
