"""What a reader of some format gives to the importer: episodes as somebody else recorded them.

A reader knows its format and nothing of tasks. It gives `Recordings`, whose episodes are read one by one, and raises
`BadInput` with the place where a file is not what it should be. All else is the importer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from numpy.typing import NDArray

from bilevel.demonstrations.dataset import CollectionSettings
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls
from bilevel.tasks.spec import Spec


class Timesteps(Sequence[Any]):
    """The timesteps of an episode in arrays: of a dictionary or a tuple of such, those of all of its parts.

    Timesteps({"robot": robot, "cubes": (first, second)})[7]  # {"robot": robot[7], "cubes": (first[7], second[7])}
    """

    def __init__(self, parts: Any, what: str) -> None:
        """`what` is said of parts that differ in length."""
        lengths = {name or what: length for name, length in _lengths(parts)}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"'{name}' {length}" for name, length in lengths.items())
            raise BadInput(f"{what} differ in length: {told}")
        self._parts, self._length = parts, next(iter(lengths.values()), 0)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        number = range(self._length)[index]
        return [self[each] for each in number] if isinstance(number, range) else _row(self._parts, number)


def _lengths(parts: Any, name: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(parts, Mapping | tuple):
        for key, part in parts.items() if isinstance(parts, Mapping) else enumerate(parts):
            yield from _lengths(part, f"{name}/{key}" if name else str(key))
    else:
        yield name, len(parts)


def _row(parts: Any, index: int) -> Any:
    if isinstance(parts, Mapping):
        return {key: _row(part, index) for key, part in parts.items()}
    return tuple(_row(part, index) for part in parts) if isinstance(parts, tuple) else parts[index]


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode as somebody else recorded it.

    An observation is whatever `perceive` takes, or a `Scene`. There is one more of them than there are controls, or as
    many, where the last one was not recorded; the last control then leads nowhere and is left out.
    """

    name: str  # for messages: "data/demo_3", "episode 7"
    observations: Sequence[Any]
    controls: NDArray[Any] | None  # (steps, ...); None where nobody recorded what was done
    infos: Sequence[Mapping[str, Any]] | None = None  # one for each observation
    success: bool | None = None  # None where that was not recorded: then the goal at the end decides
    demonstrator: str = ""
    seed: int = 0


@dataclass(frozen=True)
class OwnExport:
    """What an export of ours says of the data set that it was made of, so that this comes back as it was."""

    spec: Spec
    controls: Controls
    settings: CollectionSettings | None = None


@dataclass(frozen=True)
class Recordings:
    """All episodes that a reader found in one place.

    Those of an export of ours are demonstrations already, and `own` says what they are of.
    """

    format: str
    place: str  # a path, or the name of a data set
    episodes: Iterable[RecordedEpisode | Demonstration]
    total: int
    rate: float | None = None  # timesteps per second, in Hz
    own: OwnExport | None = None
    notes: tuple[str, ...] = ()  # what the user should know, such as what was left out
