"""The tasks: each found by its name, complete, and made without MuJoCo."""

from __future__ import annotations

import pickle
import subprocess
import sys

import gymnasium
import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tabletop.gymnasium_ids import gymnasium_id
from bilevel.tabletop.world_tasks import TELEPORT_RATE
from bilevel.tasks.registry import find_task


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_found_by_its_name_and_fits_together(name: str) -> None:
    task = find_task(name)
    assert task == TASKS[name]
    assert task.name == name
    assert task.arguments["teleport_rate"] == (TELEPORT_RATE if name.endswith("-noisy") else 0.0)
    assert "quality" not in task.arguments
    assert task.takes("quality")
    assert set(task.spec.objects) <= set(task.domain.types)
    assert pickle.loads(pickle.dumps(TASKS[name])) == task
    assert gymnasium.spec(gymnasium_id(name)).kwargs == {"task": name}


def test_an_unknown_task_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="unknown task 'block'; known tasks: blocks, blocks-noisy, colour"):
        find_task("block")


def test_problems_need_no_gymnasium_and_labels_no_mujoco() -> None:
    program = """
import sys
import bilevel.tabletop.problems
print(*(name for name in ("numpy", "gymnasium", "mujoco", "bilevel.tabletop.tabletop") if name in sys.modules))
sys.modules["mujoco"] = sys.modules["metaworld"] = None  # as if they were not installed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
scene = Scene(TASKS["blocks"].spec, {"x": 0, "y": 0, "z": 0.2, "opening": 1}, {})
print(*TASKS["blocks"].label(scene))
try:
    SceneEnv(TASKS["blocks"], 1)
except BadInput as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    missing = "mujoco is missing; install it with: pip install 'bilevel[tabletop]'"
    assert run.stdout.splitlines() == ["", "gripper-free()", missing]
