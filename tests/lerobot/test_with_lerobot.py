"""LeRobot itself: it learns from what we export, and our server gives the actions of LeRobot's own evaluation.

Run by `make test-lerobot`, which makes LeRobot's environment and names it in BILEVEL_LEROBOT.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import bilevel
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.export import export_to_lerobot
from bilevel.methods.lerobot import LeRobotModel, ModelServer, environment_folder, find_model
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.registry import find_task
from command_line import run

pytestmark = pytest.mark.skipif("BILEVEL_LEROBOT" not in os.environ, reason="`make test-lerobot` runs these")
IN_LEROBOT = str(Path(__file__).with_name("in_lerobot.py"))
STEPS, SEED, SENTENCE = 12, 7, "Put every block on the spot of its own colour, 3 in all."
SMALL = ("--policy.dim_model=32", "--policy.n_heads=2", "--policy.dim_feedforward=64", "--policy.chunk_size=5")
ACT = ("act", *SMALL, "--policy.n_action_steps=5")
DIFFUSION = ("diffusion", "--policy.down_dims=[32,64]", "--policy.num_inference_steps=2")
FROM_PICTURES = (*ACT, "--policy.pretrained_backbone_weights=null")


def lerobot(program: str, *words: object) -> str:
    """Run a program of LeRobot's environment, and return what it prints."""
    command = [str(environment_folder() / "bin" / program), *map(str, words)]
    done = subprocess.run(command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    folder = tmp_path_factory.mktemp("data") / "blocks"
    return bilevel.collect(find_task("blocks"), folder, objects=1, episodes=2, seed=0, noise=0.5)


def train(data: Demonstrations, folder: Path, kind: str, *options: str, pictures: str | None = None) -> Path:
    """Let LeRobot learn for 20 steps from our export, and return the folder of the policy that it saved."""
    export_to_lerobot(data, folder / "export", pictures=pictures)
    about = {
        "dataset.repo_id": "bilevel/blocks", "dataset.root": folder / "export", "policy.type": kind, "num_workers": 0,
        "policy.push_to_hub": False, "policy.device": "cpu", "steps": 20, "batch_size": 2, "wandb.enable": False,
        "output_dir": folder / "trained",
    }  # fmt: skip
    lerobot("lerobot-train", *(f"--{name}={value}" for name, value in about.items()), *options)
    return folder / "trained" / "checkpoints" / "last" / "pretrained_model"


def differences(model: LeRobotModel, observations: dict[str, Any], folder: Path) -> float:
    """Return by how much our server's actions differ at most from those of LeRobot's own evaluation."""
    np.savez(folder / "seen.npz", sentence=SENTENCE, **observations)
    theirs = json.loads(
        lerobot("python", IN_LEROBOT, "steps", model.folder, folder / "seen.npz", SEED).splitlines()[-1]
    )
    config, server, ours = model.config, ModelServer(model), []
    planned = config.n_action_steps if config.n_obs_steps == 1 else 1  # from one picture
    server.ask({"seed": SEED})
    for step in range(STEPS):
        question: dict[str, Any] = {"sentence": SENTENCE, "observation.state": observations["state"][step].tolist()}
        if "places" in observations:
            question["observation.environment_state"] = observations["places"][step].tolist()
        if config.camera and step % planned == 0:
            pixels = observations["pixels"][step]
            question |= {"size": pixels.shape[:2], "pixels": pixels.tobytes()}
        ours.append(server.ask(question)["values"])
    server.close()
    assert np.ptp(ours, axis=0).max() > 0.01
    return float(np.abs(np.subtract(ours, theirs)).max())


def random_observations(model: LeRobotModel) -> dict[str, Any]:
    """Return what the policy is told, at random."""
    rng = np.random.default_rng(0)
    shapes = {name: feature.shape for name, feature in model.config.input_features.items()}
    found: dict[str, Any] = {"state": rng.normal(size=(STEPS, *shapes["observation.state"])).astype(np.float32)}
    if "observation.environment_state" in shapes:
        found["places"] = np.ones((STEPS, *shapes["observation.environment_state"]), np.float32)
    if model.config.camera:
        found["pixels"] = rng.integers(0, 256, (STEPS, *shapes[model.config.camera][1:], 3), dtype=np.uint8)
    return found


@pytest.mark.parametrize("words", [ACT, DIFFUSION], ids=["act", "diffusion"])
def test_lerobot_learns_from_states_and_we_run_what_it_saved(
    blocks: Demonstrations, tmp_path: Path, words: tuple[str, ...]
) -> None:
    policy = train(blocks, tmp_path, *words)
    model = find_model("lerobot", policy)
    assert differences(model, random_observations(model), tmp_path) == 0
    records = bilevel.evaluate(policy, "blocks", method="lerobot", objects=[1], episodes=1, output=tmp_path / "records")
    assert records[0].settings["type"] == words[0]
    assert str(records[0].settings["sentence"]).startswith("Put every block")
    with pytest.raises(BadInput, match="places for 1 objects of the type 'block', but 2 are there"):
        bilevel.evaluate(policy, "blocks", method="lerobot", objects=[2], episodes=1)


def test_check_says_what_an_evaluation_would_say(
    blocks: Demonstrations, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = train(blocks, tmp_path, *ACT)
    code, out, _ = run(capsys, "lerobot", "check", "--policy", policy)
    assert (code, "ready: act on " in out) == (0, True)
    damaged = Path(shutil.copytree(policy, tmp_path / "damaged"))
    weights = load_file(damaged / "model.safetensors")
    del weights["model.action_head.bias"]
    save_file(weights, damaged / "model.safetensors")
    code, out, _ = run(capsys, "lerobot", "check", "--policy", damaged)
    assert (code, "its weights lack 1 of the policy's, such as model.action_head.bias" in out) == (1, True)
    with pytest.raises(BadInput, match=r"its weights lack 1 of the policy's, such as model\.action_head\.bias"):
        bilevel.evaluate(damaged, "blocks", method="lerobot", objects=[1], episodes=1)


def test_lerobot_learns_from_pictures_and_we_run_what_it_saved(blocks: Demonstrations, tmp_path: Path) -> None:
    policy = train(blocks, tmp_path, *FROM_PICTURES, pictures="corner")
    model = find_model("lerobot", policy)
    assert (model.pictures["picture_size"], model.pictures["camera"]) == ((256, 256), "corner")
    assert differences(model, random_observations(model), tmp_path) == 0
    records = bilevel.evaluate(policy, "blocks", method="lerobot", objects=[3], episodes=1)
    assert len(records) == 1


def test_a_vision_language_action_model_acts_as_in_lerobots_evaluation(tmp_path: Path) -> None:
    lerobot("python", IN_LEROBOT, "make", tmp_path)
    model = find_model("lerobot", tmp_path / "policy")
    assert model.config.vlm_model_name == str(tmp_path / "backbone")
    assert differences(model, random_observations(model), tmp_path) == 0
    records = bilevel.evaluate(tmp_path / "policy", "blocks", method="lerobot", objects=[1], episodes=1)
    assert records[0].settings["type"] == "smolvla"
