"""Algorithm 1 as the paper prints it: what it gives, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from notation import best_matches, facts

from bilevel.rules import learning
from bilevel.rules.learning import PRINTED, learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.solving import solve
from bilevel.rules.traces import Trace, TraceStep
from bilevel.symbolic.domain import Action, BadInput, Domain, Problem
from bilevel.symbolic.pddl import parse_domain
from bilevel.symbolic.semantics import bind_outcome, ground_action
from bilevel.tabletop.problems import shipped_domain

BLOCKS, COLOUR, GACHA = (shipped_domain(name) for name in ("blocks", "colour", "gacha"))


def acted(domain: Domain, state: str, goal: str, objects: Mapping[str, str], *actions: str) -> Trace:
    """A trace of these actions, with nature's choices after them: `"press a button platform: ?c=red"`."""
    steps: list[TraceStep] = []
    now = facts(state)
    for text in actions:
        words, _, chosen = text.partition(": ")
        name, *arguments = words.split()
        action = ground_action(domain, Action(name, tuple(arguments)))
        binding = dict(pair.split("=") for pair in chosen.split())
        steps.append(TraceStep(now, action, bind_outcome(action.outcomes[0], binding), facts(goal)))
        now = steps[-1].next_state
    assert facts(goal) <= now
    return Trace(tuple(steps), objects)


def blocks(number: int) -> Problem:
    names = [f"b{n}" for n in range(1, number + 1)]
    state = ", ".join(["gripper-free", *(f"clear {b}, clear p{b}" for b in names)])
    objects = {name: kind for b in names for name, kind in ((b, "block"), (f"p{b}", "place"))}
    return Problem("three", "blocks", objects, facts(state), facts(", ".join(f"at {b} p{b}" for b in names)))


def three_blocks() -> Trace:
    problem = blocks(3)
    state = ", ".join(" ".join((fact.predicate, *fact.terms)) for fact in problem.state)
    actions = [action for b in ("b1", "b2", "b3") for action in (f"pick {b}", f"place {b} p{b}")]
    return acted(BLOCKS, state, "at b1 pb1, at b2 pb2, at b3 pb3", problem.objects, *actions)


def never_applies(rule: Rule) -> bool:
    """A goal that is to be achieved still cannot hold already."""
    return bool(rule.state_condition & rule.goal_condition)


def test_of_three_blocks_it_learns_a_rule_for_each_action_with_all_three_goals() -> None:
    rules = learn_rules([three_blocks()], BLOCKS, PRINTED)
    assert [(rule.priority, rule.action.name) for rule in rules] == [
        (1, "place"), (2, "pick"), (3, "place"), (4, "pick"), (5, "place"), (6, "pick"),
    ]  # fmt: skip
    assert all(len(rule.goal_condition) == 3 for rule in rules)
    assert len(learn_rules([three_blocks()], BLOCKS)) == 2


def test_most_of_its_rules_can_never_apply() -> None:
    """After the first goal, they ask for goals that hold and that are still to be achieved."""
    rules = learn_rules([three_blocks()], BLOCKS, PRINTED)
    assert [never_applies(rule) for rule in rules] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("number", [1, 2, 3, 10])
def test_the_last_block_is_picked_up_and_never_put_down(number: int) -> None:
    """The rule that puts the first of three down asks for a second one that is still to come."""
    problem, rules = blocks(number), learn_rules([three_blocks()], BLOCKS, PRINTED)
    found = solve(BLOCKS, problem, rules)
    assert not found.is_solved
    assert found.plan.actions[-1].name == "pick"
    assert len(found.plan.actions) == 2 * number - 1
    assert solve(BLOCKS, problem, learn_rules([three_blocks()], BLOCKS)).is_solved


