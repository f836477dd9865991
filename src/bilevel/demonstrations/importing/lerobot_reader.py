"""Reads LeRobot's data sets (v2.1 and v3.0) from their folder, with pyarrow alone: no LeRobot, no hub.

Of each frame, the `observation.*` features are the observation, under their own names, `action` is the control, and all
other features are in the info, with the text of the task as "task". A feature of the shape (1,) is a plain number, as
in LeRobot. Pictures and videos are left out. What is seen after the last control is not in LeRobot's frames.

In v2.1 every episode has a file of its own, in v3.0 many of them share one; each frame says which episode it is of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings, reading
from bilevel.files import read_bytes
from bilevel.json_files import Count, decode
from bilevel.symbolic.domain import BadInput

V2, V3 = "v2.1", "v3.0"
INFO, TASKS = "meta/info.json", "meta/tasks"
OBSERVATION, ACTION, SUCCESS = "observation.", "action", "next.success"
TIME, FRAME, EPISODE, INDEX, TASK = "timestamp", "frame_index", "episode_index", "index", "task_index"
INDICES = (TIME, FRAME, EPISODE, INDEX, TASK)  # columns of every data set
PICTURES = ("image", "video")


class Feature(msgspec.Struct, frozen=True):
    """What info.json says of one column."""

    dtype: str
    shape: list[Count]


class Info(msgspec.Struct, frozen=True):
    """What info.json says of a data set, as far as that is of use without pictures."""

    total_episodes: Count
    total_frames: Count
    fps: Annotated[float, msgspec.Meta(gt=0)]
    features: dict[str, Feature]


def read(source: str) -> Recordings:
    """Return the episodes of a data set; `BadInput` names the file that is not what it should be."""
    folder = Path(source)
    path = folder / INFO
    if not path.is_file():
        raise BadInput(f"{folder}: no LeRobot data set: there is no {INFO} in it")
    data = read_bytes(path)
    version = decode(data, dict[str, Any], path).get("codebase_version")
    if version not in (V2, V3):
        advice = "convert it with the scripts of LeRobot" if str(version) < V3 else "upgrade bilevel"
        raise BadInput(f"{path}: of LeRobot's version {version}, but only {V2} and {V3} are read; {advice}")
    info = decode(data, Info, path)
    pictures = [name for name, feature in info.features.items() if feature.dtype in PICTURES]
    kept = {name: info.features[name] for name in info.features if name not in (*pictures, *INDICES)}
    if not any(name.startswith(OBSERVATION) for name in kept):
        raise BadInput(f"{folder}: nothing is seen in it but pictures, which are not read: no observation.* of numbers")
    notes = (f"left out, as pictures are not read: {', '.join(pictures)}",) if pictures else ()
    episodes = _episodes(folder, info, kept, _tasks(folder, str(version)))
    return Recordings("lerobot", str(folder), episodes, info.total_episodes, info.fps, notes)


def _tasks(folder: Path, version: str) -> dict[int, str]:
    """Return the texts of the tasks by their numbers; the column of the texts has no certain name."""
    path = folder / f"{TASKS}{'.jsonl' if version == V2 else '.parquet'}"
    with reading(path):
        if version == V2:
            rows = [decode(line, dict[str, Any], path) for line in read_bytes(path).splitlines() if line.strip()]
        else:
            with pq.ParquetFile(path) as file:
                rows = file.read().to_pylist()
        numbers = msgspec.convert([row.pop(TASK, None) for row in rows], list[int])
        return {number: str(next(iter(row.values()), "")) for number, row in zip(numbers, rows, strict=True)}


def _episodes(
    folder: Path, info: Info, kept: Mapping[str, Feature], tasks: Mapping[int, str]
) -> Iterator[RecordedEpisode]:
    """Give the episodes of all files in the order of their names."""
    number = total = 0
    for path in sorted(folder.glob("data/*/*.parquet")):
        columns = _columns(path, kept)
        for index in np.unique(columns[EPISODE]).tolist():
            frames = {name: column[columns[EPISODE] == index] for name, column in columns.items()}
            length = len(frames[FRAME])
            if index != number or frames[FRAME].tolist() != list(range(length)):
                raise BadInput(f"{path}: the frames of episode {number} are not all there, in their order")
            texts = [tasks.get(task) for task in frames[TASK].tolist()]
            if None in texts:
                raise BadInput(f"{path}: episode {number} is of a task that {TASKS} does not list")
            seen = {name: frames[name] for name in kept if name.startswith(OBSERVATION)}
            others = {name: frames[name] for name in kept if name not in (*seen, ACTION)}
            yield RecordedEpisode(
                f"{path}, episode {number}",
                seen,
                frames.get(ACTION),
                {"task": texts, **others},
                success=bool(frames[SUCCESS][-1:].any()) if SUCCESS in kept else None,
            )
            number, total = number + 1, total + length
    if (number, total) != (info.total_episodes, info.total_frames):
        wanted = f"{info.total_episodes} with {info.total_frames} as in {INFO}"
        raise BadInput(f"{folder}: there are {number} episodes with {total} frames, not {wanted}")


def _columns(path: Path, features: Mapping[str, Feature]) -> dict[str, NDArray[Any]]:
    """Return the columns of a file as arrays of the shapes that the features have."""
    wanted = {**features, **dict.fromkeys((EPISODE, FRAME, TASK), Feature("int64", [1]))}
    with reading(path), pq.ParquetFile(path) as file:
        table = file.read(list(wanted))
        return {name: _array(table[name], name, feature, path) for name, feature in wanted.items()}


def _array(column: pa.ChunkedArray, name: str, feature: Feature, path: Path) -> NDArray[Any]:
    """Return a column, whose lists in lists are the axes of its feature, as one array, (rows, ...)."""
    array = np.array(column.to_pylist())
    if feature.shape == [1]:  # plain numbers; some keep lists of one number
        array = array[:, 0] if array.shape[1:] == (1,) else array
    if array.shape[1:] != (() if feature.shape == [1] else tuple(feature.shape)):
        raise BadInput(f"{path}: '{name}' does not have the shape {feature.shape} in each row")
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind not in "fiub" or (feature.dtype == "int64" and array.dtype.kind not in "iu"):
        raise BadInput(f"{path}: '{name}' holds {column.type}, or rows without values, instead of {feature.dtype}")
    return array.astype(feature.dtype)
