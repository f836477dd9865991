"""From a domain and a problem to the ground operators that can ever apply, and tasks over bit masks.

Operators are found by relaxed reachability: a fact once reached stays reached, and each new one is joined with those
before it through the schemas' preconditions, so that the cross product of all objects is never formed. A
nondeterministic action becomes one instance per outcome and per choice of nature (the all-outcomes determinisation).
Atoms are numbered, and the literals of atom i are 2i, that it is absent, and 2i + 1, that it is present.

In a task, states, conditions and effects are integers, and bit i stands for a literal. Having more bits set never
hurts: every literal that a condition tests has its own bit, present and absent ones alike. So where a policy works in a
state it works in every state that has more bits set, and an outcome that sets no bit that was not set brings nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby, pairwise, product
from operator import itemgetter
from typing import NamedTuple

from bilevel.planning.planner import Deadline, PlanStep, bits_of
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Outcome, Parameter, Problem, Schema, is_variable
from bilevel.symbolic.packed import no_garbage_collection
from bilevel.symbolic.semantics import makes_object, new_object

# Holds of a pool object once an action has made it; the space keeps it apart from any predicate of a domain.
MADE = "made by nature"


class Literal(NamedTuple):
    """A fact that is present, or one that is absent; to the search both are just things that may be true."""

    atom: Atom
    present: bool = True


class Instance(NamedTuple):
    """One way a step can go, over the numbers of literals; what it makes true makes the opposites false."""

    step: PlanStep
    condition: frozenset[int]
    effect: frozenset[int]


@dataclass(frozen=True, slots=True)
class GroundOperator:
    """One way a step can go: where the `precondition` bits are set it clears `delete`, then sets `add`."""

    step: PlanStep
    precondition: int
    add: int
    delete: int

    @property
    def is_useful(self) -> bool:
        """Whether it can set a bit that was not set before."""
        return bool(self.add & ~self.precondition)

    def apply(self, state: int) -> int:
        """Return the state after it."""
        return state & ~self.delete | self.add


@dataclass(frozen=True, slots=True)
class FondAction:
    """An action and all that it may do: its outcomes have its precondition, and no two of them are the same."""

    action: Action
    precondition: int
    outcomes: tuple[GroundOperator, ...]


@dataclass(frozen=True)
class Task:
    """A planning problem over bit masks; bit i stands for `literals[i]`.

    Where actions may turn out in several ways, operators are their useful outcomes, and `owners[i]` is the action of
    operator i.
    """

    literals: tuple[Literal, ...]
    operators: tuple[GroundOperator, ...]
    state: int
    goal: int
    owners: tuple[FondAction, ...] = ()


class GroundProblem:
    """The instances of a problem's actions, for tasks from any state that can be reached to any goal."""

    @no_garbage_collection()
    def __init__(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> None:
        """`new_objects` is how many objects of each type the `new` variables of existential effects may make."""
        grounder = _Grounder(domain, problem, deadline, new_objects)
        self.instances, self.atoms, self._numbers = grounder.reach(), grounder.atoms, dict[Atom, int]()
        self._domain, self._objects, self._new_objects, self._deadline = domain, problem.objects, new_objects, deadline
        self._numbers = {atom: number for number, atom in enumerate(self.atoms)}
        self.reached = frozenset(self.atoms[number] for number in grounder.reached)
        ranks = {number: rank for rank, number in enumerate(sorted(range(len(self.atoms)), key=self.atoms.__getitem__))}
        self._rank = lambda literal: (ranks[literal >> 1], literal & 1)  # the order of literals
        self._changing = frozenset[int]().union(*(instance.effect for instance in self.instances))
        self._achievers: dict[int, list[int]] = {}
        for index, instance in enumerate(self.instances):
            deadline.check()
            for literal in instance.effect:
                self._achievers.setdefault(literal, []).append(index)

    def covers(self, domain: Domain, problem: Problem, new_objects: int) -> bool:
        """Return whether the problem differs from the one that was grounded in its goal and in what holds only."""
        same = self._domain is domain and self._objects == problem.objects and self._new_objects == new_objects
        return same and problem.state <= self.reached

    @no_garbage_collection()
    def task(self, problem: Problem, deadline: Deadline, keep_useless: bool = False) -> Task | None:
        """Return the problem over bit masks; `None` where it is plain that it has no plan.

        Only literals that can change and can matter have a bit, and an action that asks for one that is never true is
        no operator. Of operators that are the same there is only the first, unless the useless ones are kept.
        """
        numbers, state = self._numbers, problem.state
        if not problem.goal <= self.reached:
            return None
        goal = {2 * numbers[atom] + 1 for atom in problem.goal}
        goal |= {2 * numbers[atom] for atom in problem.negative_goal if atom in numbers}
        at_first = {2 * number + (atom in state) for number, atom in enumerate(self.atoms)}
        constant = {literal for literal in at_first if literal ^ 1 not in self._changing}
        impossible = {literal ^ 1 for literal in constant}
        if goal & impossible:
            return None
        possible = [instance.condition.isdisjoint(impossible) for instance in self.instances]
        relevant = self._relevant(goal - constant, constant, possible, deadline)
        bits = {literal: 1 << place for place, literal in enumerate(sorted(relevant, key=self._rank))}

        def mask(literals: Iterable[int]) -> int:
            return sum([bits[literal] for literal in literals if literal in bits])

        operators: dict[object, GroundOperator] = {}
        for number, instance in enumerate(self.instances):
            deadline.check()
            if possible[number] and (keep_useless or not relevant.isdisjoint(instance.effect)):
                add, delete = mask(instance.effect), mask(literal ^ 1 for literal in instance.effect)
                made = GroundOperator(instance.step, mask(instance.condition), add, delete)
                if keep_useless:
                    operators[number] = made
                elif made.is_useful:
                    operators.setdefault((made.precondition, add, delete), made)
        literals = [Literal(self.atoms[literal >> 1], bool(literal & 1)) for literal in bits]
        return Task(tuple(literals), tuple(operators.values()), mask(at_first), mask(goal))

    def _relevant(self, goal: Set[int], constant: Set[int], possible: Sequence[bool], deadline: Deadline) -> set[int]:
        """Return the changing literals that the goal, or an instance that adds a relevant one, asks for."""
        relevant, unexplored, seen = set(goal), list(goal), set[int]()
        while unexplored:
            deadline.check()
            for index in self._achievers.get(unexplored.pop(), ()):
                if possible[index] and index not in seen:
                    seen.add(index)
                    new = self.instances[index].condition - constant - relevant
                    relevant |= new
                    unexplored.extend(new)
        return relevant

    def fond_task(self, problem: Problem, deadline: Deadline) -> Task | None:
        """Return the task with the owners of its operators."""
        task = self.task(problem, deadline, keep_useless=True)
        if task is None:
            return None
        actions: dict[object, FondAction] = {}
        for action, operators in groupby(task.operators, lambda operator: operator.step.action):
            deadline.check()
            outcomes: dict[tuple[int, int], GroundOperator] = {}
            for operator in operators:
                outcomes.setdefault((operator.add, operator.delete), operator)
            precondition = next(iter(outcomes.values())).precondition
            same = precondition, frozenset(outcomes)  # of two actions that agree in this one is enough
            actions.setdefault(same, FondAction(action, precondition, tuple(outcomes.values())))
        owned = [(outcome, owner) for owner in actions.values() for outcome in owner.outcomes if outcome.is_useful]
        operators_, owners = tuple(outcome for outcome, _ in owned), tuple(owner for _, owner in owned)
        return Task(task.literals, operators_, task.state, task.goal, owners)


Ground = Callable[[Domain, Problem, Deadline, int], Task | None]


def ground_task(domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> Task | None:
    """Return the problem over bit masks, or `None` where it is plain that it has no plan."""
    return GroundProblem(domain, problem, deadline, new_objects).task(problem, deadline)


class SharedGrounding:
    """Makes tasks as `ground_task` does, and grounds anew only where the problem is another one.

    What can be reached from a state that can be reached itself is known already; operators that cannot be reached from
    it do no harm. So plans are as good as those for `ground_task`, and shortest plans the same.
    """

    def __init__(self) -> None:
        self._grounded: GroundProblem | None = None

    def __call__(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> Task | None:
        """Return the problem over bit masks, or `None` where it is plain that it has no plan."""
        if self._grounded is None or not self._grounded.covers(domain, problem, new_objects):
            self._grounded = GroundProblem(domain, problem, deadline, new_objects)
        return self._grounded.task(problem, deadline)


def applicable_in(task: Task, deadline: Deadline) -> Callable[[int], list[int]]:
    """Return a function from a state to the indices of the operators that apply in it, in order.

    Operators are filed under their rarest condition, so that most of those that do not apply are never looked at.
    """
    uses: dict[int, int] = {}
    for operator in task.operators:
        deadline.check()
        for bit in bits_of(operator.precondition):
            uses[bit] = uses.get(bit, 0) + 1
    filed: dict[int, list[tuple[int, int]]] = {}
    always = []
    for index, operator in enumerate(task.operators):
        deadline.check()
        if operator.precondition:
            rarest = min(bits_of(operator.precondition), key=lambda bit: (uses[bit], bit))
            filed.setdefault(rarest, []).append((operator.precondition, index))
        else:
            always.append(index)
    keys = sum(1 << bit for bit in filed)

    def applicable(state: int) -> list[int]:
        found = [index for bit in bits_of(state & keys) for needs, index in filed[bit] if needs & state == needs]
        return sorted(always + found)

    return applicable


def makers_of_new_objects(domain: Domain, problem: Problem) -> list[str]:
    """The actions that may bind a variable to an object that the problem does not have."""
    objects = problem.all_objects(domain)
    return [
        schema.name
        for schema in domain.schemas.values()
        if any(makes_object(v, outcome, domain, objects) for outcome in schema.outcomes for v in outcome.chosen)
    ]


Values = tuple[str, ...]


class AtomTemplate(NamedTuple):
    """An atom of a schema: where its terms stand among the schema's values, and a function that picks them out."""

    predicate: str
    places: tuple[int, ...]
    pick: Callable[[Values], Values]


class OutcomeTemplate(NamedTuple):
    """What an outcome adds and deletes; nature's variables stand among the values after the parameters."""

    outcome: Outcome
    add: list[AtomTemplate]
    delete: list[AtomTemplate]


class SchemaTemplate:
    """A schema over values: first the constants that it names, then the parameters, then nature's variables."""

    def __init__(self, schema: Schema, objects_of: Callable[[str], Mapping[str, None]]) -> None:
        self.schema = schema
        outcomes = [atom for outcome in schema.outcomes for atom in (*outcome.add, *outcome.delete)]
        atoms = sorted({*schema.precondition, *schema.negative_precondition, *outcomes})
        self.constants = tuple(dict.fromkeys(term for a in atoms for term in a.terms if not is_variable(term)))
        names = [*self.constants, *(parameter.name for parameter in schema.parameters)]
        place = {name: index for index, name in enumerate(names)}
        self.allowed = [{constant: None} for constant in self.constants]
        self.allowed += [dict(objects_of(parameter.type)) for parameter in schema.parameters]
        split = [(atom, atom.predicate == EQUALITY) for atom in atoms]
        plain, equal = ([atom for atom, is_equal in split if is_equal is kind] for kind in (False, True))
        self.positive = [_template(atom, place) for atom in plain if atom in schema.precondition]
        self.negative = [_template(atom, place) for atom in plain if atom in schema.negative_precondition]
        self.equal = [_template(atom, place).places for atom in equal if atom in schema.precondition]
        self.unequal = [_template(atom, place).places for atom in equal if atom in schema.negative_precondition]
        self.outcomes = []
        for outcome in schema.outcomes:
            chosen = {variable.name: len(names) + i for i, variable in enumerate(outcome.chosen)}
            add, delete = ([_template(a, place | chosen) for a in its] for its in (outcome.add, outcome.delete))
            self.outcomes.append(OutcomeTemplate(outcome, add, delete))
        self.open: list[str | None] = [*self.constants, *(None for _ in schema.parameters)]
        for a, b in self.equal:  # `(= ?x table)` settles ?x
            for one, other in ((a, b), (b, a)):
                value = self.open[other] if other < len(self.constants) else None
                if one >= len(self.constants) and value in self.allowed[one]:
                    self.open[one] = value

    def fits(self, values: Values) -> bool:
        """Whether the equations and inequations hold."""
        return all(values[a] == values[b] for a, b in self.equal) and all(
            values[a] != values[b] for a, b in self.unequal
        )


def _template(atom: Atom, place: Mapping[str, int]) -> AtomTemplate:
    places = tuple(place[term] for term in atom.terms)
    if len(places) > 1:
        return AtomTemplate(atom.predicate, places, itemgetter(*places))
    only = slice(places[0], places[0] + 1) if places else slice(0, 0)
    return AtomTemplate(atom.predicate, places, itemgetter(only))


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
        self.instances: list[Instance] = []
        self.seen: set[Action] = set()
        self.templates = [SchemaTemplate(schema, self._objects_of) for schema in domain.schemas.values()]

    def reach(self) -> list[Instance]:
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

    def _in_order(self) -> list[Instance]:
        places = {name: place for place, name in enumerate(self.domain.schemas)}
        rank = {name: index for index, name in enumerate(self.known)}

        def order(instance: Instance) -> tuple[int, list[int], int, list[int]]:
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
            self.instances.append(Instance(step, needs, effect))
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
