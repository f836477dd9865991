"""Operators in the making, and their conditions: what held each time, less what plays no part in any plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

from bilevel.domain_learning.agent import Approach
from bilevel.domain_learning.changes import Change, Episode, Seen
from bilevel.domain_learning.groups import Occurrence, satisfying
from bilevel.rules.learning import learn_rules
from bilevel.rules.matching import Binding
from bilevel.rules.rule import Rule, canonical
from bilevel.rules.traces import Trace, TraceStep, segments, traces_from_states
from bilevel.symbolic.domain import NO_FACTS, ROOT_TYPE, Atom, Domain, Facts, Outcome, Parameter, Schema
from bilevel.symbolic.semantics import Condition, GroundAction, progress, substitute_all

BESIDE = "?beside"  # the variable of an object to which the agent comes, and which the effects do not mention


@dataclass(frozen=True)
class DomainSettings:
    """How a domain is learned.

    `settling`: what changes within so many timesteps of each other is one change. `blip`: what a label says for at most
    so many timesteps is taken for a mislabel. Both are 0 for plans, where each state is a step. `fewest`: what happens
    less often, or in fewer episodes, or in a smaller `share` of all changes, is no operator. `misses`: this share of
    the occurrences may lack a condition.
    """

    settling: int = 5
    blip: int = 2
    fewest: int = 3
    share: float = 0.005
    misses: float = 0.03


@dataclass(frozen=True)
class Dropped:
    """A change that was not taken for an operator: what it was, how often it was seen, and where first."""

    text: str
    count: int
    episode: int
    step: int


@dataclass(frozen=True)
class LearnedDomain:
    """A domain with its operators and events, and what was seen of each.

    `counts` says of each schema and event how often each of its outcomes was seen; `untold` names the parameters on
    which the controls do not depend.
    """

    domain: Domain
    counts: Mapping[str, tuple[int, ...]]
    untold: Mapping[str, tuple[str, ...]]
    dropped: tuple[Dropped, ...]


@dataclass
class Operator:
    """An operator in the making, over variables that have no names yet."""

    outcomes: list[tuple[Outcome, int]]
    types: dict[str, str]  # of the parameters
    occurrences: list[Occurrence]
    approach: Approach
    raw: Facts = NO_FACTS  # all that held always
    conditions: Facts = NO_FACTS
    linked: dict[str, Facts] = field(default_factory=dict)  # further variables, and what is said of them
    negative: Facts = NO_FACTS
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
        return Schema(name, parameters, self.conditions, tuple(o for o, _ in self.outcomes), self.negative)


MOST_LINKED = 2  # further objects that conditions may name
Seens = Sequence[Seen]
MOST_STATES = 600  # in which it is looked whether a condition ever mattered
USUALLY = 0.8


@dataclass(frozen=True)
class Linked:
    """A further variable, what is said of it, and its object in each occurrence, where it has one."""

    variable: str
    conditions: Facts
    objects: tuple[str | None, ...]


def held_always(occurrences: Sequence[Occurrence], misses: int) -> Facts:
    """Return what held before all occurrences, but for a few, over their own objects."""
    counts: Counter[Atom] = Counter()
    for occurrence in occurrences:
        counts.update(_over(occurrence.change.before, _names(occurrence.binding)))
    return frozenset(atom for atom, count in counts.items() if count >= len(occurrences) - misses)


def _names(binding: Mapping[str, str]) -> dict[str, str]:
    return {name: variable for variable, name in binding.items()}


def _over(facts: Iterable[Atom], names: Mapping[str, str]) -> set[Atom]:
    """Return the facts that mention nothing but the named objects, with their names."""
    return {
        Atom(fact.predicate, tuple(names[term] for term in fact.terms))
        for fact in facts
        if all(term in names for term in fact.terms)
    }


def linked_objects(occurrences: Sequence[Occurrence], misses: int) -> list[Linked]:
    """Return further objects of which the same is said each time, by facts that link them to those of the change."""
    tables = [_links(occurrence) for occurrence in occurrences]
    found: list[Linked] = []
    whole = {frozenset(patterns) for table in tables[:3] for patterns in table.values()}
    pairs = {frozenset(pair) for patterns in whole for pair in combinations(sorted(patterns), 2)}
    for start in sorted(whole | pairs, key=lambda patterns: (-len(patterns), sorted(patterns))):
        patterns = _common(start, tables, misses)
        if any(_is_link(pattern) for pattern in patterns) and not any(patterns <= other.conditions for other in found):
            found = [other for other in found if not other.conditions <= patterns]
            objects = tuple(_fitting(table, patterns) for table in tables)
            found.append(Linked(HERE, patterns, objects))
    found.sort(key=lambda each: (-_links_together(each), -len(each.conditions), sorted(each.conditions)))
    return [
        Linked(f"?y{i}", substitute_all(each.conditions, {HERE: f"?y{i}"}), each.objects)
        for i, each in enumerate(found[:MOST_LINKED])
    ]


def _links_together(linked: Linked) -> int:
    """How many of the change's objects have to do with the further one."""
    return len({term for atom in linked.conditions for term in atom.terms if term != HERE})


