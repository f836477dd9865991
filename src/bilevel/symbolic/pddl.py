"""PDDL files: domains and problems, read and written; reading what was written gives an equal value.

STRIPS with types, constants, negative preconditions, equality, `oneof`, the existential effect, events and costs;
everything else is refused by name. For planning alone ADL is read, too, spelt out for the objects of a problem:
quantifiers, choices and conditional effects become cases, and each case of what an action does an action of its own.
Every error is a `BadInput` of the form `file:line:column: message`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import count, groupby, product, zip_longest
from math import prod
from os import PathLike, fspath
from typing import NamedTuple

from bilevel.symbolic.axioms import close, levels
from bilevel.symbolic.domain import (
    EITHER,
    EQUALITY,
    NO_FACTS,
    ROOT_TYPE,
    Action,
    Atom,
    BadInput,
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
    as_group,
    as_name,
    is_number,
    naming_position,
    parse_group,
    read_text,
    read_typed,
    suggestion,
)
from bilevel.symbolic.packed import no_garbage_collection, packed_problem
from bilevel.symbolic.semantics import Condition

NEW = "new"
ADL_WORDS = ("or", "imply", "forall", "exists", "when")
RESERVED = frozenset({*ADL_WORDS, "and", "not", "oneof", EQUALITY})  # which cannot name a predicate
UNSUPPORTED = {
    **dict.fromkeys(ADL_WORDS, "only `bilevel plan` reads such conditions and effects"),
    **dict.fromkeys(("<", ">", "<=", ">="), "numeric conditions cannot be read"),
    **dict.fromkeys(("decrease", "assign", "scale-up", "scale-down"), "numeric fluents cannot be read"),
    **dict.fromkeys(("oneof", "probabilistic", "unknown"), "what is open stands in effects alone, as `oneof`"),
    **dict.fromkeys((":constraints", "preference"), "constraints cannot be read"),
    ":durative-action": "durative actions cannot be read",
}
TAKES = {
    "not": "one condition",
    "imply": "2 conditions",
    "forall": "a list of variables and what is said of them",
    "exists": "a list of variables and what is said of them",
    "when": "a condition and an effect",
    "oneof": "at least one effect",
    "increase": "a function and an amount",
}
REPEATED = (":action", ":event", ":derived")  # sections of which there may be many
DOMAIN_SECTIONS = (":requirements", ":types", ":constants", ":predicates", ":functions", *REPEATED)
PROBLEM_SECTIONS = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric", ":length")
ACTION_KEYS = (":parameters", ":precondition", ":effect")

MOST_CASES = 4096  # of an action, and outcomes of an effect
MOST_BINDINGS = 100_000  # of the quantifiers around one atom
MOST_ARGUMENTS = 10_000  # of one action that are looked at one by one

EQUALS = Predicate(EQUALITY, (Parameter("?x"), Parameter("?y")))
TRUE = Condition()
NOTHING = Outcome(NO_FACTS, NO_FACTS)
NOTHING_WRITTEN = Group((), 0)


def read_domain(path: str | PathLike[str]) -> Domain:
    """Read a domain from a PDDL file; `BadInput`, with line and column, where it cannot be read."""
    return parse_domain(read_text(path), fspath(path))


def read_adl_domain(path: str | PathLike[str]) -> Domain:
    """Read a domain that may be in ADL, which then is for planners alone: rules cannot be learned in it."""
    return parse_domain(read_text(path), fspath(path), adl=True)


def read_problem(path: str | PathLike[str], domain: Domain) -> Problem:
    """Read a problem of this domain from a PDDL file; `BadInput`, with line and column, where it cannot be read."""
    return parse_problem(read_text(path), domain, fspath(path))


def parse_domain(text: str, filename: str = "<domain>", adl: bool = False) -> Domain:
    """Return the domain that a text defines; `BadInput`, which names the file, where it defines none."""
    with naming_position(text, filename) as text:
        frame, actions = domain_frame(text)
        try:
            return replace(frame, schemas=read_schemas(actions, Scope(domain=frame, terms=frame.constants)))
        except Misread:
            if not adl:
                raise
        objects = {**frame.constants, **{f"some-{kind}": kind for kind in frame.types}}
        read_schemas(actions, Scope(domain=frame, terms=objects, objects=objects))  # to find mistakes now
        bare = [Schema(action.name, action.parameters, NO_FACTS, (NOTHING,)) for action in actions]
        return replace(frame, schemas={schema.name: schema for schema in bare}, adl=text)


def parse_problem(text: str, domain: Domain, filename: str = "<problem>") -> Problem:
    """Return the problem that a text defines; `BadInput`, which names the file, where it defines none."""
    with naming_position(text, filename) as text, no_garbage_collection():
        packed = None if ":metric" in text.lower() else packed_problem(text.encode(), domain)
        return packed.unpacked if packed else problem_from_text(text, domain)


# What is said of objects


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
    axioms: Axioms | None = None  # of which this is one

    def truth(self, atom: Atom) -> bool | None:
        """Whether the atom holds, if that never changes."""
        if self.objects is None or any(map(is_variable, atom.terms)):
            return None
        if atom.predicate == EQUALITY:
            return atom.terms[0] == atom.terms[1]
        return atom in self.state if atom.predicate in self.static else None

    def variables(self, listed: Expression) -> dict[str, str]:
        """The variables of a typed list."""
        return read_typed(as_group(listed, "a list of variables").items, "a variable", self.domain.types)

    def fitting(self, kind: str) -> list[str]:
        """The objects of a type."""
        return [name for name, its in (self.objects or {}).items() if self.domain.is_subtype(its, kind)]

    def instances(self, group: Group, variables: Mapping[str, str]) -> list[Scope]:
        """Return a scope for each way to bind these variables; `Misread` where there are too many."""
        fitting = [self.fitting(kind) for kind in variables.values()]
        count = self.bindings * prod(map(len, fitting))
        if count > MOST_BINDINGS:
            raise Misread(group.offset, f"the objects make more than {MOST_BINDINGS} cases of this '{group.head}'")
        inner = partial(replace, self, terms={**self.terms, **variables}, bindings=count)
        bindings = (dict(zip(variables, values, strict=True)) for values in product(*fitting))
        return [inner(binding={**self.binding, **binding}) for binding in bindings]


def refusal(group: Group) -> Misread:
    """What to raise for a group whose head has no meaning here."""
    return Misread(group.items[0].offset, f"'{group.head}' is not supported here: {UNSUPPORTED[group.head]}")


def misfit(group: Group) -> Misread:
    """What to raise for a group whose head takes other arguments."""
    return Misread(group.offset, f"'{group.head}' takes {TAKES[group.head]}, not {len(group.arguments)}")


def check_size(group: Group, size: int, noun: str) -> None:
    """Refuse what has too many cases or outcomes."""
    if size > MOST_CASES:
        raise Misread(group.offset, f"this '{group.head}' has more than {MOST_CASES} {noun}")


def read_atom(expression: Expression, scope: Scope, predicate: Predicate | None = None) -> Atom:
    """The atom of a declared predicate, or of the one that is given, with arguments that fit it."""
    group = as_group(expression, "an atom")
    domain, predicate = scope.domain, predicate or scope.domain.predicates.get(group.head)
    if predicate is None:
        if group.head in UNSUPPORTED:
            raise refusal(group)
        found = group.items[0] if group.items else group
        raise Misread(found.offset, f"undeclared predicate {found}{suggestion(group.head, domain.predicates)}")
    names = [known_term(argument, scope) for argument in group.arguments]
    if len(names) != predicate.arity:
        raise Misread(group.offset, f"predicate '{predicate.name}' takes {predicate.arity} arguments, not {len(names)}")
    for place, (name, parameter) in enumerate(zip(names, predicate.parameters, strict=True)):
        kind, wanted = scope.terms[name], parameter.type
        # A variable fits where some object of its type may; an object fits where its type does.
        pairs = product(one_of(kind), one_of(wanted)) if is_variable(name) else ()
        may_fit = any(domain.is_subtype(its, other) or domain.is_subtype(other, its) for its, other in pairs)
        if not (may_fit or domain.is_subtype(kind, wanted)):
            what = f"argument {place + 1} of '{predicate.name}' is of type '{wanted}'"
            raise Misread(group.arguments[place].offset, f"'{name}' is of type '{kind}' but {what}")
    return Atom(predicate.name, tuple([scope.binding.get(name, name) for name in names]))


def read_basic(expression: Expression, scope: Scope) -> Atom:
    """An atom that is given or changed, of a predicate that is not derived."""
    atom = read_atom(expression, scope)
    if atom.predicate in scope.domain.derived:
        raise Misread(
            expression.offset, f"'{atom.predicate}' is derived: its facts follow from others, and from these alone"
        )
    return atom


def known_term(argument: Expression, scope: Scope) -> str:
    """The object or variable that an argument names, which must be known."""
    if isinstance(argument, Group):
        raise Misread(argument.offset, f"expected an object or a variable but found {argument}")
    if argument.text not in scope.terms:
        what = "unbound variable" if is_variable(argument.text) else "unknown object"
        alike = (term for term in scope.terms if is_variable(term) == is_variable(argument.text))
        raise Misread(argument.offset, f"{what} {argument}{suggestion(argument.text, alike)}")
    return argument.text


# Conditions


def cases(expression: Expression, scope: Scope, wanted: bool = True) -> list[Condition]:
    """Plain conditions of which one holds wherever the condition does or, where it is not `wanted`, does not."""
    group = as_group(expression, "a condition")
    if scope.objects is None and scope.axioms is None and group.head in ADL_WORDS:
        raise refusal(group)
    match group.head, group.arguments:
        case ("forall" | "exists") as head, (listed, part) if scope.axioms:
            if (head == "exists") == wanted:
                return scope.axioms.some(scope.variables(listed), part, scope, wanted)
            return scope.axioms.none(scope.variables(listed), part, scope, not wanted)
        case ("and" | "or" | "()") as head, parts:
            found, is_all = [cases(part, scope, wanted) for part in parts], (head != "or") == wanted
        case "imply", (premise, conclusion):
            found, is_all = [cases(premise, scope, not wanted), cases(conclusion, scope, wanted)], not wanted
        case ("forall" | "exists") as head, (listed, part):
            scopes = scope.instances(group, scope.variables(listed))
            found, is_all = [cases(part, each, wanted) for each in scopes], (head == "forall") == wanted
        case "not", (part,):
            return cases(part, scope, not wanted)
        case head, _ if head in TAKES and head != "oneof":
            raise misfit(group)
        case _:
            atom = read_atom(group, scope, EQUALS if group.head == EQUALITY else None)
            holds = scope.truth(atom)
            if holds is not None:
                return [TRUE] if holds == wanted else []
            return [Condition(frozenset({atom})) if wanted else Condition(negative=frozenset({atom}))]
    if is_all:
        return _all_of(group, found)
    either = list(dict.fromkeys(case for part in found for case in part))
    if scope.objects is None and scope.axioms is None and len(either) != 1:
        raise Misread(group.offset, "a condition that can be met in several ways or in none is not supported here")
    check_size(group, len(either), "cases")
    return [TRUE] if TRUE in either else either


def _all_of(group: Group, parts: Sequence[Sequence[Condition]]) -> list[Condition]:
    found = [joined(*(part[0] for part in parts if len(part) == 1))]
    for part in sorted((part for part in parts if len(part) != 1), key=len):
        found = list(dict.fromkeys(narrow for case in found for narrow in narrowed(case, part)))
        check_size(group, len(found), "cases")
    return found


def narrowed(case: Condition, alternatives: Iterable[Condition]) -> list[Condition]:
    """The case and each of the alternatives, but for contradictions; the case itself where it implies one of them."""
    found = dict.fromkeys(joined(case, other) for other in alternatives)
    return [case] if case in found else [both for both in found if not both.positive & both.negative]


def joined(*conditions: Condition) -> Condition:
    """Return the condition that holds where all of these do."""
    positive, negative = (each.positive for each in conditions), (each.negative for each in conditions)
    return Condition(NO_FACTS.union(*positive), NO_FACTS.union(*negative))


# Axioms


class Axioms:
    """What a domain's axioms become as they are read: schemas, and predicates for what quantifiers deny."""

    def __init__(self, frame: Domain) -> None:
        self.frame, self.name, self.found = frame, "", list[Schema]()
        self.variables, self.more = dict[str, str](), dict[str, Predicate]()  # of the axiom at hand, and of all

    def read(self, section: Group) -> None:
        """Add an axiom such as `(:derived (clear ?x) (not (exists (?y) (on ?y ?x))))`."""
        if len(section.arguments) != 2:
            raise Misread(section.offset, "expected '(:derived (predicate ...) condition)'")
        head = as_group(section.arguments[0], "a derived atom")
        self.variables = {p.name: p.type for p in read_parameters(head.arguments, self.frame.types)}
        scope = Scope(domain=self.frame, terms={**self.frame.constants, **self.variables}, axioms=self)
        names = [Word(name, head.offset) for name in self.variables]
        atom = read_atom(replace(head, items=(*head.items[:1], *names)), scope)
        self.name = atom.predicate
        self._add(atom, cases(section.arguments[1], scope))

    def _add(self, head: Atom, found: Iterable[Condition]) -> None:
        for case in found:
            used = {*head.terms, *_terms(case)}
            parameters = tuple(Parameter(name, kind) for name, kind in self.variables.items() if name in used)
            outcome, name = Outcome(frozenset({head}), NO_FACTS), f"axiom {len(self.found) + 1}"
            self.found.append(Schema(name, parameters, case.positive, (outcome,), case.negative))

    def some(self, variables: Mapping[str, str], part: Expression, scope: Scope, wanted: bool) -> list[Condition]:
        """The cases of a condition that some objects are to meet, which become variables of the axiom."""
        fresh: dict[str, str] = {}
        for name, kind in variables.items():
            names = (f"{name}{number or ''}" for number in count())
            fresh[name] = next(each for each in names if each not in self.variables)
            self.variables[fresh[name]] = kind
        inner = replace(scope, terms={**scope.terms, **variables}, binding={**scope.binding, **fresh})
        found = cases(part, inner, wanted)
        silent = [[Atom(EQUALITY, (name, name)) for name in fresh.values() if name not in _terms(c)] for c in found]
        return [joined(case, Condition(frozenset(atoms))) for case, atoms in zip(found, silent, strict=True)]

    def none(self, variables: Mapping[str, str], part: Expression, scope: Scope, wanted: bool) -> list[Condition]:
        """The condition that no objects meet a condition: that they do becomes a predicate."""
        own, self.variables = self.variables, dict(self.variables)
        found = self.some(variables, part, scope, wanted)
        used = set().union(*map(_terms, found))
        names = (f"{self.name}@{number}" for number in count(1))
        name = next(name for name in names if name not in {**self.frame.predicates, **self.more})
        self.more[name] = Predicate(name, tuple(Parameter(v, kind) for v, kind in own.items() if v in used))
        atom = Atom(name, tuple(parameter.name for parameter in self.more[name].parameters))
        self._add(atom, found)
        self.variables = own
        return [Condition(negative=frozenset({atom}))]


