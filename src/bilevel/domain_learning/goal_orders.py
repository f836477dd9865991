"""The order of goals in demonstrations: which goals they achieve after which, where the domain says that they must.

It says so if no action that achieves the one leaves the other as it is. So no accident is an order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, reduce
from itertools import permutations

from bilevel.planning.grounding import GroundProblem, bits_of
from bilevel.planning.planner import Deadline
from bilevel.rules import learning
from bilevel.rules.rule import GoalOrder, Rule
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import Atom, Domain, Problem

MOSTLY = 0.9  # of the times that a goal is achieved while another one is wanted; the rest may be accidents
MOST_ASKED = 10  # traces with each order that the domain is asked of


def learn_rules(traces: Sequence[Trace], domain: Domain, algorithm: str = learning.SINGLE_GOAL) -> tuple[Rule, ...]:
    """Return the rules that the traces show, with the order of goals; the order of the traces does not matter.

    With the `algorithm` "printed" they are those of Algorithm 1 as the paper prints it, which knows no order of goals.
    """
    rules = learning.learn_rules(traces, domain, algorithm)
    orders = goal_orders(traces, domain) if algorithm != learning.PRINTED else ()
    return tuple(replace(rule, orders=orders) for rule in rules)


def goal_orders(traces: Sequence[Trace], domain: Domain) -> tuple[GoalOrder, ...]:
    """Return the lifted orders in which traces achieve goals, and of which the domain says that they must."""
    lifted = cache(lambda later, earlier: learning.lifted_order(later, earlier, domain))
    kept, broken, shown = Counter[GoalOrder](), Counter[GoalOrder](), dict[GoalOrder, list[Trace]]()
    for trace in traces:
        for step in trace.steps:
            for later in step.goal & step.next_state - step.state:
                for earlier in step.goal - {later}:
                    order = lifted(later, earlier)
                    kept[order] += earlier in step.state
                    broken[order] += earlier not in step.next_state
                    shown.setdefault(order, []).append(trace)
    usual = [order for order, count in kept.items() if count >= MOSTLY * (count + broken[order]) > 0]
    needed = dict.fromkeys(usual, True)
    for trace in {id(trace): trace for order in usual for trace in shown[order][:MOST_ASKED]}.values():
        is_undone = undone_goals(domain, trace)
        for pair in permutations(frozenset().union(*(step.goal for step in trace.steps)), 2):
            if lifted(*pair) in needed:
                needed[lifted(*pair)] &= is_undone(*pair)
    return tuple(sorted((order for order, is_needed in needed.items() if is_needed), key=str))


def undone_goals(domain: Domain, trace: Trace) -> Callable[[Atom, Atom], bool]:
    """Return whether two goals may both hold, but the first one is undone by whatever achieves the other.

    Which facts may hold together is followed from the trace's first state, two at a time (h²): never too little.
    """
    first, objects = trace.steps[0].state, {n: k for n, k in trace.objects.items() if n not in domain.constants}
    ground = GroundProblem(domain, Problem("", domain.name, objects, first, first), Deadline(math.inf))
    atoms = frozenset(ground.atoms)
    start = ground.mask(first & atoms, atoms - first)
    beside = dict.fromkeys(bits_of(start), start)  # for each bit those that may be set when it is

    def with_all(bits: int) -> int:
        """Return the bits that may be set when all of these are; none where they cannot all be."""
        found = reduce(int.__and__, (beside.get(bit, 0) for bit in bits_of(bits)), (1 << 2 * len(atoms)) - 1)
        return found if found & bits == bits else 0

    before: dict[int, int] = {}
    while before != beside:
        before = dict(beside)
        for each in ground.operators:
            if found := with_all(each.precondition):
                for bit in bits_of(each.add):
                    for other in bits_of((found & ~each.delete | each.add) & ~beside.get(bit, 0)):
                        beside[bit] = beside.get(bit, 0) | 1 << other
                        beside[other] = beside.get(other, 0) | 1 << bit

    def is_undone(goal: Atom, other: Atom) -> bool:
        if not atoms.issuperset({goal, other}):
            return False
        one, two, absent = ground.mask([goal], []), ground.mask([other], []), ground.mask([], [other])
        achieving = (each for each in ground.operators if each.add & two and not each.delete & one)
        return with_all(one | two) > 0 and not any(with_all(each.precondition | absent) & one for each in achieving)

    return is_undone
