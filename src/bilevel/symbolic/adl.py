"""ADL, compiled away: a domain and a problem for a planner that knows only plain actions.

Beyond the plain language this reads `or`, `imply`, `not`, `forall` and `exists` in conditions, `when` and `forall` in
effects, negative goals, and several actions of one name. Quantifiers are spelt out over the problem's objects. What an
action does is worked out case by case, and each case becomes an action of its own; the meaning stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from os import PathLike, fspath

from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Outcome,
    Predicate,
    Problem,
    Schema,
    is_variable,
)
from bilevel.symbolic.expressions import (
    Expression,
    Group,
    Misread,
    Word,
    arguments_of,
    as_group,
    as_name,
    bounded,
    naming_position,
    read_text,
)
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_problem
from bilevel.symbolic.pddl_reader import (
    NOTHING,
    Scope,
    action_parts,
    conjunction,
    domain_frame,
    problem_frame,
    quantified,
    read_effect,
    read_literal,
    read_parameters,
)
from bilevel.symbolic.semantics import Condition, bind_outcome, substitute

ADL = {":adl", ":conditional-effects"}  # requirements

NEVER = Atom("goal:never")  # which nothing adds; no user's names have a colon


def read_for_planning(domain_path: str | PathLike[str], problem_path: str | PathLike[str]) -> tuple[Domain, Problem]:
    """The files as they are where they are plain, which is quick, and compiled where they are not."""
    texts = read_text(domain_path), read_text(problem_path)
    names = fspath(domain_path), fspath(problem_path)
    try:
        domain = parse_domain(texts[0], names[0])
        return domain, parse_problem(texts[1], domain, names[1])
    except BadInput:
        return compile_adl(*texts, *names)


def read_adl_domain(path: str | PathLike[str]) -> Domain:
    """Read a domain that may be in ADL, which then is for planners alone: rules cannot be learned in it."""
    return parse_adl_domain(read_text(path), fspath(path))


def parse_adl_domain(text: str, filename: str = "<domain>") -> Domain:
    """The domain that the text defines; in ADL only where its requirements say so, so that no mistake passes for it."""
    try:
        return parse_domain(text, filename)
    except BadInput:
        if not ADL & {word.lower() for word in text.replace("(", " ").replace(")", " ").split()}:
            raise
    with naming_position(text, filename) as lower:
        domain, actions, _ = domain_frame(lower)
        schemas = {}
        for action in actions:
            name = as_name(action.items[1], "an action").text
            parameters = read_parameters(action_parts(action)[":parameters"].items, domain.types)
            schemas[name] = Schema(name, parameters, NO_FACTS, (NOTHING,))
    domain = replace(domain, schemas=schemas, adl=text)
    objects = {f"some-{kind}": kind for kind in domain.types}
    compiled(domain, Problem("empty", domain.name, objects, NO_FACTS, NO_FACTS), filename)  # to find mistakes now
    return domain


def compiled(domain: Domain, problem: Problem, filename: str = "<domain>") -> tuple[Domain, Problem]:
    """Domain and problem as any planner knows them: compiled, if the domain is in ADL."""
    if not domain.adl:
        return domain, problem
    return compile_adl(domain.adl, write_problem(problem, domain), filename)


def compile_adl(
    domain_text: str,
    problem_text: str,
    domain_name: str = "<domain>",
    problem_name: str = "<problem>",
) -> tuple[Domain, Problem]:
    """Return the texts compiled; the names are those of the files, for messages."""
    with naming_position(domain_text, domain_name) as domain_text:
        domain, actions, functions = domain_frame(domain_text)
        effects = [action_parts(action)[":effect"] for action in actions]
    with naming_position(problem_text, problem_name) as problem_text:
        name, objects, state, goal_section = problem_frame(problem_text, domain)
    objects = {**domain.constants, **objects}
    static = frozenset(domain.predicates) - {name for effect in effects for name in _changed(effect)}
    context = Context(domain, objects, functions, objects=objects, state=state, static=static)
    with naming_position(problem_text, problem_name):
        goal = _read_goal(goal_section, context)
    with naming_position(domain_text, domain_name):
        schemas = compile_actions(actions, context)
    domain = replace(domain, schemas=schemas, constants=objects)  # as quantifiers spelt out name them
    if NEVER in goal.positive:
        domain = replace(domain, predicates={**domain.predicates, NEVER.predicate: Predicate(NEVER.predicate)})
    return domain, Problem(name, domain.name, {}, state, goal.positive, goal.negative)


def _changed(effect: Expression) -> Iterator[str]:
    """Every name that stands where an effect may change a fact, conditions left out."""
    if isinstance(effect, Group):
        yield effect.head
        for item in effect.arguments[1 if effect.head in ("when", "forall", "exists") else 0 :]:
            yield from _changed(item)


def _read_goal(section: Group, context: Context) -> Condition:
    """Return the goal as a plain condition; `Misread` where it can be met in several ways."""
    found = cases(arguments_of(section, 1, "one condition")[0], context)
    weakest = [case for case in found if not any(other != case and joined(case, other) == case for other in found)]
    if len(weakest) > 1:
        raise Misread(
            section.offset,
            f"goals with a choice are not supported: this one can be met in {len(weakest)} ways; "
            "let an action for each of them add one fact, and make that the goal",
        )
    return weakest[0] if weakest else Condition(frozenset({NEVER}))


# Conditions as plain ones: `or`, `imply`, `not`, `forall` and `exists` spelt out case by case

MOST_BINDINGS = 100_000  # of the quantifiers around one atom

TRUE = Condition()


@dataclass(frozen=True, kw_only=True)
class Context(Scope):
    """What can be said where a condition or an effect stands.

    Variables in `binding` stand for these objects. `static` are the predicates that no action changes: `state` tells
    which of their facts hold.
    """

    objects: Mapping[str, str]
    state: Facts
    static: frozenset[str]
    binding: Mapping[str, str] = field(default_factory=dict)
    bindings: int = 1  # that the quantifiers around have

    def truth(self, atom: Atom) -> bool | None:
        """Whether the atom holds, if that never changes."""
        if any(map(is_variable, atom.terms)):
            return None
        if atom.predicate == EQUALITY:
            return atom.terms[0] == atom.terms[1]
        return atom in self.state if atom.predicate in self.static else None

    def quantified(self, group: Group, what: str) -> tuple[list[Context], Expression]:
        """A context for each way to choose objects in `(forall (?x - t) part)`, and the part."""
        variables, _, part = quantified(group, self.domain, what)
        return self.instances(group, variables), part

    def instances(self, group: Group, variables: Mapping[str, str]) -> list[Context]:
        """Return a context for each way to bind these variables; `Misread` where there are too many."""
        fitting = [self.fitting(kind) for kind in variables.values()]
        count = self.bindings * prod(map(len, fitting))
        if count > MOST_BINDINGS:
            raise Misread(group.offset, f"the objects make more than {MOST_BINDINGS} cases of this '{group.head}'")
        terms = {**self.terms, **variables}
        bindings = ({**self.binding, **dict(zip(variables, values, strict=True))} for values in product(*fitting))
        return [replace(self, terms=terms, binding=binding, bindings=count) for binding in bindings]

    def fitting(self, kind: str) -> list[str]:
        """The objects of a type."""
        return [name for name, its in self.objects.items() if self.domain.is_subtype(its, kind)]


def cases(expression: Expression, context: Context, wanted: bool = True) -> list[Condition]:
    """Plain conditions of which one holds wherever the condition does or, where it is not `wanted`, does not."""
    group = as_group(expression, "a condition")
    match group.head if group.items else "and":
        case "and" | "or":
            parts = [cases(part, context, wanted) for part in group.arguments]
            return _all_of(group, parts) if (group.head != "or") == wanted else _any_of(group, parts)
        case "imply":
            premise, conclusion = arguments_of(group, 2, "2 conditions")
            parts = [cases(premise, context, not wanted), cases(conclusion, context, wanted)]
            return _any_of(group, parts) if wanted else _all_of(group, parts)
        case "not":
            return cases(arguments_of(group, 1, "one condition")[0], context, not wanted)
        case "forall" | "exists":
            contexts, part = context.quantified(group, "condition")
            parts = [cases(part, each, wanted) for each in contexts]
            return _all_of(group, parts) if (group.head == "forall") == wanted else _any_of(group, parts)
    atom = substitute(read_literal(group, context.domain, context.terms), context.binding)
    holds = context.truth(atom)
    if holds is not None:
        return [TRUE] if holds == wanted else []
    return [Condition(frozenset({atom})) if wanted else Condition(negative=frozenset({atom}))]


def _any_of(group: Group, parts: Iterable[Sequence[Condition]]) -> list[Condition]:
    found = dict.fromkeys(case for part in parts for case in part)
    return [TRUE] if TRUE in found else bounded(group, list(found), "cases")


def _all_of(group: Group, parts: Iterable[Sequence[Condition]]) -> list[Condition]:
    found = [TRUE]
    for part in sorted(parts, key=len):
        found = list(dict.fromkeys(narrow for case in found for narrow in narrowed(case, part)))
        bounded(group, found, "cases")
    return found


def narrowed(case: Condition, alternatives: Iterable[Condition]) -> list[Condition]:
    """The case and each of the alternatives, but for contradictions; the case itself where it implies one of them."""
    found = dict.fromkeys(joined(case, other) for other in alternatives)
    return [case] if case in found else [both for both in found if not both.positive & both.negative]


def joined(case: Condition, other: Condition) -> Condition:
    """Return the condition that holds where both do."""
    return Condition(case.positive | other.positive, case.negative | other.negative)


# Actions as plain ones: each case of what an action does becomes a schema

MOST_ACTIONS = 20_000  # that a domain is compiled into
MOST_ARGUMENTS = 10_000  # of one action that are looked at one by one


def users_action(action: Action) -> Action:
    """The action in the words of the user's domain: the cases of `go` are called `go:1`, `go:2` and so on."""
    return Action(action.name.partition(":")[0], action.arguments)


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