def _terms(case: Condition) -> set[str]:
    return {term for atom in case.positive | case.negative for term in atom.terms}


def read_axioms(sections: Sequence[Group], frame: Domain) -> Domain:
    """The domain with its axioms."""
    axioms = Axioms(frame)
    for section in sections:
        axioms.read(section)
    try:
        levels(tuple(axioms.found))
    except BadInput as error:
        raise Misread(sections[0].offset, str(error)) from None
    return replace(frame, predicates={**frame.predicates, **axioms.more}, axioms=tuple(axioms.found))


# Effects

Branch = tuple[Condition, list[Outcome]]  # a case, and all that nature may make of an effect in it


def branches(expression: Expression, scope: Scope, given: Condition = TRUE) -> list[Branch]:
    """The given case split up until it is settled what the effect does, and what that is.

    Outcomes are in the order in which they are written; of two choices the last varies fastest.
    """
    group = as_group(expression, "an effect")
    if scope.objects is None and group.head in ("when", "forall"):
        raise refusal(group)
    match group.head, group.arguments:
        case ("and" | "oneof" | "()") as head, parts if parts or head != "oneof":
            return _combined(group, [(part, scope) for part in parts], given)
        case "forall", (listed, part):
            return _combined(group, [(part, each) for each in scope.instances(group, scope.variables(listed))], given)
        case "when", (condition, part):
            holding = narrowed(given, cases(condition, scope))
            failing = narrowed(given, cases(condition, scope, wanted=False))
            found = [branch for narrow in holding for branch in branches(part, scope, narrow)]
            return [*found, *((narrow, [NOTHING]) for narrow in failing)]
        case "exists", (listed, part):
            return [(given, _existential(group, scope.variables(listed), part, scope, given))]
        case "not", (atom,):
            outcome = Outcome(NO_FACTS, frozenset({read_basic(atom, scope)}))
        case "increase", (_, _):
            outcome = NOTHING  # as `costs` reads it
        case head, _ if head in TAKES:
            raise misfit(group)
        case "new", variables if NEW not in scope.domain.predicates:
            if scope.domain.axioms:
                raise Misread(group.offset, "a domain with derived predicates cannot make new objects")
            names = [word.text for word in variables if isinstance(word, Word) and word.text in scope.chosen]
            if len(names) != 1 or len(variables) != 1:
                raise Misread(group.offset, "'new' takes one variable of an 'exists' around it: (exists (?x) (new ?x))")
            outcome = Outcome(NO_FACTS, NO_FACTS, new=frozenset(names))
        case _:
            outcome = Outcome(frozenset({read_basic(group, scope)}), NO_FACTS)
    return [(given, [outcome])]


