"""Reads the text of PDDL domains and problems into schemas and facts, with care for the position of every word.

A plain condition is a conjunction. Where a problem's objects are known, `or`, `imply`, `forall` and `exists` are spelt
out case by case, and so are effects with `when` and `forall`; without them, such files are refused. Of
numeric functions only what actions cost is read. What is wrong is a `Misread` that names its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import product, zip_longest
from math import prod

from bilevel.symbolic.domain import (
    EITHER,
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
    one_of,
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
    is_number,
    parse_group,
    read_typed,
    suggestion,
)
from bilevel.symbolic.semantics import Condition, bind_outcome, substitute

NEW = "new"
ADL_WORDS = ("or", "imply", "forall", "exists", "when")
UNSUPPORTED = {
    "oneof": "choices outside effects",
    "preference": "preferences",
    "probabilistic": "probabilistic effects",
    "unknown": "partial observability",
    **dict.fromkeys(("<", ">", "<=", ">="), "numeric conditions"),
    **dict.fromkeys(("decrease", "assign", "scale-up", "scale-down"), "numeric fluents"),
    **dict.fromkeys((":derived", ":axiom"), "derived predicates"),
    ":durative-action": "durative actions",
    ":constraints": "constraints",
}
MOST_BINDINGS = 100_000  # of the quantifiers around one atom

TRUE = Condition()
NOTHING = Outcome(NO_FACTS, NO_FACTS)


def refusal(word: str, offset: int) -> Misread:
    """What to raise for a word whose meaning is not supported."""
    if word in ADL_WORDS:
        return Misread(offset, f"'{word}' is not supported here: only `bilevel plan` reads such conditions and effects")
    return Misread(offset, f"'{word}' is not supported: {UNSUPPORTED[word]} cannot be read")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What can be said where a condition or an effect stands: terms with their types, the variables that nature binds.

    With `objects`, quantifiers are spelt out over these: variables in `binding` stand for objects, and `state` tells
    which facts hold of the `static` predicates, those that no action changes.
    """

    domain: Domain
    terms: Mapping[str, str]
    chosen: frozenset[str] = frozenset()
    objects: Mapping[str, str] | None = None
    state: Facts = NO_FACTS
    static: frozenset[str] = frozenset()
    binding: Mapping[str, str] = field(default_factory=dict)
    bindings: int = 1  # that the quantifiers around have

    def with_terms(self, types: Mapping[str, str]) -> Scope:
        """Return the scope with further terms."""
        return replace(self, terms={**self.terms, **types})

    def truth(self, atom: Atom) -> bool | None:
        """Whether the atom holds, if that never changes."""
        if self.objects is None or any(map(is_variable, atom.terms)):
            return None
        if atom.predicate == EQUALITY:
            return atom.terms[0] == atom.terms[1]
        return atom in self.state if atom.predicate in self.static else None

    def quantified(self, group: Group, what: str) -> tuple[list[Scope], Expression]:
        """A scope for each way to choose objects in `(forall (?x - t) part)`, and the part."""
        variables, part = _quantified(group, self, what)
        return self.instances(group, variables), part

    def instances(self, group: Group, variables: Mapping[str, str]) -> list[Scope]:
        """Return a scope for each way to bind these variables; `Misread` where there are too many."""
        fitting = [self.fitting(kind) for kind in variables.values()]
        count = self.bindings * prod(map(len, fitting))
        if count > MOST_BINDINGS:
            raise Misread(group.offset, f"the objects make more than {MOST_BINDINGS} cases of this '{group.head}'")
        bindings = ({**self.binding, **dict(zip(variables, values, strict=True))} for values in product(*fitting))
        return [replace(self.with_terms(variables), binding=binding, bindings=count) for binding in bindings]

    def fitting(self, kind: str) -> list[str]:
        """The objects of a type."""
        return [name for name, its in (self.objects or {}).items() if self.domain.is_subtype(its, kind)]


