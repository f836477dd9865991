"""Reads the text of PDDL domains and problems, with care for the position of every word.

Effects are conjunctions, `oneof` and the existential effect, expanded into the outcomes an action may have. Numeric
functions and what actions cost are read and ignored. What is wrong is a `Misread` that names its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import prod

from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    ROOT_TYPE,
    Atom,
    Domain,
    Facts,
    Outcome,
    Parameter,
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
    as_variable,
    bounded,
    is_number,
    parse_group,
    suggestion,
)

REPEATED = (":action", ":event")  # sections of which there may be many

# Words of PDDL that cannot name a predicate.
RESERVED = frozenset({"and", "not", "or", "imply", "forall", "exists", "when", "oneof", EQUALITY})

ADL_WORDS = ("or", "imply", "forall", "exists", "when")
UNSUPPORTED = {
    "or": "disjunctions",
    "imply": "implications",
    "forall": "universal quantifiers",
    "exists": "quantifiers outside effects",
    "when": "conditional effects",
    "oneof": "choices outside effects",
    "preference": "preferences",
    "probabilistic": "probabilistic effects",
    "unknown": "partial observability",
    **dict.fromkeys(("<", ">", "<=", ">="), "numeric conditions"),
    **dict.fromkeys(("increase", "decrease", "assign", "scale-up", "scale-down"), "numeric fluents"),
    **dict.fromkeys((":derived", ":axiom"), "derived predicates"),
    ":durative-action": "durative actions",
    ":constraints": "constraints",
}


def refusal(word: str, offset: int, feature: str) -> Misread:
    """What to raise for a feature that is not supported."""
    hint = "; only `bilevel plan` reads such files" if word in ADL_WORDS else ""
    return Misread(offset, f"'{word}' is not supported: {feature} cannot be read{hint}")


def read_definition(text: str, kind: str) -> tuple[str, tuple[Expression, ...]]:
    """The name and the sections of `(define (domain NAME) ...)` or `(define (problem NAME) ...)`."""
    definition = parse_group(text)
    if definition.head != "define":
        raise Misread(definition.offset, f"expected '(define ...)' but found {definition}")
    if len(definition.items) < 2:
        raise Misread(definition.offset, f"expected '({kind} NAME)' after 'define'")
    header = as_group(definition.items[1], f"'{kind}' and its name")
    if header.head in {"domain", "problem"} - {kind}:
        raise Misread(header.offset, f"this file defines a {header.head}; expected a {kind}")
    if header.head != kind or len(header.items) != 2:
        raise Misread(header.offset, f"expected '({kind} NAME)' but found {header}")
    return as_name(header.items[1], f"the {kind}").text, definition.items[2:]


def split_sections(parts: Sequence[Expression], known: Collection[str]) -> dict[str, list[Group]]:
    """The sections by keyword; only actions and events may come more than once."""
    sections: dict[str, list[Group]] = {keyword: [] for keyword in known}
    for part in parts:
        section = as_group(part, "a section such as (:keyword ...)")
        keyword = section.head
        if keyword in UNSUPPORTED and keyword.startswith(":"):
            raise refusal(keyword, section.items[0].offset, UNSUPPORTED[keyword])
        if keyword not in sections:
            found = section.items[0] if keyword else section
            raise Misread(found.offset, f"unknown section {found}{suggestion(keyword, known)}")
        if sections[keyword] and keyword not in REPEATED:
            raise Misread(section.offset, f"section '{keyword}' is given twice")
        sections[keyword].append(section)
    return sections


def contents(sections: Mapping[str, list[Group]], keyword: str) -> tuple[Expression, ...]:
    """What stands in the section, nothing where there is no such section."""
    return sections[keyword][0].arguments if sections[keyword] else ()


def typed_list(items: Sequence[Expression], what: str) -> list[tuple[Word, Word | None]]:
    """The names of `a b - t c` with their types, `None` where no type is given; `?x` where `what` is a variable."""
    typed: list[tuple[Word, Word | None]] = []
    untyped: list[Word] = []
    remaining = iter(items)
    for item in remaining:
        if isinstance(item, Word) and item.text == "-":
            kind = next(remaining, None)
            if kind is None or not untyped:
                raise Misread(item.offset, f"'-' needs {'a type after it' if untyped else 'names before it'}")
            if isinstance(kind, Group) and kind.head == "either":
                raise refusal("either", kind.offset, "types that are one of several")
            typed += ((name, as_name(kind, "a type")) for name in untyped)
            untyped = []
        else:
            untyped.append(as_variable(item) if what == "a variable" else as_name(item, what))
    return typed + [(name, None) for name in untyped]


def read_typed(items: Sequence[Expression], what: str, types: Mapping[str, str]) -> dict[str, str]:
    """A typed list as a mapping from each name to its type, which must be known."""
    typed: dict[str, str] = {}
    for name, kind in typed_list(items, what):
        if name.text in typed:
            raise Misread(name.offset, f"{name} is declared twice")
        if kind is not None and kind.text != ROOT_TYPE and kind.text not in types:
            raise Misread(kind.offset, f"unknown type {kind}{suggestion(kind.text, [*types, ROOT_TYPE])}")
        typed[name.text] = ROOT_TYPE if kind is None else kind.text
    return typed


def read_atom(group: Group, domain: Domain, terms: Mapping[str, str]) -> Atom:
    """A declared predicate with arguments that fit it; `terms` holds the types of all variables and objects at hand."""
    predicate = domain.predicates.get(group.head)
    if predicate is None:
        raise unknown_predicate(group, domain)
    if len(group.arguments) != predicate.arity:
        raise Misread(
            group.offset, f"predicate '{predicate.name}' takes {predicate.arity} arguments, not {len(group.arguments)}"
        )
    names = tuple(known_term(argument, terms) for argument in group.arguments)
    for index, (argument, name) in enumerate(zip(group.arguments, names, strict=True)):
        kind, wanted = terms[name], predicate.parameters[index].type
        # A variable fits where some object of its type may; an object fits where its type does.
        if not (domain.is_subtype(kind, wanted) or (is_variable(name) and domain.is_subtype(wanted, kind))):
            raise Misread(
                argument.offset,
                f"{argument} is of type '{kind}' but argument {index + 1} of '{predicate.name}' is of type '{wanted}'",
            )
    return Atom(predicate.name, names)


def unknown_predicate(group: Group, domain: Domain) -> Misread:
    """What to raise for a group that should be an atom and is none."""
    if group.head in UNSUPPORTED:
        return refusal(group.head, group.items[0].offset, UNSUPPORTED[group.head])
    if not group.head:
        return Misread(group.offset, "expected a predicate and its arguments such as (p a b)")
    return Misread(
        group.items[0].offset, f"undeclared predicate {group.items[0]}{suggestion(group.head, domain.predicates)}"
    )


def known_term(argument: Expression, terms: Mapping[str, str]) -> str:
    """The object or variable that an argument names, which must be known."""
    if isinstance(argument, Group):
        raise Misread(argument.offset, f"expected an object or a variable but found {argument}")
    if argument.text not in terms:
        what = "unbound variable" if is_variable(argument.text) else "unknown object"
        alike = (term for term in terms if is_variable(term) == is_variable(argument.text))
        raise Misread(argument.offset, f"{what} {argument}{suggestion(argument.text, alike)}")
    return argument.text


def read_equality(group: Group, terms: Mapping[str, str]) -> Atom:
    """The atom of `(= a b)`."""
    if any(isinstance(item, Group) or (is_number(item.text) and item.text not in terms) for item in group.arguments):
        raise refusal(EQUALITY, group.offset, "numeric conditions")
    return Atom(EQUALITY, tuple(known_term(argument, terms) for argument in arguments_of(group, 2, "2 arguments")))


def read_condition(
    expression: Expression, domain: Domain, terms: Mapping[str, str]
) -> Iterator[tuple[Atom, bool, Group]]:
    """The atoms of a conjunction, whether they shall hold or stand under `not`, and where."""
    group = as_group(expression, "a condition")
    if group.head == "and":
        for part in group.arguments:
            yield from read_condition(part, domain, terms)
    elif group.head == "not":
        yield read_literal(negated(group), domain, terms), False, group
    elif group.items:
        yield read_literal(group, domain, terms), True, group


def negated(group: Group) -> Group:
    """The atom under a `not`."""
    inner = as_group(arguments_of(group, 1, "one condition or effect")[0], "an atom")
    if inner.head in {"and", "not"}:
        raise refusal(inner.head, inner.offset, f"'{inner.head}' inside 'not'")
    return inner


def read_literal(group: Group, domain: Domain, terms: Mapping[str, str]) -> Atom:
    """The atom of a group, or its equality."""
    return read_equality(group, terms) if group.head == EQUALITY else read_atom(group, domain, terms)


# Domains

DOMAIN_SECTIONS = (":requirements", ":types", ":constants", ":predicates", ":functions", ":action", ":event")
ACTION_KEYS = (":parameters", ":precondition", ":effect")
NOTHING_WRITTEN = Group((), 0)
TOTAL_COST = "total-cost"
NEW = "new"

NOTHING = Outcome(NO_FACTS, NO_FACTS)


def domain_from_text(text: str) -> Domain:
    """The domain that the text defines; `Misread` where it does not define one."""
    frame, actions, functions = domain_frame(text)
    return replace(frame, schemas=read_schemas(actions, frame, functions))


def domain_frame(text: str) -> tuple[Domain, list[Group], frozenset[str]]:
    """The domain with events but without actions, the actions as they are written, and the numeric functions."""
    name, parts = read_definition(text, "domain")
    sections = split_sections(parts, DOMAIN_SECTIONS)
    types = read_types(contents(sections, ":types"))
    constants = read_typed(contents(sections, ":constants"), "a constant", types)
    predicates = read_predicates(contents(sections, ":predicates"), types)
    functions = read_functions(contents(sections, ":functions"))
    frame = Domain(name, predicates, {}, types, constants)
    actions = sections[":action"]
    events = read_schemas(sections[":event"], frame, functions)
    for action in actions:
        called = schema_name(action)
        if called.text in events:
            raise Misread(called.offset, f"{called} is the name of an event, too; rename one of the two")
    return replace(frame, events=events), actions, functions


def read_types(items: Sequence[Expression]) -> dict[str, str]:
    """Each type's parent; a parent that is not declared itself is a child of `object`."""
    parents: dict[str, str] = {}
    declared: dict[str, Word] = {}
    for name, parent in typed_list(items, "a type"):
        if name.text in declared:
            raise Misread(name.offset, f"type {name} is declared twice")
        declared[name.text] = name
        parents[name.text] = parent.text if parent else ROOT_TYPE
    if parents.pop(ROOT_TYPE, ROOT_TYPE) != ROOT_TYPE:
        raise Misread(declared[ROOT_TYPE].offset, f"'{ROOT_TYPE}' is above all types and cannot have a parent")
    for parent_name in list(parents.values()):
        if parent_name != ROOT_TYPE:
            parents.setdefault(parent_name, ROOT_TYPE)
    try:
        TopologicalSorter({kind: [parent] for kind, parent in parents.items()}).prepare()
    except CycleError as error:
        above = declared[error.args[1][0]]
        raise Misread(above.offset, f"type {above} is above itself") from None
    return parents


