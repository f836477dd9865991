"""A data set of demonstrations as one of Minari's, for programs that read those.

An observation is a scene: `agent`, `objects` with a row for each object, and `visible`. There are as many rows as the
most objects that a demonstration has; the episode's metadata says what is in them (`objects`, pairs of a name and a
type as JSON). An action is the control that was executed, as it leads from one observation to the next: from its seed,
an episode can be lived through again. What else is known is in `infos`, with a row for each observation:

- `expert_control`: what the expert wanted, to be imitated; differs from the action where it was perturbed
- `high_level_action`: what the expert was doing, such as pick(block1), where it said so
- `goal`: what is wanted by then, as facts with & between them
- `events`: what happened that no action explains, such as teleport block1, with ; between them
- `action_number`, `metadata`: what the file of the demonstration holds besides, for `bilevel import`: indices, and a
  JSON text whose bytes are laid out over the rows

At the last observation nothing is done any more: its control is zero and its action is empty. Texts are UTF-8.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import ACTION, METADATA, Demonstration, demonstration_arrays
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Task

EXAMPLE = "mine/cubes-v0"
LOOSE = ("python", "numpy", "gymnasium")  # with other versions of these, an episode goes the same way


def export_to_minari(
    demonstrations: Demonstrations,
    identifier: str,
    task: Task | None = None,
    callback: Callback = silent,
) -> Path:
    """Write a data set among Minari's own, where MINARI_DATASETS_PATH says, and return its folder.

    Afterwards either all of it is there or, with `BadInput` or an interruption, nothing. If the `task` is given, and
    found by a name or in a module, Minari can make its environment again.
    """
    target = _target(identifier)
    sizes = [(demonstration.objects, demonstration.steps) for demonstration in demonstrations]
    rows = max((len(objects) for objects, _ in sizes), default=0)
    with _appearing(identifier, target) as folder:
        _check_room(folder, sum(steps + 1 for _, steps in sizes), demonstrations, rows)
        storage = MinariStorage.new(
            folder / "data",
            observation_space=_observation_space(demonstrations, rows),
            action_space=_action_space(demonstrations.controls),
            env_spec=_environment(task, demonstrations),
            data_format="hdf5",
        )
        storage.update_metadata(_metadata(demonstrations, identifier))
        storage.update_episodes(_episodes(demonstrations, rows, callback))
        storage.update_episode_metadata([{"objects": json.dumps(list(objects.items()))} for objects, _ in sizes])
    return target


# Where it goes


def _target(identifier: str) -> Path:
    """The folder for a new data set of this name."""
    if not _is_name(identifier):
        raise BadInput(f"'{identifier}' is no name of a Minari data set; an example of one: {EXAMPLE}")
    try:
        target = Path(get_dataset_path(identifier)).absolute()
    except OSError as error:
        raise BadInput(f"{error.filename}: Minari's data sets cannot be written there: {error.strerror}") from None
    if target.exists():
        remedy = f"choose another name or version, or remove it with: minari delete {identifier}"
        raise BadInput(f"{target}: there is a Minari data set '{identifier}' already; {remedy}")
    return target


def _is_name(identifier: str) -> bool:
    try:
        parse_dataset_id(identifier)
    except (ValueError, TypeError):  # the latter where there is no version
        return False
    return "//" not in identifier  # which would be another name for the same folder


@contextmanager
def _appearing(identifier: str, target: Path) -> Iterator[Path]:
    """A folder that Minari does not see, to be written to; it becomes the target if all goes well, else it goes."""
    unfinished = Path(get_dataset_path()).absolute() / f".{identifier.replace('/', '--')}"
    try:
        unfinished.mkdir()
    except FileExistsError:
        raise BadInput(f"{unfinished}: an export is under way, or was killed; in that case remove the folder") from None
    except OSError as error:
        raise BadInput(f"{unfinished}: cannot be written: {error.strerror}") from None
    try:
        yield unfinished
        namespace = identifier.rpartition("/")[0]
        if namespace and namespace not in list_local_namespaces():
            create_namespace(namespace)
        unfinished.rename(target)
    except (OSError, RuntimeError) as error:  # HDF5 knows both
        raise BadInput(f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _check_room(folder: Path, timesteps: int, demonstrations: Demonstrations, rows: int) -> None:
    """HDF5 crashes on a full disk, so it must not come to that."""
    spec, controls = demonstrations.spec, demonstrations.controls
    numbers = len(spec.agent) + rows * len(spec.columns) + 2 * controls.size
    needed = 2 * timesteps * 4 * numbers  # twice, for the texts and the file's own order
    free = shutil.disk_usage(folder).free
    if free < needed:
        sizes = f"about {needed / 1e6:.1f} MB are needed, {free / 1e6:.1f} MB are free"
        raise BadInput(f"{folder.parent}: no room: {sizes}")


# What it holds


def _observation_space(demonstrations: Demonstrations, rows: int) -> spaces.Dict:
    spec = demonstrations.spec
    return spaces.Dict(
        agent=spaces.Box(-np.inf, np.inf, (len(spec.agent),), np.float32),
        objects=spaces.Box(-np.inf, np.inf, (rows, len(spec.columns)), np.float32),
        visible=spaces.MultiBinary(rows),
    )


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
    made = msgspec.to_builtins({"settings": manifest.settings, "versions": manifest.versions}) if manifest else {}
    command = f" ({manifest.command})" if manifest else ""
    return {
        "dataset_id": identifier,
        "minari_version": minari.__version__,
        "algorithm_name": "expert",
        "description": (
            f"Episodes of an expert at the task {demonstrations.task}{command}. "
            "Actions are the controls as they were executed. Infos hold for each observation what the expert wanted "
            "(expert_control) and was doing (high_level_action), the goal, and events that no action explains."
        ),
        "requirements": [
            f"{name}=={version}" for name, version in made.get("versions", {}).items() if name not in LOOSE
        ],
        "bilevel": {
            "features": {"agent": list(spec.agent), "objects": list(spec.columns)},
            "spec": spec.as_json(),
            "controls": msgspec.to_builtins(demonstrations.controls),
            **made,
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
    nothing = np.zeros_like(demonstration.controls[:1])
    arrays = demonstration_arrays(demonstration)
    return {
        "expert_control": np.concatenate([demonstration.controls, nothing]),
        "high_level_action": _texts([*(str(action or "") for action in demonstration.actions), ""]),
        "goal": _texts(
            " & ".join(map(str, sorted(goal))) for goal in demonstration.at_each_timestep(demonstration.goals)
        ),
        "events": _texts("; ".join(now) for now in events),
        "action_number": np.append(arrays[ACTION], np.int32(-1)),
        "metadata": _over_rows(arrays[METADATA], demonstration.steps + 1),
    }


def _over_rows(text: NDArray[np.uint8], rows: int) -> NDArray[np.uint8]:
    """Return the bytes of a text in so many rows, with spaces at the end."""
    width = -(-len(text) // rows)
    return np.pad(text, (0, rows * width - len(text)), constant_values=ord(" ")).reshape(rows, width)


def _texts(texts: Iterable[str]) -> NDArray[np.bytes_]:
    """Return texts as plain arrays of bytes: HDF5's own strings come back as Python objects."""
    return np.array([text.encode() for text in texts])