def _quantified(group: Group, scope: Scope, what: str) -> tuple[dict[str, str], Expression]:
    variables, part = arguments_of(group, 2, f"a list of variables and one {what}")
    return read_typed(as_group(variables, "a list of variables").items, "a variable", scope.domain.types), part


# Atoms


def read_atom(group: Group, scope: Scope) -> Atom:
    """A declared predicate with arguments that fit it."""
    domain, predicate = scope.domain, scope.domain.predicates.get(group.head)
    if predicate is None:
        raise unknown_predicate(group, domain)
    names = [known_term(argument, scope.terms) for argument in group.arguments]
    if len(names) != predicate.arity:
        raise Misread(group.offset, f"predicate '{predicate.name}' takes {predicate.arity} arguments, not {len(names)}")
    for index, (name, parameter) in enumerate(zip(names, predicate.parameters, strict=True)):
        kind, wanted = scope.terms[name], parameter.type
        # A variable fits where some object of its type may; an object fits where its type does.
        pairs = product(one_of(kind), one_of(wanted))
        overlap = any(domain.is_subtype(its, other) or domain.is_subtype(other, its) for its, other in pairs)
        if not (domain.is_subtype(kind, wanted) or (is_variable(name) and overlap)):
            what = f"argument {index + 1} of '{predicate.name}' is of type '{wanted}'"
            raise Misread(group.arguments[index].offset, f"'{name}' is of type '{kind}' but {what}")
    return Atom(predicate.name, tuple(names))


def unknown_predicate(group: Group, domain: Domain) -> Misread:
    """What to raise for a group that should be an atom and is none."""
    if not group.head:
        return Misread(group.offset, "expected a predicate and its arguments such as (p a b)")
    name = group.items[0]
    if group.head in UNSUPPORTED or group.head in ADL_WORDS:
        return refusal(group.head, name.offset)
    return Misread(name.offset, f"undeclared predicate {name}{suggestion(group.head, domain.predicates)}")


def known_term(argument: Expression, terms: Mapping[str, str]) -> str:
    """The object or variable that an argument names, which must be known."""
    if isinstance(argument, Group):
        raise Misread(argument.offset, f"expected an object or a variable but found {argument}")
    if argument.text not in terms:
        what = "unbound variable" if is_variable(argument.text) else "unknown object"
        alike = (term for term in terms if is_variable(term) == is_variable(argument.text))
        raise Misread(argument.offset, f"{what} {argument}{suggestion(argument.text, alike)}")
    return argument.text


def read_equality(group: Group, scope: Scope) -> Atom:
    """The atom of `(= a b)`."""
    if any(isinstance(item, Group) or (is_number(item.text) and item.text not in scope.terms) for item in group.items):
        raise Misread(group.offset, "'=' is not supported: numeric conditions cannot be read")
    arguments = arguments_of(group, 2, "2 arguments")
    return Atom(EQUALITY, tuple(known_term(argument, scope.terms) for argument in arguments))


# Conditions


def cases(expression: Expression, scope: Scope, wanted: bool = True) -> list[Condition]:
    """Plain conditions of which one holds wherever the condition does or, where it is not `wanted`, does not."""
    group = as_group(expression, "a condition")
    if scope.objects is None and group.head in ADL_WORDS:
        raise refusal(group.head, group.items[0].offset)
    match group.head if group.items else "and":
        case "and" | "or":
            parts = [cases(part, scope, wanted) for part in group.arguments]
            return _all_of(group, parts) if (group.head != "or") == wanted else _any_of(group, parts, scope)
        case "imply":
            premise, conclusion = arguments_of(group, 2, "2 conditions")
            parts = [cases(premise, scope, not wanted), cases(conclusion, scope, wanted)]
            return _any_of(group, parts, scope) if wanted else _all_of(group, parts)
        case "not":
            return cases(arguments_of(group, 1, "one condition")[0], scope, not wanted)
        case "forall" | "exists":
            scopes, part = scope.quantified(group, "condition")
            parts = [cases(part, each, wanted) for each in scopes]
            return _all_of(group, parts) if (group.head == "forall") == wanted else _any_of(group, parts, scope)
    atom = read_equality(group, scope) if group.head == EQUALITY else read_atom(group, scope)
    atom = substitute(atom, scope.binding)
    holds = scope.truth(atom)
    if holds is not None:
        return [TRUE] if holds == wanted else []
    return [Condition(frozenset({atom})) if wanted else Condition(negative=frozenset({atom}))]


