"""Actions in ADL as plain ones: what an action does is worked out case by case, and each case becomes a schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from bilevel.symbolic.adl_conditions import Context, cases, narrowed
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Action, Atom, Facts, Outcome, Schema
from bilevel.symbolic.expressions import Expression, Group, Misread, Word, arguments_of, as_group, as_name, bounded
from bilevel.symbolic.pddl_domain import (
    NOTHING,
    NOTHING_WRITTEN,
    action_parts,
    conjunction,
    read_effect,
    read_parameters,
)
from bilevel.symbolic.semantics import Condition, bind_outcome

MOST_ACTIONS = 20_000  # that a domain is compiled into
MOST_ARGUMENTS = 10_000  # of one action that are looked at one by one

# No user's names have a colon.
OWN = "::"  # in the name of a step of ours
DUE = Atom("due:")  # holds while such a step is to be taken


def users_action(action: Action) -> Action:
    """The action in the words of the user's domain: the cases of `go` are called `go:1`, `go:2` and so on."""
    return Action(action.name.partition(":")[0], action.arguments)


def is_own(name: str) -> bool:
    """Whether a step of this name is one of ours, of which the user's domain knows nothing."""
    return OWN in name


Branch = tuple[Condition, list[Outcome]]  # a case, and all that nature may make of the effect in it


def branches(expression: Expression, context: Context, case: Condition) -> list[Branch]:
    """The case split up until it is settled what the effect does, and what that is."""
    group = as_group(expression, "an effect")
    parts = [(part, context) for part in group.arguments]
    match group.head:
        case "when":
            return _conditional(group, context, case)
        case "forall":
            contexts, part = context.quantified(group, "effect")
            parts = [(part, each) for each in contexts]
        case "and" | "oneof" if parts:
            pass
        case _:
            return [(case, [bind_outcome(outcome, context.binding) for outcome in read_effect(group, context)])]
    is_choice = group.head == "oneof"
    found: list[Branch] = [(case, [] if is_choice else [NOTHING])]
    for part, inner in parts:
        split = [(narrow, old, new) for case, old in found for narrow, new in branches(part, inner, case)]
        both = [old + new if is_choice else conjunction(group, (group, part), (old, new)) for _, old, new in split]
        found = [(split[i][0], bounded(group, outcomes, "outcomes")) for i, outcomes in enumerate(both)]
        bounded(group, found, "cases")
    return found


def _conditional(group: Group, context: Context, case: Condition) -> list[Branch]:
    condition, part = arguments_of(group, 2, "a condition and an effect")
    holding = narrowed(case, cases(condition, context))
    failing = narrowed(case, cases(condition, context, wanted=False))
    found = [branch for narrow in holding for branch in branches(part, context, narrow)]
    return [*found, *((narrow, [NOTHING]) for narrow in failing)]


def compile_actions(groups: Sequence[Group], context: Context, in_steps: bool = False) -> dict[str, Schema]:
    """The cases of all actions by name; only where there are several of one name are they numbered.

    Where an action has too many cases it may be taken in two steps: first nature makes its first choice, then a step of
    ours does what that comes to. While such a step is due, nothing else can be done.
    """
    compiled: list[Schema] = []
    for group in groups:
        compiled += _compile_action(group, context, in_steps)
        if len(compiled) > MOST_ACTIONS:
            raise Misread(group.offset, f"with this action the domain has more than {MOST_ACTIONS} cases")
    if any(is_own(schema.name) for schema in compiled):
        compiled = [
            s if is_own(s.name) else replace(s, negative_precondition=s.negative_precondition | {DUE}) for s in compiled
        ]
    namesakes, numbers = Counter(schema.name for schema in compiled), Counter[str]()
    schemas: dict[str, Schema] = {}
    for schema in compiled:
        numbers[schema.name] += 1
        name = schema.name if namesakes[schema.name] == 1 else f"{schema.name}:{numbers[schema.name]}"
        schemas[name] = replace(schema, name=name)
    return schemas


def _compile_action(group: Group, context: Context, in_steps: bool) -> list[Schema]:
    """A schema for each case of the action."""
    parts = action_parts(group)
    parameters = read_parameters(parts[":parameters"].items, context.domain.types)
    types = {parameter.name: parameter.type for parameter in parameters}
    context = replace(context, terms={**context.terms, **types})
    bare = Schema(as_name(group.items[1], "an action").text, parameters, NO_FACTS, ())
    try:
        return list(_cases_of(group, bare, parts[":precondition"], parts[":effect"], context))
    except Misread:
        chosen = _first_choice(parts[":effect"]) if in_steps else None
        if chosen is None:
            raise
    return list(_in_two_steps(group, bare, parts[":precondition"], chosen, context))


def _cases_of(
    group: Group, bare: Schema, precondition: Group, effect: Expression, context: Context, due: Facts = NO_FACTS
) -> Iterator[Schema]:
    """The schema with precondition and effect, in cases; what is `due` must hold before and no longer does after."""
    types = {parameter.name: parameter.type for parameter in bare.parameters}
    for bound in _bound_contexts(group, effect, types, context):
        settled = frozenset(Atom(EQUALITY, pair) for pair in bound.binding.items())
        found = [branch for case in cases(precondition, bound) for branch in branches(effect, bound, case)]
        bounded(group, found, "cases")
        found.sort(key=lambda branch: len(branch[0].negative))  # the same order for `p` and for `not p`
        for case, outcomes in found:
            ended = tuple(replace(outcome, delete=outcome.delete | due) for outcome in outcomes) if due else outcomes
            yield replace(
                bare,
                precondition=case.positive | settled | due,
                outcomes=tuple(ended),
                negative_precondition=case.negative,
            )


def _in_two_steps(
    group: Group, bare: Schema, precondition: Group, effects: Sequence[Expression], context: Context
) -> Iterator[Schema]:
    """The action as a choice among the effects that takes note of which one, and the steps that do what is due."""
    arguments = tuple(parameter.name for parameter in bare.parameters)
    notes = [Atom(f"{DUE.predicate}:{bare.name}:{number}", arguments) for number in range(1, len(effects) + 1)]
    for case in bounded(group, cases(precondition, context), "cases"):
        outcomes = tuple(Outcome(frozenset({note, DUE}), NO_FACTS) for note in notes)
        yield replace(bare, precondition=case.positive, outcomes=outcomes, negative_precondition=case.negative)
    for number, (note, effect) in enumerate(zip(notes, effects, strict=True), 1):
        step = replace(bare, name=f"{bare.name}{OWN}{number}")
        yield from _cases_of(group, step, NOTHING_WRITTEN, effect, context, frozenset({note, DUE}))


def _first_choice(effect: Expression) -> list[Expression] | None:
    """The effect with its first `oneof` settled in each way, `None` where it has none but inside `when` or `forall`."""
    if not isinstance(effect, Group):
        return None
    if effect.head == "oneof" and effect.arguments:
        return list(effect.arguments)
    for index, part in enumerate(effect.items if effect.head == "and" else ()):
        ways = _first_choice(part)
        if ways is not None:
            before, after = effect.items[:index], effect.items[index + 1 :]
            return [Group((*before, way, *after), effect.offset) for way in ways]
    return None


def _bound_contexts(group: Group, effect: Expression, types: Mapping[str, str], context: Context) -> list[Context]:
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
