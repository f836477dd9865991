"""ADL, compiled away: a domain and a problem for a planner that knows only plain actions.

Beyond the plain language this reads negative, disjunctive and quantified conditions and goals, conditional and
universally quantified effects, an action name for several actions, and constants that a problem declares again. What
an action does is worked out case by case, and each case becomes an action of its own; the meaning stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from os import PathLike, fspath

from bilevel.symbolic.adl_effects import fixed_variables, outcomes_in, read_adl_effect, settled
from bilevel.symbolic.adl_formulas import FALSE, MOST_CASES, Case, Reading, TooManyCases, cases, read_formula
from bilevel.symbolic.domain import (
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
)
from bilevel.symbolic.expressions import (
    Expression,
    Group,
    Misread,
    Word,
    as_name,
    naming_position,
    normalised,
    read_text,
)
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.pddl_domain import (
    DOMAIN_SECTIONS,
    action_parts,
    read_functions,
    read_parameters,
    read_predicates,
    read_types,
)
from bilevel.symbolic.pddl_parts import contents, read_definition, read_typed, split_sections
from bilevel.symbolic.pddl_problem import PROBLEM_SECTIONS, check_domain_name, read_state

MOST_ACTIONS = 20_000  # that a domain is compiled into
MOST_ARGUMENTS = 10_000  # of one action that are looked at one by one

NOTHING_WRITTEN = Group((), 0)

# No user's names have a colon.
GOAL_REACHED = Atom("goal:reached")


@dataclass(frozen=True)
class Compiled:
    """A plain domain and problem, and for each action that was not there before the user's action that it is a case of.

    Such an action has no other if it stands for the goal: it is done as soon as one of the goal's cases holds.
    """

    domain: Domain
    problem: Problem
    origins: Mapping[str, Action | None] = field(default_factory=dict)

    def users_action(self, action: Action) -> Action | None:
        """The action in the words of the user's domain; `None` for one that only says that the goal is reached."""
        origin = self.origins.get(action.name, action)
        if origin is None or origin is action:
            return origin
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
        domain, actions, functions = _read_frame(domain_text)
    with naming_position(problem_text, problem_name):
        name, goal_section, objects, state = _read_problem(problem_text, domain)
    everything = {**domain.constants, **objects}
    fixed = frozenset(domain.predicates) - {name for action in actions for name in _changed(action)}
    reading = Reading(domain, everything, domain.constants, state, fixed, functions)
    with naming_position(domain_text, domain_name):
        schemas, origins = _compile_actions(actions, reading)
    with naming_position(problem_text, problem_name):
        goals = _goal_cases(goal_section, replace(reading, terms=everything, spell_out=True))
    domain = replace(domain, constants=everything)  # as quantifiers spelt out name them
    problem = Problem(name, domain.name, {}, state, NO_FACTS)
    if len(goals) == 1:
        problem = replace(problem, goal=goals[0].positive, negative_goal=goals[0].negative)
        return Compiled(replace(domain, schemas=schemas), problem, origins)
    problem = replace(problem, goal=frozenset({GOAL_REACHED}))
    finishing = [_finish(number, goal) for number, goal in enumerate(goals, start=1)]
    domain = replace(
        domain,
        predicates={**domain.predicates, GOAL_REACHED.predicate: Predicate(GOAL_REACHED.predicate)},
        schemas={**schemas, **{schema.name: schema for schema in finishing}},
    )
    return Compiled(domain, problem, {**origins, **dict.fromkeys(schema.name for schema in finishing)})


def _finish(number: int, goal: Case) -> Schema:
    reached = Outcome(frozenset({GOAL_REACHED}), NO_FACTS)
    return Schema(f"goal:{number}", (), goal.positive, (reached,), goal.negative)


# --- Reading


def _read_frame(text: str) -> tuple[Domain, list[Group], frozenset[str]]:
    """The domain without actions, the actions as they are written, and the numeric functions."""
    name, parts = read_definition(text, "domain")
    sections = split_sections(parts, DOMAIN_SECTIONS)
    types = read_types(contents(sections, ":types"))
    constants = read_typed(contents(sections, ":constants"), "a constant", types)
    predicates = read_predicates(contents(sections, ":predicates"), types)
    functions = read_functions(contents(sections, ":functions"))
    return Domain(name, predicates, {}, types, constants), sections[":action"], functions