def _combined(group: Group, parts: Sequence[tuple[Expression, Scope]], given: Condition) -> list[Branch]:
    """The branches of all parts together or, in a choice, of one of them."""
    is_choice = group.head == "oneof"
    found: list[Branch] = [(given, [] if is_choice else [NOTHING])]
    for part, scope in parts:
        split = [(narrow, old, new) for case, old in found for narrow, new in branches(part, scope, case)]
        found = [(case, old + new if is_choice else _together(group, part, old, new)) for case, old, new in split]
        check_size(group, len(found), "cases")
        check_size(group, max((len(outcomes) for _, outcomes in found), default=0), "outcomes")
    return found


def _together(group: Group, part: Expression, old: Sequence[Outcome], new: Sequence[Outcome]) -> list[Outcome]:
    """One outcome for each pair; two existential effects that happen together need different variables."""
    check_size(group, len(old) * len(new), "outcomes")
    before, after = ({variable.name for outcome in each for variable in outcome.chosen} for each in (old, new))
    for name in sorted(before & after):
        raise Misread(part.offset, f"'{name}' is chosen twice in one outcome; rename one of the two")
    return [
        Outcome(one.add | two.add, one.delete | two.delete, one.chosen + two.chosen, one.new | two.new)
        for one, two in product(old, new)
    ]


