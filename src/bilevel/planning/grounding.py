"""From a domain and a problem to the ground operators that can ever apply, and tasks over bit masks.

Operators are found by relaxed reachability: a fact once reached stays reached, and each new one is joined with those
before it through the schemas' preconditions, so that the cross product of all objects is never formed. A
nondeterministic action becomes one instance per outcome and per choice of nature (the all-outcomes determinisation).

States, conditions and effects are integers: bit 2i says that atom i is absent, bit 2i + 1 that it is present. Having
more bits set never hurts, as a condition has a bit for everything that it tests. So where a policy works in a state it
works in every state that has more bits set, and an outcome that sets no bit that was not set brings nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice, pairwise, product

from bilevel.planning.planner import Deadline, PlanStep
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Action, Atom, Domain, Outcome, Problem, Schema, is_variable
from bilevel.symbolic.packed import no_garbage_collection
from bilevel.symbolic.semantics import (
    Condition,
    GroundAction,
    bind_outcome,
    cost_of,
    fresh_names,
    ground,
    makes_object,
    substitute,
)

# Holds of a pool object once an action has made it; the space keeps it apart from any predicate of a domain.
MADE = "made by nature"


def bits_of(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, the lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class ConditionIndex:
    """Conditions as bit masks, by number; each is filed under its rarest bit, so that most are never looked at."""

    def __init__(self, conditions: Iterable[int] = ()) -> None:
        self._filed: dict[int, dict[int, int]] = {}  # under -1 those without any bit
        self._place: dict[int, int] = {}
        self._bits = 0  # under which any are filed
        for number, condition in enumerate(conditions):
            self.put(number, condition)

    def put(self, number: int, condition: int) -> None:
        """File a condition under its number, instead of the one before."""
        if number in self._place:
            self.remove(number)
        place = min(bits_of(condition), key=lambda bit: len(self._filed.get(bit, ())), default=-1)
        self._filed.setdefault(place, {})[number] = condition
        self._place[number] = place
        self._bits |= 1 << place if place >= 0 else 0

    def remove(self, number: int) -> None:
        """Remove the condition with this number."""
        del self._filed[self._place.pop(number)][number]

    def holding(self, state: int) -> list[int]:
        """Return the numbers of all conditions that hold in a state, in ascending order."""
        found = [*self._filed.get(-1, ())]
        for bit in bits_of(state & self._bits):
            found += [number for number, needs in self._filed[bit].items() if needs & state == needs]
        return sorted(found)


@dataclass(frozen=True, slots=True, eq=False)
class GroundOperator:
    """One way a step can go: where the `precondition` bits are set it clears `delete`, then sets `add`."""

    step: PlanStep
    precondition: int
    add: int
    delete: int
    cost: float = 1

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
class GroundTask:
    """A planning problem over bit masks.

    Operators are the outcomes of actions that set a bit which was not set, `owners[i]` is the action of operator i.
    """

    atoms: Sequence[Atom]
    operators: tuple[GroundOperator, ...]
    owners: tuple[FondAction, ...]
    state: int
    goal: int

    @property
    def has_costs(self) -> bool:
        """Whether some action does not cost 1."""
        return any(operator.cost != 1 for operator in self.operators)

    def condition(self, mask: int) -> Condition:
        """Return which facts must be present and which absent for these bits to be set."""
        bits = [*bits_of(mask)]
        present, absent = (frozenset(self.atoms[bit >> 1] for bit in bits if bit & 1 == its) for its in (1, 0))
        return Condition(present, absent)


class GroundProblem:
    """The operators of a problem's actions, for tasks from any state that can be reached to any goal."""

    @no_garbage_collection()
    def __init__(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> None:
        """`new_objects` is how many objects of each type the `new` variables of existential effects may make."""
        self._domain, self._objects, self._new_objects = domain, problem.objects, new_objects
        self._costs = problem.costs
        found = _Grounder(domain, problem, deadline, new_objects).reach()
        costs = {step.action: cost_of(step.action, domain, problem) for step, _, _ in found}
        found.sort(key=lambda instance: costs[instance[0].action])  # the first of operators that do the same is kept
        self._reached = problem.state.union(*(outcome.add for _, _, outcome in found))
        changing = NO_FACTS.union(*(outcome.add | outcome.delete for _, _, outcome in found))
        self._constant = problem.state - changing
        self.atoms = sorted(changing)
        self._numbers = {atom: number for number, atom in enumerate(self.atoms)}
        self._absent = sum([1 << 2 * number for number in self._numbers.values()])  # every bit for absence
        self.operators: list[GroundOperator] = []
        self._achievers: dict[int, list[int]] = {}  # the operators that set a bit
        for step, condition, outcome in found:
            deadline.check()
            if condition.negative.isdisjoint(self._constant):
                needed = self.mask(condition.positive - self._constant, condition.negative & changing)
                effect = self.mask(outcome.add, outcome.delete - outcome.add)
                for bit in bits_of(effect):
                    self._achievers.setdefault(bit, []).append(len(self.operators))
                self.operators.append(GroundOperator(step, needed, effect, self._opposite(effect), costs[step.action]))

    def mask(self, present: Iterable[Atom], absent: Iterable[Atom]) -> int:
        """Return the bits of these changing facts."""
        numbers = self._numbers
        return sum([2 << 2 * numbers[atom] for atom in present]) + sum([1 << 2 * numbers[atom] for atom in absent])

    def _opposite(self, mask: int) -> int:
        """Absence for presence, and presence for absence."""
        return (mask & self._absent) << 1 | mask >> 1 & self._absent

    def covers(self, domain: Domain, problem: Problem, new_objects: int) -> bool:
        """Return whether the problem differs from the one that was grounded in its goal and in what changes only."""
        same = self._domain is domain and self._objects == problem.objects and self._new_objects == new_objects
        return same and self._costs == problem.costs and self._constant <= problem.state <= self._reached

    @no_garbage_collection()
    def task(self, problem: Problem, deadline: Deadline) -> GroundTask | None:
        """Return the problem over bit masks; `None` where it is plain that it has no plan.

        Only bits that can change and can matter are ever set, and an action that asks for one that is never set has no
        operator. Of actions that are the same there is only the first.
        """
        numbers, holding = self._numbers, problem.state
        if not (problem.goal <= self._reached and problem.negative_goal.isdisjoint(self._constant)):
            return None
        state = self.mask(holding - self._constant, (atom for atom in self.atoms if atom not in holding))
        goal = self.mask(problem.goal - self._constant, problem.negative_goal.intersection(numbers))
        constant = state & ~self._opposite(sum([1 << bit for bit in self._achievers]))
        impossible = self._opposite(constant)
        if goal & impossible:
            return None
        relevant = self._relevant(goal & ~constant, constant, impossible, deadline)
        actions: dict[object, FondAction] = {}
        for action, operators in groupby(self.operators, lambda operator: operator.step.action):
            outcomes: dict[object, GroundOperator] = {}
            for operator in operators:
                deadline.check()
                if not operator.precondition & impossible:
                    masks = operator.precondition & relevant, operator.add & relevant, operator.delete & relevant
                    outcomes.setdefault(masks, GroundOperator(operator.step, *masks, operator.cost))
            if outcomes:
                kept = tuple(outcomes.values())
                actions.setdefault(frozenset(outcomes), FondAction(action, kept[0].precondition, kept))
        every = [(outcome, owner) for owner in actions.values() for outcome in owner.outcomes]
        useful = [(outcome, owner) for outcome, owner in every if outcome.add & ~outcome.precondition]
        kept_operators, owners = tuple([outcome for outcome, _ in useful]), tuple([owner for _, owner in useful])
        return GroundTask(self.atoms, kept_operators, owners, state & relevant, goal & relevant)

    def _relevant(self, goal: int, constant: int, impossible: int, deadline: Deadline) -> int:
        """Return the changing bits that the goal, or an operator that sets a relevant one, asks for."""
        relevant, unexplored, seen = goal, [*bits_of(goal)], set[int]()
        while unexplored:
            deadline.check()
            for index in self._achievers.get(unexplored.pop(), ()):
                condition = self.operators[index].precondition
                if index not in seen and not condition & impossible:
                    seen.add(index)
                    new = condition & ~constant & ~relevant
                    relevant |= new
                    unexplored.extend(bits_of(new))
        return relevant


class Grounding:
    """Makes tasks of problems, and grounds anew only where the problem is another one.

    What can be reached from a state that can be reached itself is known already; operators that cannot be reached from
    it do no harm. So plans are as good as with a new grounding, and shortest plans the same.
    """

    def __init__(self) -> None:
        self._grounded: GroundProblem | None = None

    def task(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> GroundTask | None:
        """Return the problem over bit masks, or `None` where it is plain that it has no plan."""
        if self._grounded is None or not self._grounded.covers(domain, problem, new_objects):
            self._grounded = GroundProblem(domain, problem, deadline, new_objects)
        return self._grounded.task(problem, deadline)


def makers_of_new_objects(domain: Domain, problem: Problem) -> list[str]:
    """The actions that may bind a variable to an object that the problem does not have."""
    objects = problem.all_objects(domain)
    return [
        schema.name
        for schema in domain.schemas.values()
        if any(makes_object(v, outcome, domain, objects) for outcome in schema.outcomes for v in outcome.chosen)
    ]


Instance = tuple[PlanStep, Condition, Outcome]  # one way a step can go, in facts
Binding = Mapping[str, str]


class _Grounder:
    """Relaxed reachability; facts are taken up in the order in which they were found."""

    def __init__(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int) -> None:
        self._domain, self._deadline = domain, deadline
        self._objects = problem.all_objects(domain)
        self._pools = _make_pools(domain, self._objects, new_objects)
        pooled = {name: kind for kind, pool in self._pools.items() for name in pool}
        self._before = {name: before for pool in self._pools.values() for before, name in pairwise(["", *pool])}
        self._known = {**self._objects, **pooled}
        self._constants = {name: name for name in domain.constants}
        is_subtype, known, old = domain.is_subtype, self._known, self._objects
        self._objects_of = cache(lambda kind: {name: None for name, its in known.items() if is_subtype(its, kind)})
        self._old = cache(lambda kind: [name for name, its in old.items() if is_subtype(its, kind)])
        self._allowed = {schema.name: self._allowed_in(schema) for schema in domain.schemas.values()}
        self._reached = dict.fromkeys(sorted(problem.state))
        self._agenda = list(self._reached)
        self._taken_up: dict[tuple[object, ...], list[Atom]] = {}  # by predicate; by predicate, place and term
        self._seen: set[Action] = set()
        self._found: list[Instance] = []

    def reach(self) -> list[Instance]:
        """Every instance whose positive precondition can be reached, in the order of schemas and objects."""
        watchers: dict[str, list[tuple[Schema, Atom, list[Atom]]]] = {}  # a condition, and the others of its schema
        for schema in self._domain.schemas.values():
            conditions = sorted(atom for atom in schema.precondition if atom.predicate != EQUALITY)
            for place, condition in enumerate(conditions):
                others = conditions[:place] + conditions[place + 1 :]
                watchers.setdefault(condition.predicate, []).append((schema, condition, others))
            if not conditions:
                self._instantiate(schema, {})
        for atom in self._agenda:  # grows while it is read
            for key in ((atom.predicate,), *((atom.predicate, *each) for each in enumerate(atom.terms))):
                self._taken_up.setdefault(key, []).append(atom)
            for schema, condition, others in watchers.get(atom.predicate, ()):
                binding = _extended(self._constants, condition, atom, self._allowed[schema.name])
                if binding is not None:
                    for found in self._join(schema, others, binding):
                        self._instantiate(schema, found)
        places = {name: place for place, name in enumerate(self._domain.schemas)}
        rank = {name: index for index, name in enumerate(self._known)}

        def order(instance: Instance) -> tuple[int, list[int], int, list[int]]:
            (name, arguments), outcome, choice = instance[0]
            return places[name], [rank[argument] for argument in arguments], outcome, [rank[its] for _, its in choice]

        self._deadline.check()
        return sorted(self._found, key=order)

    def _allowed_in(self, schema: Schema) -> dict[str, Collection[str]]:
        """Return the objects that each parameter may be; `(= ?x table)` settles ?x."""
        allowed: dict[str, Collection[str]] = {each.name: self._objects_of(each.type) for each in schema.parameters}
        for atom in schema.precondition:
            if atom.predicate == EQUALITY and not all(map(is_variable, atom.terms)):
                one, other = (allowed.get(term, (term,)) for term in atom.terms)
                both = [name for name in one if name in other]
                allowed |= dict.fromkeys(atom.terms, both)
        return allowed

    def _join(self, schema: Schema, conditions: Sequence[Atom], binding: Binding) -> Iterator[Binding]:
        """Every extension of the binding under which the conditions have been reached; the rarest goes first."""
        self._deadline.check()
        open_conditions = []
        for condition in conditions:
            if not binding.keys() >= {*condition.terms}:
                open_conditions.append(condition)
            elif substitute(condition, binding) not in self._reached:
                return
        if not open_conditions:
            yield binding
            return
        candidates = [self._candidates(condition, binding) for condition in open_conditions]
        rarest = min(range(len(candidates)), key=lambda index: len(candidates[index]))
        condition = open_conditions.pop(rarest)
        for atom in candidates[rarest]:
            extended = _extended(binding, condition, atom, self._allowed[schema.name])
            if extended is not None:
                yield from self._join(schema, open_conditions, extended)

    def _candidates(self, condition: Atom, binding: Binding) -> Sequence[Atom]:
        """The shortest list at hand that has every fact which the condition can be, with the terms that are known."""
        predicate, terms = condition
        keys = [(predicate, place, binding[term]) for place, term in enumerate(terms) if term in binding]
        return min((self._taken_up.get(key, []) for key in [(predicate,), *keys]), key=len)

    def _instantiate(self, schema: Schema, binding: Binding) -> None:
        """Every instance of the schema under the binding; parameters it leaves open range over what is allowed."""
        names, allowed = [parameter.name for parameter in schema.parameters], self._allowed[schema.name]
        for arguments in product(*([binding[name]] if name in binding else allowed[name] for name in names)):
            self._deadline.check()
            action = Action(schema.name, arguments)
            if action not in self._seen:
                self._seen.add(action)
                grounded = ground(schema, arguments)
                if grounded is not None:
                    self._determinise(grounded)

    def _determinise(self, action: GroundAction) -> None:
        """One instance for every outcome and every choice of nature in it; what these add is reached."""
        used = frozenset(Atom(MADE, (name,)) for name in action.action.arguments if name in self._before)
        for index, outcome in enumerate(action.outcomes):
            variables = [variable.name for variable in outcome.chosen]
            candidates = [
                self._pools.get(v.type, ())
                if makes_object(v, outcome, self._domain, self._objects)
                else self._old(v.type)
                for v in outcome.chosen
            ]
            for choice in product(*candidates):
                self._deadline.check()
                made = [name for name in choice if name in self._before]
                if len(set(made)) < len(made):
                    continue
                # Pool objects are all alike, so they are made in order: the one before each must exist already.
                before = {self._before[name] for name in made} - {"", *made}
                new, old = (frozenset(Atom(MADE, (name,)) for name in names) for names in (made, before))
                bound = bind_outcome(outcome, dict(zip(variables, choice, strict=True))) if choice else outcome
                step = PlanStep(action.action, index, tuple(zip(variables, choice, strict=True)))
                condition = Condition(action.condition.positive | used | old, action.condition.negative | new)
                self._found.append((step, condition, Outcome(bound.add | new, bound.delete)))
                fresh = sorted(bound.add.union(new).difference(self._reached))
                self._reached.update(dict.fromkeys(fresh))
                self._agenda.extend(fresh)


def _make_pools(domain: Domain, objects: Mapping[str, str], size: int) -> dict[str, list[str]]:
    """Names of new objects for each type of which nature makes some."""
    pools: dict[str, list[str]] = {}
    outcomes = [outcome for schema in domain.schemas.values() for outcome in schema.outcomes]
    for variable, its in [(variable, outcome) for outcome in outcomes for variable in outcome.chosen]:
        if variable.type not in pools and makes_object(variable, its, domain, objects):
            taken = set(objects).union(*pools.values())
            pools[variable.type] = [*islice(fresh_names(variable.type, taken), size)]
    return pools


def _extended(
    binding: Binding, condition: Atom, atom: Atom, allowed: Mapping[str, Collection[str]]
) -> dict[str, str] | None:
    """The binding extended so that the condition becomes the atom, with what is allowed, if that is possible."""
    extended = dict(binding)
    for term, name in zip(condition.terms, atom.terms, strict=True):
        if name not in allowed.get(term, (term,)) or extended.setdefault(term, name) != name:
            return None
    return extended
