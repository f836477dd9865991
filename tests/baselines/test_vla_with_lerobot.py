"""A real SmolVLA, tiny and with random weights, run by LeRobot from its own environment, end to end.

The only test that needs what `make test` does not install, and must not download: `bilevel vla set-up` makes it. What
the adapter does on our side of the protocol is tested without it, in test_vla_policy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bilevel.baselines.vla import VlaPolicy, end_servers, make_policy, make_settings
from bilevel.baselines.vla_files import find_model
from bilevel.baselines.vla_setup import environment_folder, require_environment
from bilevel.policies.policies import Control
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import opengl
from bilevel.tabletop.tasks import find_task

SCRIPT = Path(__file__).with_name("make_tiny_smolvla.py")
STEPS = 25  # more than two pictures' worth of actions
HUB = "lerobot/smolvla_base"


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        opengl.backend()
        return require_environment(environment_folder())
    except BadInput as error:
        pytest.skip(f"LeRobot cannot be run here: {error}")


@pytest.fixture(scope="module")
def tiny(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("smolvla") / "tiny"
    subprocess.run([python, SCRIPT, folder], check=True, capture_output=True)
    yield folder
    end_servers()


def controls(policy: VlaPolicy, steps: int = STEPS) -> list[Control]:
    world = policy._environment
    taken: list[Control] = []
    rollout(world, policy, 5, watch=lambda moment: taken.append(moment.control), stop=lambda: len(taken) == steps)
    return taken


def make(python: Path, folder: Path, task: str = "blocks", **others: object) -> VlaPolicy:
    settings = make_settings(python, find_model(HUB, folder), **others)
    return make_policy(settings, find_task(task), find_task(task).make(1))


def test_it_acts(python: Path, tiny: Path) -> None:
    first, again, other = (controls(make(python, tiny, task)) for task in ("blocks", "blocks", "blocks-noisy"))
    assert len(first) == STEPS
    assert all(control.shape == (4,) and np.isfinite(control).all() for control in first)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)  # it reads the sentence
    assert not np.array_equal(first, controls(make(python, tiny, camera="above")))  # and looks at the picture


def test_longer_actions_are_refused_or_cut(python: Path, tmp_path: Path, tiny: Path) -> None:
    folder = tmp_path / "six"
    subprocess.run([python, SCRIPT, folder, "6"], check=True, capture_output=True)
    with pytest.raises(BadInput, match="its actions are 6 numbers, but a control is 4"):
        controls(make(python, folder))
    assert controls(make(python, folder, cut_actions=True), steps=1)[0].shape == (4,)


def test_weights_that_are_missing_are_not_made_up(python: Path, tmp_path: Path, tiny: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny, folder)
    program = (
        "import sys; from safetensors.torch import load_file, save_file; weights = load_file(sys.argv[1]);"
        "del weights['model.state_proj.weight']; save_file(weights, sys.argv[1])"
    )
    subprocess.run([python, "-c", program, folder / "model.safetensors"], check=True, env=dict(os.environ))
    with pytest.raises(BadInput, match=r"lacks 1 of the policy's \d+ weights, such as model.state_proj.weight"):
        controls(make(python, folder))