def colours(number: int) -> Trace:
    """As many blocks are coloured, by turns red and green, and put on their trays."""
    names = [f"b{n}" for n in range(1, number + 1)]
    state = ["gripper-free", "free platform", "tray-colour t1 red", "tray-colour t2 green"]
    state += [f"on {b} table, unknown {b}" for b in names]
    objects = {**dict.fromkeys(names, "block"), "t1": "tray", "t2": "tray", "red": "colour", "green": "colour"}
    objects |= {"platform": "platform", "table": "table", "button": "button"}
    actions: list[str] = []
    for index, b in enumerate(names):
        tray, colour = [("t1", "red"), ("t2", "green")][index % 2]
        actions += [f"pick {b} table", f"place {b} platform", f"press {b} button platform: ?c={colour}"]
        actions += [f"pick {b} platform", f"place-goal {b} {tray} {colour}"]
    goal = ", ".join(f"achieved-goal {b}" for b in names)
    return acted(COLOUR, ", ".join(state), goal, objects, *actions)


def conditions_at_the_beginning(rules: Sequence[Rule], length: int) -> int:
    return sum(rule.priority == length for rule in rules)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_conditions_double_with_each_action_of_several_outcomes(number: int) -> None:
    """Half of them say that a block has a colour before it gets one, and that its colour is not known."""
    rules = learn_rules([colours(number)], COLOUR, PRINTED)
    assert conditions_at_the_beginning(rules, 5 * number) == 2**number
    assert any({"unknown", "colour-of"} <= {atom.predicate for atom in rule.state_condition if "?0" in atom.terms}
               for rule in rules if rule.action.name == "press")  # fmt: skip
    assert conditions_at_the_beginning(learn_rules([colours(number)], COLOUR), 5) == 1


def test_there_is_a_bound_which_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_CONDITIONS", 7)
    assert learn_rules([colours(2)], COLOUR, PRINTED)
    message = "13 actions before the end of a trace of 15 it has more than 7 conditions, and is given up$"
    with pytest.raises(BadInput, match=message):
        learn_rules([colours(3)], COLOUR, PRINTED)


def test_an_object_that_nature_makes_is_the_one_that_she_made() -> None:
    objects = {"box": "box", "button": "button", "t": "tray", "red": "colour", "blue": "colour", "x": "block"}
    state = "gripper-free, clear box, closed box, tray-colour t red"
    actions = ["roll box button: ?x=x ?c=red", "open box", "pick x box", "place-goal x t red"]
    rules = learn_rules([acted(GACHA, state, "achieved-goal red", objects, *actions)], GACHA, PRINTED)
    rolls = [rule for rule in rules if rule.action.name == "roll"]
    assert len(rolls) == 2  # for red, and for all other colours
    goal = facts("achieved-goal red")
    assert sum(bool(best_matches([rule], GACHA, facts(state), goal, objects)) for rule in rolls) == 1


def test_where_one_outcome_undoes_the_goal_there_is_no_rule() -> None:
    domain = parse_domain("""(define (domain luck) (:requirements :strips :non-deterministic)
      (:predicates (won) (rich) (poor))
      (:action bet :parameters () :precondition (rich) :effect (oneof (won) (and (poor) (not (rich)))))
      (:action work :parameters () :precondition (poor) :effect (and (rich) (not (poor)))))""")
    trace = acted(domain, "poor", "won, rich", {}, "work", "bet")
    assert learn_rules([trace], domain, PRINTED) == ()  # as betting may make poor
    assert learn_rules([trace], domain)


def test_what_the_paper_has_not_is_refused() -> None:
    domain = parse_domain("""(define (domain door) (:requirements :strips :negative-preconditions)
      (:predicates (locked) (open)) (:action open :parameters () :precondition (not (locked)) :effect (open)))""")
    with pytest.raises(BadInput, match="knows no negative preconditions, but 'open' has one"):
        learn_rules([], domain, PRINTED)
    with pytest.raises(BadInput, match="unknown algorithm 'magic'; known ones: single-goal, printed"):
        learn_rules([], BLOCKS, "magic")
