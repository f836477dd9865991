"""What a reader of some format gives to the importer: episodes as somebody else recorded them.

A reader knows its format and nothing of tasks. It gives `Recordings`, whose episodes are read one by one, and raises
`BadInput` with the place where a file is not what it should be. All else is the importer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.manifest import CollectionSettings
from bilevel.tasks.controls import Controls
from bilevel.tasks.spec import Spec


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
