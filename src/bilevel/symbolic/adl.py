"""ADL, compiled away: a domain and a problem for a planner that knows only plain actions.

Beyond the plain language this reads `or`, `imply`, `not`, `forall` and `exists` in conditions, `when` and `forall` in
effects, negative goals, and several actions of one name. Quantifiers are spelt out over the problem's objects. What an
action does is worked out case by case, and each case becomes an action of its own; the meaning stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from os import PathLike, fspath

from bilevel.symbolic.adl_conditions import Context, cases, few, joined, narrowed
from bilevel.symbolic.domain import EQUALITY, Action, Atom, BadInput, Domain, Outcome, Predicate, Problem, Schema
from bilevel.symbolic.expressions import (
    Expression,
    Group,
    Misread,
    Word,
    as_group,
    as_name,
    naming_position,
    normalised,
    read_text,
)
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.pddl_domain import action_parts, domain_frame, read_parameters
from bilevel.symbolic.pddl_effects import NOTHING, Scope, bounded, conjunction, read_effect
from bilevel.symbolic.pddl_problem import problem_frame
from bilevel.symbolic.semantics import Condition, bind_outcome

MOST_ACTIONS = 20_000  # that a domain is compiled into
MOST_ARGUMENTS = 10_000  # of one action that are looked at one by one

NOTHING_WRITTEN = Group((), 0)
NEVER = Atom("goal:never")  # which nothing adds; no user's names have a colon


@dataclass(frozen=True)
class Compiled:
    """A plain domain and problem, and for each action with a new name the user's action that it is a case of."""

    domain: Domain
    problem: Problem
    origins: Mapping[str, Action] = field(default_factory=dict)

    def users_action(self, action: Action) -> Action:
        """The action in the words of the user's domain."""
        origin = self.origins.get(action.name)
        if origin is None:
            return action
        parameters = self.domain.schemas[action.name].parameters
        values = dict(zip((parameter.name for parameter in parameters), action.arguments, strict=True))
        return Action(origin.name, tuple(values.get(term, term) for term in origin.arguments))


def read_for_planning(domain_path: str | PathLike[str], problem_path: str | PathLike[str]) -> Compiled:
    """The files as they are where they are plain, which is quick, and compiled where they are not."""
    texts = read_text(domain_path), read_text(problem_path)
    names = fspath(domain_path), fspath(problem_path)
    try:
        domain = parse_domain(texts[0], names[0])
        return Compiled(domain, parse_problem(texts[1], domain, names[1]))
    except BadInput:
        return compile_adl(*texts, *names)


def is_readable_for_planning(domain_path: str | PathLike[str], problem_path: str | PathLike[str]) -> bool:
    try:
        read_for_planning(domain_path, problem_path)
    except BadInput:
        return False
    return True


def compile_adl(
    domain_text: str, problem_text: str, domain_name: str = "<domain>", problem_name: str = "<problem>"
) -> Compiled:
    """The texts compiled; the names are those of the files, for messages."""
    domain_text, problem_text = normalised(domain_text), normalised(problem_text)
    with naming_position(domain_text, domain_name):
        domain, actions, functions = domain_frame(domain_text)
        effects = [action_parts(action).get(":effect", NOTHING_WRITTEN) for action in actions]
    with naming_position(problem_text, problem_name):
        name, objects, state, goal_section = problem_frame(problem_text, domain)
    objects = {**domain.constants, **objects}
    static = frozenset(domain.predicates) - {name for effect in effects for name in _changed(effect)}
    context = Context(domain, objects, state, static, functions, objects)
    with naming_position(problem_text, problem_name):
        goal = _read_goal(goal_section, context)
    with naming_position(domain_text, domain_name):
        schemas, origins = _compile_actions(actions, context)
    if NEVER in goal.positive:
        domain = replace(domain, predicates={**domain.predicates, NEVER.predicate: Predicate(NEVER.predicate)})
    domain = replace(domain, schemas=schemas, constants=objects)  # as quantifiers spelt out name them
    return Compiled(domain, Problem(name, domain.name, {}, state, goal.positive, goal.negative), origins)


def _changed(effect: Expression) -> Iterator[str]:
    """Every name that stands where an effect may change a fact, conditions left out."""
    if isinstance(effect, Group):
        yield effect.head
        for item in effect.arguments[1 if effect.head in ("when", "forall", "exists") else 0 :]:
            yield from _changed(item)


def _read_goal(section: Group, context: Context) -> Condition:
    if len(section.arguments) != 1:
        raise Misread(section.offset, f"':goal' takes one condition, not {len(section.arguments)}")
    found = cases(section.arguments[0], context)
    weakest = [case for case in found if not any(other != case and joined(case, other) == case for other in found)]
    if len(weakest) > 1:
        raise Misread(
            section.offset,
            f"goals with a choice are not supported: this one can be met in {len(weakest)} ways; "
            "let an action for each of them add one fact, and make that the goal",
        )
    return weakest[0] if weakest else Condition(frozenset({NEVER}))


# --- Effects and actions

Branch = tuple[Condition, list[Outcome]]  # a case, and all that nature may make of the effect in it