def _existential(
    group: Group, variables: Mapping[str, str], effect: Expression, scope: Scope, given: Condition
) -> list[Outcome]:
    """The outcomes of an effect in which nature chooses the variables."""
    for name, kind in variables.items():
        if name in scope.terms:
            raise Misread(group.offset, f"variable '{name}' is already bound; choose another name")
        if EITHER in kind:
            raise Misread(group.offset, "nature chooses among objects of one type: 'either' is not supported here")
    inner = replace(scope, terms={**scope.terms, **variables}, chosen=scope.chosen | variables.keys())
    found = branches(effect, inner, given)
    if [case for case, _ in found] != [given]:
        raise Misread(group.offset, "'when' is not supported here: what nature chooses cannot depend on conditions")
    chosen = tuple(Parameter(name, kind) for name, kind in variables.items())
    return [replace(outcome, chosen=chosen + outcome.chosen) for _, outcomes in found for outcome in outcomes]


def costs(effect: Expression, scope: Scope) -> Iterator[Atom | float]:
    """Yield what is added to the total cost, but for what depends on a case or on nature."""
    if isinstance(effect, Group):
        match effect.head, effect.arguments:
            case "and", parts:
                for part in parts:
                    yield from costs(part, scope)
            case "increase", (Group(head="total-cost"), amount):
                yield read_amount(amount, scope)


