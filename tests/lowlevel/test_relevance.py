"""Relevance: arguments that play no part in how an action is done are found, and the others stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilevel.learning.learn import label_demonstrations
from bilevel.lowlevel.encoding import ObjectLink, Samples, encoding_of
from bilevel.lowlevel.network import GraphNetwork
from bilevel.lowlevel.numpy_network import NumpyNetwork
from bilevel.lowlevel.relevance import Recorded, encode_all, irrelevant_arguments, relevant_encoding, without
from bilevel.lowlevel.training import TrainingConfig, train
from bilevel.symbolic.domain import Action, Atom
from bilevel.symbolic.pddl import parse_domain
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Position, Spec
from tiny_demonstrations import labelled, shown
from tiny_task import DOMAIN, SPEC, TINY

PUT = 1  # the number of the schema (put ?p ?s)
ENCODING = encoding_of(DOMAIN, SPEC)
CONTROLS = BoxControls([-1.0] * 2, [1.0] * 2, [2])


def samples_of(targets_from: list[int], episodes: int = 4, steps: int = 12) -> Samples:
    """Random walks of what is seen, and controls that are a smooth function of some arguments."""
    rng, count = np.random.default_rng(0), episodes * steps
    objects = np.zeros((count, ENCODING.arity, ENCODING.object_size), np.float32)
    starts = rng.normal(size=(episodes, 1, 2, 2))
    seen = (starts + 0.2 * rng.normal(size=(episodes, steps, 2, 2))).reshape(count, 2, 2)
    objects[:, :, :2], objects[:, [0, 1], [-2, -1]] = seen, 1
    targets: Array = np.tanh(2 * seen[:, targets_from].sum(axis=1)).astype(np.float32)
    globals_ = np.zeros((count, ENCODING.global_size), np.float32)
    return Samples(targets, np.repeat(np.arange(episodes), steps), globals_, np.full(count, PUT), objects)


@pytest.mark.parametrize(("used", "left_out"), [([0], {1}), ([1], {0}), ([0, 1], set())])
def test_what_plays_no_part_is_found(used: list[int], left_out: set[int]) -> None:
    found = irrelevant_arguments(samples_of(used, episodes=20), ENCODING, CONTROLS)
    assert found == ({"put": left_out} if left_out else {})


def test_of_two_that_go_together_both_stay() -> None:
    """As a block and the box that it lies in: the demonstrations do not say which of them matters."""
    found = samples_of([0], episodes=20)
    shifts = np.random.default_rng(1).normal(size=(len(found), 2)) * 0.01
    found.objects[:, 1, :2] = found.objects[:, 0, :2] + shifts
    assert irrelevant_arguments(found, ENCODING, CONTROLS) == {}


def test_samples_without_an_argument_are_those_that_are_encoded_without_it() -> None:
    spec = replace(SPEC, untold={"put": ("?p",)})
    theirs = label_demonstrations(replace(shown(), spec=spec), TINY).samples
    found = without(labelled().samples, ENCODING, {"put": frozenset([0])})
    assert all(np.array_equal(first, second) for first, second in zip(found.arrays(), theirs.arrays(), strict=True))


# Other objects

ROWS = Spec({"x": Position}, {"block": {"x": Position}, "row": {"x": Position}})
ROW_DOMAIN = parse_domain("""(define (domain rows) (:types block row)
  (:predicates (held ?b - block) (stands ?b - block) (in ?b - block ?r - row))
  (:action put :parameters (?b - block ?r - row) :precondition (held ?b)
    :effect (and (in ?b ?r) (stands ?b) (not (held ?b)))))""")
PUT_IN_ROW = Action("put", ("held", "row"))
ONE = BoxControls([-1.0], [1.0], [1])


def row_scene(rng: np.random.Generator, blocks: int, lost: bool) -> tuple[Scene, frozenset[Atom], float]:
    """A row that fills up from its left end, and where the hand has to go; one more block may lie far away."""
    start, hand = rng.uniform(-1, 1, 2)
    standing = {f"block{number}": start + 0.1 * number for number in range(blocks)}
    others = {**standing, "lost": start + 5} if lost else standing
    things = {name: {"x": x} for name, x in {**others, "held": hand}.items()}
    state = {Atom("held", ("held",)), *(Atom("in", (name, "row")) for name in others)}
    scene = Scene(ROWS, {"x": hand}, {"block": things, "row": {"row": {"x": start}}})
    state |= {Atom("stands", (name,)) for name in others}
    return scene, frozenset(state), float(np.tanh(start + 0.1 * blocks - hand))


def row_episodes() -> list[Recorded]:
    rng, episodes = np.random.default_rng(0), list[Recorded]()
    for _ in range(200):
        steps = [row_scene(rng, int(rng.integers(3)), rng.random() < 0.02) for _ in range(5)]
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
    for blocks in (0, 2, 9):
        errors = []
        for _ in range(20):
            scene, state, target = row_scene(rng, blocks, lost=True)
            errors.append(abs(float(network.control(scene, state, frozenset(), PUT_IN_ROW)[0]) - target))
            assert network.looks_at == (f"block{blocks - 1}" if blocks else "")
        assert np.mean(errors) < 0.05


def test_a_link_is_told_in_words() -> None:
    link = ObjectLink("put", "block", "in", "?r", where=("stands",), given=("open",), within=0.1, instead="?r")
    assert str(link) == (
        "put sees, instead of its ?r, any block that shares in with its ?r, where stands holds, given open of that, "
        "in steps of at most 0.1"
    )
