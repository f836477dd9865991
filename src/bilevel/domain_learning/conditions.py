"""Operators in the making, and their conditions: what held each time, less what plays no part in any plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, islice, product
from typing import NamedTuple

from bilevel.domain_learning.agent import Approach
from bilevel.domain_learning.changes import Seen, SettledChange, ShownEpisode
from bilevel.domain_learning.groups import Occurrence, satisfying
from bilevel.rules.learning import learn_rules
from bilevel.rules.matching import Binding
from bilevel.rules.rule import Rule, canonical
from bilevel.rules.traces import Trace, segments, traces_from_states
from bilevel.symbolic.domain import NO_FACTS, ROOT_TYPE, Atom, Domain, Facts, Outcome, Parameter, Schema
from bilevel.symbolic.semantics import Condition, GroundAction, progress, substitute_all

BESIDE = "?beside"  # the variable of an object to which the agent comes, and which the effects do not mention
HERE = "?here"  # the variable of a further object
MISSES = 0.03  # this share of the occurrences may lack a condition
MOST_LINKED = 2  # further objects that conditions may name
USUALLY = 0.8  # of the times that the wider of two conditions holds
MOST_EPISODES = 60  # that show ways to goals
MOST_STEPS = 10  # of a plan that is shortened


@dataclass
class Operator:
    """An operator in the making, over variables that have no names yet."""

    outcomes: list[tuple[Outcome, int]]
    types: dict[str, str]  # of the parameters
    approach: Approach
    raw: Facts = NO_FACTS  # all that held always
    conditions: Facts = NO_FACTS
    linked: dict[str, Facts] = field(default_factory=dict)  # further variables, and what is said of them
    spared: Facts = NO_FACTS  # what is deleted, if it is there

    @property
    def deleted(self) -> Facts:
        """What is deleted must have been there, unless that was spared."""
        return frozenset(atom for outcome, _ in self.outcomes for atom in outcome.delete) - self.spared

    @property
    def count(self) -> int:
        """How often it was seen."""
        return sum(count for _, count in self.outcomes)

    @property
    def all_types(self) -> dict[str, str]:
        """The types of its parameters, and of what nature chooses."""
        return {**self.types, **{p.name: p.type for outcome, _ in self.outcomes for p in outcome.chosen}}

    def schema(self, name: str) -> Schema:
        """Return it as an action schema of this name."""
        parameters = tuple(Parameter(variable, kind) for variable, kind in self.types.items())
        return Schema(name, parameters, self.conditions, tuple(outcome for outcome, _ in self.outcomes))

    def without(self, atoms: Facts, variable: str | None = None) -> Operator:
        """Return it without some conditions, and perhaps a further variable."""
        types = {name: kind for name, kind in self.types.items() if name != variable}
        linked = {name: said for name, said in self.linked.items() if name != variable}
        return replace(self, conditions=self.conditions - atoms, types=types, linked=linked)


def misses(occurrences: int) -> int:
    """Return how many of the occurrences may lack a condition."""
    return math.floor(MISSES * occurrences)


def held_always(occurrences: Sequence[Occurrence]) -> Facts:
    """Return what held before all occurrences, but for a few, over their own objects."""
    counts: Counter[Atom] = Counter()
    for occurrence in occurrences:
        names = {name: variable for variable, name in occurrence.binding.items()}
        about = frozenset(fact for fact in occurrence.change.before if names.keys() >= set(fact.terms))
        counts.update(substitute_all(about, names))
    return frozenset(atom for atom, count in counts.items() if count >= len(occurrences) - misses(len(occurrences)))


# Further objects


class Linked(NamedTuple):
    """A further variable, what is said of it, and its object in each occurrence, where it has one."""

    variable: str
    conditions: Facts
    objects: tuple[str | None, ...]


def linked_objects(occurrences: Sequence[Occurrence]) -> list[Linked]:
    """Return further objects of which the same is said each time, but for a few, by facts that link them to the change.

    What is tried is all that two of the first three occurrences say of one object each, and one or two facts of that.
    """
    tables = [_links(occurrence) for occurrence in occurrences]
    both = combinations([table.values() for table in tables[:3]], 2)
    whole = {frozenset(said & other) for pair in both for said, other in product(*pair)}
    parts = {frozenset(part) for patterns in whole for size in (1, 2) for part in combinations(sorted(patterns), size)}
    found: list[tuple[Facts, tuple[str | None, ...]]] = []
    for patterns in sorted(whole | parts, key=lambda patterns: (-len(patterns), sorted(patterns))):
        objects = tuple(next((name for name, said in table.items() if patterns <= said), None) for table in tables)
        is_new = any(map(_is_link, patterns)) and not any(patterns <= other for other, _ in found)
        if is_new and objects.count(None) <= misses(len(tables)):
            found.append((patterns, objects))

    def order(item: tuple[Facts, object]) -> tuple[int, int, list[Atom]]:
        """Those first that have to do with most of the change's objects."""
        return -len({term for atom in item[0] for term in atom.terms if term != HERE}), -len(item[0]), sorted(item[0])

    return [
        Linked(f"?y{number}", substitute_all(patterns, {HERE: f"?y{number}"}), objects)
        for number, (patterns, objects) in enumerate(sorted(found, key=order)[:MOST_LINKED])
    ]