def _any_of(group: Group, parts: Iterable[Sequence[Condition]], scope: Scope) -> list[Condition]:
    found = dict.fromkeys(case for part in parts for case in part)
    if scope.objects is None and len(found) != 1:
        raise Misread(group.offset, "a condition that can be met in several ways or in none is not supported here")
    return [TRUE] if TRUE in found else bounded(group, list(found), "cases")


def _all_of(group: Group, parts: Sequence[Sequence[Condition]]) -> list[Condition]:
    found = [joined(*(part[0] for part in parts if len(part) == 1))]
    for part in sorted((part for part in parts if len(part) != 1), key=len):
        found = list(dict.fromkeys(narrow for case in found for narrow in narrowed(case, part)))
        bounded(group, found, "cases")
    return found


def narrowed(case: Condition, alternatives: Iterable[Condition]) -> list[Condition]:
    """The case and each of the alternatives, but for contradictions; the case itself where it implies one of them."""
    found = dict.fromkeys(joined(case, other) for other in alternatives)
    return [case] if case in found else [both for both in found if not both.positive & both.negative]


def joined(*conditions: Condition) -> Condition:
    """Return the condition that holds where all of these do."""
    positive, negative = (each.positive for each in conditions), (each.negative for each in conditions)
    return Condition(NO_FACTS.union(*positive), NO_FACTS.union(*negative))


# Effects

Branch = tuple[Condition, list[Outcome]]  # a case, and all that nature may make of an effect in it


def branches(expression: Expression, scope: Scope, given: Condition = TRUE) -> list[Branch]:
    """The given case split up until it is settled what the effect does, and what that is.

    Outcomes are in the order in which they are written; of two choices the last varies fastest.
    """
    group = as_group(expression, "an effect")
    parts = [(part, scope) for part in group.arguments]
    if scope.objects is None and group.head in ("when", "forall"):
        raise refusal(group.head, group.items[0].offset)
    match group.head if group.items else "and":
        case "when":
            return _conditional(group, scope, given)
        case "exists":
            return [(given, _existential(group, scope, given))]
        case "forall":
            scopes, part = scope.quantified(group, "effect")
            parts = [(part, each) for each in scopes]
        case "oneof" if not parts:
            raise Misread(group.offset, "'oneof' needs at least one effect")
        case "and" | "oneof":
            pass
        case _:
            return [(given, [bind_outcome(_simple(group, scope), scope.binding)])]
    is_choice = group.head == "oneof"
    found: list[Branch] = [(given, [] if is_choice else [NOTHING])]
    for part, inner in parts:
        split = [(narrow, old, new) for case, old in found for narrow, new in branches(part, inner, case)]
        found = [(case, old + new if is_choice else _together(group, part, old, new)) for case, old, new in split]
        bounded(group, found, "cases")
        for _, outcomes in found:
            bounded(group, outcomes, "outcomes")
    return found


def _conditional(group: Group, scope: Scope, given: Condition) -> list[Branch]:
    condition, part = arguments_of(group, 2, "a condition and an effect")
    holding = narrowed(given, cases(condition, scope))
    failing = narrowed(given, cases(condition, scope, wanted=False))
    found = [branch for narrow in holding for branch in branches(part, scope, narrow)]
    return [*found, *((narrow, [NOTHING]) for narrow in failing)]


