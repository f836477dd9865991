"""Policies for actions that make new objects: a placeholder stands for the object that such an action made last.

Each variable that an effect calls `new` gets a placeholder, an object of which nothing is said at first. When the
action makes an object, all that was said of the placeholder is forgotten, and from then on it stands for the new one.
So the states are finite in number, and a strong-cyclic policy for them is one for the domain as it is written. To see
why, leave out of each state of a run every fact about an object that is neither the problem's nor stood for. What
remains is a run with placeholders, since an action asks about its own arguments, and changes facts about these and
about what nature chooses. `remember_newest` refuses domains in which that is not so. It is not complete: where two
objects that one action made are needed at once, there is no such policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from typing import NamedTuple

from bilevel.planning.grounding import makers_of_new_objects
from bilevel.planning.planner import ContingentPolicy, NoModel, Placeholder
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Outcome, Problem, Schema
from bilevel.symbolic.semantics import bind_outcome, fresh_names, makes_object, substitute_all

MOST_FACTS = 100_000  # about one placeholder
MOST_ROLES = 1_000  # ways to let objects stand for placeholders that are tried in one state


class Finite(NamedTuple):
    """A domain and a problem in which no action makes objects, and the placeholders in them."""

    domain: Domain
    problem: Problem
    placeholders: tuple[Placeholder, ...] = ()


def remember_newest(domain: Domain, problem: Problem) -> Finite:
    """Let placeholders stand for new objects, where there are any; `NoModel` where that would say too little."""
    makers = makers_of_new_objects(domain, problem)
    if not makers:
        return Finite(domain, problem)
    objects = problem.all_objects(domain)
    placeholders = _placeholders(domain, objects)
    obstacle = _obstacle(domain, problem, placeholders)
    if obstacle:
        raise NoModel(
            f"action '{makers[0]}' makes new objects, and {obstacle}: for that there are no policies; "
            "the planner 'search' finds a plan that hopes for the best"
        )
    constants = {**domain.constants, **{placeholder.name: placeholder.type for placeholder in placeholders}}
    known = {**objects, **constants}
    forgotten = {placeholder.name: frozenset(_facts_about(placeholder, domain, known)) for placeholder in placeholders}
    schemas = {
        name: replace(schema, outcomes=tuple(_standing_in(schema, o, placeholders, forgotten) for o in schema.outcomes))
        for name, schema in domain.schemas.items()
    }
    return Finite(replace(domain, schemas=schemas, constants=constants), problem, placeholders)


def _placeholders(domain: Domain, objects: Mapping[str, str]) -> tuple[Placeholder, ...]:
    """As many for each action and type as one of its outcomes makes."""
    found: list[Placeholder] = []
    taken = set(objects)
    for schema in domain.schemas.values():
        types = [[v.type for v in outcome.chosen if v.name in outcome.new] for outcome in schema.outcomes]
        for kind in dict.fromkeys(kind for each in types for kind in each):
            for _ in range(max(each.count(kind) for each in types)):
                stem = f"new-{kind}"
                name = next(fresh_names(stem, taken)) if stem in taken else stem
                taken.add(name)
                found.append(Placeholder(name, kind, schema.name))
    return tuple(found)


def _obstacle(domain: Domain, problem: Problem, placeholders: tuple[Placeholder, ...]) -> str | None:
    """Why a run less what is forgotten may not be a run with placeholders, if that is so."""
    objects = problem.all_objects(domain)
    if not problem.objects:  # then quantifiers have been spelt out over the objects that there are at first
        return "the domain is in ADL, or the problem has no objects"

    def fits(kind: str) -> bool:
        return any(domain.is_subtype(placeholder.type, kind) for placeholder in placeholders)

    for schema in domain.schemas.values():
        asked = {term for atom in schema.precondition for term in atom.terms}
        for parameter in schema.parameters:
            if fits(parameter.type) and parameter.name not in asked:
                return f"'{schema.name}' asks nothing of its {parameter.type}, which may not be there yet"
        for outcome in schema.outcomes:
            for variable in outcome.chosen:
                if variable.name not in outcome.new and (
                    fits(variable.type) or makes_object(variable, outcome, domain, objects)
                ):
                    return f"in '{schema.name}' nature may choose any {variable.type}, whenever it was made"
    known = {**objects, **{placeholder.name: placeholder.type for placeholder in placeholders}}
    if any(len([*islice(_facts_about(each, domain, known), MOST_FACTS + 1)]) > MOST_FACTS for each in placeholders):
        return f"there are more than {MOST_FACTS} facts about one"
    return None


def _standing_in(
    schema: Schema, outcome: Outcome, placeholders: tuple[Placeholder, ...], forgotten: Mapping[str, Facts]
) -> Outcome:
    """The outcome with placeholders for what it makes, of which all that was said before is forgotten."""
    unused = [placeholder for placeholder in placeholders if placeholder.maker == schema.name]
    binding = {}
    for variable in outcome.chosen:
        if variable.name in outcome.new:
            stand_in = next(placeholder for placeholder in unused if placeholder.type == variable.type)
            unused.remove(stand_in)
            binding[variable.name] = stand_in.name
    bound = bind_outcome(outcome, binding)
    return replace(bound, delete=bound.delete.union(*(forgotten[name] for name in binding.values())))


def _facts_about(placeholder: Placeholder, domain: Domain, objects: Mapping[str, str]) -> Iterator[Atom]:
    """Yield every fact that can ever be about the placeholder: its predicate is one that some action makes true."""
    outcomes = [outcome for schema in domain.schemas.values() for outcome in schema.outcomes]
    for name in sorted({atom.predicate for outcome in outcomes for atom in outcome.add}):
        arity = domain.predicates[name].arity
        for place, others in product(range(arity), product(objects, repeat=max(0, arity - 1))):
            yield Atom(name, (*others[:place], placeholder.name, *others[place:]))


class PlaceholderGuide:
    """Follows a policy with placeholders among the objects that there are.

    The objects that an action has made take the roles of its placeholders. Where the policy then has nothing to say,
    as after something that no action explains, any other objects that were made may take them.
    """

    def __init__(self, policy: ContingentPolicy, domain: Domain, objects: Mapping[str, str]) -> None:
        """`objects` are those that there are now; more may be added to them."""
        self._policy, self._domain, self._objects = policy, domain, objects
        self._noticed = set(objects)
        self._made: list[str] = []  # since then, the newest first
        self._roles: dict[str, str] = {}  # the object that each placeholder stands for, by its name
        self._last: Action | None = None

    def choose(self, state: Facts) -> Action | None:
        """Return the action for a state; `None` where the policy has none, whatever placeholders stand for."""
        self._notice()
        for roles in (self._roles, *islice(self._other_roles(state), MOST_ROLES)):
            action = self._policy.choose(substitute_all(state, {name: role for role, name in roles.items()}))
            if action is not None:
                self._roles, self._last = roles, action
                return Action(action.name, tuple(roles.get(name, name) for name in action.arguments))
        return None

    def _notice(self) -> None:
        """Let the objects that have appeared since take the roles of what the last action makes."""
        unused = [role for role in self._policy.placeholders if self._last and role.maker == self._last.name]
        for name, kind in self._objects.items():
            if name in self._noticed:
                continue
            self._noticed.add(name)
            self._made.insert(0, name)
            for role in [role for role in unused if self._domain.is_subtype(kind, role.type)][:1]:
                unused.remove(role)
                self._roles = {**self._roles, role.name: name}

    def _other_roles(self, state: Facts) -> Iterator[dict[str, str]]:
        """Yield all ways to give the roles to objects that were made and of which the state says something."""
        mentioned = {term for atom in state for term in atom.terms}
        made = [name for name in self._made if name in mentioned]
        roles = self._policy.placeholders
        fitting = [
            [name for name in made if self._domain.is_subtype(self._objects[name], role.type)] or [role.name]
            for role in roles
        ]
        for names in product(*fitting):
            if len(set(names)) == len(names):
                yield {role.name: name for role, name in zip(roles, names, strict=True) if role.name != name}
