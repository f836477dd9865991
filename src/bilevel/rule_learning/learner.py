"""Rules from small problems whose states are all known: an order of goals, then one rule after the other.

1. A goal waits for another where every way to that one destroys it, in every problem; this is its order, lifted.
2. A lesson is a goal of a problem in the states in which it waits for nothing. There an action is right if it leads
   nearer to the goal, or to states from which the rules so far reach it, or if it cannot be undone, provided that all
   goals can still be achieved after it.
3. A rule is all that a way to the goal needs, from the nearest state that no rule covers; then it says less and less,
   as long as it is right wherever it fires. Chains of facts become closures, chains of moves become paths. Facts that
   never change, of which small problems show few, go only where the rule then fires in more states.
4. Rules are tried in the order in which they were learned. In the end those go that others can do without.
5. Where no right rule is found because it would spoil another goal, the goals are told apart by static facts, the one
   waits for the other from now on, and all begins again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, combinations, islice, permutations
from typing import NamedTuple

import numpy as np

from bilevel.planning.planner import Deadline
from bilevel.rule_learning.lifting import lifted_rule
from bilevel.rule_learning.spaces import FAR, IS_OBJECT, Numbers, Space, States
from bilevel.rules.derived import MARK, PATH, can_be_chained, path_of, path_predicates, static_predicates
from bilevel.rules.learning import lifted_order
from bilevel.rules.matching import Binding, bind_action, direct_waits, free_variables, predecessors, unify
from bilevel.rules.rule import GoalOrder, Rule, canonical
from bilevel.symbolic.axioms import outcome_in
from bilevel.symbolic.domain import Action, Applied, Atom, Domain, Facts, Parameter, is_variable
from bilevel.symbolic.semantics import ground_action, substitute, substitute_all

MOST_BASES = 10  # rules at the same distance from their goals, of which the shortest is taken
MOST_STEPS = 500  # on a way to a goal


def find_orders(spaces: Sequence[Space]) -> list[GoalOrder]:
    """Return the lifted orders that some pair of goals shows and none contradicts.

    One goal comes after another where every way to that one destroys it.
    """
    shown: dict[GoalOrder, bool] = {}
    swapped: dict[GoalOrder, GoalOrder] = {}
    for space in spaces:
        for later, earlier in permutations(sorted(space.problem.goal), 2):
            begun = space.solvable & space.holds(later) & ~space.holds(earlier)
            if begun.any():
                kept = space.distances(space.solvable & space.holds(later) & space.holds(earlier), begun)
                order = lifted_order(later, earlier, space.domain)
                swapped[order] = lifted_order(earlier, later, space.domain)
                shown[order] = shown.get(order, True) and not (kept[begun] < FAR).any()
    orders = {order for order, is_shown in shown.items() if is_shown}
    return sorted((order for order in orders if swapped[order] not in orders), key=str)


class Hit(NamedTuple):
    """Where a rule fires with an action, and how far the destination of its path is."""

    states: States
    action: int
    length: int


def nearest(hits: list[Hit], size: int) -> list[Hit]:
    """Return the hits, each in those states alone in which no other's destination is nearer."""
    if not any(hit.length for hit in hits):
        return hits
    shortest = np.full(size, FAR)
    for hit in hits:
        shortest[hit.states & (shortest > hit.length)] = hit.length
    hits = [hit._replace(states=hit.states & (shortest == hit.length)) for hit in hits]
    return [hit for hit in hits if hit.states.any()]


def rounds(space: Space, ends: States, covered: States, hits: Sequence[Hit]) -> Numbers:
    """Return in how many steps at most the covered states surely lead to ends, whichever of the hits is chosen."""
    found: Numbers = np.where(ends, 0, FAR).astype(np.int32)
    rows = [np.nonzero(hit.states)[0] for hit in hits]
    before = np.concatenate([*rows, np.zeros(0, dtype=np.int64)])
    results = [space.then(states, hit.action) for states, hit in zip(rows, hits, strict=True)]
    then = np.concatenate([*results, np.zeros(0, dtype=np.int64)])
    number, wait = 0, covered & ~ends
    while wait.any():
        number += 1
        held = np.zeros(space.size, dtype=bool)
        held[before[(then < 0) | (found[then] == FAR)]] = True
        new = wait & ~held
        if not new.any():
            break
        found[new] = number
        wait = wait & ~new
    return found


