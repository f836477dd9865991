"""Rules that explode are searched: they fire exactly as the definition says, and no decision takes for ever."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bilevel.rules.engine import RuleEngine, rule_engine, search
from bilevel.rules.engine.searching_executor import SearchingExecutor
from bilevel.rules.learning import subsumes
from bilevel.rules.rule import Rule, canonical
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import MOST_ARGUMENTS, explain_change
from bilevel.rules.verify import Answer, verify
from bilevel.symbolic.domain import Atom, Domain, Facts, Problem
from bilevel.symbolic.pddl import parse_domain
from command_line import run
from engine_cases import follow
from executors import executor as executor

GRID = """(define (domain grid) (:requirements :strips :typing) (:types cell)
  (:predicates (right ?x ?y - cell) (down ?x ?y - cell) (done ?x - cell))
  (:action act :parameters (?a - cell) :precondition () :effect (done ?a))
  (:action act5 :parameters (?a ?b ?c ?d ?e - cell) :precondition () :effect (done ?a)))"""
CELLS = "variables: ?a - cell, ?b - cell, ?c - cell, ?d - cell, ?e - cell\n"


def grid_domain() -> Domain:
    return parse_domain(GRID)


def grid_rule(width: int = 10) -> str:
    """A rule that applies to the corner of a grid of cells."""
    conditions = [f"right(?v{i}-{j}, ?v{i}-{j + 1})" for i in range(width) for j in range(width - 1)]
    conditions += [f"down(?v{i}-{j}, ?v{i + 1}-{j})" for i in range(width - 1) for j in range(width)]
    return f"1: {' & '.join(conditions)} & goal done(?v0-0) -> act(?v0-0)\n"


def grid(width: int) -> tuple[Facts, dict[str, str]]:
    names = {(i, j): f"c{i:02}-{j:02}" for i in range(width) for j in range(width)}
    right = {Atom("right", (name, names[i, j + 1])) for (i, j), name in names.items() if j + 1 < width}
    down = {Atom("down", (name, names[i + 1, j])) for (i, j), name in names.items() if i + 1 < width}
    return frozenset(right | down), dict.fromkeys(names.values(), "cell")


def rules(text: str) -> tuple[Rule, ...]:
    return parse_rules(text, "some.rules", grid_domain())


@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_searched_rules_agree_with_the_definition(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As well alone as among others that have views, whichever executor keeps these."""
    rng = random.Random(0)

    def some(rules: Sequence[object], *_: object) -> list[int]:
        return [place for place in range(len(rules)) if rng.random() < share]

    monkeypatch.setattr(rule_engine, "exploding", some)
    for seed in range(1000, 1100):
        follow(seed, updates=12)


