"""Reads Minari's data sets, given by their folder or by their name.

Infos that are not there for each observation are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 (Minari needs it, as the next one, but imports it only when it reads)
import minari
import msgspec
import numpy as np
import PIL  # noqa: F401
from gymnasium import spaces
from minari.storage.datasets_root_dir import get_dataset_path

from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings, reading, refuse_own, timesteps
from bilevel.json_files import decode, read_bytes
from bilevel.symbolic.domain import BadInput


class MinariMetadata(msgspec.Struct):
    """What metadata.json says; without the spaces, Minari would make the environment that it names."""

    observation_space: Any
    action_space: Any
    algorithm_name: str | None = None


class EpisodeMetadata(msgspec.Struct):
    """What the data set says of an episode."""

    seed: int | None = None
    demonstrator: str | None = None


def read_minari(source: str) -> Recordings:
    """Return the episodes of a data set, given as its folder or as the name under which Minari knows it."""
    with reading(source):
        folder = Path(source) if Path(source).is_dir() else Path(get_dataset_path(source))
        refuse_own(folder)
        path = folder / "data"
        if not path.is_dir():
            raise BadInput(f"{source}: there is no Minari data set here, nor in {folder}; see: minari list local")
        metadata = decode(read_bytes(path / "metadata.json"), MinariMetadata, path / "metadata.json")
        dataset = minari.MinariDataset(path)
        if isinstance(dataset.action_space, spaces.Dict | spaces.Tuple):
            raise BadInput(f"{source}: its actions are {dataset.action_space}: only plain arrays can be imported")
        numbers = [int(number) for number in dataset.episode_indices]
    episodes = (_episode(dataset, number, metadata, f"{source}, episode {number}") for number in numbers)
    return Recordings("minari", source, episodes, len(numbers))


def _episode(dataset: Any, number: int, metadata: MinariMetadata, where: str) -> RecordedEpisode:
    with reading(where):
        (data,) = dataset.iterate_episodes([number])
        (given,) = dataset.storage.get_episode_metadata([number])
        about = msgspec.convert(_plain(given), EpisodeMetadata, strict=False)
        observations = timesteps(data.observations, f"{where}: the observations")
        return RecordedEpisode(
            where,
            observations,
            data.actions,
            _infos(data.infos, len(observations)),
            demonstrator=about.demonstrator or metadata.algorithm_name or "",
            seed=max(0, about.seed or 0),
        )


def _infos(infos: Any, length: int) -> list[Any] | None:
    try:
        found = timesteps(infos, "the infos") if isinstance(infos, Mapping) and infos else []
    except BadInput:
        return None
    return found if len(found) == length else None


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes of HDF5, which gives NumPy's numbers, as plain values."""
    return {name: value.tolist() if isinstance(value, np.generic) else value for name, value in given.items()}