def branches(expression: Expression, context: Context, case: Condition) -> list[Branch]:
    """The case split up until it is settled what the effect does, and what that is."""
    group = as_group(expression, "an effect")

    def at_once(part: Expression, some: list[Outcome], more: list[Outcome]) -> list[Outcome]:
        return conjunction(group, (group, part), (some, more))

    def one_of(part: Expression, some: list[Outcome], more: list[Outcome]) -> list[Outcome]:
        return bounded(group, some + more)

    match group.head:
        case "and":
            return _merged(group, [(part, context) for part in group.arguments], (case, [NOTHING]), at_once)
        case "forall":
            contexts, part = context.quantified(group, "effect")
            return _merged(group, [(part, each) for each in contexts], (case, [NOTHING]), at_once)
        case "oneof" if group.arguments:
            return _merged(group, [(part, context) for part in group.arguments], (case, []), one_of)
        case "when":
            return _conditional(group, context, case)
    outcomes = read_effect(group, Scope(context.domain, context.terms, context.functions))
    return [(case, [bind_outcome(outcome, context.binding) for outcome in outcomes])]


def _merged(
    group: Group,
    parts: Iterable[tuple[Expression, Context]],
    start: Branch,
    merge: Callable[[Expression, list[Outcome], list[Outcome]], list[Outcome]],
) -> list[Branch]:
    found = [start]
    for part, context in parts:
        found = [
            (narrow, merge(part, outcomes, more))
            for case, outcomes in found
            for narrow, more in branches(part, context, case)
        ]
        few(group, found)
    return found


def _conditional(group: Group, context: Context, case: Condition) -> list[Branch]:
    if len(group.arguments) != 2:
        raise Misread(group.offset, f"'when' takes a condition and an effect, not {len(group.arguments)} arguments")
    condition, part = group.arguments
    holding = narrowed(case, cases(condition, context))
    failing = narrowed(case, cases(condition, context, wanted=False))
    found = [branch for narrow in holding for branch in branches(part, context, narrow)]
    return [*found, *((narrow, [NOTHING]) for narrow in failing)]


def _compile_actions(groups: Sequence[Group], context: Context) -> tuple[dict[str, Schema], dict[str, Action]]:
    """Plain schemas, and the origins of those that have new names; an action that is plain already keeps its own."""
    compiled: list[tuple[Schema, Action]] = []
    for group in groups:
        compiled += _compile_action(group, context)
        if len(compiled) > MOST_ACTIONS:
            raise Misread(group.offset, f"with this action the domain has more than {MOST_ACTIONS} cases")
    namesakes, numbers = Counter(schema.name for schema, _ in compiled), Counter[str]()
    schemas: dict[str, Schema] = {}
    origins: dict[str, Action] = {}
    for schema, origin in compiled:
        name = schema.name
        if namesakes[name] > 1 or len(schema.parameters) < len(origin.arguments):
            numbers[name] += 1
            name = f"{name}:{numbers[name]}"
            origins[name] = origin
        schemas[name] = replace(schema, name=name)
    return schemas, origins


def _compile_action(group: Group, context: Context) -> Iterator[tuple[Schema, Action]]:
    """A schema for each case of the action, and what the user calls it in terms of the schema's variables."""
    name = as_name(group.items[1], "an action").text
    parts = action_parts(group)
    listed = parts.get(":parameters", NOTHING_WRITTEN)
    parameters = read_parameters(listed.items, context.domain.types)
    types = {parameter.name: parameter.type for parameter in parameters}
    precondition, effect = parts.get(":precondition", NOTHING_WRITTEN), parts.get(":effect", NOTHING_WRITTEN)
    context = replace(context, terms={**context.domain.constants, **types})
    for bound in _bound_contexts(group, effect, types, context):
        free = tuple(parameter for parameter in parameters if parameter.name not in bound.binding)
        origin = Action(name, tuple(bound.binding.get(parameter.name, parameter.name) for parameter in parameters))
        found = [branch for case in cases(precondition, bound) for branch in branches(effect, bound, case)]
        few(group, found).sort(key=lambda branch: len(branch[0].negative))  # the same order for `p` and for `not p`
        for case, outcomes in found:
            yield Schema(name, free, case.positive, tuple(outcomes), case.negative), origin


def _bound_contexts(group: Group, effect: Group, types: Mapping[str, str], context: Context) -> list[Context]:
    """Objects for the parameters about which `when` asks what never changes: that settles it once and for all."""
    conditions = [when.arguments[0] for when in _groups(effect) if when.head == "when" and when.arguments]
    atoms = [atom for condition in conditions for atom in _groups(condition)]
    decided = [atom for atom in atoms if atom.head == EQUALITY or atom.head in context.static]
    asked = {word.text for atom in decided for word in atom.arguments if isinstance(word, Word)}
    variables = {name: kind for name, kind in types.items() if name in asked}
    if prod(len(context.fitting(kind)) for kind in variables.values()) > MOST_ARGUMENTS:
        return [context]
    return [replace(each, bindings=1) for each in context.instances(group, variables)]


def _groups(expression: Expression) -> Iterator[Group]:
    if isinstance(expression, Group):
        yield expression
        for item in expression.items:
            yield from _groups(item)