def _existential(group: Group, scope: Scope, given: Condition) -> list[Outcome]:
    """The outcomes of `(exists (?x - t) effect)`: nature chooses the variables."""
    variables, effect = _quantified(group, scope, "effect")
    for name, kind in variables.items():
        if name in scope.terms:
            raise Misread(group.offset, f"variable '{name}' is already bound; choose another name")
        if EITHER in kind:
            raise Misread(group.offset, "nature chooses among objects of one type: 'either' is not supported here")
    found = branches(effect, replace(scope.with_terms(variables), chosen=scope.chosen | variables.keys()), given)
    if [case for case, _ in found] != [given]:
        raise refusal("when", group.offset)
    chosen = tuple(Parameter(name, kind) for name, kind in variables.items())
    return [replace(outcome, chosen=chosen + outcome.chosen) for _, outcomes in found for outcome in outcomes]


def _simple(group: Group, scope: Scope) -> Outcome:
    """The outcome of an atom, of one under `not`, of `(new ?x)`, and of a cost, which changes no fact."""
    if group.head == "not":
        inner = as_group(arguments_of(group, 1, "one effect")[0], "an atom")
        return Outcome(NO_FACTS, frozenset({read_atom(inner, scope)}))
    if group.head == "increase":
        return NOTHING
    if group.head == NEW and NEW not in scope.domain.predicates:
        variables = [word.text for word in group.arguments if isinstance(word, Word) and word.text in scope.chosen]
        if len(variables) == len(group.arguments) == 1:
            return Outcome(NO_FACTS, NO_FACTS, new=frozenset(variables))
        raise Misread(group.offset, "'new' takes one variable of an 'exists' around it: (exists (?x) (new ?x))")
    return Outcome(frozenset({read_atom(group, scope)}), NO_FACTS)


def _together(group: Group, part: Expression, old: Sequence[Outcome], new: Sequence[Outcome]) -> list[Outcome]:
    """One outcome for each pair; two existential effects that happen together need different variables."""
    bounded(group, range(len(old) * len(new)), "outcomes")
    before, after = ({variable.name for outcome in each for variable in outcome.chosen} for each in (old, new))
    for name in sorted(before & after):
        raise Misread(part.offset, f"'{name}' is chosen twice in one outcome; rename one of the two")
    return [
        Outcome(one.add | two.add, one.delete | two.delete, one.chosen + two.chosen, one.new | two.new)
        for one, two in product(old, new)
    ]


# Sections

TOTAL_COST = "total-cost"
RESERVED = frozenset({*ADL_WORDS, "and", "not", "oneof", EQUALITY})  # which cannot name a predicate

DOMAIN_SECTIONS = (":requirements", ":types", ":constants", ":predicates", ":functions", ":action", ":event")
PROBLEM_SECTIONS = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric", ":length")
REPEATED = (":action", ":event")  # sections of which there may be many
ACTION_KEYS = (":parameters", ":precondition", ":effect")
NOTHING_WRITTEN = Group((), 0)
MOST_ACTIONS = 20_000  # that a domain is spelt out into
MOST_ARGUMENTS = 10_000  # of one action that are looked at one by one


def read_definition(text: str, kind: str) -> tuple[str, tuple[Expression, ...]]:
    """The name and the sections of `(define (domain NAME) ...)` or `(define (problem NAME) ...)`."""
    definition = parse_group(text)
    if definition.head != "define" or len(definition.items) < 2:
        raise Misread(definition.offset, f"expected '(define ({kind} NAME) ...)' but found {definition}")
    header = as_group(definition.items[1], f"'{kind}' and its name")
    if header.head != kind or len(header.items) != 2:
        raise Misread(header.offset, f"expected '({kind} NAME)' but found {header}")
    return as_name(header.items[1], f"the {kind}").text, definition.items[2:]