def read_amount(amount: Expression, scope: Scope) -> Atom | float:
    """A number, or a numeric function of objects and variables."""
    if isinstance(amount, Word) and is_number(amount.text):
        return float(amount.text)
    group = as_group(amount, "a number or a function such as (distance ?x ?y)")
    if group.head not in scope.domain.functions:
        raise Misread(group.offset, f"undeclared function {group}{suggestion(group.head, scope.domain.functions)}")
    return Atom(group.head, tuple(known_term(argument, scope) for argument in group.arguments))


# Domains


def read_definition(text: str, kind: str, known: Sequence[str]) -> tuple[str, dict[str, Group], list[Group]]:
    """The name of `(define (domain NAME) ...)`, or of a problem, its sections, and those of which there may be many."""
    definition = parse_group(text)
    if definition.head != "define" or len(definition.items) < 2:
        raise Misread(definition.offset, f"expected '(define ({kind} NAME) ...)' but found {definition}")
    header = as_group(definition.items[1], f"'{kind}' and its name")
    if header.head != kind or len(header.items) != 2:
        raise Misread(header.offset, f"expected '({kind} NAME)' but found {header}")
    sections, repeated = dict.fromkeys(known, NOTHING_WRITTEN), list[Group]()
    for part in definition.items[2:]:
        section = as_group(part, "a section such as (:keyword ...)")
        if section.head in UNSUPPORTED:
            raise refusal(section)
        if section.head not in sections:
            found = section.items[0] if section.items else section
            raise Misread(found.offset, f"unknown section {found}{suggestion(section.head, known)}")
        if section.head in REPEATED:
            repeated.append(section)
        elif sections[section.head].items:
            raise Misread(section.offset, f"section '{section.head}' is given twice")
        else:
            sections[section.head] = section
    return as_name(header.items[1], f"the {kind}").text, sections, repeated


class WrittenSchema(NamedTuple):
    """An action or an event as it is written."""

    section: Group
    name: str
    parameters: tuple[Parameter, ...]
    precondition: Group
    effect: Group


def domain_frame(text: str) -> tuple[Domain, list[WrittenSchema]]:
    """The domain with events but without actions, and the actions as they are written."""
    name, sections, repeated = read_definition(text, "domain", DOMAIN_SECTIONS)
    types = read_types(sections[":types"])
    constants = read_typed(sections[":constants"].arguments, "a constant", types)
    functions = [item for item in sections[":functions"].arguments if isinstance(item, Group)]  # without `- number`
    predicates = read_predicates(sections[":predicates"].arguments, types)
    frame = Domain(name, predicates, {}, types, constants, functions=read_predicates(functions, types))
    frame = read_axioms([section for section in repeated if section.head == ":derived"], frame)
    written = [written_schema(section, types) for section in repeated if section.head != ":derived"]
    actions, events = ([each for each in written if each.section.head == head] for head in REPEATED[:2])
    frame = replace(frame, events=read_schemas(events, Scope(domain=frame, terms=constants)))
    for action in actions:
        if action.name in frame.events:
            place = action.section.items[1].offset
            raise Misread(place, f"'{action.name}' is the name of an event, too; rename one of the two")
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
        name = as_name(group.items[0] if group.items else group, "a predicate")
        if name.text in RESERVED:
            raise Misread(name.offset, f"{name} is a word of PDDL and cannot name a predicate")
        if name.text in predicates:
            raise Misread(name.offset, f"predicate {name} is declared twice")
        predicates[name.text] = Predicate(name.text, read_parameters(group.arguments, types))
    return predicates


