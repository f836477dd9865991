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

from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings, reading, timesteps
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
    total = len(observations)
    columns = {
        "controls": (controls, None), "infos": (infos, None), "successes": (successes, None),
        "demonstrators": (demonstrators, ""), "seeds": (seeds, 0),
    }  # fmt: skip
    for name, (column, _) in columns.items():
        if column is not None and len(column) != total:
            raise BadInput(f"there are observations of {total} episodes, but {name} of {len(column)}")
    given = zip(*([default] * total if column is None else column for column, default in columns.values()), strict=True)
    episodes = (
        RecordedEpisode(
            f"episode {number}",
            seen if isinstance(seen, list) else timesteps(seen, f"episode {number}: its observations"),
            None if acted is None else np.asarray(acted),
            *rest,
        )
        for number, (seen, (acted, *rest)) in enumerate(zip(observations, given, strict=True))
    )
    return Recordings("arrays", "(arrays in memory)", episodes, total)


def read_npz(path: Path) -> Recordings:
    """Return the episodes of an npz file, or of all those in a folder, in the order of their names."""
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise BadInput(f"{path}: there are no npz files in it")
    return Recordings("npz", str(path), (episode for file in files for episode in _episodes(file)))


def _ends(arrays: Mapping[str, NDArray[Any]], path: Path) -> list[int]:
    """Return the last timestep of each episode, as far as the arrays say so."""
    marks = [arrays[name] for name in ENDS if name in arrays]
    if not marks:
        return []
    if len({mark.shape for mark in marks}) > 1 or marks[0].ndim != 1 or any(m.dtype.kind not in "fiub" for m in marks):
        raise BadInput(f"{path}: {' and '.join(ENDS)} must have one number for each timestep")
    ends = np.flatnonzero(np.any(np.array(marks) != 0, axis=0)).tolist()
    last = len(marks[0]) - 1
    return [*ends, last] if last >= 0 and ends[-1:] != [last] else ends


def _episodes(path: Path) -> Iterator[RecordedEpisode]:
    with reading(path), np.load(path, allow_pickle=False) as archive:
        arrays = {name: np.asarray(archive[name]) for name in archive.files}
    seen, after = (_parts(arrays, name) for name in (OBSERVATIONS, NEXT))
    if seen is None:
        raise BadInput(f"{path}: there is no array '{OBSERVATIONS}'; there are: {', '.join(arrays) or 'none'}")
    observations = timesteps(seen, f"{path}: the observations")
    following = None if after is None else timesteps(after, f"{path}: the {NEXT}")
    total = len(observations)
    lengths = {name: len(np.atleast_1d(arrays[name])) for name in (ACTIONS, *ENDS) if name in arrays}
    for name, length in (lengths | ({} if following is None else {NEXT: len(following)})).items():
        if length != total:
            raise BadInput(f"{path}: {total} observations, but '{name}' has {length} rows")
    others = {
        name.removeprefix("infos/"): array
        for name, array in arrays.items()
        if name.split("/")[0] not in NOT_INFO and array.ndim and len(array) == total
    }
    infos, controls = timesteps(others, f"{path}: the infos") if others else None, arrays.get(ACTIONS)
    start = 0
    for number, end in enumerate(_ends(arrays, path) or [total - 1]):
        now = slice(start, end + 1)
        last = [] if following is None else [following[end]]
        yield RecordedEpisode(
            f"{path.name}, episode {number}",
            observations[now] + last,
            None if controls is None else controls[now],
            None if infos is None else infos[now] + [{} for _ in last],
        )
        start = end + 1


def _parts(arrays: Mapping[str, NDArray[Any]], name: str) -> Any:
    """Return the array of a name, or a dictionary of those whose names begin with it, or `None`."""
    parts = {key.partition("/")[2]: array for key, array in arrays.items() if key.startswith(f"{name}/")}
    return parts or arrays.get(name)
