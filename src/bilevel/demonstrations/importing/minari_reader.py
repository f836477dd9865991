"""Reads Minari's data sets, given by their folder or by their name.

Infos that are not there for each observation are left out.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 (Minari needs it, as the next one, but imports it only when it reads)
import minari
import msgspec
import numpy as np
import PIL  # noqa: F401
from gymnasium import spaces
from minari.storage.datasets_root_dir import get_dataset_path

from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings, reading
from bilevel.files import read_bytes
from bilevel.json_files import decode
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


def read(source: str) -> Recordings:
    """Return the episodes of a data set, given as its folder or as the name under which Minari knows it."""
    with reading(source):
        folder = Path(source) if Path(source).is_dir() else Path(get_dataset_path(source))
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
        plain = {name: value.tolist() if isinstance(value, np.generic) else value for name, value in given.items()}
        about = msgspec.convert(plain, EpisodeMetadata, strict=False)
        who, seed = about.demonstrator or metadata.algorithm_name or "", max(0, about.seed or 0)
        episode = RecordedEpisode(where, data.observations, data.actions, demonstrator=who, seed=seed)
        with suppress(BadInput):  # of infos that are not there for each observation
            return replace(episode, infos=data.infos)
        return episode
