"""Reads LeRobot's data sets (v2.1 and v3.0) from their folder, with pyarrow alone: no LeRobot, no hub.

Of each frame, the `observation.*` features are the observation, under their own names, `action` is the control, and all
other features are in the info, with the text of the task as "task". A feature of the shape (1,) is a plain number, as
in LeRobot. Pictures and videos are left out. What is seen after the last control is not in LeRobot's frames.

In v2.1 every episode has a file of its own; in v3.0 many of them share one, and an index says which.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings, reading, refuse_own, timesteps
from bilevel.json_files import Count, decode, read_bytes
from bilevel.symbolic.domain import BadInput

V2, V3 = "v2.1", "v3.0"
INFO, EPISODES, TASKS = "meta/info.json", "meta/episodes", "meta/tasks"
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
PLACE = re.compile(r"\{(episode_chunk|episode_index|chunk_index|file_index)(?::0?(\d)d)?\}")  # in a pattern of files

OBSERVATION, ACTION, SUCCESS = "observation.", "action", "next.success"
TIME, FRAME, EPISODE, INDEX, TASK = "timestamp", "frame_index", "episode_index", "index", "task_index"
INDICES = (TIME, FRAME, EPISODE, INDEX, TASK)  # columns of every data set
PICTURES = ("image", "video")


class Feature(msgspec.Struct, frozen=True):
    """What info.json says of one column; of the shape (1,) are plain numbers."""

    dtype: str
    shape: list[Count]
    names: Any = None


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """What info.json says of a data set, as far as that is of use without pictures."""

    codebase_version: str = V3
    robot_type: str | None = None
    total_episodes: Count
    total_frames: Count = 0
    total_tasks: Count = 0
    chunks_size: Annotated[int, msgspec.Meta(ge=1)] = 1000
    data_files_size_in_mb: int = 100
    video_files_size_in_mb: int = 200
    fps: Annotated[float, msgspec.Meta(gt=0)]
    splits: dict[str, Any] = {}
    data_path: str = f"data/{FILE}"
    video_path: str | None = None
    features: dict[str, Feature]

    def __post_init__(self) -> None:
        path = PurePosixPath(PLACE.sub("0", self.data_path))
        if path.is_absolute() or ".." in path.parts or re.search(r"[{}\x00]", str(path)):
            raise ValueError(f"'data_path' is no pattern of files within the folder: {self.data_path}")

    def file(self, entry: Entry) -> str:
        """Return the name of the file that an episode is in."""
        number = entry.episode_index
        values = {
            "episode_chunk": number // self.chunks_size,
            "episode_index": number,
            "chunk_index": entry.chunk,
            "file_index": entry.file,
        }
        return PLACE.sub(lambda place: f"{values[place[1]]:0{place[2] or 1}d}", self.data_path)


class Entry(msgspec.Struct, frozen=True):
    """What a data set's index says of one episode; in v3.0 also in which file it is."""

    episode_index: Count
    length: Count
    chunk: Count = msgspec.field(name="data/chunk_index", default=0)
    file: Count = msgspec.field(name="data/file_index", default=0)


def read_lerobot(folder: Path) -> Recordings:
    """Return the episodes of a data set; `BadInput` names the file that is not what it should be."""
    refuse_own(folder)
    info = _info(folder)
    pictures = [name for name, feature in info.features.items() if feature.dtype in PICTURES]
    kept = {name: info.features[name] for name in info.features if name not in (*pictures, *INDICES)}
    if not any(name.startswith(OBSERVATION) for name in kept):
        raise BadInput(f"{folder}: nothing is seen in it but pictures, which are not read: no observation.* of numbers")
    notes = (f"left out, as pictures are not read: {', '.join(pictures)}",) if pictures else ()
    return Recordings("lerobot", str(folder), _episodes(folder, info, kept), info.total_episodes, info.fps, notes)


def _info(folder: Path) -> Info:
    path = folder / INFO
    if not path.is_file():
        raise BadInput(f"{folder}: no LeRobot data set: there is no {INFO} in it")
    data = read_bytes(path)
    version = decode(data, dict[str, Any], path).get("codebase_version")
    if version not in (V2, V3):
        advice = "convert it with the scripts of LeRobot" if str(version) < V3 else "upgrade bilevel"
        raise BadInput(f"{path}: of LeRobot's version {version}, but only {V2} and {V3} are read; {advice}")
    return decode(data, Info, path)


