"""Data sets of demonstrations as those of Minari and of LeRobot (v3.0), for programs that read these.

Minari's actions are the controls that were executed, LeRobot's those to be imitated. Both have room for as many objects
as the most that a demonstration has.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 (Minari needs it, as PIL, but imports it only when it writes)
import minari
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from gymnasium import spaces
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.dataset.minari_storage import MinariStorage
from minari.namespace import create_namespace, list_local_namespaces
from minari.storage.datasets_root_dir import get_dataset_path
from numpy.typing import NDArray
from PIL import Image

from bilevel.demonstrations.dataset import Demonstration, Demonstrations
from bilevel.demonstrations.importing.lerobot_reader import ACTION, EPISODE, FRAME, INDEX, INFO, TASK, TASKS, TIME, V3
from bilevel.demonstrations.importing.lerobot_reader import SUCCESS as NEXT_SUCCESS
from bilevel.files import new_folder, write_atomically
from bilevel.json_files import encode
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput, Facts
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.layout import StateLayout
from bilevel.tasks.registry import registered_task
from bilevel.tasks.scene_env import SUCCESS, USUAL_RATE, SceneEnv
from bilevel.tasks.task import Task


def _padded(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return an array, (timesteps, objects, ...), with so many rows for objects."""
    return np.pad(array, [(0, 0), (0, rows - array.shape[1]), *[(0, 0)] * (array.ndim - 2)])


def _text(goal: Facts) -> str:
    return " & ".join(map(str, sorted(goal)))


# Minari


def export_to_minari(demonstrations: Demonstrations, identifier: str, callback: Callback = silent) -> Path:
    """Write a data set among Minari's own, where MINARI_DATASETS_PATH says, and return its folder."""
    try:
        parse_dataset_id(identifier if "//" not in identifier else "")  # two would be another name for a folder
    except (ValueError, TypeError):  # the latter where there is no version
        raise BadInput(f"'{identifier}' is no name of a Minari data set; an example of one: mine/cubes-v0") from None
    target = Path(get_dataset_path(identifier)).absolute()
    spec, rows = demonstrations.spec, max((len(each.objects) for each in demonstrations), default=0)
    observation = {
        "agent": spaces.Box(-np.inf, np.inf, (len(spec.agent),), np.float32),
        "objects": spaces.Box(-np.inf, np.inf, (rows, len(spec.columns)), np.float32),
        "visible": spaces.MultiBinary(rows),
    }
    about = {
        "dataset_id": identifier,
        "minari_version": minari.__version__,
        "algorithm_name": "expert",
        "description": f"An expert at the task {demonstrations.task} ({demonstrations.command}).",
        "bilevel": {"features": {"agent": list(spec.agent), "objects": list(spec.columns)}},
    }
    with new_folder(target) as folder:
        storage = MinariStorage.new(
            folder / "data",
            observation_space=spaces.Dict(observation),
            action_space=_action_space(demonstrations.controls),
            data_format="hdf5",
        )
        storage.update_metadata(about)
        for number, demonstration in enumerate(demonstrations, 1):
            storage.update_episodes([minari_episode(demonstration, rows)])
            callback(Progress("exporting", number, len(demonstrations)))
        names = (json.dumps(list(demonstration.objects.items())) for demonstration in demonstrations)
        storage.update_episode_metadata([{"objects": each} for each in names])
        namespace = identifier.rpartition("/")[0]
        if namespace and namespace not in list_local_namespaces():
            create_namespace(namespace)
    return target


def _action_space(controls: Controls) -> spaces.Space[Any]:
    if not isinstance(controls, BoxControls):
        return spaces.Discrete(controls.n, start=controls.start)
    low, high = (np.reshape(bound, controls.shape).astype(controls.dtype) for bound in (controls.low, controls.high))
    return spaces.Box(low, high, dtype=low.dtype.type)


