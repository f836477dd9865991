"""What only Fast Downward can get wrong: its processes, of which nothing is left, its exit codes, and names."""

from __future__ import annotations

import os
import random
import select
import sys
from pathlib import Path

import pytest

from bilevel.planning import fast_downward as module
from bilevel.planning.fast_downward import determinise, fast_downward, run_in_group
from bilevel.planning.planner import Status
from bilevel.symbolic.domain import Atom, BadInput, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.tabletop.problems import gacha_problem, shipped_domain

# Four free parameters over 60 objects: 13 million ground actions, far too many for a second.
WIDE = parse_domain(
    """(define (domain wide) (:predicates (mixed ?a ?b ?c ?d) (done))
       (:action mix :parameters (?a ?b ?c ?d) :precondition () :effect (mixed ?a ?b ?c ?d))
       (:action finish :parameters (?a) :precondition (and (mixed ?a ?a ?a ?a)) :effect (done)))""",
    "wide",
)


def wide() -> Problem:
    objects = {f"n{i}": "object" for i in range(60)}
    return Problem("p", "wide", objects, frozenset(), frozenset({Atom("done")}))


@pytest.mark.parametrize("exit_code", [20, 22])
def test_want_of_memory_is_a_result_and_no_error(exit_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run_in_group", lambda *_: exit_code)
    result = fast_downward(WIDE, wide(), 60)
    assert (result.status, result.plan) == (Status.OUT_OF_MEMORY, None)


def test_new_objects_are_refused() -> None:
    with pytest.raises(BadInput, match="action 'roll' makes new objects, which Fast Downward cannot plan for"):
        determinise(shipped_domain("gacha"), gacha_problem(1, random.Random(0)))


def test_objects_may_be_of_one_of_several_types_and_costs_are_kept_low() -> None:
    domain = parse_domain(
        """(define (domain d) (:types truck drone van) (:predicates (at ?x - (either truck drone) ?n) (road ?a ?b))
           (:functions (total-cost) - number (length ?a ?b) - number)
           (:action go :parameters (?x - (either truck drone) ?a ?b) :precondition (and (at ?x ?a) (road ?a ?b))
             :effect (and (not (at ?x ?a)) (at ?x ?b) (increase (total-cost) (length ?a ?b)))))"""
    )
    problem = parse_problem(
        """(define (problem p) (:domain d) (:objects x - (either truck drone) a b c)
           (:init (at x a) (road a c) (road a b) (road b c) (= (length a c) 9) (= (length a b) 1) (= (length b c) 2))
           (:goal (at x c)) (:metric minimize (total-cost)))""",
        domain,
    )
    for optimal in (True, False):
        result = fast_downward(domain, problem, 20, optimal)
        assert [action.arguments for action in result.plan or ()] == [("x", "a", "b"), ("x", "b", "c")]


def test_time_limit_ends_the_planner() -> None:
    assert fast_downward(WIDE, wide(), 0.5).status is Status.TIMED_OUT


PATIENCE = 20  # seconds; a group ends within milliseconds

# Says where it runs, and sleeps, and so does its child; both hold the pipe that their output goes to.
PARENT_AND_CHILD = [
    sys.executable,
    "-c",
    "import os, subprocess, sys; print(os.getcwd(), flush=True); "
    "subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])",
]


class Pipe:
    """What a program and its children write to: when nobody holds it any more, they are all gone."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def wait_for_output(self) -> None:
        assert select.select([self.reading], [], [], PATIENCE)[0], "the program did not start"

    def assert_all_gone(self) -> None:
        os.close(self.writing)
        while select.select([self.reading], [], [], PATIENCE)[0]:
            if not os.read(self.reading, 65536):
                os.close(self.reading)
                return
        pytest.fail("a process is still running")


def test_time_is_up(tmp_path: Path) -> None:
    pipe = Pipe()
    assert run_in_group(PARENT_AND_CHILD, tmp_path, pipe.writing, 0.5, {}) is None
    pipe.assert_all_gone()


def test_a_child_does_not_outlive_a_program_that_ends(tmp_path: Path) -> None:
    pipe = Pipe()
    assert run_in_group(["sh", "-c", "sleep 600 & exit 3"], tmp_path, pipe.writing, 60, {}) == 3
    pipe.assert_all_gone()