def split_sections(parts: Sequence[Expression], known: Collection[str]) -> tuple[dict[str, Group], list[Group]]:
    """The sections by keyword, empty where there is none, and the actions and events, of which there may be many."""
    sections, repeated = dict.fromkeys(known, NOTHING_WRITTEN), list[Group]()
    for part in parts:
        section = as_group(part, "a section such as (:keyword ...)")
        keyword = section.head
        if keyword in UNSUPPORTED and keyword.startswith(":"):
            raise refusal(keyword, section.items[0].offset)
        if keyword not in sections:
            found = section.items[0] if keyword else section
            raise Misread(found.offset, f"unknown section {found}{suggestion(keyword, known)}")
        if keyword in REPEATED:
            repeated.append(section)
        elif sections[keyword].items:
            raise Misread(section.offset, f"section '{keyword}' is given twice")
        else:
            sections[keyword] = section
    return sections, repeated


# Domains


def domain_from_text(text: str) -> Domain:
    """The domain that the text defines; `Misread` where it does not define one."""
    frame, actions = domain_frame(text)
    return replace(frame, schemas=read_schemas(actions, Scope(domain=frame, terms=frame.constants)))


def domain_frame(text: str) -> tuple[Domain, list[Group]]:
    """The domain with events but without actions, and the actions as they are written."""
    name, parts = read_definition(text, "domain")
    sections, repeated = split_sections(parts, DOMAIN_SECTIONS)
    types = read_types(sections[":types"])
    constants = read_typed(sections[":constants"].arguments, "a constant", types)
    functions = [item for item in sections[":functions"].arguments if isinstance(item, Group)]  # without `- number`
    frame = Domain(name, read_predicates(sections[":predicates"].arguments, types), {}, types, constants)
    frame = replace(frame, functions=read_predicates(functions, types))
    actions = [section for section in repeated if section.head == ":action"]
    events = [section for section in repeated if section.head == ":event"]
    frame = replace(frame, events=read_schemas(events, Scope(domain=frame, terms=constants)))
    for called in map(schema_name, actions):
        if called.text in frame.events:
            raise Misread(called.offset, f"{called} is the name of an event, too; rename one of the two")
    return frame, actions


def read_types(section: Group) -> dict[str, str]:
    """Each type's parent; a parent that is not declared itself is a child of `object`."""
    parents = read_typed(section.arguments, "a type", None)
    if parents.pop(ROOT_TYPE, ROOT_TYPE) != ROOT_TYPE:
        raise Misread(section.offset, f"'{ROOT_TYPE}' is above all types and cannot have a parent")
    parents |= {parent: ROOT_TYPE for parent in parents.values() if parent not in (ROOT_TYPE, *parents)}
    if any(EITHER in kind for kind in parents):
        raise Misread(section.offset, f"the name of a type has a '{EITHER}'; choose another name")
    try:
        TopologicalSorter({kind: [parent] for kind, parent in parents.items()}).prepare()
    except CycleError as error:
        raise Misread(section.offset, f"type '{error.args[1][0]}' is above itself") from None
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


def schema_name(section: Group) -> Word:
    """The name of an action or an event."""
    what = f"an {section.head[1:]}"
    if len(section.items) < 2:
        raise Misread(section.offset, f"expected the name of {what} after '{section.head}'")
    return as_name(section.items[1], what)


def action_parts(action: Group) -> dict[str, Group]:
    """What follows `:parameters`, `:precondition` and `:effect`, in any order."""
    parts: dict[str, Group] = {}
    for key, value in zip_longest(action.items[2::2], action.items[3::2]):
        if not isinstance(key, Word) or key.text not in ACTION_KEYS:
            near = suggestion(key.text, ACTION_KEYS) if isinstance(key, Word) else ""
            raise Misread(key.offset, f"expected one of {', '.join(ACTION_KEYS)} but found {key}{near}")
        if key.text in parts or value is None:
            fault = "is given twice in one" if key.text in parts else "is followed by nothing in this"
            raise Misread(key.offset, f"{key} {fault} {action.head[1:]}")
        parts[key.text] = as_group(value, f"what follows {key}")
    return {**dict.fromkeys(ACTION_KEYS, NOTHING_WRITTEN), **parts}


