"""A data set of demonstrations as one of LeRobot's (v3.0), for programs that read those.

A frame is what was seen and what was done then: `observation.state` is the agent, `observation.environment_state` has
a row for each object, one after the other, and `observation.visible` says which of them were seen. There are as many
rows as the most objects that a demonstration has. `action` is the control that was executed, `expert_control` what the
expert wanted, to be imitated, and `subtask_index` what it was doing, such as pick(block1): LeRobot gives its text as
`subtask`. The text of the task is the goal at the end. What else there is, meta/bilevel.json keeps: `bilevel import`
gives the demonstrations back as they were, but for snapshots.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bilevel.demonstrations import lerobot_format as names
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import METADATA, Demonstration, demonstration_arrays
from bilevel.demonstrations.lerobot_format import Feature, Info, OurEpisode, Ours
from bilevel.demonstrations.lerobot_statistics import Statistics, joined, statistics_of
from bilevel.files import write_atomically
from bilevel.json_files import encode
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SUCCESS

FILE_BYTES = 100 * 2**20  # of frames, not compressed, after which LeRobot begins another file
USUAL_RATE = 10.0  # Hz
NOTHING = ""  # the subtask where the expert does not say what it is doing

Columns = dict[str, NDArray[Any]]  # (frames, ...) each


def export_to_lerobot(
    demonstrations: Demonstrations,
    output: Path | str,
    rate: float | None = None,
    callback: Callback = silent,
) -> Path:
    """Write a data set as a new folder of LeRobot's and return it.

    Afterwards either all of it is there or, with `BadInput` or an interruption, nothing. The `rate` is how many
    timesteps there are in a second; unless told, it is what the data set says, or else 10.
    """
    source = demonstrations.manifest.source if demonstrations.manifest else None
    rate = rate if rate is not None else (source and source.rate) or USUAL_RATE
    if not (math.isfinite(rate) and rate > 0):
        raise BadInput(f"the rate is how many timesteps there are in a second, not {rate}")
    with _appearing(Path(output)) as folder:
        _Export(demonstrations, folder, rate).write(callback)
    return Path(output)


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """A folder beside the target to be written to; it becomes the target if all goes well, else it goes."""
    if target.exists():
        raise BadInput(f"{target}: is there already; choose another folder or remove it")
    if any("\ud800" <= letter <= "\udfff" for letter in str(target)):
        raise BadInput(f"{target}: cannot be written: its name is not in UTF-8, which parquet files need")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        unfinished.mkdir(parents=True)
    except FileExistsError:
        raise BadInput(f"{unfinished}: an export is under way, or was killed; in that case remove the folder") from None
    except OSError as error:
        raise BadInput(f"{target}: cannot be written: {error.strerror}") from None
    try:
        yield unfinished
        unfinished.rename(target)
    except OSError as error:
        raise BadInput(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


class _Numbers(dict[str, int]):
    """Texts, numbered as they come."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


