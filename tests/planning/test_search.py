"""The built-in search: right, shortest where it says so, within its time, and the same under every hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from plan_oracle import achieves_goal

from bilevel.planning.grounding import GroundProblem
from bilevel.planning.planner import Deadline, Effort, PlanStep, Status, TimeUp, without_needless_steps
from bilevel.planning.search import search, search_until
from bilevel.symbolic.domain import Action, Atom, Domain, Outcome, Parameter, Predicate, Problem, Schema


def atoms(text: str) -> frozenset[Atom]:
    """`on a b, free` as facts."""
    words = [part.split() for part in text.split(",") if part.strip()]
    return frozenset(Atom(predicate, tuple(terms)) for predicate, *terms in words)


def schema(
    name: str,
    parameters: str,
    precondition: str,
    *outcomes: Outcome,
    negative: str = "",
    add: str = "",
    delete: str = "",
) -> Schema:
    """A schema; its parameters read `?x:block ?y:place`, and without outcomes it adds and deletes as told."""
    typed = tuple(Parameter(*(word.split(":"))) for word in parameters.split())
    effects = outcomes or (Outcome(atoms(add), atoms(delete)),)
    return Schema(name, typed, atoms(precondition), effects, atoms(negative))


def make_domain(
    *schemas: Schema, types: Mapping[str, str] | None = None, constants: Mapping[str, str] | None = None
) -> Domain:
    """A domain of these schemas; its predicates are those they mention, untyped."""
    used = {
        atom.predicate: Predicate(atom.predicate, tuple(Parameter(f"?x{i}") for i in range(len(atom.terms))))
        for s in schemas
        for atom in [
            *s.precondition,
            *s.negative_precondition,
            *(a for outcome in s.outcomes for a in outcome.add | outcome.delete),
        ]
        if atom.predicate != "="
    }
    return Domain("test", used, {s.name: s for s in schemas}, types or {}, constants or {})


def make_problem(state: str, goal: str, **objects: str) -> Problem:
    return Problem("p", "test", objects, atoms(state), atoms(goal))


BLOCKS = make_domain(
    schema("pick", "?x:block", "clear ?x, free", add="holding ?x", delete="clear ?x, free"),
    schema(
        "place",
        "?x:block ?l:place",
        "holding ?x, clear ?l",
        add="at ?x ?l, clear ?x, free",
        delete="holding ?x, clear ?l",
    ),
    types={"item": "object", "block": "item", "place": "item"},
)
PICK_PLACE = make_domain(
    schema("pick", "?x:item ?l:room", "robot-at ?l, at ?x ?l, free", add="hold ?x", delete="at ?x ?l, free"),
    schema("move", "?from:room ?to:room", "robot-at ?from", add="robot-at ?to", delete="robot-at ?from"),
    schema("place", "?x:item ?l:room", "robot-at ?l, hold ?x", add="at ?x ?l, free", delete="hold ?x"),
    types={"item": "object", "room": "object"},
)
FERRY = make_domain(
    schema("sail", "?a:port ?b:port", "ferry ?a", negative="ferry ?b", add="ferry ?b", delete="ferry ?a"),
    schema("board", "?c:car ?p:port", "at ?c ?p, ferry ?p, empty", add="on ?c", delete="at ?c ?p, empty"),
    schema("debark", "?c:car ?p:port", "on ?c, ferry ?p", add="at ?c ?p, empty", delete="on ?c"),
    types={"port": "object", "car": "object"},
)


def blocks(count: int) -> Problem:
    objects = {f"b{i}": "block" for i in range(count)} | {f"l{i}": "place" for i in range(count)}
    state = ", ".join(["free", *(f"clear {name}" for name in objects)])
    return make_problem(state, ", ".join(f"at b{i} l{i}" for i in range(count)), **objects)


def solve(domain: Domain, problem: Problem, breadth_first_states: int = 100_000) -> list[str]:
    """The plan as text, after checking that it works."""
    result = search(domain, problem, time_limit=60, breadth_first_states=breadth_first_states)
    assert result.status is Status.SOLVED, result
    assert achieves_goal(domain, problem, result.steps)
    return [str(step.action) for step in result.steps]


MAKE = make_domain(
    schema(
        "make",
        "?d:box",
        "empty ?d",
        Outcome(atoms("in ?x ?d"), atoms("empty ?d"), (Parameter("?x", "block"),), frozenset({"?x"})),
    ),
    schema("take", "?x:block ?d:box", "in ?x ?d", add="empty ?d, have ?x", delete="in ?x ?d"),
    schema("give", "?x:block ?p:person", "have ?x", add="glad ?p", delete="have ?x"),
    types={"block": "object", "box": "object", "person": "object"},
)


def test_new_objects_get_names_that_are_not_in_use() -> None:
    problem = make_problem(
        "empty d, have block1", "glad p, glad q, glad r", d="box", block1="block", p="person", q="person", r="person"
    )
    result = search(MAKE, problem, 60)
    assert achieves_goal(MAKE, problem, result.steps)
    made = [dict(step.choice)["?x"] for step in result.steps if step.action.name == "make"]
    assert made == ["block2", "block3"]
    assert len(result.steps) == 7


def test_object_is_not_used_before_it_is_made() -> None:
    domain = make_domain(
        schema("make", "", "", Outcome(atoms("made ?x"), frozenset(), (Parameter("?x"),), frozenset({"?x"}))),
        schema("name", "?x:object", "", add="named"),
    )
    result = search(domain, make_problem("", "named"), 60)
    assert [step.action.name for step in result.steps] == ["make", "name"]


def test_greedy_search_reaches_further_than_breadth_first() -> None:
    plan = solve(BLOCKS, blocks(12), breadth_first_states=1000)
    assert len(plan) == 24


def test_steps_that_are_not_needed_are_dropped() -> None:
    problem = make_problem("robot-at r0, at x r0, free", "robot-at r1", x="item", r0="room", r1="room")
    detour = [("pick", "x", "r0"), ("move", "r0", "r1"), ("place", "x", "r1")]
    steps = [PlanStep(Action(name, tuple(arguments))) for name, *arguments in detour]
    assert without_needless_steps(PICK_PLACE, problem, steps, Deadline(60)) == (PlanStep(Action("move", ("r0", "r1"))),)


def test_grounding_joins_instead_of_multiplying() -> None:
    """A chain of 200 links with three variables: 8 million candidates, 198 instances."""
    domain = make_domain(schema("hop", "?a:object ?b:object ?c:object", "link ?a ?b, link ?b ?c", add="far ?a ?c"))
    links = ", ".join(f"link n{i} n{i + 1}" for i in range(199))
    problem = make_problem(links, "far n0 n2", **{f"n{i}": "object" for i in range(200)})
    ground = GroundProblem(domain, problem, Deadline(60))
    assert len(ground.operators) == 198


def test_the_deadline_ends_the_search() -> None:
    count = 24
    objects = {f"b{i}": "block" for i in range(count)} | {f"l{i}": "place" for i in range(count - 1)}
    state = ", ".join(["free", *(f"clear {name}" for name in objects)])
    goal = ", ".join(f"at b{i} l{i}" for i in range(count - 1)) + f", at b{count - 1} l0"
    result = search(BLOCKS, make_problem(state, goal, **objects), time_limit=1, breadth_first_states=0)
    assert (result.status, result.steps) == (Status.TIMED_OUT, ())


def test_effort_ends_the_search_always_at_the_same_place() -> None:
    problem = make_problem("free, clear b1, clear b2, clear l1, clear l2", "at b1 l1, at b2 l2", **TWO)

    def found(effort: int) -> Status:
        return search_until(Effort(effort), BLOCKS, problem).status

    enough = next(effort for effort in range(1, 1000) if found(effort) is Status.SOLVED)
    assert enough > 10
    assert {found(enough - 1), found(enough // 2)} == {Status.TIMED_OUT}
    assert found(enough) is found(10 * enough) is Status.SOLVED


def test_the_deadline_ends_grounding() -> None:
    domain = make_domain(schema("mix", "?a:object ?b:object ?c:object ?d:object", "", add="mixed ?a ?b ?c ?d"))
    problem = make_problem("", "done", **{f"n{i}": "object" for i in range(200)})
    with pytest.raises(TimeUp):
        GroundProblem(domain, problem, Deadline(0.2))
    assert search(domain, problem, time_limit=0.2).status is Status.TIMED_OUT


TWO = {"b1": "block", "b2": "block", "l1": "place", "l2": "place"}

PRINT_PLANS = """
from test_search import BLOCKS, FERRY, blocks, make_problem
from bilevel.planning.search import search
ports = {f"p{i}": "port" for i in range(5)}
cars = {f"c{i}": "car" for i in range(4)}
start = "empty, ferry p0, " + ", ".join(f"at {car} p{i}" for i, car in enumerate(cars))
ferry = make_problem(start, "at c0 p4, at c1 p3, at c2 p0", **ports, **cars)
for states in (0, 100_000):
    print(search(FERRY, ferry, 60, states))
    print(search(BLOCKS, blocks(4), 60, states))
"""


def test_plans_do_not_depend_on_the_hash_seed() -> None:
    def plans(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", PRINT_PLANS],
            cwd=Path(__file__).parent,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    assert plans("1") == plans("2")
