"""The files of LeRobot's data sets (v2.1 and v3.0), read with pyarrow alone and checked against each other.

In v2.1 every episode has a file of its own; in v3.0 many of them share one, and an index says which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bilevel.demonstrations.lerobot_format import (
    EPISODE,
    EPISODES,
    FRAME,
    INFO,
    TASK,
    TASKS,
    V2,
    V3,
    Count,
    Feature,
    Info,
)
from bilevel.json_files import decode, read_bytes
from bilevel.symbolic.domain import BadInput

Columns = dict[str, NDArray[Any]]


class Entry(msgspec.Struct, frozen=True):
    """What a data set's index says of one episode; in v3.0 also in which file it is."""

    episode_index: Count
    length: Count
    chunk: Count = msgspec.field(name="data/chunk_index", default=0)
    file: Count = msgspec.field(name="data/file_index", default=0)
    first: int | None = msgspec.field(name="dataset_from_index", default=None)
    end: int | None = msgspec.field(name="dataset_to_index", default=None)


class Frames(NamedTuple):
    """The frames of one episode: its number, its features, each with a row for every frame, and the task's texts."""

    episode: int
    columns: Columns
    tasks: Sequence[str]


def read_info(folder: Path) -> Info:
    """Return what a data set says of itself; `BadInput` where there is none, or of a version that is not read."""
    path = folder / INFO
    if not path.is_file():
        raise BadInput(f"{folder}: no LeRobot data set: there is no {INFO} in it")
    data = read_bytes(path)
    version = decode(data, dict[str, Any], path).get("codebase_version")
    if version not in (V2, V3):
        advice = "convert it with the scripts of LeRobot" if str(version) < V3 else "upgrade bilevel"
        raise BadInput(f"{path}: of LeRobot's version {version}, but only {V2} and {V3} are read; {advice}")
    return decode(data, Info, path)


def read_frames(folder: Path) -> Iterator[Frames]:
    """Give the frames of each episode in order; `BadInput` names the file that is not what it should be."""
    info = read_info(folder)
    tasks = read_texts(folder, info, TASKS, TASK)
    entries = _entries(folder, info)
    for path, members in groupby(entries, key=lambda entry: _data_file(folder, info, entry)):
        columns = _columns(path, {**info.kept, **dict.fromkeys((EPISODE, FRAME, TASK), Feature("int64", [1]))})
        order = np.argsort(columns[EPISODE], kind="stable")
        sorted_ = columns[EPISODE][order]
        for entry in members:
            first, end = np.searchsorted(sorted_, [entry.episode_index, entry.episode_index + 1])
            rows = order[first:end]
            frames = {name: column[rows] for name, column in columns.items()}
            _check_frames(path, entry, frames)
            texts = [tasks.get(number) for number in frames[TASK].tolist()]
            if None in texts:
                raise BadInput(f"{path}: episode {entry.episode_index} is of a task that {TASKS} does not list")
            yield Frames(entry.episode_index, {name: frames[name] for name in info.kept}, [str(text) for text in texts])


def _check_frames(path: Path, entry: Entry, frames: Columns) -> None:
    """Refuse an episode whose rows are not the ones that the index promises."""
    rows, number = len(frames[FRAME]), entry.episode_index
    if rows != entry.length:
        raise BadInput(f"{path}: episode {number} has {rows} frames there, but {entry.length} in the index of episodes")
    if entry.first is not None and entry.end is not None and entry.end - entry.first != entry.length:
        raise BadInput(f"{path}: the index of episodes gives episode {number} another length than its first and last")
    if frames[FRAME].tolist() != list(range(rows)):
        raise BadInput(f"{path}: the frames of episode {number} are not in order: '{FRAME}' must count from 0")


# The index