HERE = "?here"


def _links(occurrence: Occurrence) -> dict[str, set[Atom]]:
    """Return what the state before says of each further object, alone or together with those of the change."""
    names = _names(occurrence.binding)
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


def _common(start: frozenset[Atom], tables: Sequence[Mapping[str, set[Atom]]], misses: int) -> frozenset[Atom]:
    """Return what of a few patterns holds of one object in all occurrences, but for a few of these."""
    patterns = start
    while patterns:
        counts: Counter[Atom] = Counter()
        for table in tables:
            counts.update(max((patterns & said for said in table.values()), key=_most, default=NO_FACTS))
        kept = frozenset(pattern for pattern in patterns if counts[pattern] >= len(tables) - misses)
        together = sum(any(kept <= said for said in table.values()) for table in tables)
        if kept == patterns and together >= len(tables) - misses:
            return patterns
        patterns = kept if kept != patterns else kept - {min(kept, key=lambda pattern: (counts[pattern], pattern))}
    return patterns


def _most(patterns: Iterable[Atom]) -> tuple[int, list[Atom]]:
    ordered = sorted(patterns)
    return len(ordered), ordered


def _fitting(table: Mapping[str, set[Atom]], patterns: frozenset[Atom]) -> str | None:
    return next((name for name, said in table.items() if patterns <= said), None)


