"""What the world is made of, in symbols: atoms, action schemas, domains and problems.

Everything here is an immutable value. `Atom` and `Action` are named tuples rather than dataclasses because a problem
may hold millions of them and a tuple is hashed and compared in C.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

ROOT_TYPE = "object"
EQUALITY = "="
EITHER = "/"  # joins types: `(either a b)` is `a/b`


class Atom(NamedTuple):
    """A predicate and its terms: a fact when they are objects, a condition when some are `?variables`."""

    predicate: str
    terms: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(self.terms)})"


Facts = frozenset[Atom]

NO_FACTS: Facts = frozenset()


class Action(NamedTuple):
    """A schema's name and its arguments: objects in a plan, `?variables` in a rule's head."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"


def is_variable(term: str) -> bool:
    """Return whether a term is a variable, such as `?x`, and not an object."""
    return term.startswith("?")


def one_of(kind: str) -> list[str]:
    """The types of which a type such as `a/b` is one."""
    return kind.split(EITHER)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A typed variable; its name begins with `?`."""

    name: str
    type: str = ROOT_TYPE


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate and the types of its arguments."""

    name: str
    parameters: tuple[Parameter, ...] = ()

    @property
    def arity(self) -> int:
        """How many arguments it takes."""
        return len(self.parameters)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One thing an action may do.

    `chosen` are the variables of an existential effect: nature binds them, to any object of their type, or, for
    those listed in `new`, to an object that is seen for the first time. In a state an outcome adds and deletes derived
    facts, too; its `reasons` are, in order and with arguments, the axioms by which they begin or cease to follow.
    """

    add: Facts
    delete: Facts
    chosen: tuple[Parameter, ...] = ()
    new: frozenset[str] = frozenset()
    reasons: tuple[Applied, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """An action schema, or an event's. Conditions may hold `=` atoms; several outcomes make it nondeterministic.

    What it costs is the sum of `cost`: numbers, and numeric functions of its parameters.
    """

    name: str
    parameters: tuple[Parameter, ...]
    precondition: Facts
    outcomes: tuple[Outcome, ...]
    negative_precondition: Facts = NO_FACTS
    cost: tuple[Atom | float, ...] = ()

    @property
    def is_deterministic(self) -> bool:
        """Whether nature has nothing to choose."""
        return len(self.outcomes) == 1 and not self.outcomes[0].chosen


Applied = tuple[Schema, tuple[str, ...]]  # an action or an axiom, and its arguments


@dataclass(frozen=True)
class Domain:
    """Predicates and action schemas over a hierarchy of types (`types` maps each type to its parent).

    `adl` is the text of a domain whose actions schemas cannot express, and is for planners alone: for everyone else its
    schemas have parameters, and neither conditions nor effects. `events` are what nature does by itself: no agent can
    be told to do them, so planners and rules do not know of them. `axioms` say which facts follow from others: what an
    axiom adds holds where its precondition does, and of these `derived` predicates no state has any other facts.
    """

    name: str
    predicates: Mapping[str, Predicate]
    schemas: Mapping[str, Schema]
    types: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    adl: str = ""
    events: Mapping[str, Schema] = field(default_factory=dict)
    functions: Mapping[str, Predicate] = field(default_factory=dict)
    axioms: tuple[Schema, ...] = ()

    def is_subtype(self, kind: str, ancestor: str) -> bool:
        """Whether every object of type `kind` is one of type `ancestor`."""
        if EITHER in kind:
            return all(self.is_subtype(each, ancestor) for each in one_of(kind))
        if EITHER in ancestor:
            return any(self.is_subtype(kind, each) for each in one_of(ancestor))
        while kind != ancestor:
            if kind == ROOT_TYPE:
                return False
            kind = self.types.get(kind, ROOT_TYPE)
        return True

    @property
    def is_deterministic(self) -> bool:
        """Whether nature has nothing to choose in any action."""
        return all(schema.is_deterministic for schema in self.schemas.values())

    @property
    def makes_objects(self) -> bool:
        """Whether an action may make new objects."""
        return any(outcome.new for schema in self.schemas.values() for outcome in schema.outcomes)

    @cached_property
    def derived(self) -> frozenset[str]:
        """The predicates whose facts follow from others."""
        return frozenset(atom.predicate for axiom in self.axioms for atom in axiom.outcomes[0].add)

    @property
    def static(self) -> frozenset[str]:
        """The predicates whose facts no action changes."""
        outcomes = [outcome for schema in (*self.schemas.values(), *self.axioms) for outcome in schema.outcomes]
        changing = {atom.predicate for outcome in outcomes for atom in outcome.add | outcome.delete}
        return frozenset(self.predicates) - changing

    @property
    def named_constants(self) -> frozenset[str]:
        """Constants that a schema mentions by name; rules keep these, as any other object would not do."""
        schemas = (*self.schemas.values(), *self.axioms)
        atoms = NO_FACTS.union(*(schema.precondition | schema.negative_precondition for schema in schemas))
        atoms = atoms.union(*(outcome.add | outcome.delete for schema in schemas for outcome in schema.outcomes))
        return frozenset(term for atom in atoms for term in atom.terms if not is_variable(term))


@dataclass(frozen=True)
class Problem:
    """Objects with their types (without the domain's constants), what holds at first, and what shall hold.

    `negative_goal` is what shall not hold: planners know of it, rules do not. `costs` has the values of numeric
    functions where the sum of what actions cost shall be small, and is `None` where plans shall be short.
    """

    name: str
    domain_name: str
    objects: Mapping[str, str]
    state: Facts
    goal: Facts
    negative_goal: Facts = NO_FACTS
    costs: Mapping[Atom, float] | None = None

    def all_objects(self, domain: Domain) -> dict[str, str]:
        """The domain's constants and the problem's objects, with their types."""
        return {**domain.constants, **self.objects}


class BadInput(Exception):
    """Something a user gave us is wrong; the message is one line that says what, where, and what to do."""
