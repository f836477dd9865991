"""The tasks: found by their files, imported one at a time, without MuJoCo, and every one of them complete."""

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

PAPERS = [world + twin for world in ("blocks", "colour", "factory", "gacha") for twin in ("", "-noisy")]


def run(program: str) -> list[str]:
    """What a program prints."""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return finished.stdout.split()


def test_every_module_is_a_world_with_a_noisy_twin() -> None:
    assert set(PAPERS) < set(TASKS)
    assert len(TASKS) == len(set(TASKS))
    assert all(name in TASKS for name in TASKS)
    assert "block" not in TASKS
    with pytest.raises(KeyError):
        TASKS["block"]
    with pytest.raises(KeyError):
        TASKS["twins"]


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_found_by_its_name_and_fits_together(name: str) -> None:
    task = find_task(name)
    assert task == TASKS[name]
    assert task.name == name
    assert task.arguments["teleport_rate"] == (TELEPORT_RATE if name.endswith("-noisy") else 0.0)
    assert "quality" not in task.arguments
    assert task.takes_quality
    assert set(task.spec.objects) <= set(task.domain.types)
    assert pickle.loads(pickle.dumps(TASKS[name])) == task
    spec = gymnasium.spec(gymnasium_id(name))
    assert spec.kwargs == {"task": name}


def test_arguments_are_those_of_the_world() -> None:
    assert {name for name, task in TASKS.items() if "colours" in task.arguments} == {"colour", "colour-noisy"}
    assert {name for name, task in TASKS.items() if "draw" in task.arguments} == {"gacha", "gacha-noisy"}
    with_trays = {"colour", "colour-noisy", "gacha", "gacha-noisy"}
    assert {name for name, task in TASKS.items() if "tray_position" in task.arguments} == with_trays


def test_an_unknown_task_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="unknown task 'block'; known tasks: blocks, blocks-noisy, colour"):
        find_task("block")


def test_listing_tasks_and_problems_of_symbols_need_neither_numpy_nor_gymnasium() -> None:
    program = """
import sys
from bilevel.tabletop import TASKS
import bilevel.tabletop.problems
assert "blocks" in TASKS and len(list(TASKS)) > 8
print(*(name for name in ("numpy", "gymnasium", "mujoco", "bilevel.tabletop.tabletop") if name in sys.modules))
"""
    assert run(program) == []


def test_a_task_is_imported_alone_and_labels_need_no_mujoco() -> None:
    program = """
import sys
sys.modules["mujoco"] = sys.modules["metaworld"] = None  # as if they were not installed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
task = TASKS["colour-noisy"]
print(*(name for name in sys.modules if name.startswith("bilevel.tabletop.worlds.")))
scene = Scene(TASKS["blocks"].spec, {"x": 0, "y": 0, "z": 0.2, "opening": 1}, {})
print(*TASKS["blocks"].label(scene))
try:
    SceneEnv(task, 1)
except BadInput as error:
    print(str(error).replace(" ", "_"))
"""
    missing = "mujoco is missing; install it with: pip install 'bilevel[tabletop]'"
    assert run(program) == ["bilevel.tabletop.worlds.colour", "gripper-free()", missing.replace(" ", "_")]