def read_parameters(items: Sequence[Expression], types: Mapping[str, str]) -> tuple[Parameter, ...]:
    """The variables of a typed list."""
    return tuple(Parameter(name, kind) for name, kind in read_typed(items, "a variable", types).items())


def written_schema(section: Group, types: Mapping[str, str]) -> WrittenSchema:
    """An action or an event, its parts in any order."""
    noun = section.head[1:]
    if len(section.items) < 2:
        raise Misread(section.offset, f"expected the name of an {noun} after '{section.head}'")
    parts = dict.fromkeys(ACTION_KEYS, NOTHING_WRITTEN)
    for key, value in zip_longest(section.items[2::2], section.items[3::2]):
        if not isinstance(key, Word) or key.text not in ACTION_KEYS:
            near = suggestion(key.text, ACTION_KEYS) if isinstance(key, Word) else ""
            raise Misread(key.offset, f"expected one of {', '.join(ACTION_KEYS)} but found {key}{near}")
        if parts[key.text] is not NOTHING_WRITTEN or value is None:
            fault = "is followed by nothing in this" if value is None else "is given twice in one"
            raise Misread(key.offset, f"{key} {fault} {noun}")
        parts[key.text] = as_group(value, f"what follows {key}")
    parameters, precondition, effect = parts.values()
    name = as_name(section.items[1], f"an {noun}").text
    return WrittenSchema(section, name, read_parameters(parameters.items, types), precondition, effect)


def read_schemas(written: Sequence[WrittenSchema], scope: Scope) -> dict[str, Schema]:
    """The actions, or the events, by their names; those that have to be spelt out in several cases are numbered."""
    schemas: dict[str, Schema] = {}
    names = [each.name for each in written]
    for place, each in enumerate(written):
        if each.name in names[:place]:
            raise Misread(each.section.offset, f"{each.section.head[1:]} '{each.name}' is declared twice")
        found = [*_cases_of(each, scope)]
        numbered = [f"{each.name}:{number}" for number, _ in enumerate(found, 1)] if len(found) > 1 else [each.name]
        schemas |= {name: replace(schema, name=name) for name, schema in zip(numbered, found, strict=False)}
    return schemas


def _cases_of(written: WrittenSchema, scope: Scope) -> Iterator[Schema]:
    """Yield a schema for each case of the action; there is one unless it is spelt out."""
    section, name, parameters, precondition, effect = written
    types = {parameter.name: parameter.type for parameter in parameters}
    scope = replace(scope, terms={**scope.terms, **types})
    cost = tuple(costs(effect, scope))
    for bound in _bound_scopes(section, effect, types, scope):
        settled = frozenset(Atom(EQUALITY, pair) for pair in bound.binding.items())
        found = [branch for each in cases(precondition, bound) for branch in branches(effect, bound, each)]
        check_size(section, len(found), "cases")
        found.sort(key=lambda branch: len(branch[0].negative))  # the same order for `p` and for `not p`
        for case, outcomes in found:
            yield Schema(name, parameters, case.positive | settled, tuple(outcomes), case.negative, cost)


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


def _groups(expression: Expression, conditions: bool = True) -> Iterator[Group]:
    """Yield all groups of a condition or an effect; of the latter, where asked, only those that are no conditions."""
    if isinstance(expression, Group):
        yield expression
        is_conditional = expression.head in ("when", "forall", "exists")
        for item in expression.arguments[1 if is_conditional and not conditions else 0 :]:
            yield from _groups(item, conditions)


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
    name, sections, _ = read_definition(text, "problem", PROBLEM_SECTIONS)
    for keyword, what in ((":domain", "the name of the domain"), (":goal", "one condition")):
        if not sections[keyword].items:
            raise Misread(text.index("("), f"the problem has no '({keyword} ...)'")
        if len(sections[keyword].arguments) != 1:
            raise Misread(sections[keyword].offset, f"'{keyword}' takes {what} alone")
    wanted = as_name(sections[":domain"].arguments[0], "the domain")
    if wanted.text != domain.name:
        near = suggestion(wanted.text, [domain.name])
        raise Misread(wanted.offset, f"the problem is for domain {wanted}, not for '{domain.name}'{near}")
    objects = read_typed(sections[":objects"].arguments, "an object", domain.types)
    for constant, kind in domain.constants.items():  # which a problem may declare again
        if objects.pop(constant, kind) != kind:
            raise Misread(sections[":objects"].offset, f"object '{constant}' is a constant of type '{kind}'")
    scope = Scope(domain=domain, terms={**domain.constants, **objects})
    state, values = read_state(sections[":init"], scope)
    problem = Problem(name, domain.name, objects, close(state, domain, scope.terms), NO_FACTS)
    match sections[":metric"].arguments:
        case (_, Group(head="total-cost")):
            amounts = [(read_amount(function, scope), value) for function, value in values]
            problem = replace(problem, costs={each: value for each, value in amounts if isinstance(each, Atom)})
    return problem, sections[":goal"].arguments[0]


