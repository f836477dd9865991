"""ADL, compiled away: a domain and a problem for a planner that knows only plain actions.

Quantifiers are spelt out over the problem's objects. What an action does is worked out case by case, and each case
becomes an action of its own; the meaning stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike, fspath

from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Domain, Predicate, Problem, Schema
from bilevel.symbolic.expressions import Expression, Group, Misread, naming_position, read_text
from bilevel.symbolic.formulas import NOTHING, Scope, cases, joined
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_problem
from bilevel.symbolic.pddl_reader import (
    action_parts,
    domain_frame,
    problem_frame,
    read_parameters,
    read_schemas,
    schema_name,
)
from bilevel.symbolic.semantics import Condition

ADL = {":adl", ":conditional-effects"}  # requirements

NEVER = Atom("goal:never")  # which nothing adds; no user's names have a colon


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
