"""Rule files: what is written is read back, and what is wrong is pointed at."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import (
    check_rules,
    consistent_names,
    domain_line,
    format_rules,
    in_normal_order,
    parse_rules,
    read_rules,
    require_open_world,
)
from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Outcome, Parameter, Predicate, Schema
from bilevel.symbolic.expressions import NAME_PATTERN

BLOCKS_TEXT = """\
# Rules for the domain blocks
# learned from 5 problems
variables: ?x - block, ?l - place

1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)
2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)
"""
X, L = Parameter("?x", "block"), Parameter("?l", "place")
AT = Atom("at", ("?x", "?l"))
PLACE = Rule(
    1, (X, L), frozenset({Atom("holding", ("?x",)), Atom("clear", ("?l",))}), frozenset({AT}), Action("place", AT.terms)
)
PICK = Rule(
    2,
    (X, L),
    frozenset({Atom("gripper-free"), Atom("clear", ("?x",)), Atom("clear", ("?l",))}),
    frozenset({AT}),
    Action("pick", ("?x",)),
)


def predicate(name: str, *types: str) -> tuple[str, Predicate]:
    return name, Predicate(name, tuple(Parameter(f"?{i}", kind) for i, kind in enumerate(types)))


def schema(name: str, *types: str) -> tuple[str, Schema]:
    parameters = tuple(Parameter(f"?{i}", kind) for i, kind in enumerate(types))
    return name, Schema(name, parameters, frozenset(), (Outcome(frozenset(), frozenset()),))


DOMAIN = Domain(
    "blocks",
    dict(
        [
            predicate("at", "block", "place"),
            predicate("holding", "block"),
            predicate("clear", "item"),
            predicate("gripper-free"),
        ]
    ),
    dict([schema("pick", "block"), schema("place", "block", "place"), schema("wait")]),
    types={"block": "item", "place": "item", "item": "object"},
    constants={"depot": "place"},
)


def test_the_blocks_rules_are_written_as_people_write_them() -> None:
    assert format_rules([PLACE, PICK], [domain_line("blocks"), "learned from 5 problems"]) == BLOCKS_TEXT


def test_the_blocks_rules_are_read_back() -> None:
    assert parse_rules(BLOCKS_TEXT, "blocks.rules", DOMAIN) == (PLACE, PICK)


@pytest.mark.parametrize(
    "text",
    [
        BLOCKS_TEXT.replace("\n", "\r\n"),
        BLOCKS_TEXT.replace(" & ", "\n   &").replace("->", "\n->"),
        BLOCKS_TEXT.replace("& ", "&# so\n\n").replace("-> ", "->\n\n  "),
        BLOCKS_TEXT.replace(" - ", "\t-   ").replace(" & ", "&").replace(" -> ", "->").replace("(", " ( "),
        BLOCKS_TEXT.replace("variables: ?x - block, ?l - place", "variables: ?x - block\nvariables:\n?l - place,\n?z"),
        BLOCKS_TEXT.replace("holding(?x) & clear(?l)", "clear(?l) & holding(?x) & clear(?l)"),
    ],
)
def test_layout_does_not_matter(text: str) -> None:
    assert parse_rules(text) == (PLACE, PICK)


def test_absent_facts_inequalities_and_constants() -> None:
    text = "3: at(?x, depot) & not clear(?y) & ?x != ?y & ?x != depot & goal goal(?x, ?y) -> go(depot, ?y)\n"
    (rule,) = parse_rules(text)
    assert rule.state_condition == {Atom("at", ("?x", "depot"))}
    assert rule.negative_condition == {Atom("clear", ("?y",)), Atom("=", ("?x", "?y")), Atom("=", ("?x", "depot"))}
    assert rule.goal_condition == {Atom("goal", ("?x", "?y"))}
    assert rule.variables == (Parameter("?y"), Parameter("?x"))
    assert parse_rules(format_rules([rule])) == (rule,)


def test_a_file_without_rules_or_conditions() -> None:
    assert parse_rules("# nothing yet\n") == ()
    assert format_rules([]) == "\n"
    assert parse_rules("1: -> wait()") == (Rule(1, (), frozenset(), frozenset(), Action("wait")),)


def test_one_name_with_two_types_is_renamed() -> None:
    rules = parse_rules("variables: ?x - block, ?x2 - place\n1: a(?x) & b(?x2) -> go(?x)")
    other = Rule(2, (Parameter("?x", "robot"),), frozenset({Atom("a", ("?x",))}), frozenset(), Action("go", ("?x",)))
    assert format_rules([*rules, other, other]) == (
        "variables: ?x - block, ?x2 - place, ?x3 - robot\n\n"
        "1: a(?x) & b(?x2) -> go(?x)\n2: a(?x3) -> go(?x3)\n2: a(?x3) -> go(?x3)\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1: p(?x)\n2: q(?x) -> a(?x)", "f:1:9: expected '&' and another condition, or '->' and the action of rule 1"),
        ("1: p(?x)", "f:1:9: expected '&' and another condition, or '->' and the action of rule 1, found the end"),
        ("p(?x) -> a(?x)", "f:1:1: expected a priority (a whole number from 1, then ':') or an order, found 'p'"),
        ("\n 0: p(?x) -> a(?x)", "f:2:2: expected a priority"),
        ("1234567890: p(?x) -> a(?x)", "f:1:1: expected a priority"),
        (f"{'1' * 5000}: p(?x)", f"f:1:1: expected a priority (a whole number from 1, then ':'), found '{'1' * 60}…'"),
        ("1 p(?x) -> a(?x)", "f:1:3: expected ':' after the priority 1, found 'p'"),
        ("1: p(?x) ->\n", "f:1:12: expected an action after '->', found the end of the line"),
        ("1: p(?x) -> ?x", "f:1:13: expected an action after '->', found '?x'"),
        ("1: p(?x) -> a(?x) & q(?x)", "f:1:19: unexpected '&'; what comes next begins on a new line"),
        ("1: p(?x) | q(?x) -> a(?x)", "f:1:10: unexpected character '|'"),
        ("1: p(?x) & -> a(?x)", "f:1:12: expected a condition such as 'p(?x)', found '->'"),
        ("1: not goal p(?x) -> a(?x)", "f:1:13: expected '(' after 'goal', found 'p'"),
        ("1: free & p(?x) -> a(?x)", "f:1:9: expected '(' after 'free', found '&'"),
        ("1: p(?x ?y) -> a(?x)", "f:1:9: expected ',' or ')' in p(...), found '?y'"),
        ("1: p(?x,) -> a(?x)", "f:1:9: expected a variable or a constant in p(...), found ')'"),
        ("1: p(? x) -> a(?x)", "f:1:6: unexpected character '?'"),
        ("1: p(?x) & ?x != -> a(?x)", "f:1:18: expected a variable or a constant after '!=', found '->'"),
        ("variables ?x - block", "f:1:11: expected ':' after 'variables', found '?x'"),
        ("variables: x - block", "f:1:12: expected a variable such as '?x', found 'x'"),
        ("variables: ?x - \n", "f:1:16: expected the type of ?x, found the end of the line"),
        (
            "1: p(?x) ->  # to do\n\n2: p(?x) -> a(?x)",
            "f:1:12: expected an action after '->', found the end of the line",
        ),
        ("p(?x) after\n1: p(?x) -> a(?x)", "f:1:12: expected a goal after 'after', found the end of the line"),
        ("p(?x) after\np(?y) after p(?z)", "f:1:12: expected a goal after 'after', found the end of the line"),
        ("p(?x) after p(?y) if\np(?z) after p(?x)", "f:1:21: expected a fact that never changes, found the end"),
        ("variables: ?x - b\nvariables: ?y, ?x - c", "f:2:16: ?x is declared as 'b' and as 'c'"),
        ("\x00\x01", "f:1:1: unexpected character '\\x00'"),
    ],
)
def test_syntax_errors_have_a_place(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_rules(text, "f")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1: hodling(?x) -> pick(?x)", "f:1:4: unknown predicate 'hodling'; did you mean 'holding'?"),
        ("1: holding(?x) -> pik(?x)", "f:1:19: unknown action 'pik'; did you mean 'pick'?"),
        ("1: holding(?x, ?x) -> pick(?x)", "f:1:4: 'holding' has 1 argument, not 2"),
        ("1: holding(?x) -> place(?x)", "f:1:19: 'place' has 2 arguments, not 1"),
        ("variables: ?x - blok\n1: -> pick(?x)", "f:1:17: unknown type 'blok'; did you mean 'block'?"),
        ("variables: ?x - place\n1: holding(?x) -> wait()", "f:2:12: ?x is a 'place', but holding is about a 'block'"),
        ("variables: ?x - item\n1: clear(?x) -> pick(?x)", "f:2:22: ?x is of type 'item', but pick needs a 'block'"),
        ("1: not holding(?x) -> pick(?x)", "f:1:28: ?x is of type 'object', but pick needs a 'block'"),
        ("1: clear(depto) -> wait()", "f:1:10: the domain has no constant 'depto'; did you mean 'depot'?"),
        ("1: holding(x) -> wait()", "f:1:12: the domain has no constant 'x'; a variable begins with '?': ?x"),
        ("1: holding(?x) & ?x != y -> wait()", "f:1:24: the domain has no constant 'y'"),
        ("1: holding(depot) -> wait()", "f:1:12: depot is of type 'place', but holding is about a 'block'"),
        ("1: -> pick(depot)", "f:1:12: depot is of type 'place', but pick needs a 'block'"),
    ],
)
def test_what_does_not_fit_the_domain_has_a_place(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_rules(text, "f", DOMAIN)
    assert str(error.value).startswith(message.replace("is a 'place'", "is of type 'place'"))


def test_rules_of_another_domain_are_said_to_be() -> None:
    text = f"# {domain_line('ferry')}\n1: board(?c) -> sail(?c)"
    with pytest.raises(BadInput, match=r"f:2:4: .*; these rules are for the domain 'ferry', not 'blocks'"):
        parse_rules(text, "f", DOMAIN)


@pytest.mark.parametrize(
    "text",
    [
        "1: holding(?x) -> pick(?x)",
        "variables: ?x - item\n1: holding(?x) & clear(?x) -> pick(?x)",
        "variables: ?x - block\n1: not clear(?x) -> pick(?x)",
        "1: holding(?x) & not clear(depot) & ?x != depot -> place(?x, depot)",
        "variables: ?l - place\n1: holding(?x) -> place(?x, ?l)",
    ],
)
def test_what_fits_the_domain_passes(text: str) -> None:
    check_rules(parse_rules(text), DOMAIN)


def test_absent_facts_need_a_closed_world() -> None:
    require_open_world(parse_rules("1: p(?x) & q(?y) & ?x != ?y -> a(?x, ?y)"))
    rules = parse_rules("1: p(?x) -> a(?x)\n2: p(?x) & not q(?x) -> b(?x)")
    with pytest.raises(BadInput, match=r"rule '2: p\(\?x\) & not q\(\?x\) -> b\(\?x\)' tests for the absent fact q"):
        require_open_world(rules)


def test_reading_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "blocks.rules"
    path.write_bytes(b"\xef\xbb\xbf" + BLOCKS_TEXT.encode())
    assert read_rules(path) == (PLACE, PICK)
    path.write_bytes(b"# ok\n1: \xff")
    with pytest.raises(BadInput, match=r"this is not UTF-8 text"):
        read_rules(path)
    with pytest.raises(BadInput, match=r"missing.*: there is no such file"):
        read_rules(tmp_path / "missing")


NAMES = st.sampled_from(["p", "at", "b1", "not", "goal", "gripper-free", "gripper_free", "variables", "a-"])
VARIABLES = st.sampled_from(["?x", "?x2", "?y", "?z-1"])
TYPES = st.sampled_from(["object", "block", "place"])
ATOMS = st.builds(Atom, NAMES, st.lists(VARIABLES | NAMES, max_size=3).map(tuple))


@st.composite
def rule(draw: st.DrawFn) -> Rule:
    facts = draw(st.frozensets(ATOMS, max_size=4))
    goals = draw(st.frozensets(ATOMS, max_size=2))
    head = tuple(draw(st.lists(VARIABLES | NAMES, max_size=3)))
    bound = sorted({term for atom in facts | goals for term in atom.terms} | {*head, "depot"})
    terms = st.sampled_from(bound)
    absent = draw(st.frozensets(st.builds(Atom, NAMES, st.lists(terms, max_size=2).map(tuple)), max_size=2))
    unequal = draw(st.frozensets(st.builds(Atom, st.just("="), st.tuples(terms, terms)), max_size=2))
    variables = tuple(Parameter(term, draw(TYPES)) for term in bound if term.startswith("?"))
    priority = draw(st.integers(1, 99))
    return Rule(priority, variables, facts, goals, Action(draw(NAMES), head), absent | unequal)


@given(st.lists(rule(), max_size=4))
def test_writing_and_reading_gives_the_same_rules(rules: list[Rule]) -> None:
    consistent = consistent_names(rules)
    assert parse_rules(format_rules(rules)) == consistent
    types: dict[str, str] = {}
    if all(types.setdefault(v.name, v.type) == v.type for r in rules for v in r.variables):
        assert consistent == tuple(in_normal_order(r) for r in rules)


@given(st.lists(rule(), max_size=4))
def test_renaming_keeps_each_rule_and_gives_each_variable_one_type(rules: list[Rule]) -> None:
    types: dict[str, str] = {}
    for before, after in zip(rules, consistent_names(rules), strict=True):
        assert all(types.setdefault(v.name, v.type) == v.type for v in after.variables)
        assert sorted(v.type for v in before.variables) == sorted(v.type for v in after.variables)
        assert len({v.name for v in after.variables}) == len(after.variables)
        assert [len(a.terms) for a in sorted(before.state_condition, key=shape)] == [
            len(a.terms) for a in sorted(after.state_condition, key=shape)
        ]


def shape(atom: Atom) -> tuple[str, int]:
    return atom.predicate, len(atom.terms)


WORDS = [
    "1",
    ":",
    "->",
    "p(?x)",
    "not ",
    "goal ",
    "&",
    "!=",
    "\n",
    " ",
    "?x",
    "(",
    ")",
    ",",
    "a",
    "#",
    "variables:",
    "-",
    "\0",
]


@given(st.from_regex(NAME_PATTERN, fullmatch=True))
def test_every_name_of_pddl_can_stand_in_a_rule_file(name: str) -> None:
    variable = Parameter("?x", name)
    rule = Rule(1, (variable,), frozenset({Atom(name, ("?x", name))}), frozenset(), Action(name, ("?x",)))
    assert parse_rules(format_rules([rule])) == (rule,)


@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join))
@example("1:->p(?x)\n1:p(?x)->p(?x)")
def test_no_text_crashes_the_parser(text: str) -> None:
    try:
        rules = parse_rules(text)
    except BadInput as error:
        assert str(error).startswith("rules:")  # noqa: PT017
    else:
        assert parse_rules(format_rules(rules)) == rules
