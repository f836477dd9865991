"""What a reader of some format gives to the importer: episodes as they were recorded elsewhere.

A reader knows its format and nothing of tasks. It gives `Recordings`, whose episodes are read one by one, and raises
`BadInput` with the place where a file is not what it should be. All else is the importer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np

from bilevel.symbolic.domain import BadInput

NUMBERS = "fiub"  # the kinds of NumPy's types that are numbers


@dataclass
class RecordedEpisode:
    """One episode as it was recorded elsewhere; `BadInput` where its parts do not fit together.

    Observations and infos may be given as arrays, or trees of these, with a row for each timestep. An observation is
    whatever `perceive` takes, or a `Scene`. There is one more of them than there are controls, or as many, where the
    last one was not recorded; the last control then leads nowhere and is left out. The last row of `after`, the next
    observations, is what was seen at the very end.
    """

    name: str  # for messages: "data/demo_3", "episode 7"
    observations: Any
    controls: Any = None  # (steps, ...); None where what was done is not on record
    infos: Any = None  # one for each observation
    after: InitVar[Any] = None
    success: bool | None = None  # None where that was not recorded: then the goal at the end decides
    demonstrator: str = ""
    seed: int = 0

    def __post_init__(self, after: Any) -> None:
        seen = timesteps(self.observations, f"{self.name}: the observations")
        infos = None if self.infos is None or not len(self.infos) else timesteps(self.infos, f"{self.name}: the infos")
        if after is not None:
            seen += timesteps(after, f"{self.name}: the next observations")[-1:]
            infos = infos and [*infos, {}]
        self.observations, self.infos = seen, infos
        if infos is not None and len(infos) != len(seen):
            raise BadInput(f"{self.name}: {len(infos)} infos, but {len(seen)} observations")
        if self.controls is None:
            return
        try:
            controls = np.asarray(self.controls)
        except ValueError:
            raise BadInput(f"{self.name}: the controls are not all of one shape") from None
        if controls.dtype.kind not in NUMBERS or controls.ndim == 0:
            raise BadInput(f"{self.name}: the controls are {controls.dtype} of shape {controls.shape}, not numbers")
        if len(controls) not in (len(seen) - 1, len(seen)):
            lengths = f"{len(seen)} observations, but {len(controls)} controls"
            raise BadInput(f"{self.name}: {lengths}; there must be one more, or as many")
        self.controls = controls[: max(0, len(seen) - 1)]


@dataclass(frozen=True)
class Recordings:
    """All episodes that a reader found in one place."""

    format: str
    place: str  # a path, or the name of a data set
    episodes: Iterable[RecordedEpisode]
    total: int | None = None  # episodes, if that is known before they are read
    rate: float | None = None  # timesteps per second, in Hz
    notes: tuple[str, ...] = ()  # what the user should know, such as what was left out


def timesteps(parts: Any, what: str) -> list[Any]:
    """Return the timesteps in arrays: of a dictionary or a tuple of such, those of all of its parts together.

    timesteps({"robot": robot, "cubes": (first, second)})[7]  # {"robot": robot[7], "cubes": (first[7], second[7])}
    """
    if not isinstance(parts, Mapping | tuple):
        if not isinstance(parts, list) and np.ndim(parts) == 0:
            raise BadInput(f"{what}: a single value, not one for each timestep")
        return list(parts)
    names = list(parts) if isinstance(parts, Mapping) else range(len(parts))
    columns = [timesteps(parts[name], f"{what}/{name}") for name in names]
    if len({len(column) for column in columns}) > 1:
        lengths = ", ".join(f"'{name}' {len(column)}" for name, column in zip(names, columns, strict=True))
        raise BadInput(f"{what} differ in length: {lengths}")
    rows = zip(*columns, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows] if isinstance(parts, Mapping) else list(rows)


@contextmanager
def reading(place: object) -> Iterator[None]:
    """`BadInput`, which names the place, for whatever a library raises while it reads a file that is damaged."""
    try:
        yield
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(f"{place}: there is no such file") from None
    except Exception as error:  # numpy, zipfile, h5py, Arrow and Minari raise dozens of kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadInput(f"{place}: damaged, or of another format: {reason:.200}") from None
