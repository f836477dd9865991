"""Relevance: arguments that play no part in how an action is done are found, and the others stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilevel.learning.learn import label_demonstrations
from bilevel.lowlevel.encoding import ObjectLink, encoding_of
from bilevel.lowlevel.network import GraphNetwork
from bilevel.lowlevel.numpy_network import NumpyNetwork
from bilevel.lowlevel.relevance import Recorded, encode_all, relevant_encoding, without
from bilevel.lowlevel.training import TrainingConfig, train
from bilevel.symbolic.domain import Action, Atom
from bilevel.symbolic.pddl import parse_domain
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Position, Spec
from tiny_demonstrations import shown
from tiny_task import DOMAIN, SPEC, TINY

CONTROLS = BoxControls([-1.0] * 2, [1.0] * 2, [2])
PLACED = Spec({"x": Position, "y": Position}, {kind: {"x": Position, "y": Position} for kind in ("parcel", "spot")})
PUT = Action("put", ("parcel1", "spot1"))


def episodes_of(used: list[str], together: bool = False) -> list[Recorded]:
    """Random walks of a parcel and a spot, and controls that are a smooth function of where some of them are."""
    rng, found = np.random.default_rng(0), list[Recorded]()
    for _ in range(20):
        starts = {"parcel": rng.normal(size=2), "spot": rng.normal(size=2)}
        scenes, targets = [], []
        for _ in range(12):
            seen = {kind: start + 0.2 * rng.normal(size=2) for kind, start in starts.items()}
            if together:
                seen["spot"] = seen["parcel"] + 0.01 * rng.normal(size=2)
            things = {kind: {f"{kind}1": {"x": where[0], "y": where[1]}} for kind, where in seen.items()}
            scenes.append(Scene(PLACED, {"x": 0.0, "y": 0.0}, things))
            targets.append(np.tanh(2 * sum(seen[kind] for kind in used)))
        situations = [(frozenset[Atom](), frozenset[Atom](), PUT)] * len(scenes)
        found.append((scenes, situations, np.array(targets, np.float32)))
    return found


def left_out(episodes: list[Recorded]) -> set[str]:
    encoding = relevant_encoding(encoding_of(DOMAIN, PLACED), CONTROLS, lambda: episodes, with_links=False)
    return {*encoding.spec.untold.get("put", ())}


@pytest.mark.parametrize(
    ("used", "irrelevant"), [(["parcel"], {"?s"}), (["spot"], {"?p"}), (["parcel", "spot"], set())]
)
def test_what_plays_no_part_is_found(used: list[str], irrelevant: set[str]) -> None:
    assert left_out(episodes_of(used)) == irrelevant


def test_of_two_that_go_together_both_stay() -> None:
    """As a block and the box that it lies in: the demonstrations do not say which of them matters."""
    assert left_out(episodes_of(["parcel"], together=True)) == set()


def test_an_encoding_without_an_argument_is_that_of_a_spec_without_it() -> None:
    spec = replace(SPEC, untold={"put": ("?p",)})
    theirs = label_demonstrations(replace(shown(), spec=spec), TINY).encoding
    assert without(encoding_of(DOMAIN, SPEC), {"put": ["?p"]}).untold == theirs.untold == spec.untold


# Other objects

ROWS = Spec({"x": Position}, {"block": {"x": Position}, "row": {"x": Position}})
ROW_DOMAIN = parse_domain("""(define (domain rows) (:types block row)
  (:predicates (held ?b - block) (stands ?b - block) (in ?b - block ?r - row))
  (:action put :parameters (?b - block ?r - row) :precondition (held ?b)
    :effect (and (in ?b ?r) (stands ?b) (not (held ?b)))))""")
PUT_IN_ROW = Action("put", ("held", "row"))
ONE = BoxControls([-1.0], [1.0], [1])


def row_scene(
    rng: np.random.Generator, blocks: int, lost: bool, taken: int = 0
) -> tuple[Scene, frozenset[Atom], float]:
    """A row that fills up from its left end, and where the hand has to go; one more block may lie far away.

    Where the first blocks have been taken away, there is room at the left end.
    """
    start, hand = rng.uniform(-1, 1, 2)
    standing = {f"block{number}": start + 0.1 * number for number in range(taken, blocks)}
    others = {**standing, "lost": start + 5} if lost else standing
    things = {name: {"x": x} for name, x in {**others, "held": hand}.items()}
    state = {Atom("held", ("held",)), *(Atom("in", (name, "row")) for name in others)}
    scene = Scene(ROWS, {"x": hand}, {"block": things, "row": {"row": {"x": start}}})
    state |= {Atom("stands", (name,)) for name in others}
    return scene, frozenset(state), float(np.tanh(start + (0 if taken else 0.1 * blocks) - hand))


def row_episodes() -> list[Recorded]:
    rng, episodes = np.random.default_rng(0), list[Recorded]()
    for _ in range(200):
        steps = [row_scene(rng, int(rng.integers(3)), rng.random() < 0.01) for _ in range(4)]
        steps.append(row_scene(rng, 2, lost=False, taken=1))
        situations = [(state, frozenset[Atom](), PUT_IN_ROW) for _, state, _ in steps]
        targets = np.array([[target] for *_, target in steps], np.float32)
        episodes.append(([scene for scene, *_ in steps], situations, targets))
    return episodes


def test_what_is_in_the_way_is_seen_and_however_much_of_it_there_is() -> None:
    episodes = row_episodes()
    encoding = relevant_encoding(encoding_of(ROW_DOMAIN, ROWS), ONE, lambda: episodes)
    (link,) = encoding.links
    assert (link.action, link.of, link.sharing, link.argument, link.instead) == ("put", "block", "in", "?r", "?r")
    assert link.where == ("stands",)
    assert link.within is not None
    assert 0.1 <= link.within < 1
    config = TrainingConfig(epochs=4, updates=2000, learning_rate=3e-3)
    trained = train(encode_all(encoding, episodes), lambda: GraphNetwork(encoding, ONE), 0, config)
    network, rng = NumpyNetwork(encoding, ONE, trained.weights, 2), np.random.default_rng(1)
    for blocks, taken in ((0, 0), (2, 0), (9, 0), (2, 1), (9, 2)):
        errors = []
        for _ in range(20):
            scene, state, target = row_scene(rng, blocks, lost=True, taken=taken)
            errors.append(abs(float(network.control(scene, state, frozenset(), PUT_IN_ROW)[0]) - target))
            assert network.looks_at == (f"block{blocks - 1}" if blocks and not taken else "")
        assert np.mean(errors) < 0.05


GO = parse_domain(
    "(define (domain go) (:types spot post) (:predicates (at ?s - spot)) (:action go :parameters (?s - spot)"
    " :effect (at ?s)))"
)
AMONG_POSTS = Spec({"x": Position}, {"spot": {"x": Position}, "post": {"x": Position}})


def post_scene(rng: np.random.Generator, posts: int) -> tuple[Scene, float]:
    """The hand is pushed away from the nearest post, however many there are."""
    spot, *where = rng.uniform(-2, 2, 1 + posts)
    nearest = min(where, key=abs)
    things = {"spot": {"spot": {"x": spot}}, "post": {f"post{number}": {"x": x} for number, x in enumerate(where)}}
    return Scene(AMONG_POSTS, {"x": 0.0}, things), float(
        np.tanh(spot) - 2 * np.exp(-4 * abs(nearest)) * np.sign(nearest)
    )


def test_what_is_nearest_is_seen_where_it_explains_what_is_done() -> None:
    rng, episodes = np.random.default_rng(0), list[Recorded]()
    nothing, go = frozenset[Atom](), Action("go", ("spot",))
    for _ in range(60):
        steps = [post_scene(rng, 3) for _ in range(50)]
        targets = np.array([[target] for _, target in steps], np.float32)
        episodes.append(([scene for scene, _ in steps], [(nothing, nothing, go)] * len(steps), targets))
    encoding = relevant_encoding(encoding_of(GO, AMONG_POSTS), ONE, lambda: episodes)
    assert [(link.action, link.of, link.sharing) for link in encoding.links] == [("go", "post", "")]
    config = TrainingConfig(epochs=4, updates=2000, learning_rate=3e-3)
    trained = train(encode_all(encoding, episodes), lambda: GraphNetwork(encoding, ONE), 0, config)
    network = NumpyNetwork(encoding, ONE, trained.weights, 2)
    for posts in (3, 30):
        errors = []
        for _ in range(50):
            scene, target = post_scene(rng, posts)
            errors.append(abs(float(network.control(scene, nothing, nothing, go)[0]) - np.clip(target, -1, 1)))
        assert np.median(errors) < 0.1
        assert network.looks_at.startswith("post")


def test_links_are_told_in_words() -> None:
    link = ObjectLink("put", "block", "in", "?r", where=("stands",), given=("open",), within=0.1, instead="?r")
    assert str(link) == (
        "put sees, instead of its ?r, the last block of the row from there that shares in with its ?r, "
        "where stands holds, given open of that, in steps of at most 0.1"
    )
    assert str(ObjectLink("put", "post", within=0.3)) == "put sees, besides its arguments, the nearest post within 0.3"
