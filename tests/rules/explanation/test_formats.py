"""Explanations: a policy in every format, and the reason for one action."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bilevel.rules.explanation.english import sentence
from bilevel.rules.explanation.formats import FORMATS, Format
from bilevel.rules.matching import Match
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Action, Atom, Parameter

BLOCKS = (
    "variables: ?x - block, ?l - place\n"
    "\n"
    "1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)\n"
    "2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)\n"
)
COLOUR = (
    "variables: ?x - block, ?t - tray, ?c - colour, ?s - surface, ?b - button, ?p - platform\n"
    "\n"
    "1: holding(?x) & colour-of(?x, ?c) & tray-colour(?t, ?c) & goal achieved-goal(?x) -> place-goal(?x, ?t, "
    "?c)\n"
    "2: on(?x, ?s) & colour-of(?x, ?c) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?x) -> "
    "pick(?x, ?s)\n"
    "3: unknown(?x) & on(?x, ?p) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?x) -> press(?x, "
    "?b, ?p)\n"
    "4: holding(?x) & unknown(?x) & free(?p) & tray-colour(?t, ?c) & goal achieved-goal(?x) -> place(?x, ?p)\n"
    "5: unknown(?x) & on(?x, ?s) & free(?p) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?x) "
    "-> pick(?x, ?s)\n"
)
GACHA = (
    "variables: ?x - block, ?t - tray, ?c - colour, ?d - box, ?b - button, ?c2 - colour, ?t2 - tray\n"
    "\n"
    "1: holding(?x) & colour-of(?x, ?c) & tray-colour(?t, ?c) & goal achieved-goal(?c) -> place-goal(?x, ?t, "
    "?c)\n"
    "2: in(?x, ?d) & colour-of(?x, ?c) & opened(?d) & tray-colour(?t, ?c) & gripper-free() & goal "
    "achieved-goal(?c) -> pick(?x, ?d)\n"
    "3: tray-colour(?t, ?c) & in(?x, ?d) & colour-of(?x, ?c) & gripper-free() & goal achieved-goal(?c) -> "
    "open(?d)\n"
    "4: clear(?d) & closed(?d) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?c) -> roll(?d, ?b)\n"
    "5: clear(?d) & opened(?d) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?c) -> close(?d)\n"
    "6: holding(?x) & colour-of(?x, ?c) & tray-colour(?t, ?c) & clear(?d) & opened(?d) & tray-colour(?t2, "
    "?c2) & goal achieved-goal(?c2) -> place-goal(?x, ?t, ?c)\n"
    "7: in(?x, ?d) & colour-of(?x, ?c) & opened(?d) & tray-colour(?t, ?c) & tray-colour(?t2, ?c2) & "
    "gripper-free() & goal achieved-goal(?c2) -> pick(?x, ?d)\n"
)
GRIPPER = (
    "1: ball(?x) & carry(?x, ?g) & at-robby(?r) & room(?r) & gripper(?g) & goal at(?x, ?r) -> drop(?x, ?r, ?g)\n"
    "2: at-robby(?q) & room(?q) & room(?r) & gripper(?g) & ball(?x) & carry(?x, ?g) & goal at(?x, ?r) -> "
    "move(?q, ?r)\n"
    "3: ball(?x) & at(?x, ?q) & at-robby(?q) & room(?q) & free(?g) & gripper(?g) & room(?r) & goal at(?x, ?r) "
    "-> pick(?x, ?q, ?g)\n"
    "4: at-robby(?r) & room(?r) & room(?q) & free(?g) & gripper(?g) & ball(?x) & at(?x, ?q) & goal at(?x, ?r) "
    "-> move(?r, ?q)\n"
)
NAMES = st.sampled_from(
    [
        "at",
        "on-board",
        "holding",
        "clear",
        "colour-of",
        "robot-at",
        "at-robby",
        "foo",
        "has-key",
        "have",
        "is",
        "Ünder-ground",
        "-",
        "_",
        "goal",
        "7",
        "a/b",
        "on/",
        "pick",
        "pick-up",
        "move",
        "turn-to",
        "place-goal",
        "up",
        "board",
        "press",
        "take-image",
    ]
)
TERMS = st.sampled_from(["?a", "?b", "?c", "depot"])
TYPES = st.sampled_from(["object", "block", "place", "passenger", "gripper", "button", "room", "goal-place"])
ATOMS = st.builds(Atom, NAMES, st.lists(TERMS, max_size=4).map(tuple))
FACTS = st.frozensets(ATOMS, max_size=4)


def rules(text: str) -> tuple[Rule, ...]:
    return parse_rules(text)


@st.composite
def any_rule(draw: st.DrawFn) -> Rule:
    variables = tuple(Parameter(name, draw(TYPES)) for name in ("?a", "?b", "?c"))
    unequal = draw(st.frozensets(st.builds(Atom, st.just("="), st.tuples(TERMS, TERMS)), max_size=1))
    action = Action(draw(NAMES), tuple(draw(st.lists(TERMS, max_size=4))))
    return Rule(draw(st.integers(1, 5)), variables, draw(FACTS), draw(FACTS), action, draw(FACTS) | unequal)


def test_text_can_be_loaded_again() -> None:
    assert FORMATS["text"](rules(BLOCKS)) == BLOCKS


def test_markdown_is_a_table() -> None:
    text = BLOCKS + "3: not holding(?x) & ?x != depot -> wait(?x)"
    assert FORMATS["markdown"](rules(text)) == (
        "| Priority | If | and the goal is | then do |\n"
        "| ---: | --- | --- | --- |\n"
        "| 1 | `holding(?x)`, `clear(?l)` | `at(?x, ?l)` | `place(?x, ?l)` |\n"
        "| 2 | `clear(?x)`, `clear(?l)`, `gripper-free()` | `at(?x, ?l)` | `pick(?x)` |\n"
        "| 3 | `not holding(?x)`, `?x != depot` | – | `wait(?x)` |\n"
    )


def test_latex_is_in_the_form_of_the_paper() -> None:
    assert FORMATS["latex"](rules(BLOCKS)) == (
        r"""\begin{align*}
    1: \exists x, l. \; \mathit{holding}(x) \wedge \mathit{clear}(l) \wedge \underline{\mathit{at}(x, l)}
    &\mapsto \mathit{place}(x, l) \\
    2: \exists x, l. \; \mathit{clear}(x) \wedge \mathit{clear}(l) \wedge \mathit{gripperFree}()"""
        r""" \wedge \underline{\mathit{at}(x, l)}
    &\mapsto \mathit{pick}(x)
