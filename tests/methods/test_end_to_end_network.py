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

from bilevel.lowlevel.network import weights_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.methods.end_to_end import (
    HAS_FACTS,
    EndToEndNetwork,
    EndToEndPolicy,
    GraphEncoding,
    GraphSamples,
    encode_graphs,
)
from bilevel.symbolic.domain import Atom, Domain, Facts
from bilevel.symbolic.pddl import parse_domain
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.task import Labels

FULL = parse_domain("""
(define (domain everything) (:requirements :strips :typing) (:types block tray button)
  (:predicates (busy) (free ?x) (red ?b - block) (on ?b - block ?t - tray) (by ?x ?y) (between ?x ?y ?z))
  (:action wait :parameters (?x) :precondition (free ?x) :effect (not (free ?x))))
""")
NO_RELATIONS = replace(FULL, predicates={"busy": FULL.predicates["busy"]})
DOMAINS = [FULL, NO_RELATIONS]
METHODS = list(HAS_FACTS)

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
    network = EndToEndNetwork(GraphEncoding(method, domain, SPEC), controls, hidden, rounds)
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
