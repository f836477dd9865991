"""Drawings are well-formed, say what they must, and no two boxes in them overlap."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

from fond_problems import tireworld
from small_policies import COINS, FLIPPING, ONE_COIN, PUSHING, WAITING

from bilevel.planning.fond import fond
from bilevel.planning.policy_drawing import draw_policy, policy_dot
from bilevel.planning.strong_cyclic import ActionGraph, check_policy
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.symbolic.exploration import Choice, explore_policy

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def classes(svg: str) -> list[str]:
    groups = [element.get("class", "") for element in ElementTree.fromstring(svg).iter(f"{SVG}g")]
    return [name for name in groups if name]


def test_a_drawing_names_states_actions_and_outcomes() -> None:
    svg = draw_policy(check_policy(COINS, ONE_COIN, FLIPPING.choose).graph, "one: 2 decisions")
    drawn = texts(svg)
    assert drawn[0] == "one: 2 decisions"
    assert drawn[1].startswith("3 states")
    assert {"0 flip(penny)", "1 win(penny)", "2 goal", "heads(penny)", "tails(penny)"} <= set(drawn)
    assert set(classes(svg)) == {"down", "back", "start", "state", "goal"}
    titles = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert "+ heads(penny)\n− tails(penny)" in titles
    assert "as at first" in titles
    assert "prefers-color-scheme: dark" in svg


def test_where_the_policy_stops_is_marked() -> None:
    svg = draw_policy(check_policy(COINS, ONE_COIN, PUSHING.choose).graph, "pushing")
    assert "stuck" in classes(svg)
    assert any(text.endswith("no action") for text in texts(svg))
    assert "stuck" not in classes(draw_policy(check_policy(COINS, ONE_COIN, WAITING.choose).graph, "waiting"))


def at(place: int) -> Facts:
    return frozenset({Atom("at", (str(place),))})


def chain(length: int, action: str = "go") -> ActionGraph:
    """An action after the other, each of which may also lead back to the start."""
    places = {at(place): place for place in range(length)}

    def choices_in(state: Facts) -> list[Choice[Facts, Action]] | None:
        place = places[state]
        after = (at(place + 1), at(0)) if place else (at(1),)
        return [Choice(Action(action, (str(place),)), after)] if place < length - 1 else None

    return explore_policy([at(0)], choices_in, length)


def test_a_large_graph_is_cut_and_says_so() -> None:
    svg = draw_policy(chain(300), "long", most_states=10)
    drawn = texts(svg)
    assert drawn[1] == "the first 10 of 300 states"
    assert "9 go(9)" in drawn
    assert "10 go(10)" not in drawn
    assert svg.count("<title>+ at(0)") == 9


def test_names_cannot_break_a_drawing() -> None:
    graph = chain(2, action='<b>&"]]>')
    assert '0 <b>&"]]>(0)' in texts(draw_policy(graph, "<&>"))
    assert r'label="0 <b>&\"]]>(0)"' in policy_dot(graph, 'a "b"')


def test_boxes_do_not_overlap() -> None:
    domain, problem = tireworld(3)
    policy = fond(domain, problem, 60).policy
    assert policy is not None
    svg = draw_policy(check_policy(domain, problem, policy.choose).graph, "tyres")
    rects = [r for r in ElementTree.fromstring(svg).iter(f"{SVG}rect") if r.get("class") == "box"]
    sides = [[float(rect.get(name, "")) for name in ("x", "y", "width", "height")] for rect in rects]
    assert len(sides) > 50
    for (x, y, width, height), (x2, y2, width2, height2) in combinations(sides, 2):
        assert x + width < x2 or x2 + width2 < x or y + height < y2 or y2 + height2 < y


def test_dot_has_every_state_and_outcome() -> None:
    dot = policy_dot(check_policy(COINS, ONE_COIN, FLIPPING.choose).graph, "one")
    assert dot.startswith('digraph "one" {')
    assert re.findall(r"(\d+) -> (\d+) \[label=\"(.*)\"\]", dot) == [
        ("0", "1", "heads(penny)"),
        ("0", "0", "tails(penny)"),
        ("1", "2", ""),
    ]
    assert '2 [label="2 goal", fillcolor="#dff3e3", tooltip="+ heads(penny)\\n+ rich()\\n− tails(penny)"]' in dot