def _episodes(folder: Path, info: Info, kept: Mapping[str, Feature]) -> Iterator[RecordedEpisode]:
    tasks, numbers = _tasks(folder, info), dict.fromkeys((EPISODE, FRAME, TASK), Feature("int64", [1]))
    for path, entries in groupby(_entries(folder, info), key=lambda entry: folder / info.file(entry)):
        columns = _columns(path, {**kept, **numbers})
        order = np.argsort(columns[EPISODE], kind="stable")
        sorted_ = columns[EPISODE][order]
        for entry in entries:
            number = entry.episode_index
            first, end = np.searchsorted(sorted_, [number, number + 1])
            frames = {name: column[order[first:end]] for name, column in columns.items()}
            if end - first != entry.length:
                counted = f"{end - first} frames there, but {entry.length} in the index of episodes"
                raise BadInput(f"{path}: episode {number} has {counted}")
            if frames[FRAME].tolist() != list(range(entry.length)):
                raise BadInput(f"{path}: the frames of episode {number} are not in order: '{FRAME}' must count from 0")
            texts = [tasks.get(task) for task in frames[TASK].tolist()]
            if None in texts:
                raise BadInput(f"{path}: episode {number} is of a task that {TASKS} does not list")
            seen = {name: frames[name] for name in kept if name.startswith(OBSERVATION)}
            others = {name: frames[name] for name in kept if name not in (*seen, ACTION)}
            yield RecordedEpisode(
                name=f"episode {number}",
                observations=timesteps(seen, f"{path}: the observations"),
                controls=frames.get(ACTION),
                infos=timesteps({"task": np.array(texts, object), **others}, f"{path}: the infos"),
                success=bool(frames[SUCCESS][-1:].any()) if SUCCESS in kept else None,
            )


# The index


def _entries(folder: Path, info: Info) -> list[Entry]:
    """Return what the index says of each episode; they must be counted from 0."""
    if info.codebase_version == V2:
        path = folder / f"{EPISODES}.jsonl"
        entries = _lines(path, Entry)
    else:
        path = folder / EPISODES
        wanted = [field.encode_name for field in msgspec.structs.fields(Entry)]
        rows = [row for file in sorted(path.glob("*/*.parquet")) for row in _rows(file, wanted)]
        with reading(path):
            entries = msgspec.convert(rows, list[Entry])
    entries.sort(key=lambda entry: entry.episode_index)
    if [entry.episode_index for entry in entries] != list(range(len(entries))) or len(entries) != info.total_episodes:
        raise BadInput(
            f"{path}: lists {len(entries)} episodes, but they must be 0 to {info.total_episodes - 1} as in {INFO}"
        )
    return entries


def _tasks(folder: Path, info: Info) -> dict[int, str]:
    """Return the texts of the tasks by their numbers; the column of the texts has no certain name."""
    if info.codebase_version == V2:
        path = folder / f"{TASKS}.jsonl"
        rows = _lines(path, dict[str, Any])
    else:
        path = folder / f"{TASKS}.parquet"
        rows = _rows(path)
    with reading(path):
        numbers = msgspec.convert([row.pop(TASK, None) for row in rows], list[int])
        return {number: str(next(iter(row.values()), "")) for number, row in zip(numbers, rows, strict=True)}


def _lines(path: Path, kind: Any) -> list[Any]:
    """Return the objects in a file of JSON lines."""
    lines = read_bytes(path).splitlines()
    return [decode(line, kind, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


# Tables


def _table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Return these columns of a parquet file, or all of them."""
    with reading(path), pq.ParquetFile(path) as file:
        there = file.schema_arrow.names
        for name in there if columns is None else columns:
            if there.count(name) != 1:
                raise BadInput(f"{path}: the column '{name}' is {'missing' if name not in there else 'there twice'}")
        return file.read(columns)


def _rows(path: Path, columns: list[str] | None = None) -> list[dict[str, Any]]:
    table = _table(path, columns)
    with reading(path):
        rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _columns(path: Path, features: Mapping[str, Feature]) -> dict[str, NDArray[Any]]:
    """Return columns of a file as arrays of the shapes that the features have."""
    table = _table(path, list(features))
    with reading(path):
        arrays = {name: _array(table[name], name, feature, path) for name, feature in features.items()}
    for name in (EPISODE, FRAME, TASK):
        if arrays[name].dtype.kind not in "iu":
            raise BadInput(f"{path}: '{name}' holds {arrays[name].dtype}, not whole numbers")
    return arrays


def _array(column: pa.ChunkedArray, name: str, feature: Feature, path: Path) -> NDArray[Any]:
    """Return a column, whose lists in lists are the axes of its feature, as one array, (rows, ...)."""
    values = column.combine_chunks()
    shape = () if feature.shape == [1] else tuple(feature.shape)
    depth = (1,) if feature.shape == [1] and pa.types.is_nested(values.type) else shape  # some keep lists of one number
    for length in depth:
        values = getattr(values, "storage", values)  # of an extension type
        if not _is_list(values.type) or pc.any(pc.not_equal(pc.list_value_length(values), length)).as_py():
            raise BadInput(f"{path}: '{name}' does not have the shape {feature.shape} in each row")
        values = values.flatten()
    if values.null_count or len(values) != len(column) * math.prod(shape):
        raise BadInput(f"{path}: '{name}' has rows without values")
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        found = np.array(values.to_pylist(), object)
    else:
        found = np.asarray(values.to_numpy(zero_copy_only=False))
        if found.dtype.kind not in "fiub":
            raise BadInput(f"{path}: '{name}' holds {values.type}, neither numbers nor texts")
    return found.reshape(len(column), *shape)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