class Lesson:
    """Goals, most often one, in the states in which they wait for no others, and what the rules do in these."""

    def __init__(self, space: Space, goals: Mapping[Atom, Iterable[Atom]], others: Facts) -> None:
        """`goals` are given with those that each waits for."""
        self.space, self.goal, self.others = space, min(goals), others
        self.solvable = space.surely({*goals, *others})
        self.done = space.all_hold(goals) & self.solvable
        self.turns = {g: self.solvable & ~space.holds(g) & space.all_hold(before) for g, before in goals.items()}
        self.turn: States = np.any([*self.turns.values()], axis=0)
        self.ends = self.done | (self.solvable & ~self.turn)
        self.shortest = space.distances(self.done, self.turn)
        self.learnable = self.turn & (self.shortest < FAR)
        self.forget()
        self.update()

    def forget(self) -> None:
        """Begin without rules."""
        self.open, self.hits = self.learnable, list[Hit]()  # where no rule fires yet, and where some do

    def stages(self) -> Numbers:
        """Return in how many rounds the rules reach the goal, whichever action they choose."""
        return rounds(self.space, self.ends, self.learnable & ~self.open, self.hits)

    def add(self, hits: Iterable[Hit]) -> bool:
        """Let a rule fire where none did before; return whether it does."""
        new = [hit._replace(states=hit.states & self.open) for hit in hits]
        new = [hit for hit in new if hit.states.any()]
        for hit in new:
            self.open = self.open & ~hit.states
        self.hits += new
        return bool(new)

    def update(self) -> None:
        """Find out from which states the rules reach the goal, in how many rounds, and how far others are from it."""
        self.stage = self.stages()
        reached = self.learnable & ~self.open & (self.stage < FAR)
        self.distance = self.space.distances(self.done | reached, self.turn)

    def right(self, states: Numbers, action: int) -> States:
        """Return in which of these states the action makes progress."""
        then = self.space.then(states, action)
        nearer = (self.distance[then] < self.distance[states]) | (self.shortest[then] < self.shortest[states])
        leaves = self.space.component[then] != self.space.component[states]
        right: States = (then >= 0) & self.solvable[then] & (nearer | leaves)
        return right

    def fires(self, rule: Rule, state: int) -> bool:
        """Return whether the rule fires in a state."""
        return bool(hits_of(rule, self, np.arange(self.space.size) == state))

    def way(self, state: int) -> list[Applied]:
        """Return a way to the goal: to the nearest state from which the rules reach it, then as they go."""
        found: list[Applied] = []
        while not self.done[state] and len(found) < MOST_STEPS:
            after = self.space.after[state].tolist()
            if self.distance[state]:
                can_be_done = (action for action, then in enumerate(after) if then >= 0)
                action = min(can_be_done, key=lambda a: (int(self.distance[after[a]]), int(self.shortest[after[a]])))
            else:
                as_ruled = (hit.action for hit in self.hits if hit.states[state])
                action = min(as_ruled, key=lambda action: int(self.stage[after[action]]))
            grounded, domain = ground_action(self.space.domain, self.space.actions[action]), self.space.domain
            reasons = outcome_in(self.space.facts(state), grounded.outcomes[0], domain, self.space.objects).reasons
            found += [(domain.schemas[grounded.action.name], grounded.action.arguments), *reasons]
            state = after[action]
        return found


def hits_of(rule: Rule, lesson: Lesson, within: States) -> list[Hit]:
    """Return where the rule fires for a goal of a lesson; of several paths the shortest counts."""
    hits = (_firings(rule, lesson.space, goal, within & turn) for goal, turn in lesson.turns.items())
    return nearest([*chain.from_iterable(hits)], lesson.space.size)


