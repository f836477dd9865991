"""A real SmolVLA, tiny and with random weights, run by LeRobot from its own environment, end to end.

The only test that needs what `make test` does not install, and must not download: `bilevel vla set-up` makes it. What
the adapter does on our side of the pipe is tested without it, in test_smolvla.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bilevel.methods.smolvla import VlaPolicy, VlaSettings, environment_folder, require_environment
from bilevel.policies.rollout import Transition, rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Control
from bilevel.tasks.scene_env import SceneEnv
from drawn_task import DRAWN

SCRIPT = Path(__file__).with_name("make_tiny_smolvla.py")
STEPS = 25  # more than two pictures' worth of actions


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return require_environment(environment_folder())
    except BadInput as error:
        pytest.skip(f"LeRobot cannot be run here: {error}")


@pytest.fixture(scope="module")
def tiny(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smolvla") / "tiny"
    subprocess.run([python, SCRIPT, folder, "3"], check=True, capture_output=True)
    return folder


def controls(
    python: Path, folder: Path, sentence: str = "Deliver.", steps: int = STEPS, **others: object
) -> list[Control]:
    settings = VlaSettings(str(python), str(folder), str(folder / "backbone"), **others)  # type: ignore[arg-type]
    env = SceneEnv(DRAWN, 1, render_mode="rgb_array")
    taken: list[Control] = []

    def note(transition: Transition) -> None:
        taken.append(transition.control)

    rollout(env, VlaPolicy(settings, env, sentence), 5, callback=note, stop=lambda: len(taken) == steps)
    return taken


def test_it_acts(python: Path, tiny: Path) -> None:
    first, again, other = (controls(python, tiny, sentence) for sentence in ("Deliver.", "Deliver.", "Wait."))
    assert len(first) == STEPS
    assert all(control.shape == (3,) and np.isfinite(control).all() for control in first)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)  # it reads the sentence


def test_longer_actions_are_refused_or_cut(python: Path, tmp_path: Path, tiny: Path) -> None:
    folder = tmp_path / "six"
    subprocess.run([python, SCRIPT, folder, "6"], check=True, capture_output=True)
    with pytest.raises(BadInput, match="its actions are 6 numbers, but a control of the task 'drawn' is 3"):
        controls(python, folder)
    assert controls(python, folder, steps=1, cut_actions=True)[0].shape == (3,)


def test_weights_that_are_missing_are_not_made_up(python: Path, tmp_path: Path, tiny: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny, folder)
    program = (
        "import sys; from safetensors.torch import load_file, save_file; weights = load_file(sys.argv[1]);"
        "del weights['model.state_proj.weight']; save_file(weights, sys.argv[1])"
    )
    subprocess.run([python, "-c", program, folder / "model.safetensors"], check=True, env=dict(os.environ))
    with pytest.raises(BadInput, match=r"lacks 1 of the policy's \d+ weights, such as model.state_proj.weight"):
        controls(python, folder)
