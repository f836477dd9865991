"""What the documentation says about weights in torch: the program there gives what the network of a policy gives."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bilevel.lowlevel.encoding import encode_episode, encoding_of
from bilevel.policies.folder import find_folder, read_policy
from bilevel.rules.rule_policy import RulePolicy
from bilevel.tabletop import TASKS
from bilevel.tasks.scene_env import SceneEnv

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"


def documented(folder: Path) -> dict[str, Any]:
    """The names that the program on the page defines, where this is `build/policy`."""
    (block,) = re.findall(
        r"### The weights in torch\n.*?```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(block.replace("build/policy", os.fspath(folder)), names)
    return names


def test_plain_torch_gives_the_controls_of_a_policy(tmp_path: Path) -> None:
    shutil.copytree(find_folder("blocks"), tmp_path / "policy")
    learned, task, names = read_policy(tmp_path / "policy"), TASKS["blocks"], documented(tmp_path / "policy")
    env = SceneEnv(task, 2)
    low, rules, encoding = learned.low(), RulePolicy(learned.rules, learned.domain), encoding_of(task.domain, task.spec)
    for seed in range(3):
        scene = env.reset(seed)
        state, goal = task.labels.state(scene), task.labels.goal(scene)
        rules.reset(state, goal, scene.objects)
        action = rules.choose(state, goal)
        assert action is not None
        sample = encode_episode(encoding, [scene], [(state, goal, action)], np.zeros((1, 4), np.float32), 0)
        one_hot = torch.eye(len(encoding.schemas))[sample.schemas[0]]
        outputs = names["network"](torch.tensor(sample.globals[0]), one_hot, torch.tensor(sample.objects[0]))
        wanted = low.control(scene, state, goal, action)
        assert learned.card.controls.decode(outputs.numpy()) == pytest.approx(wanted, abs=1e-4)
    assert torch.equal(names["layer"].weight, torch.tensor(learned.weights["readout.2.weight"]))