def _entries(folder: Path, info: Info) -> list[Entry]:
    """Return what the index says of each episode; they must be counted from 0."""
    if info.codebase_version == V2:
        path = folder / f"{EPISODES}.jsonl"
        entries = _lines(path, Entry)
    else:
        path = folder / EPISODES
        files = sorted(path.glob("*/*.parquet"))
        if not files:
            raise BadInput(f"{path}: the index of episodes is missing")
        wanted = [field.encode_name for field in msgspec.structs.fields(Entry)]
        rows = [row for file in files for row in _rows(file, wanted)]
        entries = [_converted(row, Entry, path) for row in rows]
    entries.sort(key=lambda entry: entry.episode_index)
    if [entry.episode_index for entry in entries] != list(range(info.total_episodes)):
        raise BadInput(
            f"{path}: lists {len(entries)} episodes, but they must be 0 to {info.total_episodes - 1} as in {INFO}"
        )
    return entries


def read_texts(folder: Path, info: Info, name: str, number: str) -> dict[int, str]:
    """Return the texts that a file in meta/ lists, by their numbers, which are in the column of that name."""
    if info.codebase_version == V2:
        rows = _lines(folder / f"{name}.jsonl", dict[str, Any])
    else:
        rows = _rows(folder / f"{name}.parquet", [number], others=True)
    texts = [next((str(value) for key, value in row.items() if key != number), "") for row in rows]
    return {row.get(number, -1): text for row, text in zip(rows, texts, strict=True)}


def _data_file(folder: Path, info: Info, entry: Entry) -> Path:
    """Return the file that an episode is in, as the pattern in info.json says."""
    number = entry.episode_index
    try:
        name = info.data_path.format(
            episode_chunk=number // info.chunks_size,
            episode_index=number,
            chunk_index=entry.chunk,
            file_index=entry.file,
        )
    except (LookupError, ValueError):
        raise BadInput(f"{folder / INFO}: 'data_path' is no pattern of files: {info.data_path}") from None
    return folder / name


# Files


def _lines(path: Path, kind: Any) -> list[Any]:
    """Return the objects in a file of JSON lines."""
    lines = read_bytes(path).splitlines()
    return [decode(line, kind, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _converted(row: Mapping[str, Any], kind: Any, path: Path) -> Any:
    try:
        return msgspec.convert(row, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from None


@contextmanager
def _parquet(path: Path) -> Iterator[None]:
    """`BadInput` where a parquet file is missing or damaged."""
    if not path.is_file():
        raise BadInput(f"{path}: missing")
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        reason = str(error).split("\n")[0]
        raise BadInput(f"{path}: no whole parquet file; it may be truncated ({reason})") from None


def _read_table(path: Path, columns: Sequence[str], others: bool = False) -> pa.Table:
    """Return these columns of a parquet file, or, with `others`, all of them."""
    with _parquet(path), pq.ParquetFile(path) as file:
        there = file.schema_arrow.names
        missing = [name for name in columns if name not in there]
        if missing:
            raise BadInput(f"{path}: the column '{missing[0]}' is missing")
        return file.read(there if others else list(columns))


def _rows(path: Path, columns: Sequence[str], others: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a parquet file."""
    with _parquet(path):
        rows: list[dict[str, Any]] = _read_table(path, columns, others).to_pylist()
    return rows


def _columns(path: Path, features: Mapping[str, Feature]) -> Columns:
    """Return columns of a file as arrays of the shapes that the features have."""
    with _parquet(path):
        table = _read_table(path, list(features))
        return {name: _array(table[name], name, feature, path) for name, feature in features.items()}


def _array(column: pa.ChunkedArray, name: str, feature: Feature, path: Path) -> NDArray[Any]:
    """Return a column, whose lists in lists are the axes of its feature, as one array, (rows, ...)."""
    values = column.combine_chunks()
    shape = () if feature.shape == [1] else tuple(feature.shape)
    for length in shape:
        values = getattr(values, "storage", values)  # of an extension type
        if not pa.types.is_nested(values.type) or pc.any(pc.not_equal(pc.list_value_length(values), length)).as_py():
            raise BadInput(f"{path}: '{name}' does not have the shape {feature.shape} in each row")
        values = values.flatten()
    if values.null_count or len(values) != len(column) * math.prod(shape):
        raise BadInput(f"{path}: '{name}' has rows without values")
    found = np.asarray(values.to_numpy(zero_copy_only=False))
    found = found.astype(str) if found.dtype == object else found
    return found.reshape(len(column), *shape)
