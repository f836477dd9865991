"""Layouts in which nothing overlaps and links run down, and drawings that are well-formed and say what they must."""

from __future__ import annotations

import random
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest
from small_policies import COINS, FLIPPING, ONE_COIN, PUSHING, WAITING

from bilevel.planning.layered_layout import Layout, Link, Size, lay_out
from bilevel.planning.policy_drawing import draw_policy, policy_dot
from bilevel.planning.strong_cyclic import Node, PolicyGraph, check_policy
from bilevel.symbolic.domain import Action, Atom

SVG = "{http://www.w3.org/2000/svg}"


def random_links(rng: random.Random, count: int) -> list[Link]:
    """A tree that reaches every node, and some more links, up and down."""
    pairs = {(rng.randrange(node), node) for node in range(1, count)}
    pairs |= {(rng.randrange(count), rng.randrange(count)) for _ in range(count)}
    label = [Size(), Size(60, 17)]
    return [Link(a, b, rng.choice(label)) for a, b in sorted(pairs) if a != b]


def overlapping(layout: Layout, sizes: list[Size], links: list[Link]) -> list[tuple[int, int]]:
    """Pairs of nodes and labels, by their numbers, that cover each other."""
    places = [*zip(layout.centres, sizes, strict=True)]
    places += [(route.label, link.label) for route, link in zip(layout.routes, links, strict=True) if link.label.width]
    return [
        (i, j)
        for (i, (one, a)), (j, (other, b)) in combinations(enumerate(places), 2)
        if abs(one.x - other.x) < (a.width + b.width) / 2 and abs(one.y - other.y) < (a.height + b.height) / 2
    ]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_overlaps_and_links_join_their_nodes(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randrange(2, 30)
    links = random_links(rng, count)
    sizes = [Size(rng.randrange(40, 200), 32) for _ in range(count)]
    layout = lay_out(sizes, links)
    assert overlapping(layout, sizes, links) == []
    for link, route in zip(links, layout.routes, strict=True):
        source, target = layout.centres[link.source], layout.centres[link.target]
        assert (target.y < source.y) == route.upwards
        assert (route.points[0].y - source.y) * (-1 if route.upwards else 1) == 16
        assert (target.y - route.points[-1].y) * (-1 if route.upwards else 1) == 16
    xs = [x for route in layout.routes for x, _ in route.points]
    assert min(xs) >= 0
    assert max(xs) <= layout.size.width


def test_only_links_that_close_a_cycle_run_upwards() -> None:
    links = [Link(0, 1), Link(1, 2), Link(2, 0), Link(0, 2), Link(2, 3)]
    routes = lay_out([Size(50, 32)] * 4, links).routes
    assert [route.upwards for route in routes] == [False, False, True, False, False]


def test_a_single_node() -> None:
    layout = lay_out([Size(50, 32)], [])
    assert (layout.centres, layout.size) == (((25, 16),), (50, 32))


def test_the_same_graph_gives_the_same_layout() -> None:
    links = random_links(random.Random(1), 20)
    sizes = [Size(80, 32)] * 20
    assert lay_out(sizes, links) == lay_out(sizes, links)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def classes(svg: str) -> list[str]:
    groups = [element.get("class", "") for element in ElementTree.fromstring(svg).iter(f"{SVG}g")]
    return [name for name in groups if name]


def test_a_drawing_names_states_actions_and_outcomes() -> None:
    svg = draw_policy(check_policy(COINS, ONE_COIN, FLIPPING).graph, "one: 2 decisions")
    drawn = texts(svg)
    assert drawn[0] == "one: 2 decisions"
    assert drawn[1].startswith("3 states")
    assert {"flip(penny)", "win(penny)", "goal", "heads(penny)", "tails(penny)"} <= set(drawn)
    assert classes(svg) == ["forth", "forth", "start", "back", "state", "goal"]
    titles = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert "win(penny)\n+ heads(penny)\n− tails(penny)" in titles
    assert "flip(penny)\nas at first" in titles
    assert "prefers-color-scheme: dark" in svg


def test_where_the_policy_stops_is_marked() -> None:
    svg = draw_policy(check_policy(COINS, ONE_COIN, PUSHING).graph, "pushing")
    assert "stuck" in classes(svg)
    assert "no action" in texts(svg)
    assert "stuck" not in classes(draw_policy(check_policy(COINS, ONE_COIN, WAITING).graph, "waiting"))


def chain(length: int) -> PolicyGraph:
    """An action after the other, each of which may also lead back to the start."""
    states = tuple(frozenset({Atom("at", (str(i),))}) for i in range(length))
    nodes = [Node(False, Action("go", (str(i),)), (i + 1, 0) if i else (1,)) for i in range(length - 1)]
    return PolicyGraph(states, (*nodes, Node(True)), tuple(range(-1, length - 1)), complete=True)


def test_a_large_graph_is_cut_and_says_so() -> None:
    svg = draw_policy(chain(300), "long", most_states=10)
    drawn = texts(svg)
    assert drawn[1] == "the first 10 of 300 states"
    assert drawn.count("…") == 1
    assert "go(9)" in drawn
    assert "go(10)" not in drawn
    assert classes(svg).count("back") == 9


def test_names_cannot_break_a_drawing() -> None:
    wild = Action("<b>&", ('"', "]]>"))
    graph = PolicyGraph((frozenset(), frozenset()), (Node(False, wild, (1,)), Node(True)), (-1, 0), complete=True)
    assert str(wild) in texts(draw_policy(graph, "<&>"))
    assert r'label="0 <b>&(\", ]]>)"' in policy_dot(graph, 'a "b"')


def test_dot_has_every_state_and_outcome() -> None:
    dot = policy_dot(check_policy(COINS, ONE_COIN, FLIPPING).graph, "one")
    assert dot.startswith('digraph "one" {')
    assert re.findall(r"(\d+) -> (\d+) \[label=\"(.*)\"\]", dot) == [
        ("0", "1", "heads(penny)"),
        ("0", "0", "tails(penny)"),
        ("1", "2", ""),
    ]
    assert '2 [label="2 goal", fillcolor="#dff3e3", tooltip="+ heads(penny)\\n+ rich()\\n− tails(penny)"]' in dot
