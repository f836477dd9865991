"""What a rule may lose and still be about the same things."""

from __future__ import annotations

from bilevel.rules.completion.generalising import droppable, generalisations
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Atom
from bilevel.tabletop.problems import shipped_domain

DOMAIN = shipped_domain("blocksworld")


def rule(text: str) -> Rule:
    return parse_rules(f"variables: ?a - block, ?b - block, ?c - block, ?d - block\n{text}", "rule", DOMAIN)[0]


def general(text: str, atom: Atom) -> list[str]:
    return [str(found) for found in generalisations(rule(text), atom, DOMAIN)]


TOWER = (
    "1: clear(?a) & on(?a, ?b) & on(?b, ?c) & clear(?d) & hand-empty() & ?b != ?d & goal on(?c, ?d) -> unstack(?a, ?b)"
)


def test_what_the_action_needs_stays() -> None:
    assert [str(atom) for atom in droppable(rule(TOWER), DOMAIN)] == ["clear(?d)", "on(?b, ?c)", "=(?b, ?d)"]


def test_a_condition_goes_and_variables_that_only_it_mentioned() -> None:
    without = TOWER.replace(" & clear(?d)", "")
    assert general(TOWER, Atom("clear", ("?d",))) == [str(rule(without))]
    lonely = "1: clear(?a) & on(?a, ?b) & clear(?d) & hand-empty() & goal on(?a, ?c) -> unstack(?a, ?b)"
    (found,) = generalisations(rule(lonely), Atom("clear", ("?d",)), DOMAIN)
    assert "?d" not in found.types


def test_what_connects_the_action_to_the_goal_becomes_a_closure_at_most() -> None:
    assert general(TOWER, Atom("on", ("?b", "?c"))) == [str(rule(TOWER.replace("on(?b, ?c)", "on+(?b, ?c)")))]


def test_a_condition_that_alone_names_the_action_s_object_stays() -> None:
    text = "1: clear(?a) & holding(?b) & goal on(?b, ?c) -> stack(?b, ?a)"
    assert not general(text, Atom("clear", ("?a",)))