def read_predicates(items: Sequence[Expression], types: Mapping[str, str]) -> dict[str, Predicate]:
    """The predicates of `:predicates`, by their names."""
    predicates: dict[str, Predicate] = {}
    for item in items:
        group = as_group(item, "a predicate")
        if not group.items:
            raise Misread(group.offset, "expected a predicate such as (p ?x) but found '()'")
        name = group.items[0]
        if group.head in RESERVED:
            raise Misread(name.offset, f"{name} is a word of PDDL and cannot name a predicate")
        if as_name(name, "a predicate").text in predicates:
            raise Misread(name.offset, f"predicate {name} is declared twice")
        predicates[group.head] = Predicate(group.head, read_parameters(group.arguments, types))
    return predicates


def read_parameters(items: Sequence[Expression], types: Mapping[str, str]) -> tuple[Parameter, ...]:
    """The variables of a typed list."""
    return tuple(Parameter(name, kind) for name, kind in read_typed(items, "a variable", types).items())


def read_functions(items: Sequence[Expression]) -> frozenset[str]:
    """The names of numeric functions; all that is known of them is that they do not matter."""
    groups = [item for item in items if isinstance(item, Group)]
    kinds = [item for item in items if isinstance(item, Word) and item.text not in {"-", "number"}]
    if kinds:
        raise refusal(kinds[0].text, kinds[0].offset, "functions that are not numbers")
    return frozenset(as_name(group.items[0], "a function").text for group in groups if group.items)