def minari_episode(demonstration: Demonstration, rows: int) -> EpisodeBuffer:
    """Return a demonstration as Minari wants it, with so many rows for objects; texts are UTF-8.

    At the last observation nothing is done any more: its control is zero and its action is empty.
    """
    last = np.arange(demonstration.steps) == demonstration.steps - 1
    success = demonstration.outcome == SUCCESS
    events: list[list[str]] = [[] for _ in range(demonstration.steps + 1)]
    for timestep, event in demonstration.events:
        events[timestep].append(event)
    return EpisodeBuffer(
        seed=demonstration.seed,
        observations={
            "agent": demonstration.agent,
            "objects": _padded(demonstration.features, rows),
            "visible": _padded(demonstration.visible.astype(np.int8), rows),
        },
        actions=demonstration.executed,
        rewards=(last & success).astype(np.float64),
        terminations=last & success,
        truncations=last & (not success),
        infos={
            "expert_control": np.concatenate([demonstration.controls, np.zeros_like(demonstration.controls[:1])]),
            "high_level_action": _as_bytes([*(str(action or "") for action in demonstration.actions), ""]),
            "goal": _as_bytes(map(_text, demonstration.at_each_timestep(demonstration.goals))),
            "events": _as_bytes("; ".join(now) for now in events),
        },
    )


def _as_bytes(texts: Iterable[str]) -> NDArray[np.bytes_]:
    """Return texts as plain arrays of bytes: HDF5's own strings come back as Python objects."""
    return np.array([text.encode() for text in texts])


# LeRobot

STATE, PLACES, SUBTASK = "observation.state", "observation.environment_state", "subtask_index"
FILES_IN_CHUNK = 1000  # one for each episode
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
TEXT = "__index_level_0__"  # the index of a table, to pandas
SIDE = 256  # pixels of the square pictures
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
CONSTANT = 1e-5  # what is spread less, as a share of its size, is no news: its noise shall not be scaled up
Columns = dict[str, NDArray[Any]]  # (frames, ...) each


def export_to_lerobot(
    demonstrations: Demonstrations,
    output: Path | str,
    rate: float | None = None,
    pictures: str | None = None,
    task: Task | None = None,
    callback: Callback = silent,
) -> Path:
    """Write a data set as a new folder of LeRobot's, and return it; `BadInput` where there is something already.

    `action` is the control to be imitated. `observation.state` are the agent and the objects as a `StateLayout` has
    them, and `observation.environment_state` says which places are taken. With `pictures` from the camera of this
    name, for which each episode happens again, the state is that of the agent alone. The `rate` is how many timesteps
    there are in a second; unless told, it is what the data set says, or else the environment. The `task` is by default
    the one that is registered under the name in the data set.
    """
    manifest, spec = demonstrations.manifest, demonstrations.spec
    task = task or registered_task(demonstrations.task)
    source = manifest.source if manifest else None
    if pictures and (task is None or source):
        raise BadInput("pictures need the task's own environment, in which the episodes can be run again")
    scenes = (scene for each in demonstrations for scene in each.scenes(spec))
    layout = StateLayout(spec, {}) if pictures else StateLayout.of_scenes(spec, scenes)
    words = task.instruction.format(n=demonstrations.objects) if task else ""
    look: dict[str, Any] = {"render_mode": "rgb_array", "camera": pictures} if pictures else {}
    look |= {"picture_size": (SIDE, SIDE)} if pictures and task and task.takes("picture_size") else {}
    with closing(demonstrations.make_env(task, **look)) if task else nullcontext() as env:
        rate = rate if rate is not None else (source and source.rate) or (env.steps_per_second if env else USUAL_RATE)
        if not 0 < rate < np.inf:
            raise BadInput(f"the rate is how many timesteps there are in a second, not {rate}")
        with new_folder(Path(output)) as folder:
            found = _Found(layout, rate, f"observation.images.{pictures}" if pictures else None)
            for number, demonstration in enumerate(demonstrations):
                if demonstration.steps == 0:
                    raise BadInput(f"episode {number} has no steps, which LeRobot does not know")
                columns = found.add(demonstration, words or _text(demonstration.goals[-1][1]))
                table = {name: _column(array) for name, array in columns.items()}
                if env and found.camera:
                    table[found.camera] = found.add_pictures(_pictures(number, demonstration, env))
                _write_table(folder / "data" / _file(number), table)
                callback(Progress("exporting", number + 1, len(demonstrations)))
            found.write(folder)
    return Path(output)


