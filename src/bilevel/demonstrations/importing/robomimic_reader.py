"""Reads robomimic's HDF5 files: `data/demo_N` with `actions` and `obs`.

An observation is a dictionary of that timestep's arrays; the last row of `next_obs` is what was seen at the very end.
An episode succeeded if it has a reward, unless rewards are shaped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import h5py
import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import NUMBERS, RecordedEpisode, Recordings, reading
from bilevel.json_files import decode
from bilevel.symbolic.domain import BadInput


class EnvKwargs(msgspec.Struct):
    """How the environment was made, as far as that matters here."""

    control_freq: Annotated[float, msgspec.Meta(gt=0)] | None = None
    reward_shaping: bool | None = None


class EnvArgs(msgspec.Struct):
    """What the attribute `env_args` says."""

    env_kwargs: EnvKwargs | None = None


def read(source: str) -> Recordings:
    """Return the episodes of a file."""
    path = Path(source)
    with reading(path), h5py.File(path, "r") as file:
        if not isinstance(file.get("data"), h5py.Group):
            raise BadInput(f"{path}: there is no group 'data', so it is no file of robomimic's")
        names = sorted(file["data"], key=lambda name: (len(name), name))  # demo_10 after demo_9
        env_args = decode(file["data"].attrs.get("env_args", "{}"), EnvArgs, f"{path}: the attribute 'env_args'")
    settings = env_args.env_kwargs or EnvKwargs()
    episodes = (_episode(path, name, bool(settings.reward_shaping)) for name in names)
    return Recordings("robomimic", str(path), episodes, len(names), settings.control_freq)


def _episode(path: Path, name: str, shaped: bool) -> RecordedEpisode:
    where = f"{path}: data/{name}"
    with reading(where), h5py.File(path, "r") as file:
        group = file[f"data/{name}"]
        if not isinstance(group, h5py.Group) or "obs" not in group:
            raise BadInput(f"{where} has no observations, 'obs'; make them with robomimic's own dataset_states_to_obs")
        wanted = [part for part in ("obs", "next_obs", "actions", "rewards") if part in group]
        parts = {part: _arrays(group[part], f"{where}/{part}") for part in wanted}
    success = None if shaped or "rewards" not in parts else bool((parts["rewards"] > 0).any())
    return RecordedEpisode(where, parts["obs"], parts.get("actions"), after=parts.get("next_obs"), success=success)


def _arrays(part: Any, where: str) -> Any:
    """Return the numbers in a data set, or a dictionary of those in a group."""
    if isinstance(part, h5py.Group):
        return {name: _arrays(member, f"{where}/{name}") for name, member in part.items()}
    array: NDArray[Any] = np.asarray(part[()])
    if array.dtype.kind not in NUMBERS or array.ndim == 0:
        raise BadInput(f"{where}: holds {array.dtype} of shape {array.shape}, not numbers for each timestep")
    return array
