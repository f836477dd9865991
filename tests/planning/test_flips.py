"""Problems of flips alone: solved as a search solves them, and told from all others."""

from __future__ import annotations

import random

import pytest
from plan_oracle import achieves_goal

from bilevel.planning.flips import plan_by_flips
from bilevel.planning.grounding import Grounding, Task
from bilevel.planning.planner import Deadline
from bilevel.planning.search import breadth_first, search
from bilevel.symbolic.adl import compiled, parse_adl_domain
from bilevel.symbolic.domain import Atom, Domain, Problem

LAMPS = """(define (domain lamps) (:requirements :adl) (:types switch lamp)
  (:predicates (lit ?l - lamp) (dark ?l - lamp) (wired ?s - switch ?l - lamp))
  (:action flip :parameters (?s - switch) {more}
    :effect (forall (?l - lamp) (when (wired ?s ?l)
      (and (when (lit ?l) (and (dark ?l) (not (lit ?l))))
           (when (not (lit ?l)) (and (lit ?l) (not (dark ?l)))))))))"""


def lamps(seed: int, switches: int, count: int, asked: int | None = None, more: str = "") -> tuple[Domain, Problem]:
    """Switches of random lamps, and a wish about some or all of these, which may or may not come true."""
    rng = random.Random(seed)
    names = [f"lamp{number}" for number in range(count)]
    objects = dict.fromkeys(names, "lamp") | {f"switch{number}": "switch" for number in range(switches)}
    wires = {Atom("wired", (f"switch{number}", name)) for number in range(switches) for name in rng.sample(names, 2)}
    state, goal = ({Atom(rng.choice(["lit", "dark"]), (name,)) for name in names} for _ in range(2))
    wanted = frozenset(sorted(goal)[:asked])
    domain = parse_adl_domain(LAMPS.format(more=more))
    return compiled(domain, Problem("p", "lamps", objects, frozenset(state | wires), wanted))


def enough() -> Deadline:
    """Counted from now, not from when this file was read."""
    return Deadline(60)


def grounded(domain: Domain, problem: Problem) -> Task | None:
    return Grounding().task(domain, problem, enough())


@pytest.mark.parametrize("asked", [3, None])
def test_elimination_finds_what_a_search_through_all_states_finds(asked: int | None) -> None:
    solved = 0
    for seed in range(40):
        task = grounded(*lamps(seed, switches=5, count=5, asked=asked))
        if task is None or task.state & task.goal == task.goal:
            continue
        is_flips, plan = plan_by_flips(task, enough())
        _, shortest = breadth_first(task, enough(), 10**6)
        assert is_flips
        assert (plan and len(plan)) == (shortest and len(shortest))
        solved += plan is not None
    assert solved > 10


def test_a_hundred_switches_are_planned_for_and_the_plan_is_valid() -> None:
    domain, problem = lamps(1, switches=100, count=30, asked=29)
    result = search(domain, problem, 60)
    assert result.plan is not None
    assert achieves_goal(domain, problem, result.steps)


@pytest.mark.parametrize(("condition", "always"), [("dark lamp0", False), ("lit lamp1", True)])
def test_flips_that_cannot_always_be_done_are_left_to_the_search(condition: str, always: bool) -> None:
    """Nothing ever changes lamp1."""
    text = LAMPS.replace("(:predicates", "(:constants lamp0 lamp1 - lamp) (:predicates")
    domain = parse_adl_domain(text.format(more=f":precondition ({condition})"))
    facts = frozenset({Atom("wired", ("s", "lamp0")), Atom("dark", ("lamp0",)), Atom("lit", ("lamp1",))})
    goal = frozenset({Atom("lit", ("lamp0",))})
    task = grounded(*compiled(domain, Problem("p", "lamps", {"s": "switch"}, facts, goal)))
    assert task is not None
    assert plan_by_flips(task, enough())[0] == always