def schema_name(section: Group) -> Word:
    """The name of an action or an event."""
    what = f"an {section.head[1:]}"
    if len(section.items) < 2:
        raise Misread(section.offset, f"expected the name of {what} after '{section.head}'")
    return as_name(section.items[1], what)


def read_schemas(sections: Sequence[Group], domain: Domain, functions: frozenset[str]) -> dict[str, Schema]:
    """The actions, or the events, by their names."""
    schemas: dict[str, Schema] = {}
    for section in sections:
        name = schema_name(section)
        if name.text in schemas:
            raise Misread(name.offset, f"{section.head[1:]} {name} is declared twice")
        schemas[name.text] = read_action(name.text, action_parts(section), domain, functions)
    return schemas


def action_parts(action: Group) -> dict[str, Group]:
    """What follows `:parameters`, `:precondition` and `:effect`, in any order."""
    parts: dict[str, Group] = {}
    remaining = iter(action.items[2:])
    for key in remaining:
        if not isinstance(key, Word) or key.text not in ACTION_KEYS:
            near = suggestion(key.text, ACTION_KEYS) if isinstance(key, Word) else ""
            raise Misread(key.offset, f"expected one of {', '.join(ACTION_KEYS)} but found {key}{near}")
        if key.text in parts:
            raise Misread(key.offset, f"{key} is given twice in one {action.head[1:]}")
        value = next(remaining, None)
        if value is None:
            raise Misread(key.offset, f"nothing follows {key}")
        parts[key.text] = as_group(value, f"what follows {key}")
    return {**dict.fromkeys(ACTION_KEYS, NOTHING_WRITTEN), **parts}