def read_schemas(sections: Sequence[Group], scope: Scope) -> dict[str, Schema]:
    """The actions, or the events, by their names; those that have to be spelt out in several cases are numbered."""
    found: list[tuple[Group, Schema]] = []
    for section in sections:
        found += ((section, schema) for schema in _cases_of(section, scope))
        if len(found) > MOST_ACTIONS:
            raise Misread(section.offset, f"with this action the domain has more than {MOST_ACTIONS} cases")
    namesakes, numbers = Counter(schema.name for _, schema in found), Counter[str]()
    schemas: dict[str, Schema] = {}
    for section, schema in found:
        name = schema.name
        if namesakes[name] > 1 and scope.objects is None:
            raise Misread(section.offset, f"{section.head[1:]} '{name}' is declared twice")
        numbers[name] += 1
        named = replace(schema, name=f"{name}:{numbers[name]}") if namesakes[name] > 1 else schema
        schemas[named.name] = named
    return schemas


def _cases_of(section: Group, scope: Scope) -> Iterator[Schema]:
    """Yield a schema for each case of the action; there is one unless it is spelt out."""
    name, parts = schema_name(section).text, action_parts(section)
    parameters = read_parameters(parts[":parameters"].items, scope.domain.types)
    types = {parameter.name: parameter.type for parameter in parameters}
    precondition, effect = parts[":precondition"], parts[":effect"]
    cost = tuple(read_cost(effect, scope.with_terms(types)))
    for bound in _bound_scopes(section, effect, types, scope.with_terms(types)):
        settled = frozenset(Atom(EQUALITY, pair) for pair in bound.binding.items())
        found = [branch for each in cases(precondition, bound) for branch in branches(effect, bound, each)]
        bounded(section, found, "cases")
        found.sort(key=lambda branch: len(branch[0].negative))  # the same order for `p` and for `not p`
        for case, outcomes in found:
            yield Schema(name, parameters, case.positive | settled, tuple(outcomes), case.negative, cost)


def read_cost(effect: Group, scope: Scope) -> Iterator[Atom | float]:
    """Yield what is added to the total cost, but for what depends on a case or on nature."""
    if effect.head == "and":
        for part in effect.arguments:
            yield from read_cost(as_group(part, "an effect"), scope)
    if effect.head == "increase":
        function, amount = arguments_of(effect, 2, "a function and an amount")
        if isinstance(function, Group) and function.head == TOTAL_COST:
            yield read_amount(amount, scope)


def read_amount(amount: Expression, scope: Scope) -> Atom | float:
    """A number, or a numeric function of objects and variables."""
    if isinstance(amount, Word) and is_number(amount.text):
        return float(amount.text)
    group = as_group(amount, "a number or a function such as (distance ?x ?y)")
    if group.head not in scope.domain.functions:
        raise Misread(group.offset, f"undeclared function {group}{suggestion(group.head, scope.domain.functions)}")
    return Atom(group.head, tuple(known_term(argument, scope.terms) for argument in group.arguments))


def _bound_scopes(group: Group, effect: Expression, types: Mapping[str, str], scope: Scope) -> list[Scope]:
    """Objects for the parameters about which `when` asks what never changes: that settles it once and for all."""
    conditions = [when.arguments[0] for when in _groups(effect) if when.head == "when" and when.arguments]
    atoms = [atom for condition in conditions for atom in _groups(condition)]
    decided = [atom for atom in atoms if atom.head in (EQUALITY, *scope.static)]
    asked = {word.text for atom in decided for word in atom.arguments if isinstance(word, Word)}
    variables = {name: kind for name, kind in types.items() if name in asked}
    if scope.objects is None or prod(len(scope.fitting(kind)) for kind in variables.values()) > MOST_ARGUMENTS:
        return [scope]
    return [replace(each, bindings=1) for each in scope.instances(group, variables)]


