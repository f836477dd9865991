"""The end-to-end networks are what the definition says, on graphs of any size, and as large as BISON's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_graph_network import SPEC, Question, slow_outputs

from bilevel.lowlevel.encoding import encoding_of
from bilevel.lowlevel.network import GraphNetwork, Table, weights_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.lowlevel.training import Augmentation, images
from bilevel.methods.end_to_end import (
    ENCODINGS,
    EndToEndNetwork,
    EndToEndPolicy,
    GraphSamples,
    encode_graphs,
    matching_hidden,
)
from bilevel.symbolic.domain import Atom, Domain, Facts
from bilevel.symbolic.pddl import parse_domain
from bilevel.tabletop import TASKS
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Features, LabelOnly, Mirror, Position, Scalar, Spec, Transpose
from bilevel.tasks.task import Labels, Task
from tiny_task import TINY

FULL = parse_domain("""
(define (domain everything) (:requirements :strips :typing) (:types block tray button)
  (:predicates (busy) (free ?x) (red ?b - block) (on ?b - block ?t - tray) (by ?x ?y) (between ?x ?y ?z))
  (:action wait :parameters (?x) :precondition (free ?x) :effect (not (free ?x))))
""")
NO_RELATIONS = replace(FULL, predicates={"busy": FULL.predicates["busy"]})
DOMAINS = [FULL, NO_RELATIONS]
METHODS = list(ENCODINGS)

BOX = BoxControls([-1.0, 0.0, -3.0], [1.0, 0.5, 3.0], [3])


def random_question(rng: np.random.Generator, domain: Domain, most: int = 3) -> Question:
    """Some objects of each type, and some facts about them, a few also about what is not seen."""

    def features(names: Iterable[str]) -> dict[str, float]:
        return {name: float(rng.uniform(-1, 1)) for name in names}

    seen = {kind: [f"{kind}{n}" for n in rng.permutation(rng.integers(most + 1))] for kind in SPEC.objects}
    objects = {kind: {name: features(SPEC.objects[kind]) for name in names} for kind, names in seen.items()}
    names = [*(name for members in seen.values() for name in members), "ghost"]

    def some_facts() -> Facts:
        found = set()
        for predicate in domain.predicates.values():
            for _ in range(rng.integers(0, 4)):
                found.add(Atom(predicate.name, tuple(map(str, rng.choice(names, len(predicate.parameters))))))
        return frozenset(found)

    return Question(domain, Scene(SPEC, features(SPEC.agent), objects), some_facts(), some_facts())


def made(
    rng: np.random.Generator, method: str, domain: Domain, controls: Controls = BOX, hidden: int = 16, rounds: int = 2
) -> EndToEndNetwork:
    """A network with random weights, some of them large, and random scales."""
    network = EndToEndNetwork(ENCODINGS[method](domain, SPEC), controls, hidden, rounds)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            bound = rng.choice([0.3, 1.0]) / (tensor.shape[-1] or 1) ** 0.5
            least = 0.5 if name.endswith("_scale") else -bound
            tensor.copy_(torch.from_numpy(rng.uniform(least, max(bound, least + 1e-3), tensor.shape)))
    return network


def ask_torch(asked: list[Question], network: EndToEndNetwork) -> Array:
    """(questions, outputs), all at once."""
    nothing = np.zeros((1, network.controls.size), np.float32)
    samples = GraphSamples.concatenate(
        [
            encode_graphs(network.encoding, [question.scene], [(question.state, question.goal, None)], nothing, 0)
            for question in asked
        ]
    )
    with torch.no_grad():
        outputs, _ = network.predict(network.table(samples), torch.arange(len(asked)))
    answers: Array = outputs.numpy()
    return answers


def known(facts: Facts, scene: Scene) -> Facts:
    return facts


def ask_slowly(asked: Question, method: str, weights: Weights, rounds: int) -> Array:
    told = asked if method == "pddl-nn" else asked.without_facts
    hidden = len(weights["embed.global.bias"])
    return np.array(slow_outputs(told, weights, hidden, rounds), np.float32)


# The definition


@given(st.sampled_from(DOMAINS), st.sampled_from(METHODS), st.integers(0, 2**32), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_the_network_is_what_the_definition_says(domain: Domain, method: str, seed: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    network = made(rng, method, domain, hidden=int(rng.choice([1, 5])), rounds=rounds)
    asked = [random_question(rng, domain) for _ in range(3)]
    in_torch = ask_torch(asked, network)
    for number, question in enumerate(asked):
        slowly = ask_slowly(question, method, weights_of(network), rounds)
        assert in_torch[number] == pytest.approx(slowly, abs=1e-4)
        policy = EndToEndPolicy(network, Labels(partial(known, question.state), partial(known, question.goal)))
        assert policy.act(question.scene) == pytest.approx(BOX.decode(slowly), abs=4e-4)
        assert (policy.state, policy.goal, policy.action) == (question.state, question.goal, None)


# What plays a part, and what does not


@pytest.mark.parametrize("task", [*TASKS.values(), TINY], ids=lambda task: task.name)
@pytest.mark.parametrize("method", METHODS)
def test_end_to_end_networks_are_as_large_as_bisons(method: str, task: Task) -> None:
    like, encoding = encoding_of(task.domain, task.spec), ENCODINGS[method](task.domain, task.spec)
    width = matching_hidden(encoding, like, BOX, 64, 2)
    sizes = [parameters(EndToEndNetwork(encoding, BOX, each, 2)) for each in (width - 1, width, width + 1)]
    wanted = parameters(GraphNetwork(like, BOX, 64, 2))
    assert sizes[1] == pytest.approx(wanted, rel=0.05)
    assert min(sizes, key=lambda size: abs(size - wanted)) == sizes[1]


def parameters(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


# Mirrored samples: the images of a sample are what encoding the image of its scene gives

MIRROR, TRANSPOSE = Mirror(("x",), (0,)), Transpose(("x", "y"), (0, 1))
PLACE: Features = {"x": Position, "y": Position}
SYMMETRIC = Spec(
    {**PLACE, "closed": Scalar},
    {"parcel": PLACE, "spot": {**PLACE, "end": LabelOnly(Position(along="x"))}},
    symmetries=(MIRROR, TRANSPOSE),
)
SQUARE = BoxControls([-1.0] * 3, [1.0] * 3, [3])


def drawn(mirrored: bool = False, swapped: bool = False) -> tuple[Scene, Array]:
    """A random scene and control, or their image."""
    rng, sign = np.random.default_rng(1), -1 if mirrored else 1

    def place() -> dict[str, float]:
        x, y = rng.normal(size=2).tolist()
        return {"x": y, "y": x} if swapped else {"x": sign * x, "y": y}

    agent = {**place(), "closed": 1.0}
    seen = {"parcel": {"p": place(), "q": place()}, "spot": {"s": {**place(), "end": sign * 0.7}}}
    control = np.array([sign * 0.3, 0.2, 0.1], np.float32)
    return Scene(SYMMETRIC, agent, seen), control[[1, 0, 2]] if swapped else control


def table_of(network: EndToEndNetwork, scene: Scene, control: Array, times: int = 1) -> Table:
    state = frozenset({Atom("at", ("p", "s"))})
    situations = [(state, state, None)] * times
    return network.table(encode_graphs(network.encoding, [scene] * times, situations, np.stack([control] * times), 0))


@pytest.mark.parametrize(
    ("method", "change"),
    [("pddl-nn", {"mirrored": True}), ("pddl-nn", {"swapped": True}), ("pure-nn", {"mirrored": True})],
)
def test_an_image_is_what_encoding_the_image_of_a_scene_gives(method: str, change: dict[str, bool]) -> None:
    network = EndToEndNetwork(ENCODINGS[method](TINY.domain, SYMMETRIC), SQUARE, hidden=4)
    with torch.no_grad():  # scales of their own
        network.agent_scale += torch.arange(len(network.agent_scale))
        network.object_scale += torch.arange(len(network.object_scale))
    table = table_of(network, *drawn(), times=200)
    columns = network.columns(table)
    _, image = images([TRANSPOSE if "swapped" in change else MIRROR], columns)
    row = table[0].numpy()[0].copy()
    expected = table_of(network, *drawn(**change))[0].numpy()[0]
    assert image @ row == pytest.approx(expected, rel=1e-4)
    assert not np.array_equal(row, expected)
    Augmentation(columns, network.symmetries, table[0], 0).write(0, 0)
    assert len(np.unique(table[0].numpy(), axis=0)) == (8 if method == "pddl-nn" else 2)
