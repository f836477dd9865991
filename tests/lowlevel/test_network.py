"""The network in torch and without: both are what the definition says, on the domains of all tasks and on others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_network import slow_control

from bilevel.lowlevel.architecture import Architecture, Weights
from bilevel.lowlevel.encoding import encoding_of
from bilevel.lowlevel.gnn_policy import GnnPolicy
from bilevel.lowlevel.network import Network
from bilevel.lowlevel.samples import Samples, encode_episode
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, Domain, Facts, Outcome, Schema
from bilevel.tabletop.observation import FEATURES, FEATURES_OF, Array, Observation, numbered, slots
from bilevel.tabletop.tasks import TASKS, Task

SLOTS = slots({kind: numbered(kind, 2) for kind in FEATURES_OF})  # of every type, whatever a domain makes of them
SHIPPED = {task.domain_name: task.domain for task in TASKS.values()}
WAIT = Schema("wait", (), NO_FACTS, (Outcome(NO_FACTS, NO_FACTS),))
DOMAINS = {
    **SHIPPED,
    "with an action without arguments": replace(SHIPPED["blocks"], schemas={**SHIPPED["blocks"].schemas, "wait": WAIT}),
    "with no other action": replace(SHIPPED["blocks"], schemas={"wait": WAIT}),
}


@dataclass(frozen=True)
class Case:
    """What a network is asked, and its shape."""

    domain: Domain
    architecture: Architecture
    observation: Observation
    state: Facts
    goal: Facts
    action: Action

    @property
    def samples(self) -> Samples:
        """As a network is trained on it: one step."""
        situation = (self.state, self.goal, self.action)
        controls = np.zeros((1, 4), np.float32)
        return encode_episode(self.architecture.encoding, SLOTS, [self.observation], [situation], controls, 0)

    def ask_policy(self, weights: Weights) -> Array:
        policy = GnnPolicy(self.architecture, weights, SLOTS)
        return policy.control(self.observation, self.state, self.goal, self.action)

    def ask_slowly(self, weights: Weights) -> list[float]:
        return slow_control(
            self.domain, self.architecture, weights, SLOTS, self.observation, self.state, self.goal, self.action
        )


def ask_torch(network: Network, cases: list[Case]) -> Array:
    """(networks, 4): what each network answers to its own case."""
    schemas = len(network.architecture.encoding.schemas)
    samples = [case.samples for case in cases]
    action = np.stack([np.eye(schemas, dtype=np.float32)[s.schemas] for s in samples])
    inputs = np.stack([s.globals for s in samples]), action, np.stack([s.objects for s in samples])
    with torch.no_grad():
        answers: Array = network(*map(torch.from_numpy, inputs))[:, 0].numpy()
    return answers


def random_case(rng: np.random.Generator, domain: Domain, architecture: Architecture) -> Case:
    objects = rng.uniform(-1, 1, (len(SLOTS), len(FEATURES))).astype(np.float32)
    agent = rng.uniform(0, 1, 4).astype(np.float32)
    schema = domain.schemas[rng.choice(sorted(domain.schemas))]
    arguments = tuple(map(str, rng.choice(SLOTS.names, len(schema.parameters), replace=False)))

    def some_facts() -> Facts:
        possible = [Atom(p.name) for p in domain.predicates.values() if p.arity == 0]
        possible += [Atom(p.name, (name,)) for p in domain.predicates.values() if p.arity == 1 for name in SLOTS.names]
        return frozenset(atom for atom in possible if rng.random() < 0.5)

    seen: Observation = {"agent": agent, "objects": objects, "visible": np.ones(len(SLOTS), np.int8)}
    return Case(domain, architecture, seen, some_facts(), some_facts(), Action(schema.name, arguments))


@st.composite
def cases(draw: st.DrawFn, count: int = 1) -> tuple[list[Case], list[Weights]]:
    """Questions to networks of one shape, and a network for each."""
    domain = draw(st.sampled_from(list(DOMAINS.values())))
    architecture = Architecture(encoding_of(domain), draw(st.sampled_from([1, 8])), draw(st.integers(0, 3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([0.3, 1.0]))
    weights = [random_weights(rng, architecture, scale) for _ in range(count)]
    return [random_case(rng, domain, architecture) for _ in range(count)], weights


def random_weights(rng: np.random.Generator, architecture: Architecture, scale: float) -> Weights:
    """As a network begins, but for the scale."""
    found = {}
    for name, (inputs, outputs) in architecture.layers.items():
        bound = scale / inputs**0.5
        found[f"{name}.weight"] = rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
        found[f"{name}.bias"] = rng.uniform(-bound, bound, outputs).astype(np.float32)
    return found


# The definition


@given(cases())
@settings(max_examples=150, deadline=None)
def test_both_networks_are_what_the_definition_says(asked: tuple[list[Case], list[Weights]]) -> None:
    (case,), (weights,) = asked
    slowly = np.array(case.ask_slowly(weights))
    (in_torch,) = ask_torch(Network(case.architecture, [0], [weights]), [case])
    assert in_torch == pytest.approx(slowly, abs=1e-5)
    assert case.ask_policy(weights) == pytest.approx(np.clip(slowly, -1, 1), abs=1e-5)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())
def test_both_networks_agree_at_full_size_on_every_action(domain: Domain) -> None:
    architecture = Architecture(encoding_of(domain))
    rng = np.random.default_rng(0)
    asked = [random_case(rng, domain, architecture) for _ in range(60)]
    assert {case.action.name for case in asked} == set(domain.schemas)
    network = Network(architecture, range(60))
    in_torch = np.clip(ask_torch(network, asked), -1, 1)
    in_numpy = [case.ask_policy(weights) for case, weights in zip(asked, network.weights(), strict=True)]
    assert in_torch == pytest.approx(np.stack(in_numpy), abs=1e-5)


@given(cases(count=3))
@settings(max_examples=40, deadline=None)
def test_networks_side_by_side_answer_as_each_alone(asked: tuple[list[Case], list[Weights]]) -> None:
    questions, weights = asked
    shape = questions[0].architecture
    alone = [ask_torch(Network(shape, [0], [w]), [case])[0] for case, w in zip(questions, weights, strict=True)]
    assert ask_torch(Network(shape, [0] * 3, weights), questions) == pytest.approx(np.stack(alone), abs=1e-6)


@given(cases(count=2))
@settings(max_examples=60, deadline=None)
def test_a_policy_remembers_nothing_that_no_longer_holds(asked: tuple[list[Case], list[Weights]]) -> None:
    """It keeps what the symbols contribute, but only as long as they last."""
    (first, second), (weights, _) = asked
    variants = [first, second, replace(second, state=first.state), replace(second, goal=first.goal), first]
    moved: Observation = {**first.observation, "agent": first.observation["agent"] + np.float32(0.1)}
    variants += [replace(first, observation=moved)]
    policy = GnnPolicy(first.architecture, weights, SLOTS)
    for case in variants:
        answer = policy.control(case.observation, case.state, case.goal, case.action)
        assert np.array_equal(answer, case.ask_policy(weights))


@given(cases())
@settings(max_examples=40, deadline=None)
def test_rows_that_only_fill_up_change_nothing(asked: tuple[list[Case], list[Weights]]) -> None:
    (case,), (weights,) = asked
    network, samples = Network(case.architecture, [0], [weights]), case.samples
    one_hot = torch.eye(len(case.architecture.encoding.schemas))[samples.schemas][None]
    with torch.no_grad():
        padded, unpadded = (
            network(torch.from_numpy(samples.globals)[None], one_hot, torch.from_numpy(samples.objects[:, :rows])[None])
            for rows in (case.architecture.encoding.arity, max(1, len(case.action.arguments)))
        )
    assert padded.numpy() == pytest.approx(unpadded.numpy(), abs=1e-6)


@given(cases(), st.floats(5, 1000))
@settings(max_examples=40, deadline=None)
def test_controls_are_clipped(asked: tuple[list[Case], list[Weights]], factor: float) -> None:
    (case,), (weights,) = asked
    wild = {name: array * np.float32(factor) if name == "readout.1.bias" else array for name, array in weights.items()}
    control = case.ask_policy(wild)
    assert control.shape == (4,)
    assert control.dtype == np.float32
    assert np.abs(control).max() <= 1
    assert control == pytest.approx(np.clip(case.ask_slowly(wild), -1, 1), abs=1e-4)


# Parameters


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())
def test_there_are_fewer_than_33_000_parameters(task: Task) -> None:
    architecture = Architecture(encoding_of(task.domain))
    network = Network(architecture, [0])
    assert architecture.size == network.flat.numel() == sum(array.size for array in network.weights()[0].values())
    assert architecture.size < 33_000


def test_weights_go_in_and_out_unchanged() -> None:
    architecture = Architecture(encoding_of(DOMAINS["colour"]), hidden=5)
    first, second = Network(architecture, [3, 4]).weights()
    again = Network(architecture, [0, 0], [second, first]).weights()
    for name, (inputs, outputs) in architecture.layers.items():
        assert first[f"{name}.weight"].shape == (inputs, outputs)
        assert first[f"{name}.bias"].shape == (outputs,)
        for part in ("weight", "bias"):
            assert np.array_equal(again[1][f"{name}.{part}"], first[f"{name}.{part}"])
            assert not np.array_equal(again[0][f"{name}.{part}"], first[f"{name}.{part}"])


def test_a_network_begins_as_its_seed_says_whatever_its_neighbours_are() -> None:
    architecture = Architecture(encoding_of(DOMAINS["blocks"]))
    (alone,) = Network(architecture, [7]).weights()
    _, beside = Network(architecture, [6, 7]).weights()
    assert all(np.array_equal(alone[name], beside[name]) for name in alone)
    for name, (inputs, _) in architecture.layers.items():
        assert 0.9 / inputs**0.5 < np.abs(alone[f"{name}.weight"]).max() <= 1 / inputs**0.5


def test_weights_that_were_handed_out_stay_as_they_are() -> None:
    network = Network(Architecture(encoding_of(DOMAINS["blocks"]), hidden=2), [0])
    (weights,) = network.weights()
    before = weights["readout.0.weight"].copy()
    with torch.no_grad():
        network.flat.zero_()
    assert np.array_equal(weights["readout.0.weight"], before)
