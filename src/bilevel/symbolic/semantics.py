"""What actions mean: applicability, successors and regression, each as its definition reads."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import count, product
from math import inf

from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Outcome,
    Parameter,
    Problem,
    Schema,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """Facts that must be present and facts that must be absent.

    An `=` atom among the latter says that two objects differ. As no state holds such an atom it needs no special
    treatment, and regression carries it along.
    """

    positive: Facts = NO_FACTS
    negative: Facts = NO_FACTS

    def holds(self, state: Set[Atom]) -> bool:
        """Return whether it holds in a state."""
        return self.positive <= state and self.negative.isdisjoint(state)

    def unmet(self, state: Set[Atom]) -> list[str]:
        """What is wrong in a state, one text for each fact; nothing where the condition holds."""
        missing, present = sorted(self.positive - state), sorted(self.negative & state)
        return [f"{atom} does not hold" for atom in missing] + [f"{atom} holds" for atom in present]


@dataclass(frozen=True, slots=True)
class GroundAction:
    """An action with its schema's condition and outcomes spelt out; nature's variables are still variables."""

    action: Action
    condition: Condition
    outcomes: tuple[Outcome, ...]


def substitute(atom: Atom, binding: Mapping[str, str]) -> Atom:
    """Return the atom with objects for its variables."""
    return Atom(atom.predicate, tuple([binding.get(term, term) for term in atom.terms]))


def substitute_all(atoms: Facts, binding: Mapping[str, str]) -> Facts:
    """Return the atoms with objects for their variables."""
    if not atoms:
        return atoms
    get, make = binding.get, tuple.__new__  # which takes half the time of calling Atom
    return frozenset([make(Atom, (name, tuple([get(term, term) for term in terms]))) for name, terms in atoms])


def ground(schema: Schema, arguments: tuple[str, ...]) -> GroundAction | None:
    """The schema with these arguments, or `None` where its (in)equalities rule them out."""
    binding = dict(zip([p.name for p in schema.parameters], arguments, strict=True))
    positive = substitute_all(schema.precondition, binding)
    negative = substitute_all(schema.negative_precondition, binding)
    equal = [atom for atom in positive if atom.predicate == EQUALITY]
    if not all(map(is_trivial_equality, equal)) or any(map(is_trivial_equality, negative)):
        return None
    outcomes = tuple([bind_outcome(outcome, binding) for outcome in schema.outcomes])
    condition = Condition(positive.difference(equal) if equal else positive, negative)
    return GroundAction(Action(schema.name, arguments), condition, outcomes)


def is_trivial_equality(atom: Atom) -> bool:
    """Return whether an atom says that something is itself."""
    return atom.predicate == EQUALITY and atom.terms[0] == atom.terms[1]


def bind_outcome(outcome: Outcome, binding: Mapping[str, str]) -> Outcome:
    """The outcome with variables replaced; what nature has been given a value for is no longer open."""
    return Outcome(
        add=substitute_all(outcome.add, binding),
        delete=substitute_all(outcome.delete, binding),
        chosen=tuple([p for p in outcome.chosen if p.name not in binding]),
        new=outcome.new.difference(binding) if outcome.new else outcome.new,
    )


def progress(state: Facts, outcome: Outcome) -> Facts:
    """Delete first, then add."""
    return (state - outcome.delete) | outcome.add


def natures_choices(outcome: Outcome, domain: Domain, objects: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The bindings nature may pick for an outcome's open variables: one empty binding where there are none."""
    taken = set(objects)
    candidates = []
    for variable in outcome.chosen:
        known = [name for name, kind in objects.items() if domain.is_subtype(kind, variable.type)]
        if makes_object(variable, outcome, domain, objects):
            known = [next(fresh_names(variable.type, taken))]
            taken.add(known[0])
        candidates.append(known)
    for values in product(*candidates):
        yield dict(zip((p.name for p in outcome.chosen), values, strict=True))


def makes_object(variable: Parameter, outcome: Outcome, domain: Domain, objects: Mapping[str, str]) -> bool:
    """Whether nature makes an object: where she is told to, and where there is none of the type to choose from."""
    return variable.name in outcome.new or not any(domain.is_subtype(t, variable.type) for t in objects.values())


def fresh_names(stem: str, taken: Container[str]) -> Iterator[str]:
    """Yield names that are not taken when they are asked for: block1, block2, …"""
    return (name for number in count(1) if (name := f"{stem}{number}") not in taken)


def regress(condition: Condition, action: GroundAction, outcome: Outcome) -> Condition | None:
    """The weakest condition under which `action`, ending in `outcome`, makes `condition` true.

    The paper regresses over every outcome at once; taking the one that was observed keeps the set from doubling at
    each nondeterministic step, and leaves out rules that could never fire.
    """
    deleted, positive, negative = outcome.delete - outcome.add, condition.positive, condition.negative
    for schema, arguments in reversed(outcome.reasons):
        by = ground(schema, arguments)
        if by and (by.outcomes[0].add & positive or by.outcomes[0].delete & negative):
            positive, negative = positive | by.condition.positive, negative | by.condition.negative
    if deleted & positive or outcome.add & negative:
        return None
    before = Condition(
        positive=(positive - outcome.add) | action.condition.positive,
        negative=(negative - deleted) | action.condition.negative,
    )
    return None if before.positive & before.negative else before


def ground_action(domain: Domain, action: Action, objects: Mapping[str, str] | None = None) -> GroundAction:
    """The ground action of a schema and arguments that a user or a file names; `BadInput` where they do not fit.

    With `objects`, the arguments must be among these, and of the right types.
    """
    schema = domain.schemas.get(action.name)
    if schema is None:
        raise BadInput(f"unknown action '{action.name}'; known actions: {', '.join(sorted(domain.schemas))}")
    if len(action.arguments) != len(schema.parameters):
        raise BadInput(f"action '{action}' needs {len(schema.parameters)} arguments, not {len(action.arguments)}")
    for parameter, name in zip(schema.parameters, action.arguments, strict=True):
        if objects is not None and not (name in objects and domain.is_subtype(objects[name], parameter.type)):
            raise BadInput(f"action '{action}' cannot be done: there is no {parameter.type} '{name}'")
    grounded = ground(schema, action.arguments)
    if grounded is None:
        raise BadInput(f"action '{action}' breaks an (in)equality of its precondition")
    return grounded


def cost_of(action: Action, domain: Domain, problem: Problem) -> float:
    """What an action costs: 1 where the problem has no costs, infinity where a function has no value."""
    if problem.costs is None or action.name not in domain.schemas:
        return action.name in domain.schemas  # an axiom costs nothing
    schema = domain.schemas[action.name]
    binding = dict(zip([p.name for p in schema.parameters], action.arguments, strict=True))
    amounts = (problem.costs.get(substitute(c, binding), inf) if isinstance(c, Atom) else c for c in schema.cost)
    return sum(amounts)


def is_solved(problem: Problem, state: Facts) -> bool:
    """Return whether the goal of a problem holds in a state."""
    return problem.goal <= state and problem.negative_goal.isdisjoint(state)