def compile_actions(groups: Sequence[Group], context: Context) -> dict[str, Schema]:
    """Return the cases of all actions by name; only where there are several of one name are they numbered."""
    compiled: list[Schema] = []
    for group in groups:
        compiled += _compile_action(group, context)
        if len(compiled) > MOST_ACTIONS:
            raise Misread(group.offset, f"with this action the domain has more than {MOST_ACTIONS} cases")
    namesakes, numbers = Counter(schema.name for schema in compiled), Counter[str]()
    schemas: dict[str, Schema] = {}
    for schema in compiled:
        numbers[schema.name] += 1
        name = schema.name if namesakes[schema.name] == 1 else f"{schema.name}:{numbers[schema.name]}"
        schemas[name] = replace(schema, name=name)
    return schemas


def _compile_action(group: Group, context: Context) -> Iterator[Schema]:
    """Yield a schema for each case of the action."""
    parts = action_parts(group)
    parameters = read_parameters(parts[":parameters"].items, context.domain.types)
    types = {parameter.name: parameter.type for parameter in parameters}
    name, context = as_name(group.items[1], "an action").text, replace(context, terms={**context.terms, **types})
    for bound in _bound_contexts(group, parts[":effect"], types, context):
        settled = frozenset(Atom(EQUALITY, pair) for pair in bound.binding.items())
        conditions = cases(parts[":precondition"], bound)
        found = [branch for case in conditions for branch in branches(parts[":effect"], bound, case)]
        bounded(group, found, "cases")
        found.sort(key=lambda branch: len(branch[0].negative))  # the same order for `p` and for `not p`
        for case, outcomes in found:
            yield Schema(name, parameters, case.positive | settled, tuple(outcomes), case.negative)


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
