"""SmolVLA as a policy, with a process that speaks the protocol and has no model: what goes over, what comes back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from endless_worker import FAKE, Darkness
from model_folders import make_backbone_folder, make_environment, make_policy_folder, note_download, weights
from other_process import as_received

from bilevel.baselines import vla
from bilevel.baselines.vla import (
    NotRun,
    Ready,
    VlaPolicy,
    VlaSettings,
    end_servers,
    make_policy,
    require_vla,
    vla_status,
)
from bilevel.baselines.vla_sentences import SENTENCES, sentence
from bilevel.experiments.evaluation import run_episode
from bilevel.policies.rollout import Episode, rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import opengl
from bilevel.tabletop.blocks import Blocks
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tasks import TASKS, find_task

TASK = find_task("blocks")
STEPS = 12


@pytest.fixture(autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    end_servers()


@pytest.fixture(scope="module")
def world() -> Iterator[Blocks]:
    world = TASK.make(1)
    assert isinstance(world, Blocks)
    yield world
    world.close()


def settings(folder: Path, behaviour: str = "well", **others: Any) -> VlaSettings:
    return VlaSettings(sys.executable, str(folder / behaviour), "none", server=str(FAKE), **others)


def policy(world: Blocks, settings: VlaSettings) -> VlaPolicy:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vla, "Picture", Darkness)
        return make_policy(settings, TASK, world)


def run(world: Blocks, policy: VlaPolicy, seed: int = 3) -> Episode:
    steps = iter(range(STEPS - 1))
    return rollout(world, policy, seed, stop=lambda: next(steps, None) is None)


def asked(folder: Path, question: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "well.log").read_text().splitlines())
    return [line for line in lines if line["ask"] == question]


def test_what_goes_over(world: Blocks, tmp_path: Path) -> None:
    episode = run(world, policy(world, settings(tmp_path, device="cpu")))
    assert episode.steps == STEPS
    (load,) = asked(tmp_path, "load")
    assert (load["version"], load["device"]) == (1, "cpu")
    acts = asked(tmp_path, "act")
    assert len(acts) == STEPS
    assert {act["sentence"] for act in acts} == {"Put every block on the spot of its own colour, 1 in all."}
    observation, _ = world.reset(seed=3)
    assert acts[0]["state"] == observation["agent"].tolist()
    assert acts[1]["state"] != acts[0]["state"]


def test_a_picture_goes_over_only_when_it_is_wanted(world: Blocks, tmp_path: Path) -> None:
    run(world, policy(world, settings(tmp_path, side=100)))
    assert [act.get("image") for act in asked(tmp_path, "act")] == ([[100, 100]] + [None] * 4) * 2 + [[100, 100], None]
    assert {act["bytes"] for act in asked(tmp_path, "act") if "image" in act} == {100 * 100 * 3}


def test_controls_are_within_bounds(world: Blocks, tmp_path: Path) -> None:
    control = policy(world, settings(tmp_path)).act(first_sight(world))
    assert control.dtype == np.float32
    assert control.tolist() == [0.5, -0.5, 1.0, -1.0]


def first_sight(world: Blocks, seed: int = 3) -> Observation:
    observation, _ = world.reset(seed=seed)
    return observation


def test_the_picture_is_of_the_world_as_it_is(world: Blocks, tmp_path: Path) -> None:
    if not any(map(opengl.works, opengl.BACKENDS)):
        with pytest.raises(BadInput, match="no pictures: "):
            make_policy(settings(tmp_path), TASK, world)
        return
    seer = make_policy(settings(tmp_path), TASK, world)
    first_sight(world, seed=1)
    first = seer.draw()
    assert first.shape == (480, 480, 3)
    first_sight(world, seed=2)
    assert not np.array_equal(seer.draw(), first)
    first_sight(world, seed=1)
    assert np.array_equal(seer.draw(), first)
    seer.close()


@pytest.mark.parametrize("side", [0, 481])
def test_a_picture_of_another_size_than_there_can_be(world: Blocks, tmp_path: Path, side: int) -> None:
    with pytest.raises(BadInput, match=f"can have 1 to 480 pixels along a side, not {side}"):
        policy(world, settings(tmp_path, side=side)).draw()


def test_what_is_random_follows_from_the_episode_alone(world: Blocks, tmp_path: Path) -> None:
    actor = policy(world, settings(tmp_path))
    for seed in (3, 4, 3):
        actor.reset(first_sight(world, seed))
    first, other, again = (reset["seed"] for reset in asked(tmp_path, "reset"))
    assert first == again != other


def test_policies_share_the_process_of_a_model(world: Blocks, tmp_path: Path) -> None:
    first, second = (policy(world, settings(tmp_path)) for _ in range(2))
    first.reset(first_sight(world))
    second.reset(first_sight(world))
    assert len(asked(tmp_path, "load")) == 1
    second.act(first_sight(world))
    with pytest.raises(BadInput, match="one episode of a SmolVLA at a time"):
        first.act(first_sight(world))
    first.reset(first_sight(world))
    assert first.act(first_sight(world)).shape == (4,)


def test_a_process_that_died_is_started_anew_for_the_next_episode(world: Blocks, tmp_path: Path) -> None:
    actor = policy(world, settings(tmp_path, "dies"))
    for _ in range(2):
        with pytest.raises(BadInput, match="ended: exit code 1: Killed by a lack of memory"):
            run(world, actor)


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ("six numbers", "its actions are 6 numbers, but a control is 4: x, y, z, fingers"),
        ("three numbers", "its actions are 3 numbers, but a control is 4: x, y, z, fingers"),
        ("not finite", "the model's action is not finite"),
        ("another version", "speaks version 2 of the protocol, not 1"),
        ("refuses", "the model cannot be run: no GPU: there is none"),
    ],
)
def test_what_cannot_be_run_is_told(world: Blocks, tmp_path: Path, behaviour: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        run(world, policy(world, settings(tmp_path, behaviour)))


def test_time_outs(world: Blocks, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has not answered within 0\.5 s"):
        run(world, policy(world, settings(tmp_path, "hangs", act_seconds=0.5)))
    with pytest.raises(BadInput, match="has not answered within 0 s"):
        run(world, policy(world, settings(tmp_path, start_seconds=0.0)))


def test_longer_actions_are_cut_where_that_is_wanted(world: Blocks, tmp_path: Path) -> None:
    actor = policy(world, settings(tmp_path, "six numbers", cut_actions=True))
    assert actor.act(first_sight(world)).tolist() == [0.5, -0.5, 1.0, 1.0]
    with pytest.raises(BadInput, match="its actions are 3 numbers"):
        run(world, policy(world, settings(tmp_path, "three numbers", cut_actions=True)))


def test_it_is_measured_like_every_policy(world: Blocks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "step_limit", STEPS)
    actor = policy(world, settings(tmp_path))
    result = run_episode(world, actor, seed=3)
    assert (result.outcome, result.steps, result.durations) == ("step limit", STEPS, {})
    assert actor.state == actor.labels.state(world.reset(seed=3)[0])  # the hand moved, but no block did
    assert actor.goal == world.goal()


def test_every_task_has_a_sentence_that_smolvla_reads_to_its_end() -> None:
    assert set(SENTENCES) == set(TASKS)
    for name in TASKS:
        assert "10" in sentence(name, 10)
        assert len(sentence(name, 10).split()) <= 38  # of its 48 tokens; nearly every word is one
    assert len(set(SENTENCES.values())) == len(TASKS)
    with pytest.raises(BadInput, match="no sentence for the task 'chess'"):
        sentence("chess", 1)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One without an environment for LeRobot, and with nothing from the hub."""
    monkeypatch.setenv("BILEVEL_VLA", str(tmp_path / "environment"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_without_the_published_weights_a_method_is_not_run(machine: Path) -> None:
    for method, name in (("smolvla", "lerobot/smolvla_base"), ("smolvla-metaworld", "jadechoghari/smolvla_metaworld")):
        status = vla_status(method)
        assert isinstance(status, NotRun)
        assert f"{machine}/environment: no such virtual environment for SmolVLA" in status.reason
        assert f"{name}: missing config.json, model.safetensors" in status.reason
        assert status.reason.endswith(f"; or all of them with: bilevel vla fetch {method}")
        with pytest.raises(BadInput) as error:
            require_vla(method)
        assert str(error.value) == f"the method '{method}' cannot be run: {status.reason}"
    with pytest.raises(BadInput, match="unknown model 'openvla'; known models: smolvla, smolvla-metaworld"):
        require_vla("openvla")


def test_a_model_of_another_origin_does_not_pass_for_the_published_one(machine: Path) -> None:
    make_environment(machine / "environment")
    make_backbone_folder(make_policy_folder(machine / "policy") / "backbone")
    assert vla_status("smolvla", machine / "policy") == NotRun(
        f"{machine}/policy/model.safetensors: not as it was downloaded, so perhaps not the published weights of "
        "lerobot/smolvla_base; only those are measured"
    )


def test_with_everything_there_a_method_can_be_run(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_environment(machine / "environment")
    make_backbone_folder(make_policy_folder(machine / "policy") / "backbone")
    note_download(machine / "policy", weights(4, 5))
    monkeypatch.setattr(opengl, "backend", lambda: "egl")
    monkeypatch.setenv("BILEVEL_VLA_DEVICE", "cuda:1")
    for method, cut in (("smolvla", True), ("smolvla-metaworld", False)):
        ready = require_vla(method, machine / "policy")
        assert ready == vla_status(method, machine / "policy")
        assert isinstance(ready, Ready)
        there, wanted = ready.settings, machine / "policy"
        assert ready.name == str(wanted)
        assert (there.python, there.model) == (str(machine / "environment/bin/python"), str(wanted))
        assert (there.backbone, there.device, there.cut_actions) == (str(wanted / "backbone"), "cuda:1", cut)
        sent = as_received(ready.make)
        assert (sent.func, sent.args) == (make_policy, (there,))