class SpaceLearner:
    """Learns from spaces, with the orders that these show and further ones."""

    def __init__(
        self, domain: Domain, spaces: Sequence[Space], deadline: Deadline, orders: Sequence[GoalOrder]
    ) -> None:
        self.domain, self.spaces, self.deadline = domain, spaces, deadline
        self.orders = (*find_orders(spaces), *orders)
        self.rules: list[Rule] = []
        self.lessons, self.wholes = list[Lesson](), list[Lesson]()  # a goal each, and all of a problem
        self._paths, self._static = path_predicates(domain), {*static_predicates(domain)}
        for space in spaces:
            goals = sorted(space.problem.goal)
            waits = direct_waits(self.orders, domain, space.problem.goal, space.problem.state, space.objects)
            before = {goal: predecessors(waits, goal) for goal in goals}
            lessons = [Lesson(space, {goal: before[goal]}, space.problem.goal - {goal}) for goal in goals]
            if len(goals) > 1:
                lessons += [Lesson(space, {goal: ()}, frozenset()) for goal in goals]
                self.wholes.append(Lesson(space, before, frozenset()))
            self.lessons += [lesson for lesson in lessons if lesson.learnable.any()]
        self._chained = {name for name, each in domain.predicates.items() if can_be_chained(each, domain)}
        self._strict: Lesson | None = None  # in which the last wrong rule is wrong
        self._of_all = {found for name in self._static for found in self._shared_by_all(name)}

    def _shared_by_all(self, predicate: str) -> Iterator[tuple[str | bool, ...]]:
        """Yield a static predicate with the place at which every object that fits has a fact of it."""
        parameters = self.domain.predicates[predicate].parameters
        for place, parameter in enumerate(parameters):
            if all(
                {atom.terms[place] for atom in space.atoms_of(predicate)}
                >= {name for name, kind in space.objects.items() if self.domain.is_subtype(kind, parameter.type)}
                for space in self.spaces
            ):
                yield predicate, *(place == other for other in range(len(parameters)))

    def learn(self) -> None:
        """Learn rules until every state of every lesson has one, or no right rule is found for any that is left."""
        given_up: set[tuple[int, int]] = set()
        while any(lesson.open.any() for lesson in self.lessons):
            found: dict[Rule, int] = {}
            bases: set[Rule] = set()
            has_rule = [np.zeros(lesson.space.size, dtype=bool) for lesson in self.lessons]
            farthest = FAR
            for distance, number, state in self._uncovered(given_up):
                if distance > farthest or (len(bases) >= MOST_BASES and found):
                    break
                if has_rule[number][state]:
                    continue
                lesson = self.lessons[number]
                base = self.base(lesson, state)
                if base in bases:
                    continue
                bases.add(base)
                general = self.generalised(base, lesson, state)
                if general is None:
                    given_up.add((number, state))
                else:
                    found[general] = self.served(general)
                    for states, each in zip(has_rule, self.lessons, strict=True):
                        states |= np.any([hit.states for hit in hits_of(general, each, each.open)], axis=0)
                    farthest = distance
            if not found:
                return
            self.append(min(found, key=lambda rule: (-found[rule], len([*rule.literals()]), str(rule))))

    def numbered_rules(self) -> tuple[Rule, ...]:
        """Return the rules with their priorities, and the orders of goals in each."""
        found = enumerate(self.rules, 1)
        return tuple(replace(rule, priority=number, orders=tuple(self.orders)) for number, rule in found)

    def _uncovered(self, given_up: set[tuple[int, int]]) -> list[tuple[int, int, int]]:
        """Return the distance, the lesson and the state of each uncovered state, those nearest to their goals first."""
        found = [
            (int(lesson.shortest[state]), number, int(state))
            for number, lesson in enumerate(self.lessons)
            for state in np.nonzero(lesson.open)[0]
            if (number, int(state)) not in given_up
        ]
        return sorted(found, key=lambda each: (each[0], -len(self.lessons[each[1]].space.objects), *each[1:]))

    def base(self, lesson: Lesson, state: int) -> Rule:
        """Return the rule for the first step of a way from the state to the goal: all that this way needs."""
        rule = lifted_rule(lesson.goal, lesson.way(state), lesson.space.objects, self.domain)
        return canonical(rule, self.domain)

    def append(self, rule: Rule) -> None:
        """Add a rule behind the others."""
        self.rules.append(rule)
        for lesson in self.lessons:
            if lesson.open.any() and lesson.add(hits_of(rule, lesson, lesson.open)):
                lesson.update()

    def served(self, rule: Rule) -> int:
        """Return in how many states the rule would be the first to fire; 0 if it is wrong in one of them."""
        self.deadline.check()
        found = 0
        for lesson in sorted(self.lessons, key=lambda lesson: lesson is not self._strict):
            hits = hits_of(rule, lesson, lesson.open) if lesson.open.any() else []
            if not all(lesson.right(np.nonzero(hit.states)[0], hit.action).all() for hit in hits):
                self._strict = lesson
                return 0
            found += int(np.any([hit.states for hit in hits], axis=0).sum())
        return found

    def generalised(self, rule: Rule, lesson: Lesson, state: int) -> Rule | None:
        """Return the rule with as little said as is right, so that it still fires in the state it was made for."""

        def served(candidate: Rule) -> int:
            return self.served(candidate) if lesson.fires(candidate, state) else 0

        best = max((*self.with_paths(rule), rule), key=served)  # the destination that serves the most
        found = better = best if served(best) else None
        while better is not None:
            found, most, lasting = better, served(better), self.lasting(better)
            simpler = ((each, served(each)) for each in self.simpler(found))
            good = (each for each, n in simpler if n > most or (n == most and self.lasting(each) >= lasting))
            better = next(good, None)
        return None if found is None else canonical(found, self.domain)

    def lasting(self, rule: Rule) -> int:
        """Return how many of the rule's conditions are of facts that never change, but for those that all have."""
        uses = Counter(term for atom in (*rule.state_condition, *rule.goal_condition, rule.action) for term in atom[1])
        found = [atom for atom in rule.state_condition if atom.predicate.rstrip(PATH) in self._static]
        return sum((atom.predicate, *(uses[term] > 1 for term in atom.terms)) not in self._of_all for atom in found)

    def needed(self, rule: Rule) -> tuple[Facts, Facts]:
        """Return the conditions without which the rule's action cannot be done: present and absent facts."""
        condition = ground_action(self.domain, rule.action).condition
        return condition.positive, condition.negative

    def simpler(self, rule: Rule) -> Iterator[Rule]:
        """Yield rules that say less: without a condition, or with a path or a closure in place of a chain of facts."""
        present, absent = self.needed(rule)
        yield from self.with_paths(rule)
        for atom in sorted(rule.negative_condition - absent):
            yield replace(rule, negative_condition=rule.negative_condition - {atom})
        for atom in sorted(rule.state_condition - present, key=lambda atom: (atom.predicate[-1] in MARK + PATH, atom)):
            without = replace(rule, state_condition=rule.state_condition - {atom})
            connected = _connected(without)
            yield connected
            if connected != without:
                yield without
        yield from self.with_closures(rule)

    def with_closures(self, rule: Rule) -> Iterator[Rule]:
        present, _ = self.needed(rule)
        chained = [atom for atom in sorted(rule.state_condition) if atom.predicate.removesuffix(MARK) in self._chained]
        for one, two in permutations(chained, 2):
            name = one.predicate.removesuffix(MARK)
            if name == two.predicate.removesuffix(MARK) and one.terms[1] == two.terms[0] and two not in present:
                whole = Atom(name + MARK, (one.terms[0], two.terms[1]))
                yield _connected(
                    replace(rule, state_condition=(rule.state_condition - ({one, two} - present)) | {whole})
                )
        for atom in chained:
            whole = Atom(atom.predicate + MARK, atom.terms)
            if atom in present and whole not in rule.state_condition:
                yield from self._loosened(rule, atom.terms[1], whole)

    def with_paths(self, rule: Rule) -> Iterator[Rule]:
        """Yield rules whose move over a static relation is the first step of a path to somewhere."""
        present, _ = self.needed(rule)
        if path_of(rule) is not None:
            return
        for atom in sorted(present):
            if atom not in rule.state_condition or atom.predicate + PATH not in self._paths:
                continue
            *first, start, step = atom.terms
            if not self._moves(rule, start, step):
                continue
            links = {a for a in rule.state_condition - present if a.predicate == atom.predicate}
            mentioned = {t for a in (rule.state_condition - present - links) | rule.goal_condition for t in a.terms}
            for end in sorted(mentioned - {start, step}):
                path = Atom(atom.predicate + PATH, (*first, start, step, end))
                yield _connected(replace(rule, state_condition=(rule.state_condition - links) | {path}))
            yield from self._loosened(rule, step, Atom(atom.predicate + PATH, (*first, start, "?fresh", step)))

    def _moves(self, rule: Rule, start: str, step: str) -> bool:
        """Return whether the rule's action makes true of one place what it ends at another."""
        (outcome,) = ground_action(self.domain, rule.action).outcomes
        return any(start in fact.terms and substitute(fact, {start: step}) in outcome.add for fact in outcome.delete)

    def _loosened(self, rule: Rule, term: str, whole: Atom) -> Iterator[Rule]:
        """Yield the rule with an action that leads not to the term itself, which is elsewhere, but towards it."""
        fresh = "?fresh"
        present, absent = self.needed(rule)
        elsewhere = {t for a in (rule.state_condition - present) | rule.goal_condition for t in a.terms}
        if not is_variable(term) or term not in elsewhere or fresh in rule.types:
            return
        swap = {term: fresh}
        negative = rule.negative_condition
        yield _connected(
            replace(
                rule,
                variables=(*rule.variables, Parameter(fresh, rule.types[term])),
                state_condition=substitute_all(present & rule.state_condition, swap)
                | (rule.state_condition - present)
                | {whole},
                negative_condition=substitute_all(negative & absent, swap) | (negative - absent),
                action=Action(rule.action.name, tuple(swap.get(name, name) for name in rule.action.arguments)),
            )
        )

    def finish(self) -> None:
        """Move rules forward where others lead astray from other goals, and drop those that others can do without."""
        lessons = [*self.lessons, *self.wholes]
        hits = {(rule, lesson): hits_of(rule, lesson, lesson.learnable) for rule in self.rules for lesson in lessons}

        def failing(rules: Sequence[Rule], lesson: Lesson) -> int:
            self.deadline.check()
            lesson.forget()
            for rule in rules:
                lesson.add(hits[rule, lesson])
            return int((lesson.learnable & (lesson.stages() == FAR)).sum())

        fewest = {lesson: failing(self.rules, lesson) for lesson in lessons}
        for place, target in reversed([*combinations(range(len(self.rules)), 2)]):
            moved = [*self.rules]
            moved.insert(place, moved.pop(target))
            concerned = [lesson for lesson in lessons if hits[moved[place], lesson]]
            if any(fewest[lesson] for lesson in concerned):
                found = {lesson: failing(moved, lesson) for lesson in concerned}
                if sum(found.values()) < sum(fewest[lesson] for lesson in concerned):
                    self.rules, fewest = moved, fewest | found
        for rule in sorted(self.rules, key=lambda rule: (-len([*rule.literals()]), -self.rules.index(rule))):
            rest = [other for other in self.rules if other is not rule]
            if all(failing(rest, lesson) <= fewest[lesson] for lesson in lessons if hits[rule, lesson]):
                self.rules = rest

    def missing_order(self) -> GoalOrder | None:
        """Return an order for want of which there is no right rule for a state: whatever is done may spoil a goal."""
        bases = dict.fromkeys(self.base(self.lessons[number], state) for _, number, state in self._uncovered(set()))
        for base in islice(bases, MOST_BASES):
            called_for = [
                {_told_apart(lesson, goal) for goal in lesson.others if not lesson.space.holds(goal)[row]}
                for lesson in self.lessons
                for states, action, _ in hits_of(base, lesson, lesson.open)
                for row in np.nonzero(states)[0]
                if not lesson.right(np.array([row]), action)[0]
            ]
            found = set.intersection(*called_for) - {None, *self.orders} if called_for else set()
            if found:
                return min(found, key=str)
        return None


