"""A policy folder stands alone: it acts without torch, without the simulator, and without the task's module."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bilevel.methods.methods import load_policy
from bilevel.policies.pretrained import find_folder
from bilevel.tabletop import TASKS
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_policies import blocks_folder, learned_folder
from tiny_task import TINY

WITHOUT = """
import json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)

sys.meta_path.insert(0, Missing())
import bilevel
from bilevel import Atom, Scene
from bilevel.tasks.spec import read_spec

folder, agent, objects = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
with open(f"{{folder}}/policy.json") as file:
    scene = Scene(read_spec(json.load(file)["spec"]), agent, objects)
{load}
print(json.dumps([str(policy.action), policy.act(scene).tolist(), str(policy.action)]))
"""
BY_HAND = """
def label(scene):
    yield Atom("free")
    yield from (Atom("lying", (parcel.name,)) for parcel in scene.of_type("parcel"))
    yield from (Atom("empty", (spot.name,)) for spot in scene.of_type("spot"))

def goal(scene):
    return [Atom("at", ("parcel1", "spot1"))]

policy = bilevel.load_policy(folder, label=label, goal=goal)
"""
BY_NAME = "policy = bilevel.load_policy(folder)"


def as_dictionaries(scene: Scene) -> tuple[str, str]:
    agent = {name: scene.agent[name] for name in scene.spec.agent}
    objects = {
        kind: {thing.name: {name: thing[name] for name in features} for thing in scene.of_type(kind)}
        for kind, features in scene.spec.objects.items()
    }
    return json.dumps(agent), json.dumps(objects)


def acted(task: Task, folder: Path, load: str, missing: set[str]) -> tuple[list[object], list[object]]:
    """What a policy does in its first scene: there, and here."""
    scene = SceneEnv(task, 1).reset(0)
    program = WITHOUT.format(missing=missing, load=load)
    command = [sys.executable, "-c", program, str(folder), *as_dictionaries(scene)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    policy = load_policy(folder, task)
    control = policy.act(scene)
    assert control is not None
    return json.loads(found.stdout), ["None", control.tolist(), str(policy.action)]


def test_a_policy_acts_with_labels_of_ones_own() -> None:
    missing = {"torch", "mujoco", "gymnasium", "tiny_task", "metaworld"}
    there, here = acted(TINY, learned_folder(), BY_HAND, missing)
    assert there == here


def test_a_policy_for_the_table_acts_without_the_simulator() -> None:
    there, here = acted(TASKS["blocks"], blocks_folder(), BY_NAME, {"torch", "mujoco", "metaworld"})
    assert there == here


def test_a_pretrained_policy_acts_without_torch_and_the_simulator() -> None:
    by_name = "policy = bilevel.load_policy('gacha')"
    there, here = acted(TASKS["gacha"], find_folder("gacha"), by_name, {"torch", "mujoco", "metaworld"})
    assert there == here
