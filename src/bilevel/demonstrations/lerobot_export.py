"""A data set of demonstrations as one of LeRobot's (v3.0), for programs that read those.

A frame is what was seen and what was done then: `observation.state` is the agent, `observation.environment_state` has
a row for each object, one after the other, and `observation.visible` says which of them were seen. There are as many
rows as the most objects that a demonstration has. `action` is the control that was executed, `expert_control` what the
expert wanted, to be imitated, and `subtask_index` what it was doing, such as pick(block1): LeRobot gives its text as
`subtask`. The text of the task is the goal at the end. The folder `bilevel` in it, at which LeRobot does not look, is
the data set itself: `bilevel import` gives it back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bilevel.demonstrations.dataset import OWN, Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.importing.lerobot_reader import (
    ACTION,
    EPISODE,
    EPISODES,
    FILE,
    FRAME,
    INDEX,
    INFO,
    SUCCESS,
    TASK,
    TASKS,
    TIME,
    Feature,
    Info,
)
from bilevel.files import new_folder, write_atomically
from bilevel.json_files import encode
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.tasks import scene_env

USUAL_RATE = 10.0  # Hz
NOTHING = ""  # the subtask where the expert does not say what it is doing
STATE = "observation.state"
SUBTASKS, STATS, SUBTASK, EXPERT_CONTROL = "meta/subtasks", "meta/stats.json", "subtask_index", "expert_control"
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
FIRST = FILE.format(chunk_index=0, file_index=0)

Columns = dict[str, NDArray[Any]]  # (frames, ...) each


def export_to_lerobot(
    demonstrations: Demonstrations,
    output: Path | str,
    rate: float | None = None,
    callback: Callback = silent,
) -> Path:
    """Write a data set as a new folder of LeRobot's, and return it; `BadInput` where there is something already.

    The `rate` is how many timesteps there are in a second; unless told, it is what the data set says, or else 10.
    """
    source = demonstrations.manifest.source if demonstrations.manifest else None
    rate = rate if rate is not None else (source and source.rate) or USUAL_RATE
    if not (math.isfinite(rate) and rate > 0):
        raise BadInput(f"the rate is how many timesteps there are in a second, not {rate}")
    rows = max((len(demonstration.objects) for demonstration in demonstrations), default=0)
    has_controls = all(demonstration.has_controls for demonstration in demonstrations)
    tasks, subtasks = _Numbers(), _Numbers({NOTHING: 0})
    parts: list[Columns] = []
    for number, demonstration in enumerate(demonstrations):
        if demonstration.steps == 0:
            raise BadInput(f"episode {number} has no steps, which LeRobot does not know")
        columns = _frames(number, demonstration, rows, rate, tasks, subtasks)
        parts.append({name: columns[name] for name in columns if has_controls or name not in (ACTION, EXPERT_CONTROL)})
        callback(Progress("exporting", number + 1, len(demonstrations)))
    frames = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    frames[INDEX] = np.arange(len(frames[INDEX]))
    names = {STATE: list(demonstrations.spec.agent)}
    features = {
        name: Feature(str(array.dtype), list(array.shape[1:]) or [1], names.get(name)) for name, array in frames.items()
    }
    info = Info(
        total_episodes=len(parts),
        total_frames=len(frames[INDEX]),
        total_tasks=len(tasks),
        fps=int(rate) if rate == int(rate) else rate,
        splits={"train": f"0:{len(parts)}"},
        features=features,
    )
    with new_folder(Path(output)) as folder:
        _write_table(folder / "data" / FIRST, pa.table({name: _column(array) for name, array in frames.items()}))
        _write_table(folder / EPISODES / FIRST, pa.Table.from_pylist(_index(parts, list(tasks))))
        _write_table(folder / f"{TASKS}.parquet", _texts_table(tasks, TASK))
        _write_table(folder / f"{SUBTASKS}.parquet", _texts_table(subtasks, SUBTASK))
        write_atomically(folder / STATS, encode({name: _statistics(array) for name, array in frames.items()}))
        write_atomically(folder / INFO, encode(info))
        demonstrations.copy_to(folder / OWN)
    return Path(output)


class _Numbers(dict[str, int]):
    """Texts, numbered as they come."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def _frames(
    number: int, demonstration: Demonstration, rows: int, rate: float, tasks: _Numbers, subtasks: _Numbers
) -> Columns:
    """Return the frames of one episode, those of objects and controls only where there are any; number its texts."""
    steps, more = demonstration.steps, rows - len(demonstration.objects)
    last, frame = np.arange(steps) == steps - 1, np.arange(steps)
    success = last & (demonstration.outcome == scene_env.SUCCESS)
    goal = " & ".join(map(str, sorted(demonstration.goals[-1][1])))
    doing = [subtasks[str(action) if action else NOTHING] for action in demonstration.actions]
    columns: Columns = {
        STATE: demonstration.agent[:-1],
        "observation.environment_state": np.pad(demonstration.features[:-1], ((0, 0), (0, more), (0, 0))),
        "observation.visible": np.pad(demonstration.visible[:-1], ((0, 0), (0, more))).astype(np.float32),
        ACTION: demonstration.executed,
        EXPERT_CONTROL: demonstration.controls,
        SUBTASK: np.array(doing, np.int64),
        "next.reward": success.astype(np.float32),
        "next.done": last,
        SUCCESS: success,
        TIME: (frame / rate).astype(np.float32),
        FRAME: frame,
        EPISODE: np.full(steps, number),
        INDEX: frame,
        TASK: np.full(steps, tasks[goal]),
    }
    flat = {name: array if array.ndim == 1 else array.reshape(steps, -1) for name, array in columns.items()}
    return {name: array[:, 0] if array.shape[1:] == (1,) else array for name, array in flat.items() if array.size}