def read_action(name: str, parts: Mapping[str, Group], domain: Domain, functions: frozenset[str]) -> Schema:
    """The schema of an action, or of an event, from its parts."""
    parameters = read_parameters(parts[":parameters"].items, domain.types)
    terms = {**domain.constants, **{parameter.name: parameter.type for parameter in parameters}}
    condition = list(read_condition(parts[":precondition"], domain, terms))
    positive, negative = (frozenset(atom for atom, its, _ in condition if its is truth) for truth in (True, False))
    outcomes = read_effect(parts[":effect"], Scope(domain, terms, functions))
    return Schema(name, parameters, positive, tuple(outcomes), negative)


@dataclass(frozen=True)
class Scope:
    """What an effect may mention: terms with their types, the variables that nature binds here, numeric functions."""

    domain: Domain
    terms: Mapping[str, str]
    functions: frozenset[str]
    chosen: frozenset[str] = frozenset()


def read_effect(expression: Expression, scope: Scope) -> list[Outcome]:
    """The outcomes of an effect, in the order in which they are written; of two choices the last varies fastest."""
    group = as_group(expression, "an effect")
    if not group.items:
        return [NOTHING]
    if group.head == "and":
        return conjunction(group, group.arguments, [read_effect(part, scope) for part in group.arguments])
    if group.head == "oneof":
        if not group.arguments:
            raise Misread(group.offset, "'oneof' needs at least one effect")
        return bounded(group, [outcome for part in group.arguments for outcome in read_effect(part, scope)], "outcomes")
    if group.head == "exists":
        return read_existential(group, scope)
    if group.head == "not":
        inner = negated(group)
        if inner.head == NEW and NEW not in scope.domain.predicates:
            raise Misread(inner.offset, "'new' marks an object that nature makes and cannot be negated")
        return [Outcome(NO_FACTS, frozenset({read_atom(inner, scope.domain, scope.terms)}))]
    if group.head not in scope.domain.predicates:
        if group.head == NEW:
            return [Outcome(NO_FACTS, NO_FACTS, new=frozenset({read_new(group, scope)}))]
        if group.head == "increase":
            check_cost(group, scope)
            return [NOTHING]
        if group.head == EQUALITY:
            raise Misread(group.offset, "'=' cannot be an effect")
    return [Outcome(frozenset({read_atom(group, scope.domain, scope.terms)}), NO_FACTS)]


