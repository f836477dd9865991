"""Finding the conditions that hold in a state: the index in Python, the compiled one, and policies that use them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bilevel import compiled
from bilevel.planning.condition_index import ConditionIndex, FiledConditions
from bilevel.planning.planner import ContingentPolicy, Decision
from bilevel.symbolic.domain import Action, Atom
from bilevel.symbolic.semantics import Condition

fast = compiled.find("bilevel.planning._bit_masks")
KINDS = [FiledConditions, *([fast.Conditions] if fast else [])]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("bits", [0, 1, 63, 64, 65, 200])
def test_index_agrees_with_definition(make: Callable[[int], ConditionIndex], bits: int) -> None:
    rng, index, known = random.Random(bits), make(bits), dict[int, int]()

    def some_bits(share: float) -> int:
        return sum(1 << bit for bit in range(bits) if rng.random() < share)

    for number in range(150):
        known[number] = some_bits(0.02)
        index.put(number, known[number])
        if rng.random() < 0.3:
            changed = rng.choice(list(known))
            known[changed] |= some_bits(0.02)
            index.put(changed, known[changed])
        if rng.random() < 0.2:
            removed = rng.choice(list(known))
            del known[removed]
            index.remove(removed)
        state = some_bits(0.8)
        expected = sorted(n for n, condition in known.items() if condition & state == condition)
        assert index.holding(state) == expected
        assert index.first(state) == (expected[0] if expected else None)


def test_policy_chooses_first_decision_that_holds() -> None:
    rng, atoms = random.Random(0), [Atom("p", (str(i),)) for i in range(8)]
    decisions = []
    for number in range(40):
        chosen = rng.sample(atoms, 4)
        condition = Condition(frozenset(chosen[: rng.randint(0, 2)]), frozenset(chosen[2 : 2 + rng.randint(0, 2)]))
        decisions.append(Decision(condition, Action(f"a{number}"), 1 + number))
    decisions = [decision for decision in decisions if decision.condition != Condition()]
    policy = ContingentPolicy(tuple(decisions))
    for _ in range(300):
        state = frozenset(atom for atom in [*atoms, Atom("q")] if rng.random() < 0.5)
        assert policy.choose(state) == next((d.action for d in decisions if d.condition.holds(state)), None)