def _index(parts: list[Columns], tasks: list[str]) -> list[dict[str, Any]]:
    """Return what the index says of each episode: where it is, and how long."""
    ends = np.cumsum([len(part[FRAME]) for part in parts]).tolist()
    return [
        {
            EPISODE: number,
            "tasks": [tasks[part[TASK][0]]],
            "length": len(part[FRAME]),
            "data/chunk_index": 0,
            "data/file_index": 0,
            "dataset_from_index": end - len(part[FRAME]),
            "dataset_to_index": end,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
        }
        for number, (part, end) in enumerate(zip(parts, ends, strict=True))
    ]


def _statistics(array: NDArray[Any]) -> dict[str, list[float]]:
    """Return the statistics of a column, by which LeRobot normalises what its policies see and do."""
    numbers = np.asarray(array, np.float64).reshape(len(array), -1)
    found = {"min": numbers.min(0), "max": numbers.max(0), "mean": numbers.mean(0), "std": numbers.std(0)}
    found |= {name: np.quantile(numbers, share, axis=0) for name, share in QUANTILES.items()}
    return {**{name: values.tolist() for name, values in found.items()}, "count": [len(numbers)]}


def _column(array: NDArray[Any]) -> pa.Array:
    flat = pa.array(array.reshape(-1))
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])


def _texts_table(texts: Mapping[str, int], column: str) -> pa.Table:
    """Return the numbers of texts as pandas writes a table whose index they are: LeRobot asks for them by that."""
    table = pa.table({column: list(texts.values()), "__index_level_0__": list(texts)})
    plain = {"field_name": column, "name": column, "pandas_type": "int64", "numpy_type": "int64", "metadata": None}
    index = {"field_name": "__index_level_0__", "name": None, "pandas_type": "unicode", "numpy_type": "object"}
    columns = {"index_columns": ["__index_level_0__"], "columns": [plain, {**index, "metadata": None}]}
    return table.replace_schema_metadata({"pandas": msgspec.json.encode({**columns, "column_indexes": []})})


def _write_table(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="snappy")