def conjunction(group: Group, arguments: Sequence[Expression], parts: Sequence[Sequence[Outcome]]) -> list[Outcome]:
    """One outcome for each choice from the parts; two existential effects that happen together need other variables."""
    bounded(group, range(prod(map(len, parts))), "outcomes")
    chosen: set[str] = set()
    for argument, outcomes in zip(arguments, parts, strict=True):
        names = {variable.name for outcome in outcomes for variable in outcome.chosen}
        if chosen & names:
            clash = min(chosen & names)
            raise Misread(argument.offset, f"'{clash}' is chosen twice in one outcome; rename one of the two")
        chosen |= names
    return [together(outcomes) for outcomes in product(*parts)]


def together(parts: Sequence[Outcome]) -> Outcome:
    """One outcome that does all that the parts do."""
    return Outcome(
        add=NO_FACTS.union(*(part.add for part in parts)),
        delete=NO_FACTS.union(*(part.delete for part in parts)),
        chosen=tuple(variable for part in parts for variable in part.chosen),
        new=frozenset().union(*(part.new for part in parts)),
    )


def quantified(group: Group, domain: Domain, what: str) -> tuple[dict[str, str], Group, Expression]:
    """The variables of `(forall (?x - t) part)` with their types, their list as it is written, and the part."""
    variables, part = arguments_of(group, 2, f"a list of variables and one {what}")
    declared = as_group(variables, "a list of variables")
    return read_typed(declared.items, "a variable", domain.types), declared, part


def read_existential(group: Group, scope: Scope) -> list[Outcome]:
    """The outcomes of `(exists (?x - t) effect)`: nature chooses the variables."""
    variables, declared, effect = quantified(group, scope.domain, "effect")
    for item in declared.items:
        if isinstance(item, Word) and item.text in variables and item.text in scope.terms:
            raise Misread(item.offset, f"variable {item} is already bound; choose another name")
    inner = replace(scope, terms={**scope.terms, **variables}, chosen=scope.chosen | variables.keys())
    chosen = tuple(Parameter(name, kind) for name, kind in variables.items())
    return [
        Outcome(outcome.add, outcome.delete, chosen + outcome.chosen, outcome.new)
        for outcome in read_effect(effect, inner)
    ]


def read_new(group: Group, scope: Scope) -> str:
    """The variable of `(new ?x)`."""
    if len(group.arguments) == 1:
        argument = group.arguments[0]
        if isinstance(argument, Word) and argument.text in scope.chosen:
            return argument.text
    raise Misread(group.offset, "'new' takes one variable of an 'exists' around it, such as (exists (?x) (new ?x))")


