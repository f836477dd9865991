"""SmolVLA as a policy, with a process that answers and has no model: what goes over, what comes back, what lacks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bilevel.experiments.rows import PAPER_TASKS as PAPERS_TASKS
from bilevel.methods import smolvla
from bilevel.methods.smolvla import (
    BACKBONE,
    BACKBONE_FILES,
    MODELS,
    POLICY_FILES,
    ModelServer,
    VlaPolicy,
    VlaSettings,
    find_vla,
    make_vla,
)
from bilevel.policies.episode import Episode
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.scene_env import SceneEnv
from drawn_task import DRAWN
from tiny_task import TINY_DISCRETE

FAKE = Path(__file__).with_name("fake_vla_server.py")
INSTRUCTION = "Deliver the parcel."
STEPS = 12


@pytest.fixture(autouse=True)
def no_server_is_left() -> Iterator[None]:
    yield
    for server in smolvla._LOADED.values():
        server.close()
    smolvla._LOADED.clear()


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


def asked(folder: Path) -> list[dict[str, Any]]:
    """Return what the model was asked to do."""
    lines = map(json.loads, (folder / "well.log").read_text().splitlines())
    return [line for line in lines if "sentence" in line]


def test_what_goes_over(env: SceneEnv, tmp_path: Path) -> None:
    actor = policy(env, settings(tmp_path, device="cpu"))
    assert run(env, actor).steps == STEPS
    acts, scene = asked(tmp_path), env.reset(3)
    assert {(act["device"], act["sentence"]) for act in acts} == {("cpu", INSTRUCTION)}
    assert acts[0]["state"] == scene.values.tolist() != acts[1]["state"]
    assert (actor.goal, actor.action) == (env.labels.goal(scene), None)
    side = [100, 100]  # the middle of a picture, when it is wanted
    assert [act.get("image") for act in acts] == ([side] + [None] * 4) * 2 + [side, None]
    assert {act["bytes"] for act in acts if "image" in act} == {3 * 100 * 100}


def test_an_environment_must_draw_and_take_numbers(tmp_path: Path) -> None:
    blind = SceneEnv(DRAWN, 1)
    with pytest.raises(BadInput, match="the environment of 'drawn' gives no pictures"):
        run(blind, policy(blind, settings(tmp_path)))
    with pytest.raises(BadInput, match="the controls of the task 'tiny-discrete' are a choice"):
        policy(SceneEnv(TINY_DISCRETE, 1), settings(tmp_path))


@pytest.mark.parametrize(
    ("behaviour", "others", "complaint"),
    [
        ("six numbers", {}, "its actions are 6 numbers, but a control of the task 'drawn' is 3"),
        ("two numbers", {"cut_actions": True}, "its actions are 2 numbers, but a control of the task 'drawn' is 3"),
        ("not finite", {}, "the model's action is not finite"),
        ("refuses", {}, "the model cannot be run: no GPU: there is none"),
        ("dies", {}, "the process that runs the model ended: exit code 1"),
    ],
)
def test_what_cannot_be_run_is_told(
    env: SceneEnv, tmp_path: Path, behaviour: str, others: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        run(env, policy(env, settings(tmp_path, behaviour, **others)))


@pytest.mark.parametrize(("behaviour", "cut"), [("well", False), ("six numbers", True)])
def test_controls_are_within_bounds_and_longer_actions_are_cut_where_that_is_wanted(
    env: SceneEnv, tmp_path: Path, behaviour: str, cut: bool
) -> None:
    actor = policy(env, settings(tmp_path, behaviour, cut_actions=cut))
    actor.reset(env.reset(3))
    assert actor.act(env.scene).tolist() == pytest.approx([0.1, -0.05, 0.7])


OWNER = """
import sys, time
from bilevel.methods.smolvla import ModelServer, VlaSettings
server = ModelServer(VlaSettings(sys.executable, sys.argv[2], "none", server=sys.argv[1]))
print(server._process.pid, flush=True)
time.sleep(600)
"""


def test_the_process_of_a_model_does_not_survive_us(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(FAKE), str(tmp_path / "well")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.kill()
    end = time.monotonic() + 20
    while (runs := Path(f"/proc/{pid}").exists()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not runs


def test_the_real_server_says_that_lerobot_is_missing(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without any installed package
    python.chmod(0o755)
    with pytest.raises(BadInput, match="the model cannot be run: lerobot is not installed for "):
        ModelServer(VlaSettings(str(python), "any", "none"))