def _links(occurrence: Occurrence) -> dict[str, set[Atom]]:
    """Return what the state before says of each further object, alone or together with those of the change."""
    names = {name: variable for variable, name in occurrence.binding.items()}
    found: dict[str, set[Atom]] = {}
    for fact in occurrence.change.before:
        others = {term for term in fact.terms if term not in names}
        if len(others) == 1:
            (name,) = others
            pattern = Atom(fact.predicate, tuple(names.get(term, HERE) for term in fact.terms))
            found.setdefault(name, set()).add(pattern)
    return {name: found[name] for name in sorted(found) if any(map(_is_link, found[name]))}


def _is_link(pattern: Atom) -> bool:
    return any(term != HERE for term in pattern.terms)


# Conditions that never mattered


def instances(
    conditions: Facts, types: Mapping[str, str], every: Sequence[str], domain: Domain, seen: Seen
) -> Iterator[Binding]:
    """Give the objects, of their types, for which the conditions hold; variables in `every` are each of their type."""

    def fits(binding: Binding) -> bool:
        return all(domain.is_subtype(seen.objects.get(name, ROOT_TYPE), types[v]) for v, name in binding.items())

    choices = [[o for o, kind in seen.objects.items() if domain.is_subtype(kind, types[v])] for v in every]
    for found in filter(fits, satisfying(conditions, seen.state)):
        for chosen in product(*choices):
            yield found | dict(zip(every, chosen, strict=True))


def never_mattered(
    conditions: Facts,
    tested: Facts,
    types: Mapping[str, str],
    domain: Domain,
    states: Iterable[Seen],
    some: Collection[str] = (),
) -> bool:
    """Return whether in all states, for all objects of which the other conditions hold, the tested ones hold as well.

    Variables that only the tested ones have are all objects of their type, but those among `some` are any one of them.
    """
    rest = conditions - tested
    bound = {term for atom in rest for term in atom.terms}
    every = sorted({term for atom in tested for term in atom.terms} - bound - set(some))
    for seen in states:
        for binding in instances(rest, types, every, domain, seen):
            wanted = substitute_all(tested, binding)
            if not wanted <= seen.state and next(instances(wanted, types, (), domain, seen), None) is None:
                return False
    return True


def is_wider(one: Atom, other: Atom, states: Iterable[Seen]) -> bool:
    """Whether one of two conditions on the same objects holds wherever the other does, and seldom without it."""
    if one.terms != other.terms or len(set(one.terms)) < len(one.terms):
        return False
    both = alone = 0
    for state, _ in states:
        places, others = ({fact.terms for fact in state if fact.predicate == each.predicate} for each in (one, other))
        if not others <= places:
            return False
        both += len(others)
        alone += len(places - others)
    return alone > 0 and both >= USUALLY * (both + alone)


# Conditions that play no part in any plan


def without_irrelevant(
    operators: Sequence[Operator], frame: Domain, episodes: Sequence[ShownEpisode], changes: Sequence[SettledChange]
) -> list[Operator]:
    """Return the operators without the conditions without which the same rules are learned, and no shorter plan does.

    Those on facts that the operator deletes stay, and those on what the agent carries all the while. Of the others,
    what links further objects goes first.
    """
    result = list(operators)
    shown = _shown(operators, frame, episodes, changes)
    for number, operator in enumerate(operators):
        for tested, variable in _candidates(operator):
            less = result[number].without(tested, variable)
            if variable is None and _named(less) != _named(result[number]):
                continue
            kept = [place for place, name in enumerate(result[number].types) if name in less.types]
            name, weaker = f"a{number}", [*result[:number], less, *result[number + 1 :]]
            fewer = [_weakened(trace, name, result[number], less, kept) for trace in shown]
            before = _rules(shown, _domain(result, frame), name, kept)
            after = _rules(fewer, _domain(weaker, frame), name)
            if before == after and not any(map(_is_shorter, fewer, shown)):
                result, shown = weaker, fewer
    return result


