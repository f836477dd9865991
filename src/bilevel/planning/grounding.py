"""From a domain and a problem to the ground operators that can ever apply, and tasks over bit masks.

Operators are found by relaxed reachability: a fact once reached stays reached, and each new one is joined with those
before it through the schemas' preconditions, so that the cross product of all objects is never formed. A
nondeterministic action becomes one instance per outcome and per choice of nature (the all-outcomes determinisation).

States, conditions and effects are integers: bit 2i says that atom i is absent, bit 2i + 1 that it is present. Having
more bits set never hurts, as a condition has a bit for everything that it tests. So where a policy works in a state it
works in every state that has more bits set, and an outcome that sets no bit that was not set brings nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby, islice, pairwise, product

from bilevel.planning.planner import Deadline, PlanStep
from bilevel.symbolic.axioms import Instances, levels
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, Domain, Outcome, Problem
from bilevel.symbolic.packed import no_garbage_collection
from bilevel.symbolic.semantics import (
    Condition,
    GroundAction,
    bind_outcome,
    cost_of,
    fresh_names,
    makes_object,
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
    close: Callable[[int], int] | None = field(default=None, compare=False)  # sets the bits of derived facts

    def apply(self, state: int) -> int:
        """Return the state after it."""
        after = state & ~self.delete | self.add
        return self.close(after) if self.close else after


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
    axioms: Sequence[GroundOperator] = ()  # the first sets every bit for the absence of derived facts

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
        derived = [atom for atom in self.atoms if atom.predicate in domain.derived]
        self._derived = self.mask((), derived)  # every bit for the absence of a derived fact
        level = levels(domain.axioms)
        self._strata: list[list[GroundOperator]] = [[] for _ in {*level.values()}]
        close = self._close if domain.axioms else None
        self.operators: list[GroundOperator] = []
        self._achievers: dict[int, list[int]] = {}  # the operators that set a bit
        for step, condition, outcome in found:
            deadline.check()
            if condition.negative.isdisjoint(self._constant):
                needed = self.mask(condition.positive - self._constant, condition.negative & changing)
                effect = self.mask(outcome.add, outcome.delete - outcome.add)
                if step.action.name in level:
                    axiom = GroundOperator(step, needed, effect, self._opposite(effect), 0)
                    self._strata[level[step.action.name]].append(axiom)
                    continue
                for bit in bits_of(effect):
                    self._achievers.setdefault(bit, []).append(len(self.operators))
                cost = costs[step.action]
                self.operators.append(GroundOperator(step, needed, effect, self._opposite(effect), cost, close))

    def mask(self, present: Iterable[Atom], absent: Iterable[Atom]) -> int:
        """Return the bits of these changing facts."""
        numbers = self._numbers
        return sum([2 << 2 * numbers[atom] for atom in present]) + sum([1 << 2 * numbers[atom] for atom in absent])

    def _close(self, state: int) -> int:
        """Return the state with the bits that derived facts have in it."""
        state = state & ~self._opposite(self._derived) | self._derived
        for axioms in self._strata:
            while applicable := [axiom for axiom in axioms if axiom.precondition & state == axiom.precondition]:
                for axiom in applicable:
                    state = axiom.apply(state)
                axioms = [axiom for axiom in axioms if not axiom.add & state]
        return state

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
        constant &= ~(self._derived | self._opposite(self._derived))
        impossible = self._opposite(constant)
        if goal & impossible:
            return None
        relevant = -1 if self._strata else self._relevant(goal & ~constant, constant, impossible, deadline)
        actions: dict[object, FondAction] = {}
        for action, operators in groupby(self.operators, lambda operator: operator.step.action):
            outcomes: dict[object, GroundOperator] = {}
            for operator in operators:
                deadline.check()
                if not operator.precondition & impossible:
                    masks = operator.precondition & relevant, operator.add & relevant, operator.delete & relevant
                    outcomes.setdefault(masks, GroundOperator(operator.step, *masks, operator.cost, operator.close))
            if outcomes:
                kept = tuple(outcomes.values())
                actions.setdefault(frozenset(outcomes), FondAction(action, kept[0].precondition, kept))
        every = [(outcome, owner) for owner in actions.values() for outcome in owner.outcomes]
        useful = [(outcome, owner) for outcome, owner in every if outcome.add & ~outcome.precondition]
        kept_operators, owners = tuple([outcome for outcome, _ in useful]), tuple([owner for _, owner in useful])
        nothing = GroundOperator(PlanStep(Action("")), 0, self._derived, 0, 0)
        axioms = [nothing, *chain.from_iterable(self._strata)] if self._strata else []
        return GroundTask(self.atoms, kept_operators, owners, state & relevant, goal & relevant, axioms)

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


class _Grounder:
    """Relaxed reachability; facts are taken up in the order in which they were found."""

    def __init__(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int) -> None:
        self._domain, self._deadline = domain, deadline
        self._schemas = (*domain.schemas.values(), *domain.axioms)
        self._objects = problem.all_objects(domain)
        self._pools = _make_pools(domain, self._objects, new_objects)
        pooled = {name: kind for kind, pool in self._pools.items() for name in pool}
        self._before = {name: before for pool in self._pools.values() for before, name in pairwise(["", *pool])}
        self._known = {**self._objects, **pooled}
        self._old = cache(lambda kind: [name for name, its in self._objects.items() if domain.is_subtype(its, kind)])
        self._reached = dict.fromkeys(sorted(problem.state))
        self._agenda = list(self._reached)
        self._found: list[Instance] = []

    def reach(self) -> list[Instance]:
        """Every instance whose positive precondition can be reached, in the order of schemas and objects."""
        instances = Instances(self._schemas, self._domain, self._known, self._deadline.check)
        for action in instances.among(self._agenda, self._reached):
            self._determinise(action)
        places = {schema.name: place for place, schema in enumerate(self._schemas)}
        rank = {name: index for index, name in enumerate(self._known)}

        def order(instance: Instance) -> tuple[int, list[int], int, list[int]]:
            (name, arguments), outcome, choice = instance[0]
            return places[name], [rank[argument] for argument in arguments], outcome, [rank[its] for _, its in choice]

        self._deadline.check()
        return sorted(self._found, key=order)

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