def read_state(section: Group, scope: Scope) -> tuple[Facts, list[tuple[Group, float]]]:
    """The facts of `:init`, and numeric functions with their values."""
    facts, absent, values = set[Atom](), set[Atom](), list[tuple[Group, float]]()
    for item in section.arguments:
        group = as_group(item, "a fact")
        match group.head, group.arguments:
            case "not", (fact,):
                absent.add(read_atom(fact, scope))
            case "=", (Group() as function, Word(text=value)) if is_number(value):
                values.append((function, float(value)))
            case "=", _:
                raise Misread(group.offset, "expected a numeric value such as (= (total-cost) 0) after '='")
            case "at", (_, Group()):
                raise Misread(group.offset, "a timed initial literal: facts that change at a time cannot be read")
            case _:
                facts.add(read_basic(group, scope))
    for atom in sorted(facts & absent):
        raise Misread(section.offset, f"'{atom}' is both true and false at first")
    return frozenset(facts), values


# Planning


def users_action(action: Action) -> Action:
    """The action in the words of the user's domain: the cases of `go` are called `go:1`, `go:2` and so on."""
    return Action(action.name.partition(":")[0], action.arguments)


def read_for_planning(domain_path: str | PathLike[str], problem_path: str | PathLike[str]) -> tuple[Domain, Problem]:
    """The domain and the problem of two files, compiled where they are not plain."""
    names = fspath(domain_path), fspath(problem_path)
    return parse_for_planning(read_text(domain_path), read_text(problem_path), *names)


def parse_for_planning(
    domain_text: str, problem_text: str, domain_name: str = "<domain>", problem_name: str = "<problem>"
) -> tuple[Domain, Problem]:
    """The domain and the problem of two texts, compiled where they are not plain; the names are for messages."""
    domain = parse_domain(domain_text, domain_name, adl=True)
    with suppress(BadInput):  # a plain problem, which is read quickly
        return compiled(domain, parse_problem(problem_text, domain, problem_name), domain_name)
    with naming_position(problem_text, problem_name) as text:
        problem, goal = problem_frame(text, domain)
        terms = problem.all_objects(domain)
        domain, problem = compiled(domain, problem, domain_name)
        objects = None if domain.makes_objects else terms  # of which quantifiers would miss some
        scope = Scope(domain=domain, terms=terms, objects=objects, state=problem.state, static=domain.static)
        ways = cases(goal, scope)
        found = [one for one in ways if not any(other != one and joined(one, other) == one for other in ways)]
        if len(found) != 1:
            raise Misread(
                goal.offset,
                f"goals with a choice are not supported: this one can be met in {len(found)} ways; "
                "let an action for each of them add one fact, and make that the goal",
            )
    return domain, replace(problem, goal=found[0].positive, negative_goal=found[0].negative)


def compiled(domain: Domain, problem: Problem, filename: str = "<domain>") -> tuple[Domain, Problem]:
    """Domain and problem as any planner knows them: a domain in ADL is spelt out for the objects, which it names."""
    if not domain.adl:
        return domain, problem
    objects = problem.all_objects(domain)
    with naming_position(domain.adl, filename) as text:
        frame, actions = domain_frame(text)
        changed = {group.head for action in actions for group in _groups(action.effect, conditions=False)}
        static = frozenset(frame.predicates) - frame.derived - changed
        scope = Scope(domain=frame, terms=objects, objects=objects, state=problem.state, static=static)
        schemas = read_schemas(actions, scope)
    return replace(frame, schemas=schemas, constants=objects), replace(problem, objects={})


# Writing