def _candidates(operator: Operator) -> Iterator[tuple[Facts, str | None]]:
    """Yield what might be left out: a further object with all that is said of it, then single conditions."""
    for variable, said in operator.linked.items():
        yield said, variable
    linked = NO_FACTS.union(*operator.linked.values())
    for atom in sorted(operator.conditions - operator.deleted - linked):
        if operator.approach.carried.isdisjoint(atom.terms):
            yield frozenset({atom}), None


def _named(operator: Operator) -> set[str]:
    return {term for atom in operator.conditions for term in atom.terms}


def _domain(operators: Sequence[Operator], frame: Domain) -> Domain:
    return replace(frame, schemas={f"a{i}": each.schema(f"a{i}") for i, each in enumerate(operators)})


def _shown(
    operators: Sequence[Operator], frame: Domain, episodes: Sequence[ShownEpisode], changes: Sequence[SettledChange]
) -> list[Trace]:
    """Return the ways to a goal that episodes show, one of each kind, as the operators explain them."""
    found: dict[object, Trace] = {}
    domain = _domain(operators, frame)
    ours = {
        atom.predicate
        for each in operators
        for outcome, _ in each.outcomes
        for atom in outcome.add | outcome.delete | each.conditions
    }
    for states, goals, objects in _stories(episodes, changes, ours):
        for trace in traces_from_states(domain, states, goals, objects, settling=0).traces:
            for goal, steps in segments(trace):
                names: dict[str, int] = {}
                actions = [step.action.action for step in steps]
                key = tuple((a.name, *(names.setdefault(o, len(names)) for o in a.arguments)) for a in actions)
                place = goal.predicate, tuple(names.get(term) for term in goal.terms)
                found.setdefault((key, place), Trace(steps, trace.objects))
    return list(found.values())


def _stories(
    episodes: Sequence[ShownEpisode], changes: Sequence[SettledChange], predicates: Collection[str]
) -> Iterable[tuple[list[Facts], list[Facts], Mapping[str, str]]]:
    """Return the settled states of some episodes, the goals there, and the objects.

    Facts of other predicates are left out: they may come and go, and no operator has to do with them.
    """
    for number, group in islice(groupby(changes, key=lambda change: change.episode), MOST_EPISODES):
        goals, states, wanted = episodes[number].goals, list[Facts](), list[Facts]()
        for change in group:
            for state in (change.before, change.after):
                kept = frozenset(fact for fact in state if fact.predicate in predicates)
                if not states or states[-1] != kept:
                    wanted.append(goals[change.step if states else 0])
                    states.append(kept)
        yield states, wanted, episodes[number].objects


def _weakened(trace: Trace, name: str, operator: Operator, less: Operator, kept: Sequence[int]) -> Trace:
    """Return the trace with fewer conditions, and perhaps fewer arguments, of one operator."""
    steps = []
    for step in trace.steps:
        done = step.action.action
        if done.name == name:
            binding = dict(zip(operator.types, done.arguments, strict=False))
            condition = Condition(substitute_all(less.conditions, binding), step.action.condition.negative)
            action = done._replace(arguments=tuple(done.arguments[place] for place in kept))
            step = replace(step, action=GroundAction(action, condition, step.action.outcomes))
        steps.append(step)
    return Trace(tuple(steps), trace.objects)


def _rules(traces: Sequence[Trace], domain: Domain, name: str, kept: Sequence[int] | None = None) -> frozenset[Rule]:
    """Return the rules of the traces; of the arguments of the operator of this name, only those that are kept."""
    found = set()
    for rule in learn_rules(traces, domain):
        action = rule.action
        if kept is not None and action.name == name:
            action = action._replace(arguments=tuple(action.arguments[place] for place in kept))
        used = {term for atom in rule.atoms for term in atom.terms} | {*action.arguments}
        variables = tuple(variable for variable in rule.variables if variable.name in used)
        found.add(canonical(replace(rule, action=action, variables=variables), domain))
    return frozenset(found)


def _is_shorter(after: Trace, before: Trace) -> bool:
    """Whether some of the steps would do where, with all conditions, more are needed."""
    return before != after and len(before.steps) <= MOST_STEPS and _fewest(after) < _fewest(before)


def _fewest(trace: Trace) -> int:
    """Return how many of the steps are needed, in their order, to achieve the goals that the last one achieved."""
    last = trace.steps[-1]
    wanted = last.goal & (last.next_state - last.state)
    fewest = {trace.steps[0].state: 0}  # to each state that can be reached
    for step in trace.steps:
        for state, taken in list(fewest.items()):
            if step.action.condition.holds(state):
                after = progress(state, step.outcome)
                fewest[after] = min(taken + 1, fewest.get(after, taken + 1))
    return min((taken for state, taken in fewest.items() if wanted <= state), default=len(trace.steps))
