"""Reads Minari's data sets: those of other projects, and exports of ours, which come back as they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 (Minari needs it, as the next one, but imports it only when it reads)
import minari
import msgspec
import numpy as np
import PIL  # noqa: F401
from gymnasium import spaces
from minari.storage.datasets_root_dir import get_dataset_path

from bilevel.demonstrations.dataset import CollectionSettings
from bilevel.demonstrations.demonstration import Demonstration, Metadata, demonstration_from
from bilevel.demonstrations.importing.recorded import OwnExport, RecordedEpisode, Recordings, Timesteps
from bilevel.json_files import decode, read_bytes
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls
from bilevel.tasks.spec import read_spec


def read_minari(source: str) -> Recordings:
    """Return the episodes of a data set, given as its folder or as the name under which Minari knows it."""
    folder = Path(source)
    if not folder.is_dir():
        folder = Path(get_dataset_path(source))
    if not (folder / "data").is_dir():
        raise BadInput(f"{source}: there is no Minari data set here, nor in {folder}; see: minari list local")
    with _readable(source):
        path = folder / "data" / "metadata.json"
        about = decode(read_bytes(path), dict[str, Any], f"damaged, or no Minari data set: {path}")
        if not {"observation_space", "action_space"} <= about.keys():  # else Minari makes the environment that it names
            raise BadInput("its metadata do not say what the observation and action spaces are")
        dataset = minari.MinariDataset(folder / "data")
        total = int(dataset.total_episodes)
    own = _own(about.get("bilevel"), source)
    episodes = _own_episodes(dataset, own, source) if own else _episodes(dataset, about, source)
    return Recordings("minari", source, episodes, total, own=own)


@contextmanager
def _readable(source: str) -> Iterator[None]:
    """`BadInput` where a data set is damaged: HDF5 and Minari raise many kinds of errors."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadInput(f"{source}: damaged, or no Minari data set: {reason}") from None


def _episodes(dataset: Any, about: Mapping[str, Any], source: str) -> Iterator[RecordedEpisode]:
    """Give those of another project. Infos that are not there for each observation are left out."""
    if isinstance(dataset.action_space, spaces.Dict | spaces.Tuple):
        raise BadInput(f"{source}: its actions are {dataset.action_space}: only plain arrays can be imported")
    for number in dataset.episode_indices:
        name = f"episode {number}"
        with _readable(f"{source}, {name}"):
            (data,) = dataset.iterate_episodes([number])
            (metadata,) = dataset.storage.get_episode_metadata([number])
            observations = Timesteps(data.observations, "the observations")
        try:
            infos = Timesteps(data.infos or {}, "the infos")
        except BadInput:
            infos = Timesteps({}, "the infos")
        yield RecordedEpisode(
            name,
            observations,
            np.asarray(data.actions),
            infos if len(infos) == len(observations) else None,
            demonstrator=str(metadata.get("demonstrator") or about.get("algorithm_name") or ""),
            seed=max(0, int(metadata.get("seed") or 0)),
        )


def _own(about: Any, source: str) -> OwnExport | None:
    """Return what an export of ours says of itself; `None` for the data set of another project."""
    if about is None:
        return None
    try:
        settings = about.get("settings")
        return OwnExport(
            read_spec(about["spec"]),
            msgspec.convert(about["controls"], Controls),
            None if settings is None else msgspec.convert(settings, CollectionSettings),
        )
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError):
        raise BadInput(f"{source}: exported by another version of bilevel; export it again") from None


def _own_episodes(dataset: Any, own: OwnExport, source: str) -> Iterator[Demonstration]:
    for number in dataset.episode_indices:
        with _readable(f"{source}, episode {number}"):
            (data,) = dataset.iterate_episodes([number])
            metadata = data.infos["metadata"].reshape(-1)
            objects = len(decode(metadata.tobytes(), Metadata, "the metadata makes no sense").objects)
            arrays = {
                "agent": data.observations["agent"],
                "features": data.observations["objects"][:, :objects],
                "visible": data.observations["visible"][:, :objects].astype(np.bool_),
                "controls": data.infos["expert_control"][:-1],
                "executed": data.actions,
                "action": data.infos["action_number"][:-1],
                "metadata": metadata,
            }
            yield demonstration_from(arrays, own.spec, own.controls)
