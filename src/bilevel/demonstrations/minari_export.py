"""A data set of demonstrations as one of Minari's, for programs that read those.

An observation is a scene: `agent`, `objects` with a row for each object, and `visible`. There are as many rows as the
most objects that a demonstration has; the episode's metadata says what is in them (`objects`, pairs of a name and a
type as JSON). An action is the control that was executed, as it leads from one observation to the next: from its seed,
an episode can be lived through again. What else is known is in `infos`, with a row for each observation:

- `expert_control`: what the expert wanted, to be imitated; differs from the action where it was perturbed
- `high_level_action`: what the expert was doing, such as pick(block1), where it said so
- `goal`: what is wanted by then, as facts with & between them
- `events`: what happened that no action explains, such as teleport block1, with ; between them

At the last observation nothing is done any more: its control is zero and its action is empty. Texts are UTF-8. The
folder `bilevel` in it, at which Minari does not look, is the data set itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 (Minari needs it, as the next one, but imports it only when it writes)
import minari
import msgspec
import numpy as np
import PIL  # noqa: F401
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.dataset.minari_storage import MinariStorage
from minari.namespace import create_namespace, list_local_namespaces
from minari.storage.datasets_root_dir import get_dataset_path
from numpy.typing import NDArray

from bilevel.demonstrations.dataset import OWN, Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.files import new_folder
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Task


def export_to_minari(
    demonstrations: Demonstrations,
    identifier: str,
    task: Task | None = None,
    callback: Callback = silent,
) -> Path:
    """Write a data set among Minari's own, where MINARI_DATASETS_PATH says, and return its folder.

    If the `task` is given, and found by a name or in a module, Minari can make its environment again.
    """
    target = _target(identifier)
    sizes = [(demonstration.objects, demonstration.steps) for demonstration in demonstrations]
    rows = max((len(objects) for objects, _ in sizes), default=0)
    spec = demonstrations.spec
    with new_folder(target) as folder:
        storage = MinariStorage.new(
            folder / "data",
            observation_space=spaces.Dict(
                agent=spaces.Box(-np.inf, np.inf, (len(spec.agent),), np.float32),
                objects=spaces.Box(-np.inf, np.inf, (rows, len(spec.columns)), np.float32),
                visible=spaces.MultiBinary(rows),
            ),
            action_space=_action_space(demonstrations.controls),
            env_spec=_environment(task, demonstrations),
            data_format="hdf5",
        )
        storage.update_metadata(_metadata(demonstrations, identifier))
        storage.update_episodes(_episodes(demonstrations, rows, callback))
        storage.update_episode_metadata([{"objects": json.dumps(list(objects.items()))} for objects, _ in sizes])
        demonstrations.copy_to(folder / OWN)
        namespace = identifier.rpartition("/")[0]
        if namespace and namespace not in list_local_namespaces():
            create_namespace(namespace)
    return target


def _target(identifier: str) -> Path:
    """Return the folder for a new data set of this name."""
    try:
        parse_dataset_id(identifier if "//" not in identifier else "")  # two would be another name for a folder
    except (ValueError, TypeError):  # the latter where there is no version
        raise BadInput(f"'{identifier}' is no name of a Minari data set; an example of one: mine/cubes-v0") from None
    target = Path(get_dataset_path(identifier)).absolute()
    if target.exists():
        remedy = f"choose another name or version, or remove it with: minari delete {identifier}"
        raise BadInput(f"{target}: there is a Minari data set '{identifier}' already; {remedy}")
    return target


def _action_space(controls: Controls) -> spaces.Space[Any]:
    if not isinstance(controls, BoxControls):
        return spaces.Discrete(controls.n, start=controls.start)
    low, high = (np.reshape(bound, controls.shape).astype(controls.dtype) for bound in (controls.low, controls.high))
    return spaces.Box(low, high, dtype=low.dtype.type)


def _environment(task: Task | None, demonstrations: Demonstrations) -> EnvSpec | None:
    """Return what Gymnasium needs to make the environment again, if it can, wherever the data set is taken."""
    if task is None:
        return None
    spec: EnvSpec | None = SceneEnv(task, **demonstrations.arguments).env.spec
    if spec is None and task.source and ".py:" not in task.source:
        arguments = {"task": task.source, **demonstrations.arguments}
        return EnvSpec("bilevel/task-v0", "bilevel.tasks.registry:make_env", disable_env_checker=True, kwargs=arguments)
    return spec


def _metadata(demonstrations: Demonstrations, identifier: str) -> dict[str, Any]:
    manifest, spec = demonstrations.manifest, demonstrations.spec
    return {
        "dataset_id": identifier,
        "minari_version": minari.__version__,
        "algorithm_name": "expert",
        "description": f"Episodes of an expert at the task {demonstrations.task} ({demonstrations.command}).",
        "bilevel": {
            "features": {"agent": list(spec.agent), "objects": list(spec.columns)},
            **(msgspec.to_builtins({"settings": manifest.settings, "versions": manifest.versions}) if manifest else {}),
        },
    }


def _episodes(demonstrations: Demonstrations, rows: int, callback: Callback) -> Iterator[EpisodeBuffer]:
    for index, demonstration in enumerate(demonstrations):
        yield minari_episode(demonstration, rows)
        callback(Progress("exporting", index + 1, len(demonstrations)))


def minari_episode(demonstration: Demonstration, rows: int) -> EpisodeBuffer:
    """Return a demonstration as Minari wants it, with so many rows for objects."""
    last = np.arange(demonstration.steps) == demonstration.steps - 1
    success = demonstration.outcome == SUCCESS
    more = (0, rows - len(demonstration.objects))
    return EpisodeBuffer(
        seed=demonstration.seed,
        observations={
            "agent": demonstration.agent,
            "objects": np.pad(demonstration.features, ((0, 0), more, (0, 0))),
            "visible": np.pad(demonstration.visible.astype(np.int8), ((0, 0), more)),
        },
        actions=demonstration.executed,
        rewards=(last & success).astype(np.float64),
        terminations=last & success,
        truncations=last & (not success),
        infos=_infos(demonstration),
    )


def _infos(demonstration: Demonstration) -> dict[str, NDArray[Any]]:
    events: list[list[str]] = [[] for _ in range(demonstration.steps + 1)]
    for timestep, event in demonstration.events:
        events[timestep].append(event)
    goals = demonstration.at_each_timestep(demonstration.goals)
    return {
        "expert_control": np.concatenate([demonstration.controls, np.zeros_like(demonstration.controls[:1])]),
        "high_level_action": _texts([*(str(action or "") for action in demonstration.actions), ""]),
        "goal": _texts(" & ".join(map(str, sorted(goal))) for goal in goals),
        "events": _texts("; ".join(now) for now in events),
    }


def _texts(texts: Iterable[str]) -> NDArray[np.bytes_]:
    """Return texts as plain arrays of bytes: HDF5's own strings come back as Python objects."""
    return np.array([text.encode() for text in texts])