def _read_problem(text: str, domain: Domain) -> tuple[str, Group, dict[str, str], Facts]:
    """The name, the goal as it is written, the objects without the domain's constants, and the first state."""
    name, parts = read_definition(text, "problem")
    sections = split_sections(parts, PROBLEM_SECTIONS)
    for keyword in (":domain", ":goal"):
        if not sections[keyword]:
            raise Misread(text.index("("), f"the problem has no '({keyword} ...)'")
    check_domain_name(sections[":domain"][0], domain)
    listed = contents(sections, ":objects")
    objects = read_typed(listed, "an object", domain.types)
    for constant, kind in domain.constants.items():
        if objects.pop(constant, kind) != kind:
            raise Misread(sections[":objects"][0].offset, f"'{constant}' is a constant of type '{kind}' in the domain")
    state = read_state(contents(sections, ":init"), domain, {**domain.constants, **objects})
    return name, sections[":goal"][0], objects, state


def _changed(expression: Expression) -> Iterator[str]:
    """Every name that stands where an effect may change a fact, conditions left out."""
    if not isinstance(expression, Group):
        return
    if expression.head == ":action":
        for key, value in zip(expression.items, expression.items[1:], strict=False):
            if isinstance(key, Word) and key.text == ":effect":
                yield from _changed(value)
        return
    yield expression.head
    for item in expression.arguments[1 if expression.head in ("when", "forall", "exists") else 0 :]:
        yield from _changed(item)


def _goal_cases(section: Group, reading: Reading) -> list[Case]:
    if len(section.arguments) != 1:
        raise Misread(section.offset, f"':goal' takes one condition, not {len(section.arguments)}")
    try:
        found = cases(read_formula(section.arguments[0], reading))
    except TooManyCases:
        raise Misread(section.offset, f"the goal can be reached in more than {MOST_CASES} ways") from None
    return [case for case in found if not any(_is_weaker(other, case) for other in found)]


def _is_weaker(case: Case, other: Case) -> bool:
    return case != other and case.positive <= other.positive and case.negative <= other.negative


# --- Compiling


def _compile_actions(groups: Sequence[Group], reading: Reading) -> tuple[dict[str, Schema], dict[str, Action | None]]:
    """Plain schemas, and the origins of those that have new names; an action that is plain already keeps its own."""
    for group in groups:
        if len(group.items) < 2:
            raise Misread(group.offset, "expected the name of an action after ':action'")
    names = Counter(as_name(group.items[1], "an action").text for group in groups)
    numbers = Counter[str]()
    schemas: dict[str, Schema] = {}
    origins: dict[str, Action | None] = {}
    for group in groups:
        try:
            compiled = list(_compile_action(group, reading))
        except TooManyCases:
            raise Misread(group.offset, f"this action has more than {MOST_CASES} cases or outcomes") from None
        for schema, origin in compiled:
            own = tuple(parameter.name for parameter in schema.parameters)
            if names[schema.name] > 1 or len(compiled) > 1 or own != origin.arguments:
                numbers[schema.name] += 1
                schema = replace(schema, name=f"{schema.name}:{numbers[schema.name]}")
                origins[schema.name] = origin
            schemas[schema.name] = schema
        if len(schemas) > MOST_ACTIONS:
            raise Misread(group.offset, f"with this action the domain has more than {MOST_ACTIONS} cases")
    return schemas, origins


def _compile_action(group: Group, reading: Reading) -> Iterator[tuple[Schema, Action]]:
    """A schema for each case of the action, and what the user calls it in terms of the schema's variables."""
    name = as_name(group.items[1], "an action").text
    parts = action_parts(group)
    parameters = read_parameters(_items(parts.get(":parameters")), reading.domain.types)
    types = {parameter.name: parameter.type for parameter in parameters}
    reading = replace(reading, terms={**reading.domain.constants, **types})
    written = parts.get(":precondition", NOTHING_WRITTEN), parts.get(":effect", NOTHING_WRITTEN)
    for bound in _readings(group, written[1], types, reading):
        formula = read_formula(written[0], bound)
        if formula == FALSE:
            continue
        effect = read_adl_effect(written[1], bound)
        free = tuple(parameter for parameter in parameters if parameter.name not in bound.binding)
        origin = Action(name, tuple(bound.binding.get(parameter.name, parameter.name) for parameter in parameters))
        for case in settled(effect, cases(formula)):
            outcomes = tuple(outcomes_in(effect, case))
            yield Schema(name, free + case.variables, case.precondition, outcomes, case.negative), origin


def _items(listed: Expression | None) -> tuple[Expression, ...]:
    return listed.items if isinstance(listed, Group) else ()


def _readings(group: Group, effect: Expression, types: Mapping[str, str], reading: Reading) -> list[Reading]:
    """Objects for the parameters about which conditions ask what never changes: that settles them once and for all."""
    asked = fixed_variables(read_adl_effect(effect, reading), reading.fixed)
    variables = {name: kind for name, kind in types.items() if name in asked}
    if prod(len(reading.fitting(kind)) for kind in variables.values()) > MOST_ARGUMENTS:
        return [reading]
    return [replace(each, bindings=1) for each in reading.spelt_out(group, variables)]
