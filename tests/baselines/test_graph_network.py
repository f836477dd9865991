"""The end-to-end networks in torch and without: both are what the definition says, on graphs of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_graph_network import Question, slow_control

from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.graph_architecture import GraphArchitecture
from bilevel.baselines.graph_encoding import ENCODINGS, encoding_with_facts, encoding_without_facts
from bilevel.baselines.graph_samples import GraphSamples, encode_graphs, together
from bilevel.lowlevel.architecture import Weights
from bilevel.symbolic.domain import Atom, Domain, Facts, Parameter, Predicate
from bilevel.tabletop.labelling import Labels, Relations
from bilevel.tabletop.observation import COLUMN, FEATURES, FEATURES_OF, Array, Observation, Slots, numbered, slots
from bilevel.tabletop.tasks import TASKS

SHIPPED = {task.domain_name: task.domain for task in TASKS.values()}
BETWEEN = Predicate("between", (Parameter("?x"), Parameter("?y"), Parameter("?z")))
TAKEN = Predicate("taken")
DOMAINS = {
    **SHIPPED,
    "with three arguments": replace(
        SHIPPED["blocks"], predicates={**SHIPPED["blocks"].predicates, "between": BETWEEN, "taken": TAKEN}
    ),
    "with no relations": replace(SHIPPED["blocks"], predicates={"taken": TAKEN}),
}
METHODS = list(ENCODINGS)


class Told(Labels):
    """Labels that say what they are told to."""

    def __init__(self, known: Slots, state: Facts, goal: Facts) -> None:
        super().__init__(known)
        self.told = state, goal

    def state(self, observation: Observation) -> Facts:
        return self.told[0]

    def goal(self, observation: Observation) -> Facts:
        return self.told[1]

    def relations(self, observation: Observation) -> Relations:
        raise AssertionError

    facts = wishes = relations  # type: ignore[assignment]


def random_question(rng: np.random.Generator, domain: Domain, most: int = 3) -> Question:
    """Some objects of each type, not all of them visible, and some facts about those that are."""
    types = [name for name in domain.types if name in FEATURES_OF]
    known = slots({kind: numbered(kind, most) for kind in types})
    visible = rng.random(len(known)) < rng.choice([0.3, 1.0])
    visible[rng.integers(len(known))] = True
    objects = np.zeros((len(known), len(FEATURES)), np.float32)
    for row in np.flatnonzero(visible):
        for feature in FEATURES_OF[known[row].type]:
            objects[row, COLUMN[feature]] = 0.0 if feature == "serial" else rng.uniform(-1, 1)
    seen: Observation = {
        "agent": rng.uniform(0, 1, 4).astype(np.float32),
        "objects": objects,
        "visible": visible.astype(np.int8),
    }
    names = [known.names[row] for row in np.flatnonzero(visible)]

    def some_facts() -> Facts:
        found = set()
        for predicate in domain.predicates.values():
            for _ in range(rng.integers(0, 4)):
                found.add(Atom(predicate.name, tuple(map(str, rng.choice(names, predicate.arity)))))
        return frozenset(found)

    return Question(domain, known, seen, some_facts(), some_facts())


def random_weights(rng: np.random.Generator, architecture: GraphArchitecture) -> Weights:
    found = {}
    for name, (inputs, outputs) in architecture.layers.items():
        bound = rng.choice([0.3, 1.0]) / inputs**0.5
        found[f"{name}.weight"] = rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
        found[f"{name}.bias"] = rng.uniform(-bound, bound, outputs).astype(np.float32)
    return found


def sample(asked: Question, architecture: GraphArchitecture) -> GraphSamples:
    """As a network is trained on it: one step, at which nothing should be done."""
    situation = asked.state, asked.goal, None
    nothing = np.zeros((1, 4), np.float32)
    return encode_graphs(architecture.encoding, asked.slots, [asked.observation], [situation], nothing, 0)


def ask_torch(asked: list[Question], architecture: GraphArchitecture, weights: list[Weights]) -> Array:
    """(networks, questions, 4), all at once."""
    networks = architecture.networks([], weights)
    table = networks.table(together([sample(question, architecture) for question in asked]))
    index = torch.arange(len(asked)).expand(len(weights), -1)
    with torch.no_grad():
        answers: Array = networks.errors(table, index).numpy()
    return answers


def ask_policy(asked: Question, architecture: GraphArchitecture, weights: Weights) -> Array:
    labels = Told(asked.slots, asked.state, asked.goal)
    return EndToEndPolicy(architecture, weights, labels).act(asked.observation)


def ask_slowly(asked: Question, architecture: GraphArchitecture, weights: Weights) -> Array:
    told = asked if architecture.encoding == encoding_with_facts(asked.domain) else asked.without_facts
    return np.array(slow_control(told, weights, architecture.hidden, architecture.rounds), np.float32)


# The definition


@given(st.sampled_from(list(DOMAINS.values())), st.sampled_from(METHODS), st.integers(0, 2**32), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_both_networks_are_what_the_definition_says(domain: Domain, method: str, seed: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    architecture = GraphArchitecture(ENCODINGS[method](domain), hidden=int(rng.choice([1, 5])), rounds=rounds)
    asked = [random_question(rng, domain) for _ in range(3)]
    weights = [random_weights(rng, architecture) for _ in range(2)]
    in_torch = ask_torch(asked, architecture, weights)
    for number, question in enumerate(asked):
        for net, ours in enumerate(weights):
            slowly = ask_slowly(question, architecture, ours)
            assert in_torch[net, number] == pytest.approx(slowly, abs=1e-4)
            assert ask_policy(question, architecture, ours) == pytest.approx(np.clip(slowly, -1, 1), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())
def test_both_networks_agree_at_full_size(domain: Domain, method: str) -> None:
    rng = np.random.default_rng(0)
    architecture = GraphArchitecture(ENCODINGS[method](domain))
    asked = [random_question(rng, domain, most=12) for _ in range(20)]
    (weights,) = architecture.networks([0]).weights()
    (in_torch,) = ask_torch(asked, architecture, [weights])
    alone = [ask_policy(question, architecture, weights) for question in asked]
    assert np.stack(alone) == pytest.approx(np.clip(in_torch, -1, 1), abs=1e-5)
    assert np.ptp(in_torch, axis=0).min() > 1e-3


def test_gradients_are_those_of_the_definition() -> None:
    """Ties and all: facts of one predicate begin alike."""
    rng = np.random.default_rng(3)
    domain = DOMAINS["with three arguments"]
    architecture = GraphArchitecture(encoding_with_facts(domain), hidden=4)
    asked = [random_question(rng, domain) for _ in range(4)]
    networks = architecture.networks([0]).double()
    table = tuple(
        part.double() if part.is_floating_point() else part
        for part in networks.table(together([sample(question, architecture) for question in asked]))
    )
    direction = torch.from_numpy(rng.normal(size=networks.flat.shape))

    def loss() -> torch.Tensor:
        return networks.errors(table, torch.arange(4)[None]).square().sum()

    (gradient,) = torch.autograd.grad(loss(), networks.flat)
    with torch.no_grad():
        start, small = networks.flat.clone(), 1e-7
        networks.flat.copy_(start + small * direction)
        above = loss()
        networks.flat.copy_(start - small * direction)
        below = loss()
    assert float((gradient * direction).sum()) == pytest.approx(float((above - below) / (2 * small)), rel=1e-4)


# What plays no part


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_objects_plays_no_part(method: str) -> None:
    rng = np.random.default_rng(1)
    for domain in SHIPPED.values():
        architecture = GraphArchitecture(ENCODINGS[method](domain), hidden=16)
        (weights,) = architecture.networks([0]).weights()
        asked = random_question(rng, domain)
        order = rng.permutation(len(asked.slots))
        seen: Observation = {
            "agent": asked.observation["agent"],
            "objects": asked.observation["objects"][order],
            "visible": asked.observation["visible"][order],
        }
        mixed = asked._replace(slots=Slots(asked.slots[row] for row in order), observation=seen)
        ours = ask_policy(asked, architecture, weights)
        assert ask_policy(mixed, architecture, weights) == pytest.approx(ours, abs=1e-5)
        assert ask_torch([mixed], architecture, [weights])[0, 0].clip(-1, 1) == pytest.approx(ours, abs=1e-5)


def test_facts_are_all_the_difference() -> None:
    rng = np.random.default_rng(2)
    domain = DOMAINS["with three arguments"]
    asked = random_question(rng, domain)
    names = [asked.slots.names[row] for row in np.flatnonzero(asked.observation["visible"])]
    further = [
        Atom("taken"),
        Atom("clear", (names[0],)),
        Atom("at", (names[0], names[-1])),
        Atom("between", (names[0],) * 3),
    ]
    for method, changes in (("pure-nn", False), ("pddl-nn", True)):
        architecture = GraphArchitecture(ENCODINGS[method](domain), hidden=16)
        (weights,) = architecture.networks([0]).weights()
        before = ask_policy(asked, architecture, weights)
        for fact in further:
            for other in (asked._replace(state=asked.state ^ {fact}), asked._replace(goal=asked.goal ^ {fact})):
                assert np.array_equal(ask_policy(other, architecture, weights), before) != changes


def test_an_argument_that_is_not_seen_is_left_out() -> None:
    domain = SHIPPED["blocks"]
    asked = random_question(np.random.default_rng(5), domain)
    asked.observation["visible"][0] = 0
    asked = asked._replace(state=frozenset({Atom("at", (asked.slots.names[0], asked.slots.names[-1]))}))
    architecture = GraphArchitecture(encoding_with_facts(domain), hidden=16)
    (weights,) = architecture.networks([0]).weights()
    ours = ask_policy(asked, architecture, weights)
    assert ask_torch([asked], architecture, [weights])[0, 0].clip(-1, 1) == pytest.approx(ours, abs=1e-5)


# A policy that goes on


def test_a_policy_notices_all_that_changes() -> None:
    """It keeps what depends on the scene alone, and must not keep it too long."""
    rng = np.random.default_rng(4)
    domain = SHIPPED["gacha"]
    architecture = GraphArchitecture(encoding_with_facts(domain), hidden=16)
    (weights,) = architecture.networks([0]).weights()
    first = random_question(rng, domain)
    labels = Told(first.slots, first.state, first.goal)
    policy = EndToEndPolicy(architecture, weights, labels)
    for _ in range(20):
        asked = random_question(rng, domain)
        for question in (asked, asked._replace(state=first.state), first, asked._replace(goal=first.goal)):
            labels.told = question.state, question.goal
            ours = policy.act(question.observation)
            assert ours == pytest.approx(ask_policy(question, architecture, weights), abs=1e-6)
            assert (policy.state, policy.goal, policy.action) == (question.state, question.goal, None)
            assert ours.dtype == np.float32


def test_a_network_without_facts_is_smaller() -> None:
    for domain in SHIPPED.values():
        with_facts, without = encoding_with_facts(domain), encoding_without_facts(domain)
        assert GraphArchitecture(without).size < GraphArchitecture(with_facts).size
        assert (without.nullary, without.unary, without.relations, without.arity) == ((), (), (), 0)