class _Export:
    """One data set on its way into a folder."""

    def __init__(self, demonstrations: Demonstrations, folder: Path, rate: float) -> None:
        self.demonstrations, self.folder, self.rate = demonstrations, folder, rate
        self.rows, self.has_controls = 0, True
        for number, demonstration in enumerate(demonstrations):
            if demonstration.steps == 0:
                raise BadInput(f"episode {number} has no steps, which LeRobot does not know")
            self.rows = max(self.rows, len(demonstration.objects))
            self.has_controls &= demonstration.has_controls
        self.tasks, self.subtasks = _Numbers(), _Numbers({NOTHING: 0})
        self.features = self._features()
        self.index: list[dict[str, Any]] = []  # a row for each episode
        self.ours: list[OurEpisode] = []
        self.frames = 0

    def write(self, callback: Callback) -> None:
        """Write all files."""
        statistics = [
            self._write_index_row(number, place, columns) for number, place, columns in self._write_frames(callback)
        ]
        _write_table(self.folder / names.EPISODES / _file(0), pa.Table.from_pylist(self.index))
        for name, texts, column in (
            (names.TASKS, self.tasks, names.TASK),
            (names.SUBTASKS, self.subtasks, names.SUBTASK),
        ):
            _write_table(self.folder / f"{name}.parquet", _texts_table(texts, column))
        stats = {name: {key: each.tolist() for key, each in of.items()} for name, of in joined(statistics).items()}
        self._write_json(names.STATS, stats)
        self._write_json(names.INFO, self._info())
        write_atomically(self.folder / names.OURS, msgspec.json.encode(self._about_us()))

    def _write_json(self, name: str, value: object) -> None:
        write_atomically(self.folder / name, encode(value))

    def _write_frames(self, callback: Callback) -> Iterator[tuple[int, tuple[int, int], Columns]]:
        """Write the frames of all episodes, in files of a bounded size; give each one's number, file and columns."""
        total, place, size = len(self.demonstrations), 0, 0
        writer: pq.ParquetWriter | None = None
        try:
            for number, demonstration in enumerate(self.demonstrations):
                columns = self._columns(number, demonstration)
                table = pa.table({name: _column(array) for name, array in columns.items()})
                if writer is None or size + table.nbytes > FILE_BYTES:
                    place, size = place + (writer is not None), 0
                    if writer is not None:
                        writer.close()
                    writer = _writer(self.folder / "data" / _file(place), table.schema)
                writer.write_table(table)
                size += table.nbytes
                yield number, divmod(place, 1000), columns
                callback(Progress("exporting", number + 1, total))
        finally:
            if writer is not None:
                writer.close()

    def _columns(self, number: int, demonstration: Demonstration) -> Columns:
        """Return the frames of one episode, and note what is not in them."""
        steps, more = demonstration.steps, self.rows - len(demonstration.objects)
        last = np.arange(steps) == steps - 1
        success = last & (demonstration.outcome == SUCCESS)
        goal = demonstration.goals[-1][1]
        frame = np.arange(steps)
        subtasks = [self.subtasks[str(action) if action else NOTHING] for action in demonstration.actions]
        columns = {
            names.STATE: demonstration.agent[:-1],
            names.OBJECTS: np.pad(demonstration.features[:-1], ((0, 0), (0, more), (0, 0))).reshape(steps, -1),
            names.VISIBLE: np.pad(demonstration.visible[:-1], ((0, 0), (0, more))).astype(np.float32),
            names.ACTION: demonstration.executed.reshape(steps, -1),
            names.EXPERT_CONTROL: demonstration.controls.reshape(steps, -1),
            names.SUBTASK: np.array(subtasks, np.int64),
            names.REWARD: success.astype(np.float32),
            names.DONE: last,
            names.SUCCESS: success,
            names.TIME: (frame / self.rate).astype(np.float32),
            names.FRAME: frame,
            names.EPISODE: np.full(steps, number),
            names.INDEX: self.frames + frame,
            names.TASK: np.full(steps, self.tasks[" & ".join(map(str, sorted(goal))) or self.demonstrations.task]),
        }
        self.frames += steps
        self.ours.append(
            OurEpisode(
                agent=demonstration.agent[-1].tolist(),
                features=demonstration.features[-1].tolist(),
                visible=demonstration.visible[-1].tolist(),
                metadata=msgspec.Raw(demonstration_arrays(demonstration)[METADATA].tobytes()),
            )
        )
        return {name: columns[name].reshape(steps, *_axes(self.features[name])) for name in self.features}

    def _write_index_row(self, number: int, place: tuple[int, int], columns: Columns) -> Statistics:
        """Note where an episode is, with its statistics, and return these."""
        statistics = {name: statistics_of(array) for name, array in columns.items()}
        chunk, file = place
        length = len(columns[names.FRAME])
        self.index.append(
            {
                names.EPISODE: number,
                "tasks": [list(self.tasks)[columns[names.TASK][0]]],
                "length": length,
                "data/chunk_index": chunk,
                "data/file_index": file,
                "dataset_from_index": int(columns[names.INDEX][0]),
                "dataset_to_index": int(columns[names.INDEX][0]) + length,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
                **{f"stats/{name}/{key}": each.tolist() for name, of in statistics.items() for key, each in of.items()},
            }
        )
        return statistics

    def _features(self) -> dict[str, Feature]:
        """Return the columns, in order; those of objects and controls only where there are any."""
        spec, controls = self.demonstrations.spec, self.demonstrations.controls
        size = math.prod(controls.shape)
        of_objects = [f"object{row}.{column}" for row in range(self.rows) for column in spec.columns]
        found = {
            names.STATE: Feature("float32", [len(spec.agent)], list(spec.agent)),
            names.OBJECTS: Feature("float32", [len(of_objects)], of_objects),
            names.VISIBLE: Feature("float32", [self.rows], [f"object{row}" for row in range(self.rows)]),
            names.ACTION: Feature(controls.dtype, [size]),
            names.EXPERT_CONTROL: Feature(controls.dtype, [size]),
            names.SUBTASK: Feature("int64", [1]),
            names.REWARD: Feature("float32", [1]),
            names.DONE: Feature("bool", [1]),
            names.SUCCESS: Feature("bool", [1]),
            names.TIME: Feature("float32", [1]),
            **{name: Feature("int64", [1]) for name in names.INDICES if name != names.TIME},
        }
        missing = () if self.has_controls else (names.ACTION, names.EXPERT_CONTROL)
        return {name: feature for name, feature in found.items() if feature.shape != [0] and name not in missing}

    def _info(self) -> Info:
        episodes = len(self.index)
        return Info(
            total_episodes=episodes,
            total_frames=self.frames,
            total_tasks=len(self.tasks),
            fps=int(self.rate) if self.rate == int(self.rate) else self.rate,
            splits={"train": f"0:{episodes}"},
            features=self.features,
        )

    def _about_us(self) -> Ours:
        manifest = self.demonstrations.manifest
        settings, versions = (manifest.settings, manifest.versions) if manifest else (None, {})
        return Ours(1, self.demonstrations.spec.as_json(), self.demonstrations.controls, settings, versions, self.ours)


# Tables


def _file(place: int) -> str:
    chunk, file = divmod(place, 1000)
    return names.FILE.format(chunk_index=chunk, file_index=file)


def _axes(feature: Feature) -> Sequence[int]:
    """A feature of the shape (1,) is a plain number."""
    return () if feature.shape == [1] else feature.shape


def _column(array: NDArray[Any]) -> pa.Array:
    flat = pa.array(array.reshape(-1))
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])


def _texts_table(texts: Mapping[str, int], column: str) -> pa.Table:
    """Return the numbers of texts as pandas writes a table whose index they are: LeRobot asks for them by that."""
    table = pa.table({column: list(texts.values()), "__index_level_0__": list(texts)})
    plain = {"field_name": column, "name": column, "pandas_type": "int64", "numpy_type": "int64", "metadata": None}
    index = {"field_name": "__index_level_0__", "name": None, "pandas_type": "unicode", "numpy_type": "object"}
    about = {"index_columns": ["__index_level_0__"], "columns": [plain, {**index, "metadata": None}]}
    return table.replace_schema_metadata({"pandas": msgspec.json.encode({**about, "column_indexes": []})})


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    path.parent.mkdir(parents=True, exist_ok=True)
    return pq.ParquetWriter(path, schema, compression="snappy")


def _write_table(path: Path, table: pa.Table) -> None:
    with _writer(path, table.schema) as writer:
        writer.write_table(table)
