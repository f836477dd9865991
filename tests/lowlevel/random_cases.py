"""Random tasks, and what a network is asked in them: specs, domains, scenes, facts and actions of all kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from slow_network import Vector, slow_outputs

from bilevel.lowlevel.encoding import ObjectLink, Samples, Situation, encode_episode, encoding_of
from bilevel.lowlevel.network import GraphNetwork, weights_of
from bilevel.lowlevel.numpy_network import NumpyNetwork, Weights
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, Domain, Facts, Outcome, Parameter, Predicate, Schema
from bilevel.tasks.controls import BoxControls, Controls, DiscreteControls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Angle, LabelOnly, Position, Role, Scalar, Spec

POSITIONS = st.sampled_from([Position(), Position(absolute=True)])
ANGLES = st.sampled_from([Angle(), Angle(symmetry=2), Angle(symmetry=4)])
ANY: st.SearchStrategy[Role] = st.sampled_from([Position(), Scalar(), Angle(3), LabelOnly(), LabelOnly(None)])
ALONG = st.sampled_from([Position(along="x"), Position(along="y", absolute=True), LabelOnly(Position(along="x"))])
CONTROLS: list[Controls] = [BoxControls([-1, 0], [1, 8], [2]), DiscreteControls(3, start=1)]
CONSTANT = "north"  # which is never visible


@dataclass(frozen=True)
class Case:
    """A network of random weights and scales, and a question."""

    domain: Domain
    network: GraphNetwork
    rounds: int
    scene: Scene
    situation: tuple[Facts, Facts, Action]

    @property
    def weights(self) -> Weights:
        return weights_of(self.network)

    @property
    def samples(self) -> Samples:
        """As the network is trained on it: one step."""
        targets = np.zeros((1, self.network.controls.size), np.float32)
        situation: Situation = self.situation
        return encode_episode(self.network.encoding, [self.scene], [situation], targets, 0)

    @torch.no_grad()
    def ask_torch(self) -> Array:
        outputs, _ = self.network.predict(self.network.table(self.samples), torch.tensor([0]))
        answer: Array = outputs[0].numpy()
        return answer

    def ask_slowly(self) -> Vector:
        links = self.network.encoding.links
        return slow_outputs(self.domain, self.rounds, self.weights, self.scene, *self.situation, links)

    def numpy_network(self) -> NumpyNetwork:
        return NumpyNetwork(self.network.encoding, self.network.controls, self.weights, self.rounds)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Agents in two or three dimensions; objects of two types, which share some features, maybe in other roles."""
    agent: dict[str, Role] = {"x": draw(POSITIONS), "y": draw(POSITIONS)}
    agent |= draw(st.dictionaries(st.sampled_from(["yaw", "theta"]), ANGLES))
    agent |= draw(st.dictionaries(st.sampled_from(["z", "grip", "mood"]), ANY))
    objects: dict[str, dict[str, Role]] = {}
    for kind in draw(st.permutations(["cube", "spot"])):
        features: dict[str, Role] = {"x": draw(POSITIONS), "y": draw(POSITIONS)} if draw(st.booleans()) else {}
        features |= draw(st.dictionaries(st.sampled_from(["left", "back"]), ALONG))
        features |= draw(st.dictionaries(st.sampled_from(["yaw", "theta", "roll"]), ANGLES))
        features |= draw(st.dictionaries(st.sampled_from(["mass", "colour"]), st.sampled_from([Scalar(), LabelOnly()])))
        names = draw(st.permutations(list(features)))
        objects[kind] = {name: features[name] for name in names}
    heading = next((name for name in ("yaw", "theta") if name in agent), None)
    sees_from_itself = draw(st.booleans())
    return Spec(agent, objects, ("x", "y", heading) if heading and sees_from_itself else None)


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    def parameters(count: int) -> tuple[Parameter, ...]:
        return tuple(Parameter(f"?{number}") for number in range(count))

    arities = draw(st.lists(st.integers(0, 2), max_size=5))
    predicates = [Predicate(f"p{number}", parameters(arity)) for number, arity in enumerate(arities)]
    nothing = (Outcome(NO_FACTS, NO_FACTS),)
    arities = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    schemas = [Schema(f"a{number}", parameters(arity), NO_FACTS, nothing) for number, arity in enumerate(arities)]
    names = {predicate.name: predicate for predicate in draw(st.permutations(predicates))}
    return Domain("random", names, {schema.name: schema for schema in schemas}, constants={CONSTANT: "spot"})