def _pictures(number: int, demonstration: Demonstration, env: SceneEnv) -> NDArray[np.uint8]:
    """Let an episode happen again; return its pictures, (steps, height, width, 3), one before each control."""
    scene, pictures = env.reset(demonstration.seed), list[NDArray[np.uint8]]()
    scenes = demonstration.scenes(env.task.spec)
    for step, control in enumerate(demonstration.executed):
        if scene != scenes[step]:
            raise BadInput(f"episode {number} differs from step {step} on; see: bilevel demonstrations replay")
        pictures.append(np.asarray(env.render(), np.uint8))
        scene = env.step(control)
    return np.stack(pictures)


@dataclass
class _Found:
    """What LeRobot wants to know of all episodes, gathered one after the other."""

    layout: StateLayout
    rate: float
    camera: str | None  # the name of the column with pictures
    episodes: list[Columns] = field(default_factory=list)
    images: list[Columns] = field(default_factory=list)  # sums over the pictures of an episode
    tasks: dict[str, int] = field(default_factory=dict)
    subtasks: dict[str, int] = field(default_factory=lambda: {"": 0})  # where the expert does not say what it is doing
    shape: tuple[int, ...] = ()  # of a picture

    def add(self, demonstration: Demonstration, task: str) -> Columns:
        """Return the frames of the next episode, with controls only where there are any; number its texts."""
        steps, number = demonstration.steps, len(self.episodes)
        frame = np.arange(steps)
        last = frame == steps - 1
        success = last & (demonstration.outcome == SUCCESS)
        texts = [str(action or "") for action in demonstration.actions]
        seen = [self.layout.encode(scene) for scene in demonstration.scenes(self.layout.spec)[:-1]]
        controls = {ACTION: demonstration.controls, "executed_control": demonstration.executed}
        columns: Columns = {
            STATE: np.stack([numbers for numbers, _ in seen]),
            PLACES: np.stack([taken for _, taken in seen]),
            **(controls if demonstration.has_controls else {}),
            SUBTASK: np.array([self.subtasks.setdefault(text, len(self.subtasks)) for text in texts], np.int64),
            "next.reward": success.astype(np.float32),
            "next.done": last,
            NEXT_SUCCESS: success,
            TIME: (frame / self.rate).astype(np.float32),
            FRAME: frame,
            EPISODE: np.full(steps, number),
            INDEX: frame + sum(len(episode[FRAME]) for episode in self.episodes),
            TASK: np.full(steps, self.tasks.setdefault(task, len(self.tasks))),
        }
        flat = {name: array if array.ndim == 1 else array.reshape(steps, -1) for name, array in columns.items()}
        flat = {name: array[:, 0] if array.shape[1:] == (1,) else array for name, array in flat.items() if array.size}
        self.episodes.append(flat)
        return flat

    def add_pictures(self, pictures: NDArray[np.uint8]) -> pa.Array:
        """Return the column of an episode's pictures."""
        self.shape, shares = pictures.shape[1:], pictures.mean((1, 2)) / 255
        self.images.append({"mean": shares, "squares": (pictures.astype(np.float32) ** 2).mean((1, 2)) / 255**2})
        return pa.array([{"bytes": _png(picture), "path": None} for picture in pictures], PICTURE)

    def write(self, folder: Path) -> None:
        """Write what LeRobot wants to know of all episodes."""
        names = [name for name in self.episodes[0] if all(name in each for each in self.episodes)]
        frames = {name: np.concatenate([each[name] for each in self.episodes]) for name in names}
        _write_table(folder / "meta/episodes" / _file(0), self._index())
        _write_texts(folder / f"{TASKS}.parquet", self.tasks, TASK)
        _write_texts(folder / "meta/subtasks.parquet", self.subtasks, SUBTASK)
        statistics = {name: _statistics(array) for name, array in frames.items()}
        if self.camera:
            statistics[self.camera] = self._statistics_of_pictures()
        write_atomically(folder / "meta/stats.json", encode(statistics))
        write_atomically(folder / INFO, encode(self._info(frames)))

    def _index(self) -> dict[str, Any]:
        """Return what the index says of each episode: where it is, and how long."""
        texts, numbers = list(self.tasks), np.arange(len(self.episodes))
        lengths = np.array([len(episode[FRAME]) for episode in self.episodes])
        ends, nowhere = np.cumsum(lengths), np.zeros_like(lengths)
        return {
            EPISODE: numbers,
            "tasks": [[texts[episode[TASK][0]]] for episode in self.episodes],
            "length": lengths,
            "dataset_from_index": ends - lengths,
            "dataset_to_index": ends,
            "data/chunk_index": numbers // FILES_IN_CHUNK,
            "data/file_index": numbers % FILES_IN_CHUNK,
            "meta/episodes/chunk_index": nowhere,
            "meta/episodes/file_index": nowhere,
        }

    def _info(self, frames: Columns) -> dict[str, Any]:
        """Return what info.json says."""
        names = {STATE: self.layout.names, PLACES: self.layout.places}
        features: dict[str, Any] = {
            name: {"dtype": str(array.dtype), "shape": list(array.shape[1:]) or [1], "names": names.get(name)}
            for name, array in frames.items()
        }
        if self.camera:
            features[self.camera] = {"dtype": "image", "shape": self.shape, "names": ["height", "width", "channels"]}
        return {
            "codebase_version": V3,
            "robot_type": None,
            "total_episodes": len(self.episodes),
            "total_frames": len(frames[INDEX]),
            "total_tasks": len(self.tasks),
            "chunks_size": FILES_IN_CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": int(self.rate) if self.rate == int(self.rate) else self.rate,
            "splits": {"train": f"0:{len(self.episodes)}"},
            "data_path": f"data/{FILE}",
            "video_path": None,
            "features": features,
        }

    def _statistics_of_pictures(self) -> dict[str, Any]:
        """Return the statistics of the pictures' three colours, from 0 to 1."""
        mean, squares = (np.concatenate([each[name] for each in self.images]).mean(0) for name in ("mean", "squares"))
        found = {"min": np.zeros(3), "max": np.ones(3), "mean": mean, "std": np.sqrt(squares - mean**2)}
        count = sum(len(each["mean"]) for each in self.images)
        return {**{name: values.reshape(3, 1, 1).tolist() for name, values in found.items()}, "count": [count]}