\end{align*}
"""
    )


def test_latex_spells_out_what_would_be_a_space_or_an_exponent() -> None:
    assert r"\mathit{\text{\textasciitilde}p\text{\textasciicircum}}(x)" in FORMATS["latex"](
        rules("1: ~p^(?x) -> a(?x)")
    )


def test_latex_breaks_long_rules_before_the_arrow_and_escapes_names() -> None:
    text = "1: not a_b(?x2, b_1) & ?from != b%2 & goal goal-of(?from, ?x2) -> go-to_it(?x2)\n2: -> wait()"
    assert FORMATS["latex"](rules(text)) == (
        r"""\begin{align*}
    1: \exists x_{2}, \mathit{from}. \; \neg \mathit{aB}(x_{2}, \text{b\_1}) \wedge \mathit{from} \neq \text{b\%2}"""
        r""" \wedge \underline{\mathit{goalOf}(\mathit{from}, x_{2})}
    &\mapsto \mathit{goToIt}(x_{2}) \\
    2: \top
    &\mapsto \mathit{wait}()
\end{align*}
"""
    )
    rows = FORMATS["latex"](rules(GACHA)).splitlines()
    assert rows[1].startswith(r"    &1: \exists x, t, c. \; \mathit{holding}(x)")
    assert rows[2] == r"    &\qquad \mapsto \mathit{placeGoal}(x, t, c) \\"
    assert len(rows) == 2 + 2 * len(rules(GACHA))


def test_no_rules_at_all() -> None:
    assert [FORMATS[name](()) for name in FORMATS] == [
        "\n",
        "| Priority | If | and the goal is | then do |\n| ---: | --- | --- | --- |\n",
        "% no rules\n",
        "No rules.\n",
    ]


def test_the_reason_for_one_action_names_its_objects() -> None:
    place = rules(BLOCKS)[0]
    assert sentence(*Match(place, {"?x": "block3", "?l": "place7"})) == (
        "Because you hold block3, place7 is clear and block3 belongs at place7, place block3 at place7."
    )
    assert sentence(rules(COLOUR)[0], {"?x": "block3", "?t": "tray7", "?c": "red"}) == (
        "Because you hold block3, block3's colour is red, tray7's colour is red "
        "and block3's goal is not achieved yet, place block3 on tray7."
    )
    assert sentence(rules(GRIPPER)[0], {"?x": "ball3", "?r": "rooma", "?g": "left"}) == (
        "Because left carries ball3, robby is in rooma and ball3 belongs in rooma, drop ball3 in rooma with left."
    )


@given(st.lists(any_rule(), max_size=3), st.sampled_from(sorted(FORMATS)))
def test_any_rules_can_be_explained(policy: list[Rule], name: Format) -> None:
    assert FORMATS[name](policy).endswith("\n")


@given(any_rule())
def test_a_sentence_names_no_variable_and_leaves_no_gap(rule: Rule) -> None:
    for text in (sentence(rule), sentence(rule, {"?a": "a1", "?b": "b1", "?c": "c1"})):
        assert text.endswith(".")
        assert not set(text) & set("{}?\n")
        assert "  " not in text