def check_cost(group: Group, scope: Scope) -> None:
    """Costs are ignored, but only of a declared function, so that a misspelt predicate does not pass for one."""
    function = as_group(arguments_of(group, 2, "a function and an amount")[0], "a numeric function")
    if function.head != TOTAL_COST and function.head not in scope.functions:
        found = function.items[0] if function.items else function
        raise Misread(found.offset, f"undeclared function {found}{suggestion(function.head, sorted(scope.functions))}")


# Problems

PROBLEM_SECTIONS = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric", ":length")


def problem_from_text(text: str, domain: Domain) -> Problem:
    """The problem that the text defines; `Misread` where it does not define one for this domain."""
    name, objects, state, goal = problem_frame(text, domain)
    return Problem(name, domain.name, objects, state, read_goal(goal, domain, {**domain.constants, **objects}))


def problem_frame(text: str, domain: Domain) -> tuple[str, dict[str, str], Facts, Group]:
    """The name, the objects without the domain's constants, the first state, and the goal as it is written."""
    name, parts = read_definition(text, "problem")
    sections = split_sections(parts, PROBLEM_SECTIONS)
    for keyword in (":domain", ":goal"):
        if not sections[keyword]:
            raise Misread(text.index("("), f"the problem has no '({keyword} ...)'")
    check_domain_name(sections[":domain"][0], domain)
    objects = read_objects(contents(sections, ":objects"), domain)
    state = read_state(contents(sections, ":init"), domain, {**domain.constants, **objects})
    return name, objects, state, sections[":goal"][0]


def check_domain_name(section: Group, domain: Domain) -> None:
    """`Misread` where a problem is for another domain."""
    if len(section.arguments) != 1:
        raise Misread(section.offset, "expected '(:domain NAME)'")
    name = as_name(section.arguments[0], "the domain")
    if name.text != domain.name:
        raise Misread(
            name.offset,
            f"the problem is for domain {name}, not for '{domain.name}'{suggestion(name.text, [domain.name])}",
        )


def read_objects(items: Sequence[Expression], domain: Domain) -> dict[str, str]:
    """The objects without constants of the domain, which a problem may declare again."""
    objects = read_typed(items, "an object", domain.types)
    for item in items:
        if isinstance(item, Word) and item.text in domain.constants and item.text in objects:
            kind = domain.constants[item.text]
            if objects.pop(item.text) != kind:
                raise Misread(item.offset, f"object {item} is a constant of type '{kind}' in the domain")
    return objects


def read_state(items: Sequence[Expression], domain: Domain, terms: Mapping[str, str]) -> Facts:
    """The facts of `:init`; what is false or numeric there is checked and left out."""
    facts: set[Atom] = set()
    absent: dict[Atom, Group] = {}
    for item in items:
        group = as_group(item, "a fact")
        if group.head == "not":
            absent[read_atom(negated(group), domain, terms)] = group
        elif group.head == EQUALITY:
            check_numeric_value(group)
        else:
            facts.add(read_atom(group, domain, terms))
    for atom, group in absent.items():
        if atom in facts:
            raise Misread(group.offset, f"'{atom}' is both true and false at first")
    return frozenset(facts)


def check_numeric_value(group: Group) -> None:
    """`(= (f a b) 5)` says what an action costs, which is ignored."""
    if len(group.arguments) == 2:
        function, value = group.arguments
        if isinstance(function, Group) and function.items and isinstance(value, Word) and is_number(value.text):
            for item in function.items:
                as_name(item, "a function or an object")
            return
    raise Misread(group.offset, "expected a numeric value such as (= (total-cost) 0) after '='")


def read_goal(section: Group, domain: Domain, terms: Mapping[str, str]) -> Facts:
    """The facts of `:goal`; `Misread` where something else is wanted."""
    goal = set()
    for atom, wanted, group in read_condition(arguments_of(section, 1, "one condition")[0], domain, terms):
        if not wanted or atom.predicate == EQUALITY:
            raise refusal(group.head, group.offset, "equality in goals" if wanted else "negative goals")
        goal.add(atom)
    return frozenset(goal)