def never_mattered(
    conditions: Facts, tested: Facts, types: Mapping[str, str], some: Collection[str], domain: Domain, seen: Seens
) -> bool:
    """Whether in all states, and for all objects of which the other conditions hold, the tested ones hold as well.

    Variables that only the tested ones have are all objects of their type, but those among `some` are any one of them.
    """
    rest = conditions - tested
    bound = {term for atom in rest for term in atom.terms}
    left = {term for atom in tested for term in atom.terms} - bound
    every_one = sorted(left.difference(some))
    for state, objects in seen[:: 1 + len(seen) // MOST_STATES]:

        def fits(binding: Binding, objects: Mapping[str, str] = objects) -> bool:
            return all(domain.is_subtype(objects.get(name, ROOT_TYPE), types[v]) for v, name in binding.items())

        choices = [[o for o, kind in objects.items() if domain.is_subtype(kind, types[v])] for v in every_one]
        for found in filter(fits, satisfying(rest, state)):
            for chosen in product(*choices):
                binding = found | dict(zip(every_one, chosen, strict=True))
                wanted = substitute_all(tested, binding)
                if not wanted <= state and not any(map(fits, satisfying(wanted, state))):
                    return False
    return True


def is_wider(one: Atom, other: Atom, seen: Seens) -> bool:
    """Whether one of two conditions on the same objects holds wherever the other does, and seldom without it."""
    if one.terms != other.terms or len(set(one.terms)) < len(one.terms):
        return False
    both = alone = 0
    for state, _ in seen:
        places, others = ({fact.terms for fact in state if fact.predicate == each.predicate} for each in (one, other))
        if not others <= places:
            return False
        both += len(others)
        alone += len(places - others)
    return alone > 0 and both >= USUALLY * (both + alone)


MOST_EPISODES = 60
MOST_STEPS = 10  # of a plan that is shortened


def without_irrelevant(
    operators: Sequence[Operator], frame: Domain, episodes: Sequence[Episode], changes: Sequence[Change]
) -> None:
    """Leave out conditions without which the same rules are learned, and no shorter plan would do.

    Those on facts that the operator deletes stay, and those on what the agent carries all the while. Of the others,
    what links further objects goes first.
    """
    shown = _shown(operators, frame, episodes, changes)
    for number, operator in enumerate(operators):
        for tested, variable in _candidates(operator):
            types = {name: kind for name, kind in operator.types.items() if name != variable}
            less = replace(operator, conditions=operator.conditions - tested, types=types)
            if variable is None and not _binds(less, operator):
                continue
            fewer = [_weakened(trace, f"a{number}", operator, less) for trace in shown]
            if _rules(shown, operators, frame, operator, less) == _rules(
                fewer, operators, frame, operator, less
            ) and not any(_is_shorter(after, before) for before, after in zip(shown, fewer, strict=True)):
                operator.conditions, operator.types = less.conditions, less.types
                operator.linked.pop(variable or "", None)
                shown = fewer


def _candidates(operator: Operator) -> Iterator[tuple[Facts, str | None]]:
    """Yield what might be left out: a further object with all that is said of it, then single conditions."""
    for variable in list(operator.linked):
        yield operator.linked[variable], variable
    linked = frozenset().union(*operator.linked.values())
    for atom in sorted(operator.conditions - operator.deleted - linked):
        if operator.approach.carried.isdisjoint(atom.terms):
            yield frozenset({atom}), None


def _binds(less: Operator, operator: Operator) -> bool:
    """Whether a parameter that some condition named is still named by one."""
    named = [{term for atom in each.conditions for term in atom.terms} for each in (less, operator)]
    return named[0] == named[1]


def _domain(operators: Sequence[Operator], frame: Domain) -> Domain:
    return replace(frame, schemas={f"a{i}": each.schema(f"a{i}") for i, each in enumerate(operators)})


def _shown(
    operators: Sequence[Operator], frame: Domain, episodes: Sequence[Episode], changes: Sequence[Change]
) -> list[Trace]:
    """Return the ways to a goal that episodes show, one of each kind, as the operators explain them."""
    domain = _domain(operators, frame)
    found: dict[object, Trace] = {}
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
                key = tuple(
                    (
                        step.action.action.name,
                        tuple(names.setdefault(o, len(names)) for o in step.action.action.arguments),
                    )
                    for step in steps
                )
                place = goal.predicate, tuple(names.get(term) for term in goal.terms)
                found.setdefault((key, place), Trace(steps, trace.objects))
    return list(found.values())


def _stories(
    episodes: Sequence[Episode], changes: Sequence[Change], predicates: Collection[str]
) -> list[tuple[list[Facts], list[Facts], dict[str, str]]]:
    """Return the settled states of some episodes, the goals there, and the objects.

    Facts of other predicates are left out: they may come and go, and no operator has to do with them.
    """

    def without(state: Facts) -> Facts:
        return frozenset(fact for fact in state if fact.predicate in predicates)

    stories: dict[int, tuple[list[Facts], list[Facts], dict[str, str]]] = {}
    for change in changes:
        episode = episodes[change.episode]
        if change.episode not in stories:
            if len(stories) == MOST_EPISODES:
                break
            stories[change.episode] = [without(change.before)], [episode.goals[0]], dict(episode.objects)
        states, goals, _ = stories[change.episode]
        for state in map(without, (change.before, change.after)):
            if states[-1] != state:
                states.append(state)
                goals.append(episode.goals[change.step])
    return list(stories.values())


def _weakened(trace: Trace, name: str, operator: Operator, less: Operator) -> Trace:
    """Return the trace with fewer conditions, and perhaps fewer arguments, of one operator."""
    kept = [index for index, variable in enumerate(operator.types) if variable in less.types]
    steps = []
    for step in trace.steps:
        done = step.action.action
        if done.name == name:
            binding = dict(zip(operator.types, done.arguments, strict=False))
            condition = Condition(substitute_all(less.conditions, binding), step.action.condition.negative)
            action = done._replace(arguments=tuple(done.arguments[index] for index in kept))
            step = replace(step, action=GroundAction(action, condition, step.action.outcomes))
        steps.append(step)
    return Trace(tuple(steps), trace.objects)


def _rules(
    traces: Sequence[Trace], operators: Sequence[Operator], frame: Domain, operator: Operator, less: Operator
) -> frozenset[Rule]:
    """Return the rules of the traces, without the arguments that the weaker form of one operator has no more."""
    number = next(number for number, each in enumerate(operators) if each is operator)
    name = f"a{number}"
    arity = max(
        (len(s.action.action.arguments) for t in traces for s in t.steps if s.action.action.name == name), default=0
    )
    forms = [less if each is operator and arity == len(less.types) else each for each in operators]
    kept = [index for index, variable in enumerate(forms[number].types) if variable in less.types]
    domain = _domain(forms, frame)
    found = set()
    for rule in learn_rules(traces, domain):
        action = rule.action
        if action.name == name:
            action = action._replace(arguments=tuple(action.arguments[index] for index in kept))
        used = {term for atom in rule.atoms for term in atom.terms} | {*action.arguments}
        variables = tuple(variable for variable in rule.variables if variable.name in used)
        found.add(canonical(replace(rule, action=action, variables=variables), domain))
    return frozenset(found)


def _is_shorter(after: Trace, before: Trace) -> bool:
    """Whether some of the steps would do where, with all conditions, more are needed."""
    if before == after or len(before.steps) > MOST_STEPS:
        return False
    return _fewest(after) < _fewest(before)


def _fewest(trace: Trace) -> int:
    """Return how many of the steps are needed, in their order, to achieve the goals that the last one achieved."""
    last = trace.steps[-1]
    wanted = last.goal & (last.next_state - last.state)
    best = len(trace.steps)

    def go_on(index: int, state: Facts, taken: int) -> None:
        nonlocal best
        if taken >= best:
            return
        if wanted <= state:
            best = taken
        elif index < len(trace.steps):
            step: TraceStep = trace.steps[index]
            if step.action.condition.holds(state):
                go_on(index + 1, progress(state, step.outcome), taken + 1)
            go_on(index + 1, state, taken)

    go_on(0, trace.steps[0].state, 0)
    return best
