"""Interchangeable objects are found, and only these; planning gives the same answers with them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fond_families import made

from bilevel.planning.bit_masks import Task, ground_fond_task
from bilevel.planning.grounding import Literal
from bilevel.planning.planner import Deadline
from bilevel.planning.symmetry import Symmetry
from bilevel.symbolic.domain import Atom


def supplies_task() -> Task:
    task = ground_fond_task(*made("supplies", 3), Deadline(60))
    assert task is not None
    return task


def with_fact(task: Task, *facts: Atom) -> int:
    return sum(1 << task.literals.index(Literal(fact)) for fact in facts)


def test_states_that_swap_two_tyres_are_alike() -> None:
    task = supplies_task()
    symmetry = Symmetry(task, Deadline(60))
    one = with_fact(task, Atom("lies", ("t0", "p1")), Atom("packed", ("t1",)))
    other = with_fact(task, Atom("lies", ("t2", "p1")), Atom("packed", ("t0",)))
    different = with_fact(task, Atom("lies", ("t2", "p1")), Atom("lies", ("t0", "p1")))
    assert symmetry.key(one) == symmetry.key(other) != symmetry.key(different)
    assert symmetry.key(with_fact(task, Atom("clear", ("p1",)))) != symmetry.key(
        with_fact(task, Atom("clear", ("p2",)))
    )


def test_objects_that_the_goal_tells_apart_are_not_interchangeable() -> None:
    task = supplies_task()
    goal = task.goal | with_fact(task, Atom("packed", ("t0",)))
    symmetry = Symmetry(replace(task, goal=goal), Deadline(60))
    first, second, third = (with_fact(task, Atom("packed", (tyre,))) for tyre in ("t0", "t1", "t2"))
    assert symmetry.key(first) != symmetry.key(second) == symmetry.key(third)


def test_objects_that_an_action_tells_apart_are_not_interchangeable() -> None:
    task = supplies_task()
    kept = [i for i, owner in enumerate(task.owners) if str(owner.action) != "pack(depot, t2)"]
    operators, owners = tuple(task.operators[i] for i in kept), tuple(task.owners[i] for i in kept)
    symmetry = Symmetry(replace(task, operators=operators, owners=owners), Deadline(60))
    first, second, third = (with_fact(task, Atom("packed", (tyre,))) for tyre in ("t0", "t1", "t2"))
    assert symmetry.key(first) == symmetry.key(second) != symmetry.key(third)


@pytest.mark.parametrize("family", ["towers", "crossing"])
def test_a_task_without_such_objects_has_its_states_as_keys(family: str) -> None:
    task = ground_fond_task(*made(family, 4), Deadline(60))
    assert task is not None
    assert Symmetry(task, Deadline(60)).key(task.state) == task.state
