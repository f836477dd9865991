"""From a domain and a problem to the ground operators that can ever apply.

They are found by relaxed reachability: a fact once reached stays reached, and each new one is joined with those
before it through the schemas' preconditions, so that the cross product of all objects is never formed. A
nondeterministic action becomes one instance per outcome and per choice of nature (the all-outcomes determinisation).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

from bilevel.planning.planner import Deadline, PlanStep
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Outcome, Parameter, Problem, Schema, is_variable
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground, makes_object, new_object

# Holds of a pool object once an action has made it; the space keeps it apart from any predicate of a domain.
MADE = "made by nature"

Binding = dict[str, str]


class Literal(NamedTuple):
    """A fact that is present, or one that is absent; to the search both are just things that may be true."""

    atom: Atom
    present: bool = True

    @property
    def opposite(self) -> Literal:
        return Literal(self.atom, not self.present)


def literals(present: Iterable[Atom], absent: Iterable[Atom] = ()) -> frozenset[Literal]:
    return frozenset([*map(Literal, present), *(Literal(atom, False) for atom in absent)])


@dataclass(frozen=True, slots=True)
class Instance:
    """One way a step can go: what it asks for, what it makes true and what it makes false."""

    step: PlanStep
    condition: frozenset[Literal]
    add: frozenset[Literal]
    delete: frozenset[Literal]


def reachable_instances(
    domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0
) -> tuple[list[Instance], set[Atom]]:
    """The instances whose positive precondition can be reached, and every fact that can.

    `new_objects` is how many objects of each type the `new` variables of existential effects may make.
    """
    grounder = _Grounder(domain, problem, deadline, new_objects)
    return grounder.reach(), set(grounder.reached)


def makers_of_new_objects(domain: Domain, problem: Problem) -> list[str]:
    """The actions that may bind a variable to an object that the problem does not have."""
    objects = problem.all_objects(domain)
    return [
        schema.name
        for schema in domain.schemas.values()
        if any(makes_object(v, outcome, domain, objects) for outcome in schema.outcomes for v in outcome.chosen)
    ]


class _Grounder:
    """Relaxed reachability; `reached` holds every fact found so far, in the order in which they were found."""

    def __init__(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int) -> None:
        self.domain = domain
        self.deadline = deadline
        self.objects = problem.all_objects(domain)
        self.pools = _make_pools(domain, self.objects, new_objects)
        self.known = {**self.objects, **{name: kind for kind, pool in self.pools.items() for name in pool}}
        self.pooled = {name for pool in self.pools.values() for name in pool}
        self.rank = {name: index for index, name in enumerate(self.known)}
        self.reached: dict[Atom, None] = dict.fromkeys(sorted(problem.state))
        self.agenda = list(self.reached)
        self.facts: dict[tuple[str, int, str], list[Atom]] = {}  # by predicate and one term, or -1 and no term
        self.instances: dict[PlanStep, Instance] = {}
        self.seen: set[Action] = set()
        self.of_type: dict[str, dict[str, None]] = {}

    def reach(self) -> list[Instance]:
        """Every instance whose positive precondition can be reached, in the order of schemas and objects."""
        watchers: dict[str, list[tuple[Schema, list[Atom], int]]] = {}
        for schema in self.domain.schemas.values():
            atoms = sorted(atom for atom in schema.precondition if atom.predicate != EQUALITY)
            for i, atom in enumerate(atoms):
                watchers.setdefault(atom.predicate, []).append((schema, atoms, i))
            if not atoms:
                self._instantiate(schema, self._settled(schema))
        for fact in self.agenda:  # grows while it is read
            for key in [(fact.predicate, -1, ""), *((fact.predicate, i, term) for i, term in enumerate(fact.terms))]:
                self.facts.setdefault(key, []).append(fact)
            for schema, atoms, i in watchers.get(fact.predicate, ()):
                allowed = {p.name: self._objects_of(p.type) for p in schema.parameters}
                binding = _extend(self._settled(schema), atoms[i], fact, allowed)
                if binding is not None:
                    for found in self._join(atoms[:i] + atoms[i + 1 :], binding, allowed):
                        self._instantiate(schema, found)
        return self._in_order()

    def _settled(self, schema: Schema) -> Binding:
        """The parameters for which the precondition names an object of their type: `(= ?x table)`."""
        equal = {atom.terms for atom in schema.precondition if atom.predicate == EQUALITY}
        return {p.name: o for p in schema.parameters for v, o in equal if v == p.name and o in self._objects_of(p.type)}

    def _in_order(self) -> list[Instance]:
        places = {name: place for place, name in enumerate(self.domain.schemas)}

        def order(step: PlanStep) -> tuple[int, list[int], int, list[int]]:
            self.deadline.check()
            arguments = [self.rank[name] for name in step.action.arguments]
            return places[step.action.name], arguments, step.outcome, [self.rank[name] for _, name in step.choice]

        return [self.instances[step] for step in sorted(self.instances, key=order)]

    def _objects_of(self, kind: str) -> dict[str, None]:
        if kind not in self.of_type:
            known = (name for name, its in self.known.items() if self.domain.is_subtype(its, kind))
            self.of_type[kind] = dict.fromkeys(known)
        return self.of_type[kind]

    def _join(
        self, atoms: Sequence[Atom], binding: Binding, allowed: Mapping[str, Mapping[str, None]]
    ) -> Iterator[Binding]:
        """Every extension of the binding under which the atoms have been reached; the rarest atom goes first."""
        self.deadline.check()
        if not atoms:
            yield binding
            return
        candidates = [self._matching(atom, binding) for atom in atoms]
        rarest = min(range(len(atoms)), key=lambda i: len(candidates[i]))
        rest = [atom for i, atom in enumerate(atoms) if i != rarest]
        for fact in candidates[rarest]:
            extended = _extend(binding, atoms[rarest], fact, allowed)
            if extended is not None:
                yield from self._join(rest, extended, allowed)

    def _matching(self, atom: Atom, binding: Binding) -> Sequence[Atom]:
        """The shortest list at hand that holds every fact the atom can match under the binding."""
        shortest: Sequence[Atom] = self.facts.get((atom.predicate, -1, ""), ())
        for position, term in enumerate(atom.terms):
            value = binding.get(term, term)
            if not is_variable(value):
                shortest = min(shortest, self.facts.get((atom.predicate, position, value), ()), key=len)
        return shortest

    def _instantiate(self, schema: Schema, binding: Binding) -> None:
        """Every instance of the schema under the binding; parameters it leaves open range over their type."""
        choices = [
            (binding[p.name],) if p.name in binding else tuple(self._objects_of(p.type)) for p in schema.parameters
        ]
        for arguments in product(*choices):
            self.deadline.check()
            action = Action(schema.name, arguments)
            if action in self.seen:
                continue
            self.seen.add(action)
            grounded = ground(schema, arguments)
            if grounded is not None:
                for index, outcome in enumerate(grounded.outcomes):
                    self._determinise(grounded, index, outcome)

    def _determinise(self, action: GroundAction, index: int, outcome: Outcome) -> None:
        """One instance for every choice of nature in the outcome; what it adds is reached."""
        candidates = [self._candidates(variable, outcome) for variable in outcome.chosen]
        variables = [variable.name for variable in outcome.chosen]
        used = {Atom(MADE, (name,)) for name in action.action.arguments if name in self.pooled}
        for values in product(*candidates):
            self.deadline.check()
            made = [name for name in values if name in self.pooled]
            if len(set(made)) < len(made):
                continue
            bound = bind_outcome(outcome, dict(zip(variables, values, strict=True))) if values else outcome
            before = {Atom(MADE, (name,)) for name in self._predecessors(made)}
            new = frozenset(Atom(MADE, (name,)) for name in made)
            step = PlanStep(action.action, index, tuple(zip(variables, values, strict=True)))
            add, delete = bound.add | new, bound.delete - bound.add
            self.instances[step] = Instance(
                step,
                condition=literals(action.condition.positive | used | before, action.condition.negative | new),
                add=literals(add, delete),
                delete=literals(delete, add),
            )
            fresh = sorted(atom for atom in add if atom not in self.reached)
            self.reached.update(dict.fromkeys(fresh))
            self.agenda.extend(fresh)

    def _candidates(self, variable: Parameter, outcome: Outcome) -> Sequence[str]:
        if makes_object(variable, outcome, self.domain, self.objects):
            return self.pools.get(variable.type, ())
        return [name for name in self._objects_of(variable.type) if name not in self.pooled]

    def _predecessors(self, made: Sequence[str]) -> Iterator[str]:
        """Pool objects are all alike, so they are made in order: the one before each must exist already."""
        for pool in self.pools.values():
            for before, name in pairwise(pool):
                if name in made and before not in made:
                    yield before


def _make_pools(domain: Domain, objects: Mapping[str, str], size: int) -> dict[str, list[str]]:
    """Names of new objects for each type of which nature makes some."""
    pools: dict[str, list[str]] = {}
    taken = dict(objects)
    outcomes = [outcome for schema in domain.schemas.values() for outcome in schema.outcomes]
    for variable, its in [(variable, outcome) for outcome in outcomes for variable in outcome.chosen]:
        if variable.type not in pools and makes_object(variable, its, domain, objects):
            pools[variable.type] = []
            for _ in range(size):
                pools[variable.type].append(new_object(variable, taken))
                taken[pools[variable.type][-1]] = variable.type
    return pools


def _extend(binding: Binding, atom: Atom, fact: Atom, allowed: Mapping[str, Mapping[str, None]]) -> Binding | None:
    """The binding extended so that the atom becomes the fact, each variable within its type, if there is one."""
    extended = dict(binding)
    for term, value in zip(atom.terms, fact.terms, strict=True):
        bound = extended.get(term, term)
        if not is_variable(bound):
            if bound != value:
                return None
        elif value not in allowed[bound]:
            return None
        else:
            extended[bound] = value
    return extended
