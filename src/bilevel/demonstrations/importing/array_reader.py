"""Reads arrays: in memory, or in npz files, in which episodes follow one another.

An npz file has `observations` (or `observations/NAME` for the parts of a dictionary) and `actions` with a row for each
timestep; `terminals` or `timeouts`, or both, are true where an episode ends, and without these a file is one episode.
`next_observations` tell what was seen at the very end. All other arrays with as many rows are the `info`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import NUMBERS, RecordedEpisode, Recordings, reading, timesteps
from bilevel.symbolic.domain import BadInput

OBSERVATIONS, NEXT, ACTIONS = "observations", "next_observations", "actions"
ENDS = ("terminals", "timeouts")
NOT_INFO = (OBSERVATIONS, NEXT, ACTIONS, "rewards", *ENDS)


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
        name, seen = f"episode {number}", observations[number]
        fields: dict[str, Any] = {key: column[number] for key, column in columns.items()}
        seen = seen if isinstance(seen, list) else timesteps(seen, f"{name}: its observations")
        return RecordedEpisode(name, seen, **fields)

    return Recordings("arrays", "(arrays in memory)", map(episode, range(len(observations))), len(observations))


def read_npz(path: Path) -> Recordings:
    """Return the episodes of an npz file, or of all those in a folder, in the order of their names."""
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise BadInput(f"{path}: there are no npz files in it")
    return Recordings("npz", str(path), (episode for file in files for episode in _episodes(file)))


def _episodes(path: Path) -> Iterator[RecordedEpisode]:
    with reading(path), np.load(path, allow_pickle=False) as archive:
        arrays = {name: np.asarray(archive[name]) for name in archive.files}
    seen, after, controls = _parts(arrays, OBSERVATIONS), _parts(arrays, NEXT), arrays.get(ACTIONS)
    if seen is None:
        raise BadInput(f"{path}: there is no array '{OBSERVATIONS}'; there are: {', '.join(arrays) or 'none'}")
    observations = timesteps(seen, f"{path}: the observations")
    total = len(observations)
    following = None if after is None else timesteps(after, f"{path}: the {NEXT}")
    lengths = {name: len(np.atleast_1d(arrays[name])) for name in (ACTIONS, *ENDS) if name in arrays}
    for name, length in (lengths | ({} if following is None else {NEXT: len(following)})).items():
        if length != total:
            raise BadInput(f"{path}: {total} observations, but '{name}' has {length} rows")
    others = {
        name.removeprefix("infos/"): array
        for name, array in arrays.items()
        if name.split("/")[0] not in NOT_INFO and array.ndim and len(array) == total
    }
    infos = timesteps(others, f"{path}: the infos") if others else None
    start = 0
    for number, end in enumerate(_ends(arrays, path, total)):
        now = slice(start, end + 1)
        last = [] if following is None else [following[end]]
        yield RecordedEpisode(
            f"{path.name}, episode {number}",
            observations[now] + last,
            None if controls is None else controls[now],
            None if infos is None else infos[now] + [{} for _ in last],
        )
        start = end + 1


def _ends(arrays: Mapping[str, NDArray[Any]], path: Path, total: int) -> list[int]:
    """Return the last timestep of each episode, as far as the arrays say so; the last of all is one."""
    ends = np.arange(total) == total - 1
    for mark in (arrays[name] for name in ENDS if name in arrays):
        if mark.shape != (total,) or mark.dtype.kind not in NUMBERS:
            raise BadInput(f"{path}: {' and '.join(ENDS)} must have one number for each timestep")
        ends |= mark != 0
    return [int(end) for end in np.flatnonzero(ends)] if total else [-1]


def _parts(arrays: Mapping[str, NDArray[Any]], name: str) -> Any:
    """Return the array of a name, or a dictionary of those whose names begin with it, or `None`."""
    parts = {key.partition("/")[2]: array for key, array in arrays.items() if key.startswith(f"{name}/")}
    return parts or arrays.get(name)
