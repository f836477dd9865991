"""ADL, compiled away: a domain and a problem for a planner that knows only plain actions.

Beyond the plain language this reads `or`, `imply`, `not`, `forall` and `exists` in conditions, `when` and `forall` in
effects, negative goals, and several actions of one name. Quantifiers are spelt out over the problem's objects. What an
action does is worked out case by case, and each case becomes an action of its own; the meaning stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike, fspath

from bilevel.symbolic.adl_actions import DUE, OWN, compile_actions
from bilevel.symbolic.adl_conditions import Context, cases, joined
from bilevel.symbolic.domain import NO_FACTS, Atom, BadInput, Domain, Outcome, Predicate, Problem, Schema
from bilevel.symbolic.expressions import Expression, Group, Misread, arguments_of, as_name, naming_position, read_text
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_problem
from bilevel.symbolic.pddl_domain import NOTHING, action_parts, domain_frame, read_parameters
from bilevel.symbolic.pddl_problem import problem_frame
from bilevel.symbolic.semantics import Condition

ADL = {":adl", ":conditional-effects"}  # requirements

# No user's names have a colon.
NEVER = Atom("goal:never")  # which nothing adds
MET = Atom("goal:met")  # which a step of ours adds where a goal with a choice is met in one way


def read_for_planning(domain_path: str | PathLike[str], problem_path: str | PathLike[str]) -> tuple[Domain, Problem]:
    """The files as they are where they are plain, which is quick, and compiled where they are not."""
    texts = read_text(domain_path), read_text(problem_path)
    names = fspath(domain_path), fspath(problem_path)
    try:
        domain = parse_domain(texts[0], names[0])
        return domain, parse_problem(texts[1], domain, names[1])
    except BadInput:
        return compile_adl(*texts, *names, in_steps=True)


def is_readable_for_planning(domain_path: str | PathLike[str], problem_path: str | PathLike[str]) -> bool:
    """Return whether `bilevel plan` would read these files."""
    try:
        read_for_planning(domain_path, problem_path)
    except BadInput:
        return False
    return True


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
    *,
    in_steps: bool = False,
) -> tuple[Domain, Problem]:
    """The texts compiled; the names are those of the files, for messages.

    With `in_steps` the compiled domain may have steps of our own (`is_own`), for actions that have too many cases and
    for goals that can be met in several ways. A plan or policy less these steps is one for the domain as it is written.
    """
    with naming_position(domain_text, domain_name) as domain_text:
        domain, actions, functions = domain_frame(domain_text)
        effects = [action_parts(action)[":effect"] for action in actions]
    with naming_position(problem_text, problem_name) as problem_text:
        name, objects, state, goal_section = problem_frame(problem_text, domain)
    objects = {**domain.constants, **objects}
    static = frozenset(domain.predicates) - {name for effect in effects for name in _changed(effect)}
    context = Context(domain, objects, functions, objects=objects, state=state, static=static)
    with naming_position(problem_text, problem_name):
        ways = _read_goal(goal_section, context, in_steps)
    with naming_position(domain_text, domain_name):
        schemas = compile_actions(actions, context, in_steps)
    goal = ways[0]
    if len(ways) > 1:
        goal = Condition(frozenset({MET}))
        schemas |= {schema.name: schema for schema in _goal_steps(ways, is_due=any(OWN in name for name in schemas))}
    domain = replace(domain, schemas=schemas, constants=objects)  # as quantifiers spelt out name them
    domain = replace(domain, predicates={**domain.predicates, **_own_predicates(domain, goal)})
    return domain, Problem(name, domain.name, {}, state, goal.positive, goal.negative)


def _goal_steps(ways: Sequence[Condition], is_due: bool) -> Iterator[Schema]:
    """A step for each way to meet the goal."""
    met, due = (Outcome(frozenset({MET}), NO_FACTS),), frozenset({DUE} if is_due else ())
    for number, way in enumerate(ways, 1):
        yield Schema(f"goal{OWN}{number}", (), way.positive, met, way.negative | due)


def _own_predicates(domain: Domain, goal: Condition) -> dict[str, Predicate]:
    """The predicates of our own that occur in the schemas and the goal."""
    outcomes = [(schema, outcome) for schema in domain.schemas.values() for outcome in schema.outcomes]
    added = [(atom, schema.parameters) for schema, outcome in outcomes for atom in outcome.add if ":" in atom.predicate]
    added += [(atom, ()) for atom in goal.positive if ":" in atom.predicate]
    return {atom.predicate: Predicate(atom.predicate, parameters if atom.terms else ()) for atom, parameters in added}


def _changed(effect: Expression) -> Iterator[str]:
    """Every name that stands where an effect may change a fact, conditions left out."""
    if isinstance(effect, Group):
        yield effect.head
        for item in effect.arguments[1 if effect.head in ("when", "forall", "exists") else 0 :]:
            yield from _changed(item)


def _read_goal(section: Group, context: Context, in_steps: bool) -> list[Condition]:
    """The ways to meet the goal, none of which implies another."""
    found = cases(arguments_of(section, 1, "one condition")[0], context)
    weakest = [case for case in found if not any(other != case and joined(case, other) == case for other in found)]
    if len(weakest) > 1 and not in_steps:
        raise Misread(
            section.offset,
            f"goals with a choice are not supported: this one can be met in {len(weakest)} ways; "
            "let an action for each of them add one fact, and make that the goal",
        )
    return weakest or [Condition(frozenset({NEVER}))]
