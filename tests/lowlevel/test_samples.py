"""Samples: every step that has an action, each encoded as if it were the only one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import domains, random_scene, random_situation, specs
from slow_network import encode_argument, encode_global

from bilevel.lowlevel.encoding import Samples, Situation, encode_episode, encoding_of
from bilevel.symbolic.domain import Action, Domain
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import LabelOnly, Spec
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
            argument = encode_argument(domain, scenes[step], state, goal, name, position)
            assert found.objects[row, place] == pytest.approx(argument, abs=1e-4)


def test_scenes_of_a_spec_with_more_for_labels_give_the_same_samples() -> None:
    """A task may have got such a feature since its demonstrations were recorded; DAgger then sees it, too."""
    objects = {"spot": SPEC.objects["spot"], "parcel": {"colour": LabelOnly, **SPEC.objects["parcel"]}}
    painted = Spec({"mood": LabelOnly, **SPEC.agent}, objects)
    encoding, scenes = encoding_of(DOMAIN, SPEC), shown()[0].scenes(SPEC)[:-1]
    situations: list[Situation] = [(frozenset(), frozenset(), Action("pick", ("parcel1",)))] * len(scenes)
    targets = np.zeros((len(scenes), 3), np.float32)
    ours, theirs = (
        encode_episode(encoding, seen, situations, targets, 0)
        for seen in (scenes, [repainted(scene, painted) for scene in scenes])
    )
    assert all(np.array_equal(one, other) for one, other in zip(ours.arrays(), theirs.arrays(), strict=True))


def repainted(scene: Scene, spec: Spec) -> Scene:
    """The same with ones for what the spec has besides."""
    objects = {
        kind: {
            thing.name: {name: thing[name] if name in SPEC.objects[kind] else 1.0 for name in features}
            for thing in scene.of_type(kind)
        }
        for kind, features in spec.objects.items()
    }
    return Scene(spec, {name: scene.agent[name] if name in SPEC.agent else 1.0 for name in spec.agent}, objects)


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
