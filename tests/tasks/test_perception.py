"""Imperfect perception: what is read from a text, and what becomes of scenes."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.perception import PERFECT, Perception, Sensor, read_perception
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.spec import LabelOnly, Position, Scalar, Spec
from tiny_task import TINY

ON_X = LabelOnly(Position(along="x"))
SPEC = Spec(
    agent={"x": Position, "y": Position, "open": Scalar},
    objects={"cube": {"x": Position, "y": Position, "end": ON_X, "red": LabelOnly}, "word": {"red": LabelOnly}},
)


def scene(agent: float = 0.0, cubes: int = 4) -> Scene:
    cube = {f"cube{i}": {"x": float(i), "y": 2.0, "end": 3.0, "red": float(i)} for i in range(cubes)}
    return Scene(SPEC, {"x": agent, "y": 2.0, "open": 1.0}, {"cube": cube, "word": {"word": {"red": 0.5}}})


def seen(text: str, steps: int = 1, seed: int = 3) -> list[Scene]:
    sensor = Sensor(read_perception(text), SPEC, seed)
    return [sensor.see(scene(agent=float(step))) for step in range(steps)]


def test_a_text_says_what_is_wrong_and_is_given_back() -> None:
    text = "noise=0.01,missed=0.05,occluded=0.04,delay=3"
    assert read_perception(text) == Perception(noise=0.01, missed=0.05, occluded=0.04, delay=3)
    assert str(read_perception(text)) == text
    assert read_perception("") == PERFECT
    assert str(PERFECT) == ""


@pytest.mark.parametrize(
    "text", ["noisy=1", "noise", "noise=a", "noise=-1", "noise=inf", "noise=nan", "missed=2", "delay=1.5", "every=0"]
)
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match=f"perception '{text}': .*noise, bias") as error:
        read_perception(text)
    assert "\n" not in str(error.value)


def test_noise_moves_the_coordinates_of_objects_and_nothing_else() -> None:
    scenes = seen("noise=0.1", 500)
    off = np.stack([found.features - scene().features for found in scenes])
    cubes = slice(0, 4)
    assert np.allclose(off[:, cubes, :3].std(axis=0), 0.1, atol=0.02)
    assert not off[:, :, 3].any()
    assert not off[:, 4].any()
    assert [found.agent.x for found in scenes[:3]] == [0, 1, 2]


def test_a_bias_is_the_same_for_all_objects_through_an_episode_and_has_its_length() -> None:
    first, *others = (found.features - scene().features for found in seen("bias=0.1", 5))
    assert np.linalg.norm(first[0, :2]) == pytest.approx(0.1, rel=1e-5)
    assert first[0, 2] == pytest.approx(first[0, 0], abs=1e-6)
    assert np.allclose(first[:4], first[0])
    assert all(np.allclose(other, first) for other in others)
    assert not np.allclose(seen("bias=0.1", seed=4)[0].features, seen("bias=0.1")[0].features)


def test_what_is_somewhere_may_be_missed() -> None:
    scenes = seen("missed=0.25", 400)
    times = {name: sum(name in found for found in scenes) for name in scene().objects}
    assert times.pop("word") == 400
    assert all(260 < time < 340 for time in times.values())
    found = next(found for found in scenes if "cube0" not in found and "cube1" in found)
    assert found["cube1"].red == 1


def test_what_is_near_the_agent_is_hidden() -> None:
    assert [sorted({*scene().objects} - {*found.objects}) for found in seen("occluded=0.5", 3)] == [
        ["cube0"],
        ["cube1"],
        ["cube2"],
    ]


def test_the_same_seed_sees_the_same_and_the_environment_does_not_notice() -> None:
    text = "noise=0.01,missed=0.2"
    envs = [SceneEnv(TINY, 3, perception=read_perception(which)) for which in (text, text, "")]
    for env in envs:
        env.reset(5)
        for _ in range(20):
            env.step(np.array([0.05, 0.02, 1], np.float32))
    assert envs[0].scene == envs[1].scene != envs[0].true_scene
    assert envs[0].true_scene == envs[2].scene
    assert envs[2].scene is envs[2].true_scene


def test_success_is_judged_on_the_true_scene() -> None:
    env = SceneEnv(TINY, 2, perception=read_perception("missed=1"))
    env.reset(5)
    assert not env.scene.objects  # so that no goal would be left
    assert not env.is_done_already
    env.step(np.zeros(3, np.float32))
    assert env.outcome is None
