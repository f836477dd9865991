"""Conditions that change no rule and no plan are left out: what an expert always saw to first need not be needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from bilevel.domain_learning.changes import Change
from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.learned import Operator
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule, canonical
from bilevel.rules.traces import Trace, TraceStep, segments, traces_from_states
from bilevel.symbolic.domain import Domain, Facts
from bilevel.symbolic.semantics import Condition, GroundAction, progress, substitute_all

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
