"""Reads arrays: in memory, or in npz files, in which episodes follow one another.

An npz file has `observations` (or `observations/NAME` for the parts of a dictionary) and `actions` with a row for each
timestep; `terminals` or `timeouts`, or both, are true where an episode ends, and without these a file is one episode.
`next_observations` tell what was seen at the very end. All other arrays with as many rows are the `info`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import NUMBERS, RecordedEpisode, Recordings, reading
from bilevel.symbolic.domain import BadInput

OBSERVATIONS, NEXT, ACTIONS = "observations", "next_observations", "actions"
ENDS = ("terminals", "timeouts")
PARTS = (OBSERVATIONS, NEXT, ACTIONS, *ENDS)  # all with as many rows


def recordings_in_memory(
    observations: Sequence[Any],
    controls: Sequence[Any] | None = None,
    infos: Sequence[Any] | None = None,
    successes: Sequence[bool] | None = None,
    demonstrators: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> Recordings:
    """Return episodes that are in memory; each argument holds one thing for each episode.

    The observations of an episode are a list of scenes, an array, or a dictionary or tuple of arrays.
    """
    every = {"controls": controls, "infos": infos, "success": successes, "demonstrator": demonstrators, "seed": seeds}
    columns = {name: column for name, column in every.items() if column is not None}
    for name, column in columns.items():
        if len(column) != len(observations):
            raise BadInput(f"there are observations of {len(observations)} episodes, but {name} of {len(column)}")

    def episode(number: int) -> RecordedEpisode:
        fields: dict[str, Any] = {key: column[number] for key, column in columns.items()}
        return RecordedEpisode(f"episode {number}", observations[number], **fields)

    return Recordings("arrays", "(arrays in memory)", map(episode, range(len(observations))), len(observations))


def read(source: str) -> Recordings:
    """Return the episodes of an npz file, or of all those in a folder, in the order of their names."""
    path = Path(source)
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise BadInput(f"{path}: there are no npz files in it")
    return Recordings("npz", str(path), (episode for file in files for episode in _episodes(file)))


def _episodes(path: Path) -> Iterator[RecordedEpisode]:
    with reading(path), np.load(path, allow_pickle=False) as archive:
        arrays = {name: np.asarray(archive[name]) for name in archive.files}
    lengths = [len(np.atleast_1d(array)) for name, array in arrays.items() if _role(name) == OBSERVATIONS]
    if not lengths:
        raise BadInput(f"{path}: there is no array '{OBSERVATIONS}'; there are: {', '.join(arrays) or 'none'}")
    total = lengths[0]
    for name, array in arrays.items():
        if _role(name) in PARTS and array.shape[:1] != (total,):
            raise BadInput(f"{path}: {total} observations, but '{name}' is of shape {array.shape}")
    ends = np.arange(1, total + 1) == total
    for name in (name for name in ENDS if name in arrays):
        if arrays[name].ndim != 1 or arrays[name].dtype.kind not in NUMBERS:
            raise BadInput(f"{path}: {' and '.join(ENDS)} must have one number for each timestep")
        ends |= arrays[name] != 0
    columns = {name: array for name, array in arrays.items() if array.shape[:1] == (total,)}
    for number, (start, end) in enumerate(pairwise([0, *(np.flatnonzero(ends) + 1).tolist()])):
        now = {name: array[start:end] for name, array in columns.items()}
        others = (name for name in now if _role(name) not in (*PARTS, "rewards"))
        yield RecordedEpisode(
            f"{path}, episode {number}",
            _parts(now, OBSERVATIONS),
            now.get(ACTIONS),
            {name.removeprefix("infos/"): now[name] for name in others},
            _parts(now, NEXT),
        )


def _role(name: str) -> str:
    return name.split("/")[0]


def _parts(arrays: Mapping[str, NDArray[Any]], name: str) -> Any:
    """Return the array of a name, or a dictionary of those whose names begin with it, or `None`."""
    parts = {key.partition("/")[2]: array for key, array in arrays.items() if key.startswith(f"{name}/")}
    return parts or arrays.get(name)