def _told_apart(lesson: Lesson, earlier: Atom) -> GoalOrder | None:
    """Return the order of two goals of one predicate with the static facts that only one of them has."""
    later, space = lesson.goal, lesson.space
    if later.predicate != earlier.predicate:
        return None
    swap = dict(zip(later.terms + earlier.terms, earlier.terms + later.terms, strict=True))
    static, state = static_predicates(space.domain), space.problem.state
    facts = (fact for fact in state if fact.predicate in static and swap.keys() >= {*fact.terms})
    apart = frozenset(fact for fact in facts if substitute(fact, swap) not in state)
    return lifted_order(later, earlier, space.domain, apart) if apart else None


def _connected(rule: Rule) -> Rule:
    """Return the rule without conditions that have no connection to its action or its goal any more."""
    known = {*rule.action.arguments, *(term for atom in rule.goal_condition for term in atom.terms)}
    while True:
        linked = frozenset(atom for atom in rule.state_condition if not atom.terms or not known.isdisjoint(atom.terms))
        more = {term for atom in linked for term in atom.terms}
        if more <= known:
            break
        known |= more
    return replace(
        rule,
        variables=tuple(variable for variable in rule.variables if variable.name in known),
        state_condition=linked,
        negative_condition=frozenset(
            atom for atom in rule.negative_condition if all(term in known for term in atom.terms if is_variable(term))
        ),
    )