def _file(number: int) -> str:
    """Return the file of an episode."""
    return FILE.format(chunk_index=number // FILES_IN_CHUNK, file_index=number % FILES_IN_CHUNK)


def _png(picture: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return buffer.getvalue()


def _statistics(array: NDArray[Any]) -> dict[str, list[float]]:
    """Return the statistics of a column, by which LeRobot normalises what its policies see and do.

    A number that is always the same is said to be spread by 1 about itself, so that a change in its last digit, which
    no demonstration shows, stays small.
    """
    numbers = np.asarray(array, np.float64).reshape(len(array), -1)
    low, high, mean, spread = numbers.min(0), numbers.max(0), numbers.mean(0), numbers.std(0)
    same = spread <= CONSTANT * np.maximum(np.abs(mean), 1)
    found = {
        "min": np.where(same, mean - 1, low),
        "max": np.where(same, mean + 1, high),
        "mean": mean,
        "std": np.where(same, 1, spread),
    }
    return {**{name: values.tolist() for name, values in found.items()}, "count": [len(numbers)]}


def _column(array: NDArray[Any]) -> pa.Array:
    flat = pa.array(array.reshape(-1))
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])


def _write_texts(path: Path, texts: Mapping[str, int], column: str) -> None:
    """Write the numbers of texts as pandas writes a table whose index they are: LeRobot asks for them by that."""
    plain = {"field_name": column, "name": column, "pandas_type": "int64", "numpy_type": "int64", "metadata": None}
    index = {"field_name": TEXT, "name": None, "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
    about = {"index_columns": [TEXT], "columns": [plain, index], "column_indexes": []}
    _write_table(path, {column: list(texts.values()), TEXT: list(texts)}, {"pandas": json.dumps(about)})


def _write_table(path: Path, columns: Mapping[str, Any], about: Mapping[str, str] | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns), metadata=about), path, compression="snappy")
