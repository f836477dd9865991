"""What the network is told: the same of an episode as of its steps, the same of specs that differ in nothing told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import Case, cases, domains, random_scene, random_situation, specs
from slow_network import encode_global, encode_object

from bilevel.lowlevel.encoding import Samples, Situation, encode_episode, encoding_of
from bilevel.symbolic.domain import Action, Atom, BadInput, Domain
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Angle, Features, LabelOnly, Position, Scalar, Spec
from tiny_demonstrations import samples, shown
from tiny_task import DOMAIN, SPEC


@given(domains(), specs(), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_an_episode_is_encoded_as_its_steps_are_one_by_one(domain: Domain, spec: Spec, seed: int) -> None:
    """Whatever appears, disappears and changes in it; steps that nothing explains are left out."""
    rng, encoding = np.random.default_rng(seed), encoding_of(domain, spec)
    scenes = [random_scene(rng, spec, {kind: int(rng.integers(3)) for kind in spec.objects}) for _ in range(4)]
    situations: list[Situation] = [random_situation(rng, domain, seen) for seen in scenes]
    situations[2] = (*situations[2][:2], None)
    targets = rng.normal(size=(4, 2)).astype(np.float32)
    found = encode_episode(encoding, scenes, situations, targets, 7)
    kept = [0, 1, 3]
    assert found.episodes.tolist() == [7] * 3
    assert np.array_equal(found.targets, targets[kept])
    for row, step in enumerate(kept):
        state, goal, action = situations[step]
        assert action is not None
        assert encoding.schemas[found.schemas[row]] == action.name
        assert found.globals[row] == pytest.approx(encode_global(domain, scenes[step], state, goal), abs=1e-4)
        for place in range(encoding.arity if action.arguments else 0):
            position = min(place, len(action.arguments) - 1)
            name = action.arguments[position]
            argument = encode_object(domain, scenes[step], state, goal, action, name, position, ())
            assert found.objects[row, place] == pytest.approx(argument, abs=1e-4)


def test_an_episode_without_steps_or_without_actions_has_no_samples() -> None:
    """Such is one in which a learner does not know what to do at first."""
    encoding = encoding_of(DOMAIN, SPEC)
    empty = encode_episode(encoding, [], [], np.zeros((0, 3), np.float32), number=3)
    scenes = shown()[0].scenes(SPEC)[:-1]
    idle: list[Situation] = [(frozenset(), frozenset(), None)] * len(scenes)
    assert len(empty) == len(encode_episode(encoding, scenes, idle, np.zeros((len(scenes), 3), np.float32), 0)) == 0
    both = Samples.concatenate([samples(), empty])
    for ours, theirs in zip(samples().arrays(), both.arrays(), strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


# Other specs

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")


def widened(scene: Scene) -> Scene:
    """The same scene with more that is for labels alone, before everything else."""
    spec, new = scene.spec, {"new": LabelOnly()}
    objects = {kind: {**new, **features} for kind, features in spec.object_roles.items()}
    other = Spec({**new, **spec.agent_roles}, objects, spec.frame)
    seen = {
        kind: {thing.name: {"new": 1.0, **{f: thing[f] for f in spec.objects[kind]}} for thing in scene.of_type(kind)}
        for kind in other.objects
    }
    return Scene(other, {"new": 1.0, **{name: scene.agent[name] for name in spec.agent}}, seen)


@given(cases())
@settings(max_examples=50, deadline=None)
def test_a_spec_that_differs_in_nothing_told_gives_the_same_controls(case: Case) -> None:
    network, other = case.numpy_network(), replace(case, scene=widened(case.scene))
    first, second, again = (network.control(seen.scene, *seen.situation) for seen in (case, other, case))
    assert np.array_equal(first, second)
    assert np.array_equal(first, again)
    for mine, theirs in zip(case.samples.arrays(), other.samples.arrays(), strict=True):
        assert np.array_equal(mine, theirs)


SOCK: Features = {"x": Position, "yaw": Angle(symmetry=2), "red": LabelOnly}
LINE: Features = {"x": Position(absolute=True), "tight": Scalar}
AGENT: Features = {"x": Position, "grip": Scalar}


@pytest.mark.parametrize(
    "spec",
    [
        Spec(AGENT, {"sock": {**SOCK, "red": Scalar}, "line": LINE}),
        Spec(AGENT, {"sock": SOCK, "line": {**LINE, "tight": LabelOnly}}),
        Spec(AGENT, {"sock": {**SOCK, "yaw": Angle}, "line": LINE}),
        Spec({**AGENT, "grip": LabelOnly}, {"sock": SOCK, "line": LINE}),
        Spec(AGENT, {"sock": SOCK}),
        Spec(AGENT, {"sock": LINE, "line": SOCK}),
    ],
    ids=["more", "less", "another role", "another agent", "no such type", "other types"],
)
def test_a_spec_that_differs_in_what_is_told_is_refused(spec: Spec) -> None:
    with pytest.raises(BadInput, match="the scenes have other features, roles or orders than those"):
        encoding_of(DOMAIN, Spec(AGENT, {"sock": SOCK, "line": LINE})).for_spec(spec)


# Untold parameters


@given(cases(), st.integers(0, 2))
@settings(max_examples=50, deadline=None)
def test_of_untold_parameters_nothing_is_told(case: Case, number: int) -> None:
    """Neither where the argument is nor what is known of it makes a difference."""
    state, goal, action = case.situation
    parameters = [parameter.name for parameter in case.domain.schemas[action.name].parameters]
    if number < len(parameters) > 1:
        encoding = encoding_of(case.domain, replace(case.scene.spec, untold={action.name: (parameters[number],)}))
        arguments = list(action.arguments)
        arguments[number] = "nowhere"
        other = Action(action.name, tuple(arguments))
        more = state | {Atom(name, ("nowhere",)) for name in encoding.unary}
        told = [
            encoding.seen_objects(case.scene, facts, goal, asked) for asked, facts in ((action, state), (other, more))
        ]
        assert all(np.array_equal(mine, theirs) for mine, theirs in zip(*told, strict=True))


@pytest.mark.parametrize("untold", [{"fold": ("?s",)}, {"put": ("?x",)}, {"pick": ("?p",)}])
def test_untold_parameters_must_be_some_and_not_all_of_those_of_the_domain(untold: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(BadInput, match=r"the spec's untold has .* some, and not all, of its parameters"):
        encoding_of(DOMAIN, replace(SPEC, untold=untold))