def random_scene(rng: np.random.Generator, spec: Spec, counts: dict[str, int]) -> Scene:
    def numbers(features: object) -> dict[str, float]:
        return {name: float(rng.uniform(-2, 2)) for name in features}  # type: ignore[attr-defined]

    return Scene(
        spec,
        numbers(spec.agent),
        {
            kind: {f"{kind}{number}": numbers(features) for number in range(counts[kind])}
            for kind, features in spec.objects.items()
        },
    )


def random_situation(rng: np.random.Generator, domain: Domain, scene: Scene) -> tuple[Facts, Facts, Action]:
    names = [*scene.objects, CONSTANT]
    schema = domain.schemas[str(rng.choice(sorted(domain.schemas)))]
    arguments = tuple(str(name) for name in rng.choice(names, len(schema.parameters)))

    def some_facts() -> Facts:
        some = [
            Atom(predicate.name, tuple(str(name) for name in rng.choice(names, len(predicate.parameters))))
            for predicate in domain.predicates.values()
            for _ in range(4)
        ]
        return frozenset(fact for fact in some if rng.random() < 0.5)

    return some_facts(), some_facts(), Action(schema.name, arguments)


@st.composite
def linked(draw: st.DrawFn, domain: Domain) -> list[ObjectLink]:
    """Links by the first of the predicates with two arguments for some actions; for others, to what is nearest."""
    arities = {name: len(predicate.parameters) for name, predicate in domain.predicates.items()}
    binary, unary = ([name for name, arity in arities.items() if arity == count] for count in (2, 1))
    asked = [(name, each.name) for name, schema in domain.schemas.items() for each in schema.parameters]
    some = st.lists(st.sampled_from(unary), max_size=1).map(tuple) if unary else st.just(())
    within, last = st.sampled_from([None, 0.5, 1.5]), dict(asked)  # of each schema the last parameter
    by_facts = [
        ObjectLink(
            action,
            draw(st.sampled_from(["cube", "spot"])),
            predicate,
            parameter,
            where=draw(some),
            within=draw(within),
            first=draw(st.sampled_from([None, 0.3, 2.0])),
            instead=last[action],
        )
        for predicate in binary[:1]
        for action, parameter in asked
        if draw(st.booleans())
    ]
    by_facts = [*{link.action: link for link in by_facts}.values()]
    others = sorted({*last} - {link.action for link in by_facts})
    kinds = st.sampled_from(["cube", "spot"])
    return by_facts + [ObjectLink(action, draw(kinds), within=draw(within)) for action in others if draw(st.booleans())]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    domain, spec = draw(domains()), draw(specs())
    links = draw(linked(domain)) if draw(st.booleans()) else []
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    controls = draw(st.sampled_from(CONTROLS))
    rounds = draw(st.integers(0, 3))
    network = GraphNetwork(encoding_of(domain, spec, links), controls, draw(st.sampled_from([1, 8])), rounds)
    with torch.no_grad():
        for tensor in network.state_dict().values():
            tensor.copy_(torch.from_numpy(rng.normal(0, 0.5, tensor.shape)))
        for scale in map(network.get_buffer, network.scales):
            scale.copy_(torch.from_numpy(rng.uniform(0.2, 5, scale.shape)))
    scene = random_scene(rng, spec, {kind: draw(st.integers(0, 2)) for kind in ("cube", "spot")})
    return Case(domain, network, rounds, scene, random_situation(rng, domain, scene))
