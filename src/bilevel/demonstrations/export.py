"""Data sets of demonstrations as those of Minari and of LeRobot (v3.0), for programs that read these.

In both, an action is the control that was executed, what the expert wanted and was doing is beside it, and there are as
many rows for objects as the most that a demonstration has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 (Minari needs it, as PIL, but imports it only when it writes)
import minari
import numpy as np
import PIL  # noqa: F401
import pyarrow as pa
import pyarrow.parquet as pq
from gymnasium import spaces
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.dataset.minari_storage import MinariStorage
from minari.namespace import create_namespace, list_local_namespaces
from minari.storage.datasets_root_dir import get_dataset_path
from numpy.typing import NDArray

from bilevel.demonstrations.dataset import Demonstration, Demonstrations
from bilevel.demonstrations.importing.lerobot_reader import ACTION, EPISODE, FRAME, INDEX, INFO, TASK, TASKS, TIME, V3
from bilevel.demonstrations.importing.lerobot_reader import SUCCESS as NEXT_SUCCESS
from bilevel.files import new_folder, write_atomically
from bilevel.json_files import encode
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput, Facts
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene_env import SUCCESS


def _rows(demonstrations: Demonstrations) -> int:
    """Return the most objects that a demonstration has."""
    return max((len(demonstration.objects) for demonstration in demonstrations), default=0)


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
    spec, rows = demonstrations.spec, _rows(demonstrations)
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

USUAL_RATE = 10.0  # Hz
STATE, EXPERT_CONTROL, SUBTASK = "observation.state", "expert_control", "subtask_index"
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
FIRST = FILE.format(chunk_index=0, file_index=0)
IN_FIRST_FILE = [f"{table}/{part}_index" for table in ("data", "meta/episodes") for part in ("chunk", "file")]
TEXT = "__index_level_0__"  # the index of a table, to pandas
Columns = dict[str, NDArray[Any]]  # (frames, ...) each


def export_to_lerobot(
    demonstrations: Demonstrations, output: Path | str, rate: float | None = None, callback: Callback = silent
) -> Path:
    """Write a data set as a new folder of LeRobot's, and return it; `BadInput` where there is something already.

    The `rate` is how many timesteps there are in a second; unless told, it is what the data set says, or else 10.
    """
    source = demonstrations.manifest.source if demonstrations.manifest else None
    rate = rate if rate is not None else (source and source.rate) or USUAL_RATE
    if not 0 < rate < np.inf:
        raise BadInput(f"the rate is how many timesteps there are in a second, not {rate}")
    rows = _rows(demonstrations)
    tasks: dict[str, int] = {}
    subtasks = {"": 0}  # where the expert does not say what it is doing
    parts: list[Columns] = []
    for number, demonstration in enumerate(demonstrations):
        if demonstration.steps == 0:
            raise BadInput(f"episode {number} has no steps, which LeRobot does not know")
        parts.append(_frames(number, demonstration, rows, rate, tasks, subtasks))
        callback(Progress("exporting", number + 1, len(demonstrations)))
    names = [name for name in parts[0] if all(name in part for part in parts)]  # of controls only if all have some
    frames = {name: np.concatenate([part[name] for part in parts]) for name in names}
    frames[INDEX] = np.arange(len(frames[INDEX]))
    with new_folder(Path(output)) as folder:
        _write_table(folder / "data" / FIRST, {name: _column(array) for name, array in frames.items()})
        _write_table(folder / "meta/episodes" / FIRST, _index(parts, list(tasks)))
        _write_texts(folder / f"{TASKS}.parquet", tasks, TASK)
        _write_texts(folder / "meta/subtasks.parquet", subtasks, SUBTASK)
        statistics = {name: _statistics(array) for name, array in frames.items()}
        write_atomically(folder / "meta/stats.json", encode(statistics))
        info = _info(frames, len(parts), len(tasks), rate, list(demonstrations.spec.agent))
        write_atomically(folder / INFO, encode(info))
    return Path(output)


def _frames(
    number: int, demonstration: Demonstration, rows: int, rate: float, tasks: dict[str, int], subtasks: dict[str, int]
) -> Columns:
    """Return the frames of one episode, those of objects and controls only where there are any; number its texts."""
    steps = demonstration.steps
    frame = np.arange(steps)
    last = frame == steps - 1
    success = last & (demonstration.outcome == SUCCESS)
    texts = [str(action or "") for action in demonstration.actions]
    controls = {ACTION: demonstration.executed, EXPERT_CONTROL: demonstration.controls}
    columns: Columns = {
        STATE: demonstration.agent[:-1],
        "observation.environment_state": _padded(demonstration.features[:-1], rows),
        "observation.visible": _padded(demonstration.visible[:-1], rows).astype(np.float32),
        **(controls if demonstration.has_controls else {}),
        SUBTASK: np.array([subtasks.setdefault(text, len(subtasks)) for text in texts], np.int64),
        "next.reward": success.astype(np.float32),
        "next.done": last,
        NEXT_SUCCESS: success,
        TIME: (frame / rate).astype(np.float32),
        FRAME: frame,
        EPISODE: np.full(steps, number),
        INDEX: frame,
        TASK: np.full(steps, tasks.setdefault(_text(demonstration.goals[-1][1]), len(tasks))),
    }
    flat = {name: array if array.ndim == 1 else array.reshape(steps, -1) for name, array in columns.items()}
    return {name: array[:, 0] if array.shape[1:] == (1,) else array for name, array in flat.items() if array.size}


def _info(frames: Columns, episodes: int, tasks: int, rate: float, agent: list[str]) -> dict[str, Any]:
    """Return what info.json says."""
    return {
        "codebase_version": V3,
        "robot_type": None,
        "total_episodes": episodes,
        "total_frames": len(frames[INDEX]),
        "total_tasks": tasks,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": int(rate) if rate == int(rate) else rate,
        "splits": {"train": f"0:{episodes}"},
        "data_path": f"data/{FILE}",
        "video_path": None,
        "features": {
            name: {
                "dtype": str(array.dtype),
                "shape": list(array.shape[1:]) or [1],
                "names": agent if name == STATE else None,
            }
            for name, array in frames.items()
        },
    }


def _index(parts: list[Columns], tasks: list[str]) -> dict[str, Any]:
    """Return what the index says of each episode: where it is, and how long."""
    lengths = np.array([len(part[FRAME]) for part in parts])
    ends = np.cumsum(lengths)
    return {
        EPISODE: np.arange(len(parts)),
        "tasks": [[tasks[part[TASK][0]]] for part in parts],
        "length": lengths,
        "dataset_from_index": ends - lengths,
        "dataset_to_index": ends,
        **dict.fromkeys(IN_FIRST_FILE, np.zeros_like(lengths)),
    }


def _statistics(array: NDArray[Any]) -> dict[str, list[float]]:
    """Return the statistics of a column, by which LeRobot normalises what its policies see and do."""
    numbers = np.asarray(array, np.float64).reshape(len(array), -1)
    found = {"min": numbers.min(0), "max": numbers.max(0), "mean": numbers.mean(0), "std": numbers.std(0)}
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