def _groups(expression: Expression) -> Iterator[Group]:
    if isinstance(expression, Group):
        yield expression
        for item in expression.items:
            yield from _groups(item)


# Problems


def problem_from_text(text: str, domain: Domain) -> Problem:
    """The problem that the text defines; `Misread` where it does not define one for this domain."""
    problem, goal = problem_frame(text, domain)
    (wanted,) = cases(goal, Scope(domain=domain, terms=problem.all_objects(domain)))
    if wanted.negative or any(atom.predicate == EQUALITY for atom in wanted.positive):
        raise Misread(goal.offset, "only `bilevel plan` reads negative goals and equality in goals")
    return replace(problem, goal=wanted.positive)


def problem_frame(text: str, domain: Domain) -> tuple[Problem, Expression]:
    """The problem without its goal, and the goal as it is written."""
    name, parts = read_definition(text, "problem")
    sections, _ = split_sections(parts, PROBLEM_SECTIONS)
    for keyword in (":domain", ":goal"):
        if not sections[keyword].items:
            raise Misread(text.index("("), f"the problem has no '({keyword} ...)'")
    wanted = as_name(arguments_of(sections[":domain"], 1, "the name of the domain")[0], "the domain")
    if wanted.text != domain.name:
        near = suggestion(wanted.text, [domain.name])
        raise Misread(wanted.offset, f"the problem is for domain {wanted}, not for '{domain.name}'{near}")
    objects = read_objects(sections[":objects"], domain)
    problem = Problem(name, domain.name, objects, NO_FACTS, NO_FACTS)
    scope = Scope(domain=domain, terms=problem.all_objects(domain))
    problem = replace(problem, state=read_state(sections[":init"], scope))
    metric = sections[":metric"].arguments
    if len(metric) == 2 and isinstance(metric[1], Group) and metric[1].head == TOTAL_COST:
        problem = replace(problem, costs=dict(read_values(sections[":init"], scope)))
    return problem, arguments_of(sections[":goal"], 1, "one condition")[0]


def read_objects(section: Group, domain: Domain) -> dict[str, str]:
    """The objects without constants of the domain, which a problem may declare again."""
    objects = read_typed(section.arguments, "an object", domain.types)
    for name, kind in domain.constants.items():
        if objects.pop(name, kind) != kind:
            raise Misread(section.offset, f"object '{name}' is a constant of type '{kind}' in the domain")
    return objects


def read_state(section: Group, scope: Scope) -> Facts:
    """The facts of `:init`; what is false or numeric there is checked and left out."""
    facts, absent = set[Atom](), set[Atom]()
    for item in section.arguments:
        group = as_group(item, "a fact")
        if group.head == "not":
            absent.add(read_atom(as_group(arguments_of(group, 1, "one fact")[0], "a fact"), scope))
        elif group.head == EQUALITY:
            check_numeric_value(group)
        elif group.head == "at" and isinstance(group.items[-1], Group):
            raise Misread(group.offset, "a timed initial literal: facts that change at a time cannot be read")
        else:
            facts.add(read_atom(group, scope))
    for atom in sorted(facts & absent):
        raise Misread(section.offset, f"'{atom}' is both true and false at first")
    return frozenset(facts)


def read_values(section: Group, scope: Scope) -> Iterator[tuple[Atom, float]]:
    """Yield the values of `:init`, which has been checked."""
    for item in section.arguments:
        if isinstance(item, Group) and item.head == EQUALITY:
            function, value = (read_amount(each, scope) for each in item.arguments)
            if isinstance(function, Atom) and isinstance(value, float):
                yield function, value


def check_numeric_value(group: Group) -> None:
    """`(= (f a b) 5)` says what an action costs, which matters to planners alone."""
    function, value = arguments_of(group, 2, "a function and its value, as in (= (total-cost) 0)")
    if not (isinstance(function, Group) and function.head and isinstance(value, Word) and is_number(value.text)):
        raise Misread(group.offset, "expected a numeric value such as (= (total-cost) 0) after '='")
