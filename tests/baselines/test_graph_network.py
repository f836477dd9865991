"""The end-to-end networks in torch and without: both are what the definition says, on graphs of any size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_graph_network import SPEC, Question, slow_outputs

from bilevel.baselines.end_to_end import EndToEndPolicy, weight_shapes
from bilevel.baselines.graph_encoding import ENCODINGS, GraphEncoding, GraphSamples, encode_graphs, encoding_with_facts
from bilevel.baselines.graph_network import EndToEndNetwork, Maximum, MaximumAtTargets
from bilevel.lowlevel.network import weights_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts
from bilevel.symbolic.pddl import parse_domain
from bilevel.tasks.controls import BoxControls, Control, Controls, DiscreteControls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import LabelOnly, Position, Scalar, Spec
from bilevel.tasks.task import Labels

FULL = parse_domain("""
(define (domain everything) (:requirements :strips :typing) (:types block tray button)
  (:predicates (busy) (free ?x) (red ?b - block) (on ?b - block ?t - tray) (by ?x ?y) (between ?x ?y ?z))
  (:action wait :parameters (?x) :precondition (free ?x) :effect (not (free ?x))))
""")
NO_RELATIONS = replace(FULL, predicates={"busy": FULL.predicates["busy"]})
DOMAINS = [FULL, NO_RELATIONS]
METHODS = list(ENCODINGS)

BOX = BoxControls([-1.0, 0.0, -3.0], [1.0, 0.5, 3.0], [3])
CONTROLS = [BOX, DiscreteControls(4, start=2)]


class Told(Labels):
    """Labels that say what they are told to."""

    def __init__(self, asked: Question) -> None:
        self.asked = asked
        super().__init__(lambda scene: self.asked.state, lambda scene: self.asked.goal)


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


def policy_of(network: EndToEndNetwork, labels: Labels) -> EndToEndPolicy:
    return EndToEndPolicy(network.encoding, network.controls, weights_of(network), len(network.rounds), labels)


def ask_policy(asked: Question, network: EndToEndNetwork) -> Control:
    return policy_of(network, Told(asked)).act(asked.scene)


def ask_slowly(asked: Question, method: str, weights: Weights, rounds: int) -> Array:
    told = asked if method == "pddl-nn" else asked.without_facts
    hidden = len(weights["embed.global.bias"])
    return np.array(slow_outputs(told, weights, hidden, rounds), np.float32)


# The definition


@given(st.sampled_from(DOMAINS), st.sampled_from(METHODS), st.integers(0, 2**32), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_both_networks_are_what_the_definition_says(domain: Domain, method: str, seed: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    network = made(rng, method, domain, hidden=int(rng.choice([1, 5])), rounds=rounds)
    asked = [random_question(rng, domain) for _ in range(3)]
    in_torch = ask_torch(asked, network)
    for number, question in enumerate(asked):
        slowly = ask_slowly(question, method, weights_of(network), rounds)
        assert in_torch[number] == pytest.approx(slowly, abs=1e-4)
        assert ask_policy(question, network) == pytest.approx(BOX.decode(slowly), abs=4e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("controls", CONTROLS)
@pytest.mark.parametrize("domain", DOMAINS, ids=["all kinds of facts", "no relations"])
def test_both_networks_agree_at_full_size(domain: Domain, controls: Controls, method: str) -> None:
    rng = np.random.default_rng(0)
    network = made(rng, method, domain, controls, hidden=64)
    asked = [random_question(rng, domain, most=12) for _ in range(20)]
    in_torch = ask_torch(asked, network)
    alone = np.stack([ask_policy(question, network) for question in asked])
    assert alone == pytest.approx(np.stack([controls.decode(outputs) for outputs in in_torch]), abs=1e-4)
    assert np.ptp(in_torch, axis=0).min() > 1e-3
    weights = weights_of(network)
    assert {name: array.shape for name, array in weights.items()} == weight_shapes(network.encoding, controls, 64, 2)


def test_gradients_are_those_of_the_definition() -> None:
    """Ties and all: facts of one predicate begin alike."""
    rng = np.random.default_rng(3)
    network = made(rng, "pddl-nn", FULL, hidden=4).double()
    encoded = [
        encode_graphs(network.encoding, [q.scene], [(q.state, q.goal, None)], np.zeros((1, 3), np.float32), 0)
        for q in (random_question(rng, FULL) for _ in range(4))
    ]
    table = tuple(
        part.double() if part.is_floating_point() else part for part in network.table(GraphSamples.concatenate(encoded))
    )
    parameters = list(network.parameters())
    directions = [torch.from_numpy(rng.normal(size=parameter.shape)) for parameter in parameters]

    def loss() -> torch.Tensor:
        return network.loss(*network.predict(table, torch.arange(4)))

    def moved(by: float) -> torch.Tensor:
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter.add_(by * direction)
            return loss()

    gradients = torch.autograd.grad(loss(), parameters)
    slope = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
    small = 1e-7
    above, below = moved(small), moved(-2 * small)
    assert slope == pytest.approx(float((above - below) / (2 * small)), rel=1e-4)


# What plays a part, and what does not


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_objects_plays_no_part(method: str) -> None:
    rng = np.random.default_rng(1)
    network = made(rng, method, FULL)
    asked = random_question(rng, FULL)
    things = {kind: list(asked.scene.of_type(kind))[::-1] for kind in list(SPEC.objects)[::-1]}
    objects = {kind: {t.name: {f: t[f] for f in SPEC.objects[kind]} for t in ts} for kind, ts in things.items()}
    mixed = asked._replace(scene=Scene(SPEC, {f: asked.scene.agent[f] for f in SPEC.agent}, objects))
    assert list(mixed.scene.objects) == list(asked.scene.objects)[::-1]
    assert ask_policy(mixed, network) == pytest.approx(ask_policy(asked, network), abs=1e-5)
    assert ask_torch([mixed], network) == pytest.approx(ask_torch([asked], network), abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_facts_are_told_to_one_method_and_what_is_for_labels_alone_to_the_other(method: str) -> None:
    rng = np.random.default_rng(2)
    network = made(rng, method, FULL)
    asked = random_question(rng, FULL, most=9)
    before = ask_torch([asked], network)
    names = list(asked.scene.objects)
    for fact in (
        Atom("busy"),
        Atom("free", (names[0],)),
        Atom("by", (names[0], names[-1])),
        Atom("between", (names[0],) * 3),
    ):
        for other in (asked._replace(state=asked.state ^ {fact}), asked._replace(goal=asked.goal ^ {fact})):
            assert np.array_equal(ask_torch([other], network), before) == (method == "pure-nn")
    for feature, kind, told in (("red", "block", True), ("end", "tray", True), ("serial", "block", False)):
        scene = asked.scene
        features = scene.features.copy()
        features[scene.roster.rows(kind), SPEC.column[feature]] += 1
        other = asked._replace(scene=Scene.from_arrays(SPEC, scene.values, features, scene.roster))
        changes = not np.array_equal(ask_torch([other], network), before)
        assert changes == (told and method == "pure-nn")


def test_a_policy_notices_all_that_changes() -> None:
    """It keeps what depends on the structure alone, and must not keep it too long."""
    rng = np.random.default_rng(4)
    network = made(rng, "pddl-nn", FULL)
    first = random_question(rng, FULL)
    labels = Told(first)
    policy = policy_of(network, labels)
    for _ in range(10):
        asked = random_question(rng, FULL)
        for question in (asked, asked._replace(state=first.state), first, asked._replace(goal=first.goal)):
            labels.asked = question
            scene = question.scene
            again = Scene.from_arrays(SPEC, scene.values, scene.features, scene.roster)  # its labels are not known yet
            assert policy.act(again) == pytest.approx(ask_policy(question, network), abs=1e-6)
            assert (policy.state, policy.goal, policy.action) == (question.state, question.goal, None)


def encoding_for(**block: object) -> GraphEncoding:
    spec = Spec(agent={"x": Position}, objects={"block": block})  # type: ignore[dict-item]
    return encoding_with_facts(FULL, spec)


def test_scenes_must_show_what_the_network_was_trained_on() -> None:
    known = encoding_for(x=Position, weight=Scalar)
    with_more = encoding_for(red=LabelOnly, x=Position, weight=Scalar).spec
    assert known.for_spec(with_more).features.object_size == known.features.object_size
    for other in (encoding_for(weight=Scalar, x=Position), encoding_for(x=Scalar, weight=Scalar)):
        with pytest.raises(BadInput, match="other features, or in other roles"):
            known.for_spec(other.spec)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 4), targets=st.integers(1, 5))
def test_gradients_of_maxima_are_those_of_torch(seed: int, rows: int, targets: int) -> None:
    """Few different numbers, so that many are equal, and share a gradient.

    None is 0: torch shares that with the zeros that it begins with, even where they do not count.
    """
    rng = np.random.default_rng(seed)
    nodes = torch.tensor(rng.integers(3, size=(rows, 2, 3)), dtype=torch.float64, requires_grad=True)
    messages = torch.tensor(rng.integers(1, 4, size=(6, 2)), dtype=torch.float64, requires_grad=True)
    to = torch.tensor(rng.integers(targets, size=6))
    outgoing = torch.tensor(rng.normal(size=(2, 3))), torch.tensor(rng.normal(size=(targets, 2)))
    nothing = torch.zeros((targets, 2), dtype=torch.float64)
    ours = Maximum.apply(nodes), MaximumAtTargets.apply(messages, to, targets)  # type: ignore[no-untyped-call]
    index = to.unsqueeze(1).expand(-1, 2)
    plain = nodes.amax(dim=0), nothing.scatter_reduce(0, index, messages, "amax", include_self=False)
    for inputs, mine, torchs, given_ in zip((nodes, messages), ours, plain, outgoing, strict=True):
        assert torch.equal(mine, torchs)
        (found,), (expected,) = (torch.autograd.grad(one, inputs, given_) for one in (mine, torchs))
        torch.testing.assert_close(found, expected)