def write_domain(domain: Domain) -> str:
    """Return the domain as PDDL."""
    if domain.adl:
        return domain.adl
    predicates, functions = (
        "".join(f"\n    {_group(each.name, *_parameters(each.parameters))}" for each in its.values())
        for its in (domain.predicates, domain.functions)
    )
    sections = [
        f"  (:requirements {' '.join(_requirements(domain))})",
        *([f"  (:types{_typed_lines(domain.types)})"] if domain.types else []),
        *([f"  (:constants{_typed_lines(domain.constants)})"] if domain.constants else []),
        f"  (:predicates{predicates})",
        *([f"  (:functions{functions})"] if functions else []),
        *map(_axiom, domain.axioms),
        *(_schema(":action", schema) for schema in domain.schemas.values()),
        *(_schema(":event", event) for event in domain.events.values()),
    ]
    return "\n".join([f"(define (domain {domain.name})", *sections]) + ")\n"


def _requirements(domain: Domain) -> list[str]:
    positive = {atom.predicate for schema in domain.schemas.values() for atom in schema.precondition}
    negative = {atom.predicate for schema in domain.schemas.values() for atom in schema.negative_precondition}
    needed = {
        ":strips": True,
        ":typing": bool(domain.types),
        ":negative-preconditions": bool(negative - {EQUALITY}),
        ":equality": EQUALITY in positive | negative,
        ":non-deterministic": not domain.is_deterministic,
        ":action-costs": any(schema.cost for schema in domain.schemas.values()),
        ":derived-predicates": bool(domain.axioms),
    }
    return [name for name, is_needed in needed.items() if is_needed]


def _schema(keyword: str, schema: Schema) -> str:
    outcomes = [_outcome(outcome) for outcome in schema.outcomes]
    effect = outcomes[0] if len(outcomes) == 1 else "(oneof\n      " + "\n      ".join(outcomes) + ")"
    costs = [_group("increase", "(total-cost)", _amount(amount)) for amount in schema.cost]
    return (
        f"\n  ({keyword} {schema.name}"
        f"\n    :parameters {_group(*_parameters(schema.parameters))}"
        f"\n    :precondition {_group('and', *_literals(schema.precondition, schema.negative_precondition))}"
        f"\n    :effect {_group('and', effect, *costs) if costs else effect})"
    )


def _axiom(axiom: Schema) -> str:
    (head,), types = axiom.outcomes[0].add, {each.name: each for each in axiom.parameters}
    others = [each for each in axiom.parameters if each.name not in head.terms]
    body = _group("and", *_literals(axiom.precondition, axiom.negative_precondition))
    body = _group("exists", _group(*_parameters(others)), body) if others else body
    return f"\n  (:derived {_group(head.predicate, *_parameters(types[term] for term in head.terms))}\n    {body})"


def _outcome(outcome: Outcome) -> str:
    made = [_group("new", variable) for variable in sorted(outcome.new)]
    effect = _group("and", *made, *_literals(outcome.add, outcome.delete))
    return _group("exists", _group(*_parameters(outcome.chosen)), effect) if outcome.chosen else effect


def _group(*words: str) -> str:
    return f"({' '.join(words)})"


def _atom(atom: Atom) -> str:
    return _group(atom.predicate, *atom.terms)


def _literals(positive: Facts, negative: Facts = NO_FACTS) -> list[str]:
    return [*map(_atom, sorted(positive)), *(_group("not", _atom(atom)) for atom in sorted(negative))]


def _parameters(parameters: Iterable[Parameter]) -> list[str]:
    return [f"{parameter.name} - {_type(parameter.type)}" for parameter in parameters]


def _type(kind: str) -> str:
    return _group("either", *one_of(kind)) if EITHER in kind else kind


def _amount(amount: Atom | float) -> str:
    if isinstance(amount, Atom):
        return _atom(amount)
    return str(int(amount)) if amount == int(amount) else str(amount)


def _typed_lines(types: Mapping[str, str]) -> str:
    """`a b - t` for each run of names of one type, a line each, in the order of the mapping."""
    runs = groupby(types, key=types.__getitem__)
    return "".join(f"\n    {' '.join(names)} - {_type(kind)}" for kind, names in runs)


def write_problem(problem: Problem, domain: Domain) -> str:
    """The problem as one of the given domain."""
    values = [_group("=", _amount(each), _amount(value)) for each, value in (problem.costs or {}).items()]
    basic = frozenset(fact for fact in problem.state if fact.predicate not in domain.derived)
    state = "\n    ".join(["", *_literals(basic), *sorted(values)])
    goal = "\n    ".join(["", *_literals(problem.goal, problem.negative_goal)])
    metric = "\n  (:metric minimize (total-cost))" if problem.costs is not None else ""
    return (
        f"(define (problem {problem.name})\n"
        f"  (:domain {domain.name})\n"
        f"  (:objects{_typed_lines(problem.objects)})\n"
        f"  (:init{state})\n"
        f"  (:goal (and{goal})){metric})\n"
    )
