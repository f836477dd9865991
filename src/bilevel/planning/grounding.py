"""From a domain and a problem to the ground operators that can ever apply.

They are found by relaxed reachability: a fact once reached stays reached, and each new one is joined with those
before it through the schemas' preconditions, so that the cross product of all objects is never formed. A
nondeterministic action becomes one instance per outcome and per choice of nature (the all-outcomes determinisation).
Atoms are numbered, and the literals of atom i are 2i, that it is absent, and 2i + 1, that it is present.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

from bilevel.planning.planner import Deadline, PlanStep
from bilevel.planning.schema_templates import AtomTemplate, OutcomeTemplate, SchemaTemplate, Values
from bilevel.symbolic.domain import Action, Atom, Domain, Outcome, Parameter, Problem
from bilevel.symbolic.semantics import makes_object, new_object

# Holds of a pool object once an action has made it; the space keeps it apart from any predicate of a domain.
MADE = "made by nature"


class Literal(NamedTuple):
    """A fact that is present, or one that is absent; to the search both are just things that may be true."""

    atom: Atom
    present: bool = True

    @property
    def opposite(self) -> Literal:
        """The literal that is true where this one is false."""
        return Literal(self.atom, not self.present)


def literals(present: Iterable[Atom], absent: Iterable[Atom] = ()) -> frozenset[Literal]:
    """Return literals that say which atoms hold and which do not."""
    return frozenset([*map(Literal, present), *(Literal(atom, False) for atom in absent)])


@dataclass(frozen=True, slots=True)
class Instance:
    """One way a step can go: what it asks for, what it makes true and what it makes false."""

    step: PlanStep
    condition: frozenset[Literal]
    add: frozenset[Literal]
    delete: frozenset[Literal]


class NumberedInstance(NamedTuple):
    """The same with numbers for literals; what it makes true makes the opposites false."""

    step: PlanStep
    condition: frozenset[int]
    effect: frozenset[int]


@dataclass(frozen=True)
class Reachable:
    """What can be reached: the instances, in the order of schemas and objects, and all atoms that matter, by number."""

    instances: Sequence[NumberedInstance]
    atoms: Sequence[Atom]
    reached: frozenset[int]  # the atoms that can come true

    def literal(self, number: int) -> Literal:
        """Return the literal with this number."""
        return Literal(self.atoms[number >> 1], bool(number & 1))


def reachable_instances(
    domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0
) -> tuple[list[Instance], set[Atom]]:
    """The instances whose positive precondition can be reached, and every fact that can.

    `new_objects` is how many objects of each type the `new` variables of existential effects may make.
    """
    found = reachable(domain, problem, deadline, new_objects)
    instances = []
    for step, condition, effect in found.instances:
        parts = condition, effect, [number ^ 1 for number in effect]
        instances.append(Instance(step, *(frozenset(map(found.literal, numbers)) for numbers in parts)))
    return instances, {found.atoms[number] for number in found.reached}


def reachable(domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> Reachable:
    """The same over numbers, which is quicker where there are many instances."""
    grounder = _Grounder(domain, problem, deadline, new_objects)
    instances = grounder.reach()
    return Reachable(instances, grounder.atoms, frozenset(grounder.reached))


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
        self.of_type: dict[str, dict[str, None]] = {}
        self.atoms: list[Atom] = []
        self.numbers: dict[str, dict[Values, int]] = {}  # of atoms, by predicate and terms
        self.reached: dict[int, None] = {
            self._number(atom.predicate, atom.terms): None for atom in sorted(problem.state)
        }
        self.agenda = list(self.reached)
        self.facts: dict[tuple[str, int, str], list[Values]] = {}  # those taken up, by predicate and one term
        self.present: dict[str, dict[Values, None]] = {}  # those taken up, by predicate
        self.instances: list[NumberedInstance] = []
        self.seen: set[Action] = set()
        self.templates = [SchemaTemplate(schema, self._objects_of) for schema in domain.schemas.values()]

    def reach(self) -> list[NumberedInstance]:
        """Every instance whose positive precondition can be reached, in the order of schemas and objects."""
        watchers: dict[str, list[tuple[SchemaTemplate, int]]] = {}
        for template in self.templates:
            for i, atom in enumerate(template.positive):
                watchers.setdefault(atom.predicate, []).append((template, i))
            if not template.positive:
                self._instantiate(template, template.open)
        for number in self.agenda:  # grows while it is read
            predicate, terms = self.atoms[number]
            self.present.setdefault(predicate, {})[terms] = None
            for i, term in enumerate(terms):
                self.facts.setdefault((predicate, i, term), []).append(terms)
            for template, i in watchers.get(predicate, ()):
                values = _extend(template.open, template.positive[i], terms, template.allowed)
                if values is not None:
                    for found in self._join(template, template.positive[:i] + template.positive[i + 1 :], values):
                        self._instantiate(template, found)
        return self._in_order()

    def _in_order(self) -> list[NumberedInstance]:
        places = {name: place for place, name in enumerate(self.domain.schemas)}
        rank = {name: index for index, name in enumerate(self.known)}

        def order(instance: NumberedInstance) -> tuple[int, list[int], int, list[int]]:
            self.deadline.check()
            (name, arguments), outcome, choice = instance.step
            return places[name], [rank[argument] for argument in arguments], outcome, [rank[its] for _, its in choice]

        return sorted(self.instances, key=order)

    def _objects_of(self, kind: str) -> dict[str, None]:
        if kind not in self.of_type:
            known = (name for name, its in self.known.items() if self.domain.is_subtype(its, kind))
            self.of_type[kind] = dict.fromkeys(known)
        return self.of_type[kind]

    def _number(self, predicate: str, terms: Values) -> int:
        known = self.numbers.setdefault(predicate, {})
        number = known.get(terms)
        if number is None:
            number = known[terms] = len(self.atoms)
            self.atoms.append(Atom(predicate, terms))
        return number

    def _join(
        self, template: SchemaTemplate, atoms: Sequence[AtomTemplate], values: list[str | None]
    ) -> Iterator[list[str | None]]:
        """Every extension of the values under which the atoms have been reached; the rarest atom goes first."""
        self.deadline.check()
        open_atoms, candidates = [], []
        for atom in atoms:
            terms = [values[place] for place in atom.places]
            if None in terms:
                open_atoms.append(atom)
                candidates.append(self._matching(atom.predicate, terms))
            elif tuple(terms) not in self.present.get(atom.predicate, ()):
                return
        if not open_atoms:
            yield values
            return
        rarest = min(range(len(open_atoms)), key=lambda i: len(candidates[i]))
        rest = open_atoms[:rarest] + open_atoms[rarest + 1 :]
        for found in candidates[rarest]:
            extended = _extend(values, open_atoms[rarest], found, template.allowed)
            if extended is not None:
                yield from self._join(template, rest, extended)

    def _matching(self, predicate: str, terms: Sequence[str | None]) -> Collection[Values]:
        """The shortest collection at hand that holds every fact with these terms, as far as they are known."""
        known = [(position, term) for position, term in enumerate(terms) if term is not None]
        lists = [self.facts.get((predicate, position, term), ()) for position, term in known]
        return min((self.present.get(predicate, ()), *lists), key=len)

    def _instantiate(self, template: SchemaTemplate, values: list[str | None]) -> None:
        """Every instance of the schema under the values; parameters they leave open range over their type."""
        choices = [(value,) if value is not None else template.allowed[i] for i, value in enumerate(values)]
        for chosen in product(*choices):
            self.deadline.check()
            action = Action(template.schema.name, chosen[len(template.constants) :])
            if action in self.seen:
                continue
            self.seen.add(action)
            if template.fits(chosen):
                number = self._number
                condition = [2 * number(predicate, pick(chosen)) + 1 for predicate, _, pick in template.positive]
                condition += [2 * number(predicate, pick(chosen)) for predicate, _, pick in template.negative]
                used = [name for name in action.arguments if name in self.pooled] if self.pooled else ()
                condition += [2 * number(MADE, (name,)) + 1 for name in used]
                needs = frozenset(condition)
                for index, outcome in enumerate(template.outcomes):
                    self._determinise(action, index, outcome, chosen, needs)

    def _determinise(
        self, action: Action, index: int, template: OutcomeTemplate, values: Values, condition: frozenset[int]
    ) -> None:
        """One instance for every choice of nature in the outcome; what it adds is reached."""
        variables = [variable.name for variable in template.outcome.chosen]
        candidates = [self._candidates(variable, template.outcome) for variable in template.outcome.chosen]
        number = self._number
        for choice in product(*candidates):
            self.deadline.check()
            made = [name for name in choice if name in self.pooled] if self.pooled else []
            if len(set(made)) < len(made):
                continue
            chosen = values + choice
            new = [number(MADE, (name,)) for name in made]
            before = [number(MADE, (name,)) for name in self._predecessors(made)]
            add = {number(predicate, pick(chosen)) for predicate, _, pick in template.add}.union(new)
            delete = {number(predicate, pick(chosen)) for predicate, _, pick in template.delete}
            needs = condition.union((2 * n + 1 for n in before), (2 * n for n in new)) if made else condition
            effect = frozenset([*(2 * n + 1 for n in add), *(2 * n for n in delete - add)])
            step = PlanStep(action, index, tuple(zip(variables, choice, strict=True)))
            self.instances.append(NumberedInstance(step, needs, effect))
            fresh = sorted(add.difference(self.reached), key=self.atoms.__getitem__)
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


def _extend(
    values: list[str | None], atom: AtomTemplate, terms: Values, allowed: Sequence[Mapping[str, None]]
) -> list[str | None] | None:
    """The values extended so that the atom has these terms, each within its type, if that is possible."""
    extended = values.copy()
    for place, term in zip(atom.places, terms, strict=True):
        bound = extended[place]
        if bound is None:
            if term not in allowed[place]:
                return None
            extended[place] = term
        elif bound != term:
            return None
    return extended
