"""PDDL files: domains and problems, read and written; reading what was written gives an equal value.

STRIPS with types, constants, negative preconditions, equality, `oneof`, the existential effect, events and costs;
everything else is refused by name. For planning alone ADL is read, too, and compiled away: quantifiers are
spelt out over the problem's objects, and each case of what an action does becomes an action of its own. Every error is
a `BadInput` of the form `file:line:column: message`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from os import PathLike, fspath

from bilevel.symbolic.domain import (
    EITHER,
    EQUALITY,
    NO_FACTS,
    Action,
    Atom,
    BadInput,
    Domain,
    Outcome,
    Parameter,
    Predicate,
    Problem,
    Schema,
    one_of,
)
from bilevel.symbolic.expressions import Expression, Group, Misread, naming_position, read_text
from bilevel.symbolic.packed import no_garbage_collection, packed_problem
from bilevel.symbolic.pddl_reader import (
    NOTHING,
    Scope,
    action_parts,
    cases,
    domain_frame,
    domain_from_text,
    joined,
    problem_frame,
    problem_from_text,
    read_parameters,
    read_schemas,
    schema_name,
)
from bilevel.symbolic.semantics import Condition

ADL = {":adl", ":conditional-effects"}  # requirements
NEVER = Atom("goal:never")  # which nothing adds; no user's names have a colon


def read_domain(path: str | PathLike[str]) -> Domain:
    """Read a domain from a PDDL file; `BadInput`, with line and column, where it cannot be read."""
    return parse_domain(read_text(path), fspath(path))


def read_problem(path: str | PathLike[str], domain: Domain) -> Problem:
    """Read a problem of this domain from a PDDL file; `BadInput`, with line and column, where it cannot be read."""
    return parse_problem(read_text(path), domain, fspath(path))


def parse_domain(text: str, filename: str = "<domain>") -> Domain:
    """Return the domain that a text defines; `BadInput`, which names the file, where it defines none."""
    with naming_position(text, filename) as text:
        return domain_from_text(text)


def parse_problem(text: str, domain: Domain, filename: str = "<problem>") -> Problem:
    """Return the problem that a text defines; `BadInput`, which names the file, where it defines none."""
    with naming_position(text, filename) as text, no_garbage_collection():
        packed = None if ":metric" in text.lower() else packed_problem(text.encode(), domain)
        return packed.unpacked if packed else problem_from_text(text, domain)


# Writing


def write_domain(domain: Domain) -> str:
    """Return the domain as PDDL."""
    if domain.adl:
        return domain.adl
    predicates = (f"\n    {_call(p.name, _parameters(p.parameters))}" for p in domain.predicates.values())
    functions = (f"\n    {_call(f.name, _parameters(f.parameters))}" for f in domain.functions.values())
    sections = [
        f"  (:requirements {' '.join(_requirements(domain))})",
        *([f"  (:types{_typed_lines(domain.types)})"] if domain.types else []),
        *([f"  (:constants{_typed_lines(domain.constants)})"] if domain.constants else []),
        f"  (:predicates{''.join(predicates)})",
        *([f"  (:functions{''.join(functions)})"] if domain.functions else []),
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
    }
    return [name for name, is_needed in needed.items() if is_needed]


def _schema(keyword: str, schema: Schema) -> str:
    condition = [*map(_atom, sorted(schema.precondition)), *map(_negated, sorted(schema.negative_precondition))]
    outcomes = [_outcome(outcome) for outcome in schema.outcomes]
    effect = outcomes[0] if len(outcomes) == 1 else "(oneof\n      " + "\n      ".join(outcomes) + ")"
    costs = "".join(f" (increase (total-cost) {_amount(amount)})" for amount in schema.cost)
    effect = f"(and {effect}{costs})" if costs else effect
    return (
        f"\n  ({keyword} {schema.name}"
        f"\n    :parameters ({_parameters(schema.parameters)})"
        f"\n    :precondition {_call('and', ' '.join(condition))}"
        f"\n    :effect {effect})"
    )


def _outcome(outcome: Outcome) -> str:
    made = (f"(new {variable})" for variable in sorted(outcome.new))
    parts = [*made, *map(_atom, sorted(outcome.add)), *map(_negated, sorted(outcome.delete))]
    effect = _call("and", " ".join(parts))
    return f"(exists ({_parameters(outcome.chosen)}) {effect})" if outcome.chosen else effect


def _call(head: str, arguments: str) -> str:
    return f"({head} {arguments})" if arguments else f"({head})"


def _parameters(parameters: Iterable[Parameter]) -> str:
    return " ".join(f"{parameter.name} - {_type(parameter.type)}" for parameter in parameters)


def _type(kind: str) -> str:
    return _call("either", " ".join(one_of(kind))) if EITHER in kind else kind


def _atom(atom: Atom) -> str:
    predicate, terms = atom
    return f"({predicate} {' '.join(terms)})" if terms else f"({predicate})"


def _amount(amount: Atom | float) -> str:
    if isinstance(amount, Atom):
        return _atom(amount)
    return str(int(amount)) if amount == int(amount) else str(amount)


def _negated(atom: Atom) -> str:
    return f"(not {_atom(atom)})"


def _typed_lines(types: Mapping[str, str]) -> str:
    """`a b - t` for each run of names of one type, a line each, in the order of the mapping."""
    runs = groupby(types, key=types.__getitem__)
    return "".join(f"\n    {' '.join(names)} - {_type(kind)}" for kind, names in runs)


def write_problem(problem: Problem, domain: Domain) -> str:
    """The problem as one of the given domain."""
    state = "".join(sorted([f"\n    {_atom(atom)}" for atom in problem.state]))
    goal = "".join(sorted([f"\n    {_atom(atom)}" for atom in problem.goal]))
    goal += "".join(sorted([f"\n    {_negated(atom)}" for atom in problem.negative_goal]))
    costs = problem.costs or {}
    state += "".join(sorted([f"\n    (= {_atom(function)} {_amount(value)})" for function, value in costs.items()]))
    metric = "\n  (:metric minimize (total-cost))" if problem.costs is not None else ""
    return (
        f"(define (problem {problem.name})\n"
        f"  (:domain {domain.name})\n"
        f"  (:objects{_typed_lines(problem.objects)})\n"
        f"  (:init{state})\n"
        f"  (:goal (and{goal})){metric})\n"
    )


# ADL


def users_action(action: Action) -> Action:
    """The action in the words of the user's domain: the cases of `go` are called `go:1`, `go:2` and so on."""
    return Action(action.name.partition(":")[0], action.arguments)


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
        domain, actions = domain_frame(lower)
        schemas = {}
        for action in actions:
            name, parameters = schema_name(action).text, action_parts(action)[":parameters"].items
            schemas[name] = Schema(name, read_parameters(parameters, domain.types), NO_FACTS, (NOTHING,))
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
    domain_text: str, problem_text: str, domain_name: str = "<domain>", problem_name: str = "<problem>"
) -> tuple[Domain, Problem]:
    """Return the texts compiled; the names are those of the files, for messages."""
    with naming_position(domain_text, domain_name) as domain_text:
        domain, actions = domain_frame(domain_text)
        changed = {name for action in actions for name in _changed(action_parts(action)[":effect"])}
    with naming_position(problem_text, problem_name) as problem_text:
        problem, goal = problem_frame(problem_text, domain)
        objects, static = problem.all_objects(domain), frozenset(domain.predicates) - changed
        scope = Scope(domain=domain, terms=objects, objects=objects, state=problem.state, static=static)
        wanted = _read_goal(goal, scope)
    with naming_position(domain_text, domain_name):
        schemas = read_schemas(actions, scope)
    never = {NEVER.predicate: Predicate(NEVER.predicate)} if NEVER in wanted.positive else {}
    predicates = {**domain.predicates, **never}
    domain = replace(domain, predicates=predicates, schemas=schemas, constants=objects)  # which cases name
    return domain, replace(problem, objects={}, goal=wanted.positive, negative_goal=wanted.negative)


def _changed(effect: Expression) -> Iterator[str]:
    """Every name that stands where an effect may change a fact, conditions left out."""
    if isinstance(effect, Group):
        yield effect.head
        for item in effect.arguments[1 if effect.head in ("when", "forall", "exists") else 0 :]:
            yield from _changed(item)


def _read_goal(goal: Expression, scope: Scope) -> Condition:
    """Return the goal as a plain condition; `Misread` where it can be met in several ways."""
    found = [case for case in cases(goal, scope) if not case.positive & case.negative]
    weakest = [case for case in found if not any(other != case and joined(case, other) == case for other in found)]
    if len(weakest) > 1:
        raise Misread(
            goal.offset,
            f"goals with a choice are not supported: this one can be met in {len(weakest)} ways; "
            "let an action for each of them add one fact, and make that the goal",
        )
    return weakest[0] if weakest else Condition(frozenset({NEVER}))