def _firings(rule: Rule, space: Space, goal: Atom, within: States) -> Iterator[Hit]:
    """Yield for each binding of a rule that serves the goal the states in which it applies."""
    domain, types, unequal, conditions = space.domain, rule.types, rule.inequalities, _in_joining_order(rule)

    def fits(new: Binding, binding: Binding) -> bool:
        return all(domain.is_subtype(space.objects[name], types[v]) for v, name in new.items()) and all(
            binding.get(a, a) != binding.get(b, b) for a, b in unequal
        )

    def join(number: int, binding: Binding, states: States, length: int) -> Iterator[Hit]:
        if number == len(conditions):
            for atom in rule.absent:
                states = states & ~space.holds(substitute(atom, binding))
            if states.any():
                yield Hit(states, space.action_numbers.get(bind_action(rule.action, binding), -1), length)
            return
        bound = substitute(conditions[number], binding)
        candidates = space.atoms_of(bound.predicate) if any(map(is_variable, bound.terms)) else [bound]
        for atom in candidates:
            new = unify(bound, atom)
            if new is not None:
                extended = binding | new
                left = states & space.holds(atom) if fits(new, extended) else None
                if left is not None and left.any():
                    yield from join(number + 1, extended, left, length + space.path_lengths.get(atom, 0))

    binding = unify(min(rule.goal_condition), goal)
    if binding is not None and fits(binding, binding):
        yield from join(0, binding, within, 0)


@lru_cache(maxsize=10_000)
def _in_joining_order(rule: Rule) -> tuple[Atom, ...]:
    """Return the facts that a rule asks for, that of its free variables too: next what has the fewest new variables."""
    left = [*sorted(rule.state_condition), *(Atom(IS_OBJECT, (variable,)) for variable in free_variables(rule))]
    found: list[Atom] = []
    known = {term for atom in rule.goal_condition for term in atom.terms}
    while left:
        found.append(min(left, key=lambda atom: sum(is_variable(term) and term not in known for term in atom.terms)))
        left.remove(found[-1])
        known.update(found[-1].terms)
    return tuple(found)