@pytest.mark.parametrize("width", [10, 32])
def test_a_grid_as_a_condition(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer takes a few looks at each value of each of the hundred variables, while facts come and go."""
    monkeypatch.setattr(search, "MOST_WORK", 1_000_000)
    state, objects = grid(width)
    goal = frozenset(Atom("done", (name,)) for name in ("c00-00", "c00-01", f"c{width - 1:02}-00"))
    fallback = f"{CELLS}2: right(?a, ?b) & goal done(?b) -> act(?b)\n"
    engine = RuleEngine(rules(grid_rule() + fallback), grid_domain(), state, goal, objects, commit=True)
    corner, second = (0, ("c00-00",)), (1, ("c00-01",))
    assert isinstance(engine.executor, SearchingExecutor)
    assert engine.choose() == engine.server("done")("c00-00") == corner
    assert engine.server("done")("c00-01") == ((0, ("c00-01",)) if width > 10 else second)
    assert engine.server("done")(f"c{width - 1:02}-00") is None
    edge = Atom("down", ("c04-04", "c05-04"))
    engine.remove(edge)
    assert engine.choose() == second
    engine.add(edge)
    assert engine.choose() == corner
    engine.applier(engine.domain.schemas["act"], 0)("c00-00")
    assert engine.choose() == ((0, ("c00-01",)) if width > 10 else second)
    assert engine.open_goals() == 2


def test_free_variables_over_a_thousand_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_WORK", 100_000)
    objects = {f"c{number:04}": "cell" for number in range(1000)}
    policy = RulePolicy(rules(f"{CELLS}1: goal done(?a) -> act5(?a, ?b, ?c, ?d, ?e)"), grid_domain())
    state, goal = frozenset[Atom](), frozenset({Atom("done", ("c0007",))})
    policy.reset(state, goal, objects)
    found = policy.explain(state, goal)
    assert found is not None
    assert found.action == policy.choose(state, goal)
    assert found.action.arguments == ("c0007", "c0000", "c0001", "c0002", "c0003")
    assert next(policy.alternatives(state, goal)) == found.action


@pytest.mark.parametrize(
    ("text", "size", "explodes"),
    [
        ("1: right(?a, ?b) & right(?a, ?c) & goal done(?b) & goal done(?c) -> act(?b)", 1500, True),
        ("1: right(?a, ?b) & right(?a, ?c) & goal done(?b) & goal done(?c) -> act(?b)", 100, False),
        ("1: right(?a, ?b) & goal done(?b) -> act(?b)", 1500, False),
        ("1: goal done(?a) & not right(?b, ?c) & not right(?c, ?d) & not right(?d, ?e) -> act5(?a, ?b, ?c, ?d, ?e)",
         1500, True),
    ],
)  # fmt: skip
def test_which_rules_explode(text: str, size: int, explodes: bool) -> None:
    """A hub with as many neighbours: pairs of these are no larger a number than the views of a rule may have."""
    objects = {f"c{number:04}": "cell" for number in range(size)}
    state = frozenset(Atom("right", ("c0000", name)) for name in objects)
    goal = frozenset(Atom("done", (name,)) for name in objects)
    engine = RuleEngine(rules(CELLS + text), grid_domain(), state, goal, objects)
    assert isinstance(engine.executor, SearchingExecutor) == explodes
    assert engine.choose() is not None


def test_a_grid_subsumes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_WORK", 1_000_000)
    (rule,) = rules(grid_rule())
    smaller = rules(grid_rule(9))[0]
    assert subsumes(rule, canonical(rule, grid_domain()), grid_domain())
    assert subsumes(smaller, rule, grid_domain())
    assert not subsumes(rule, smaller, grid_domain())


def test_a_grid_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_WORK", 1_000_000)
    state, objects = grid(10)
    problem = Problem("p", "grid", objects, state, frozenset({Atom("done", ("c00-00",))}))
    assert verify(rules(grid_rule()), grid_domain(), problem).answer is Answer.SOLVED
    other = replace(problem, goal=frozenset({Atom("done", ("c00-01",))}))
    assert verify(rules(grid_rule()), grid_domain(), other).answer is Answer.REFUTED


def test_of_actions_that_explain_a_change_equally_well_the_first_are_listed() -> None:
    objects = {f"c{number:04}": "cell" for number in range(1000)}
    found = explain_change(grid_domain(), frozenset(), frozenset({Atom("done", ("c0007",))}), objects)
    assert str(found[0][0].action) == "act(c0007)"
    assert str(found[1][0].action) == "act5(c0007, c0000, c0000, c0000, c0000)"
    assert len(found) == MOST_ARGUMENTS + 1


def test_where_it_cannot_be_helped_the_rule_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_WORK", 1_000)
    state, objects = grid(10)
    facts = " ".join(f"({fact.predicate} {' '.join(fact.terms)})" for fact in sorted(state))
    problem = f"(:objects {' '.join(objects)} - cell) (:init {facts}) (:goal (done c00-00))"
    (tmp_path / "problem.pddl").write_text(f"(define (problem p) (:domain grid) {problem})")
    (tmp_path / "domain.pddl").write_text(GRID)
    (tmp_path / "some.rules").write_text(f"# a grid\n\n{grid_rule()}")
    files = tmp_path / "domain.pddl", tmp_path / "problem.pddl", "--rules", tmp_path / "some.rules"
    code, _, err = run(capsys, "solve", *files)
    assert code == 2
    assert err.startswith(f"error: {tmp_path / 'some.rules'}:3: whether this rule applies")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("objects", [11, 12])
def test_an_action_with_more_arguments_than_there_are_objects(objects: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders of the objects are not tried one after the other."""
    monkeypatch.setattr(search, "MOST_WORK", 100_000)
    names = [f"c{number:02}" for number in range(objects)]
    parameters = " ".join(f"?p{number}" for number in range(12))
    schema = f"(:action wide :parameters ({parameters} - cell) :precondition () :effect (done ?p0))"
    domain = parse_domain(GRID.replace("(:action act ", f"{schema}\n  (:action act "))
    variables = ", ".join(f"?p{number} - cell" for number in range(12))
    text = f"variables: {variables}\n1: goal done(?p0) -> wide({parameters.replace(' ', ', ')})"
    goal = frozenset({Atom("done", ("c03",))})
    engine = RuleEngine(parse_rules(text, domain=domain), domain, frozenset(), goal, dict.fromkeys(names, "cell"))
    others = tuple(name for name in names if name != "c03")
    assert engine.choose() == ((0, ("c03", *others)) if objects == 12 else None)


def test_a_predicate_with_many_arguments() -> None:
    """Not every order of them is tried for a view's key."""
    terms = [f"?x{number:02}" for number in range(12)]
    predicate = f"(wide {' '.join(terms)} - cell)"
    domain = parse_domain(GRID.replace("(done ?x - cell)", f"(done ?x - cell) {predicate}"))
    found = parse_rules(f"1: wide({', '.join(terms)}) & goal done(?x03) -> act(?x03)", domain=domain)
    fact = Atom("wide", tuple(f"c{number:02}" for number in range(12)))
    goal = frozenset({Atom("done", ("c03",))})
    engine = RuleEngine(found, domain, frozenset({fact}), goal, dict.fromkeys(fact.terms, "cell"))
    assert engine.choose() == (0, ("c03",))
    engine.remove(fact)
    assert engine.choose() is None
