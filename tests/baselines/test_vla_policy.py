"""SmolVLA as a policy, with a process that answers and has no model: what goes over, what comes back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endless_worker import FAKE
from model_folders import make_backbone_folder, make_environment, make_policy_folder, note_download, weights
from other_process import as_received

from bilevel.baselines.vla import VlaPolicy, VlaSettings, end_servers, find_vla, require_vla
from bilevel.policies.episode import Episode
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from drawn_task import DRAWN
from tiny_task import TINY_DISCRETE

INSTRUCTION = "Deliver the parcel."
STEPS = 12


@pytest.fixture(autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    end_servers()


@pytest.fixture
def env() -> SceneEnv:
    return SceneEnv(DRAWN, 1, render_mode="rgb_array")


def settings(folder: Path, behaviour: str = "well", **others: Any) -> VlaSettings:
    return VlaSettings(sys.executable, str(folder / behaviour), "none", server=str(FAKE), **others)


def policy(env: SceneEnv, settings: VlaSettings) -> VlaPolicy:
    return VlaPolicy(settings, env, INSTRUCTION)


def run(env: SceneEnv, policy: VlaPolicy, seed: int = 3) -> Episode:
    steps = iter(range(STEPS - 1))
    return rollout(env, policy, seed, stop=lambda: next(steps, None) is None)


def asked(folder: Path, question: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "well.log").read_text().splitlines())
    return [line for line in lines if line["ask"] == question]


def test_what_goes_over(env: SceneEnv, tmp_path: Path) -> None:
    actor = policy(env, settings(tmp_path, device="cpu"))
    assert run(env, actor).steps == STEPS
    (load,) = asked(tmp_path, "load")
    assert load["device"] == "cpu"
    acts = asked(tmp_path, "act")
    assert len(acts) == STEPS
    assert {act["sentence"] for act in acts} == {INSTRUCTION}
    scene = env.reset(3)
    assert acts[0]["state"] == scene.values.tolist()
    assert acts[1]["state"] != acts[0]["state"]
    assert (actor.goal, actor.action) == (env.labels.goal(scene), None)


@pytest.mark.parametrize(("most", "side"), [(30, 30), (480, 100)])
def test_the_middle_of_a_picture_goes_over_when_it_is_wanted(
    env: SceneEnv, tmp_path: Path, most: int, side: int
) -> None:
    run(env, policy(env, settings(tmp_path, side=most)))
    shape = [side, side]
    assert [act.get("image") for act in asked(tmp_path, "act")] == ([shape] + [None] * 4) * 2 + [shape, None]
    assert {act["bytes"] for act in asked(tmp_path, "act") if "image" in act} == {side * side * 3}


def test_an_environment_must_draw_and_take_numbers(tmp_path: Path) -> None:
    blind = SceneEnv(DRAWN, 1)
    with pytest.raises(BadInput, match="the environment of 'drawn' gives no pictures"):
        run(blind, policy(blind, settings(tmp_path)))
    with pytest.raises(BadInput, match="the controls of the task 'tiny-discrete' are a choice"):
        policy(SceneEnv(TINY_DISCRETE, 1), settings(tmp_path))


def test_controls_are_within_bounds(env: SceneEnv, tmp_path: Path) -> None:
    control = policy(env, settings(tmp_path)).act(env.reset(3))
    assert control.tolist() == pytest.approx([0.1, -0.05, 0.7])
    assert env.env.action_space.contains(control)


def test_what_is_random_follows_from_the_episode_alone(env: SceneEnv, tmp_path: Path) -> None:
    actor = policy(env, settings(tmp_path))
    for seed in (3, 4, 3):
        actor.reset(env.reset(seed))
    first, other, again = (reset["seed"] for reset in asked(tmp_path, "reset"))
    assert first == again != other


def test_policies_share_the_process_of_a_model(env: SceneEnv, tmp_path: Path) -> None:
    first, second = (policy(env, settings(tmp_path)) for _ in range(2))
    first.reset(env.reset(3))
    second.reset(env.reset(3))
    assert len(asked(tmp_path, "load")) == 1
    second.act(env.reset(3))
    with pytest.raises(BadInput, match="one episode of a SmolVLA at a time"):
        first.act(env.reset(3))
    first.reset(env.reset(3))
    assert first.act(env.reset(3)).shape == (3,)


def test_a_process_that_died_is_started_anew_for_the_next_episode(env: SceneEnv, tmp_path: Path) -> None:
    actor = policy(env, settings(tmp_path, "dies"))
    for _ in range(2):
        with pytest.raises(BadInput, match="ended: exit code 1: Killed by a lack of memory"):
            run(env, actor)


@pytest.mark.parametrize(
    ("behaviour", "others", "complaint"),
    [
        ("six numbers", {}, "its actions are 6 numbers, but a control of the task 'drawn' is 3"),
        ("two numbers", {}, "its actions are 2 numbers, but a control of the task 'drawn' is 3"),
        ("two numbers", {"cut_actions": True}, "its actions are 2 numbers, but a control of the task 'drawn' is 3"),
        ("not finite", {}, "the model's action is not finite"),
        ("refuses", {}, "the model cannot be run: no GPU: there is none"),
        ("hangs", {"act_seconds": 0.5}, r"has not answered within 0\.5 s"),
        ("well", {"start_seconds": 0.0}, "has not answered within 0 s"),
    ],
)
def test_what_cannot_be_run_is_told(
    env: SceneEnv, tmp_path: Path, behaviour: str, others: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        run(env, policy(env, settings(tmp_path, behaviour, **others)))


def test_longer_actions_are_cut_where_that_is_wanted(env: SceneEnv, tmp_path: Path) -> None:
    actor = policy(env, settings(tmp_path, "six numbers", cut_actions=True))
    assert actor.act(env.reset(3)).tolist() == pytest.approx([0.1, -0.05, 0.7])


# Which models can be run


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One without an environment for LeRobot, and with nothing from the hub."""
    monkeypatch.setenv("BILEVEL_VLA", str(tmp_path / "environment"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_without_the_published_weights_a_method_is_not_run(machine: Path) -> None:
    for method, name in (("smolvla", "lerobot/smolvla_base"), ("smolvla-metaworld", "jadechoghari/smolvla_metaworld")):
        with pytest.raises(BadInput) as found:
            find_vla(method)
        reason = str(found.value)
        assert f"{machine}/environment: no such virtual environment for SmolVLA" in reason
        assert f"{name}: missing config.json, model.safetensors" in reason
        assert reason.endswith(f"; or all of them with: bilevel vla fetch {method}")
        with pytest.raises(BadInput) as error:
            require_vla(method)
        assert str(error.value) == f"the method '{method}' cannot be run: {reason}"
    with pytest.raises(BadInput, match="unknown model 'openvla'; known models: smolvla, smolvla-metaworld"):
        require_vla("openvla")


def test_a_model_of_another_origin_does_not_pass_for_the_published_one(machine: Path) -> None:
    make_environment(machine / "environment")
    make_backbone_folder(make_policy_folder(machine / "policy") / "backbone")
    with pytest.raises(BadInput) as error:
        find_vla("smolvla", machine / "policy")
    assert str(error.value) == (
        f"{machine}/policy/model.safetensors: not as it was downloaded, so perhaps not the published weights of "
        "lerobot/smolvla_base; only those are measured"
    )


def test_with_everything_there_a_method_can_be_run(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_environment(machine / "environment")
    make_backbone_folder(make_policy_folder(machine / "policy") / "backbone")
    note_download(machine / "policy", weights(4, 5))
    monkeypatch.setenv("BILEVEL_VLA_DEVICE", "cuda:1")
    for method, cut in (("smolvla", True), ("smolvla-metaworld", False)):
        ready, wanted = require_vla(method, machine / "policy"), machine / "policy"
        there = as_received(ready).settings
        assert ready.name == str(wanted)
        assert (there.python, there.model) == (str(machine / "environment/bin/python"), str(wanted))
        assert (there.backbone, there.device, there.cut_actions) == (str(wanted / "backbone"), "cuda:1", cut)
