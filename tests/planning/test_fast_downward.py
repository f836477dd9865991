"""What only Fast Downward can get wrong: its processes, its files, its exit codes and the mapping of names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bilevel.planning import fast_downward as module
from bilevel.planning.fast_downward import determinise, fast_downward, run_in_group
from bilevel.planning.planner import Status
from bilevel.symbolic.domain import Atom, BadInput, Problem
from bilevel.symbolic.pddl import parse_domain
from bilevel.tabletop.problems import shipped_domain

CHAIN = parse_domain(
    """(define (domain chain) (:predicates (here ?x) (link ?x ?y))
       (:action go :parameters (?x ?y) :precondition (and (here ?x) (link ?x ?y))
         :effect (and (here ?y) (not (here ?x)))))""",
    "chain",
)

# Four free parameters over 60 objects: 13 million ground actions, far too many for a second.
WIDE = parse_domain(
    """(define (domain wide) (:predicates (mixed ?a ?b ?c ?d) (done))
       (:action mix :parameters (?a ?b ?c ?d) :precondition () :effect (mixed ?a ?b ?c ?d))
       (:action finish :parameters (?a) :precondition (and (mixed ?a ?a ?a ?a)) :effect (done)))""",
    "wide",
)


def chain(length: int) -> Problem:
    names = [f"n{i}" for i in range(length)]
    links = {Atom("link", pair) for pair in pairwise(names)}
    facts = frozenset(links | {Atom("here", ("n0",))})
    return Problem("p", "chain", dict.fromkeys(names, "object"), facts, frozenset({Atom("here", (names[-1],))}))


def wide() -> Problem:
    objects = {f"n{i}": "object" for i in range(60)}
    return Problem("p", "wide", objects, frozenset(), frozenset({Atom("done")}))


@pytest.mark.parametrize("optimal", [True, False])
def test_both_searches_find_the_plan(optimal: bool) -> None:
    result = fast_downward(CHAIN, chain(6), 60, optimal)
    assert [str(action) for action in result.plan or ()] == [f"go(n{i}, n{i + 1})" for i in range(5)]


@pytest.mark.parametrize("optimal", [True, False])
def test_time_limit_ends_every_process(optimal: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "GRACE", 600)  # so that it is we who end them
    reading, writing = os.pipe()  # held by this process and, with their output, by the planner's

    def run(command: Sequence[str], directory: Path, output: int, *others: Any) -> int | None:
        return run_in_group(command, directory, writing, *others)

    monkeypatch.setattr(module, "run_in_group", run)
    result = fast_downward(WIDE, wide(), 1, optimal)
    assert (result.status, result.plan) == (Status.TIMED_OUT, None)
    assert list(tmp_path.glob("*/*")) == []
    os.close(writing)
    with open(reading, "rb") as output:
        output.read()  # comes to an end, as nobody writes any more


def test_missing_planner_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadInput) as error:
        fast_downward(CHAIN, chain(2), 60)
    assert str(error.value) == 'Fast Downward is not installed; install it with: pip install "bilevel[planners]"'


def test_an_error_of_the_planner_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "write_domain", lambda domain: "(define")
    result = fast_downward(CHAIN, chain(2), 60)
    assert result.status is Status.ERROR
    assert result.message.startswith("Fast Downward ended with exit code 31: ")
    assert "\n" not in result.message


@pytest.mark.parametrize("exit_code", [20, 22])
def test_want_of_memory_is_a_result_and_no_error(exit_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run_in_group", lambda *_: exit_code)
    result = fast_downward(CHAIN, chain(2), 60)
    assert (result.status, result.plan) == (Status.OUT_OF_MEMORY, None)
    assert result.message == "no plan: Fast Downward ran out of memory"


def test_new_objects_are_refused() -> None:
    with pytest.raises(BadInput, match="action 'roll' makes new objects, which Fast Downward cannot plan for"):
        determinise(shipped_domain("gacha"))


def test_determinisation_has_one_schema_per_outcome_and_nature_chooses_by_parameters() -> None:
    domain = shipped_domain("colour")
    determinised, origins = determinise(domain)
    assert determinised.is_deterministic
    assert [schema.name for schema, _ in origins.values()] == ["pick", "place", "put-aside", "press", "place-goal"]
    assert [p.name for p in determinised.schemas["a4"].parameters] == ["?x", "?b", "?p", "?c"]
