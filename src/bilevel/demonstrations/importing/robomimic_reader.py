"""Reads robomimic's HDF5 files: `data/demo_N` with `actions` and `obs`, and `mask` with the names of subsets.

An observation is a dictionary of that timestep's arrays; the last row of `next_obs` is what was seen at the very end.
An episode succeeded if it has a reward, unless rewards are shaped. Where masks name operators, as in data of several
people, these are the demonstrators.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import h5py
import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import NUMBERS, RecordedEpisode, Recordings, reading, timesteps
from bilevel.json_files import decode
from bilevel.symbolic.domain import BadInput

OPERATOR = re.compile(r".*operator_?\d+", re.DOTALL)  # a mask such as better_operator_1, but not ..._1_train


class EnvKwargs(msgspec.Struct):
    """How the environment was made, as far as that matters here."""

    control_freq: Annotated[float, msgspec.Meta(gt=0)] | None = None
    reward_shaping: bool | None = None


class EnvArgs(msgspec.Struct):
    """What the attribute `env_args` says."""

    env_kwargs: EnvKwargs | None = None


def read_robomimic(path: Path, mask: str | None = None) -> Recordings:
    """Return the episodes of a file, or those that a mask names, such as train."""
    with reading(path), h5py.File(path, "r") as file:
        if not isinstance(file.get("data"), h5py.Group):
            raise BadInput(f"{path}: there is no group 'data', so it is no file of robomimic's")
        names = sorted(file["data"], key=lambda name: (len(name), name))  # demo_10 after demo_9
        masks = {name: _texts(members) for name, members in file.get("mask", {}).items()}
        env_args = decode(file["data"].attrs.get("env_args", "{}"), EnvArgs, f"{path}: the attribute 'env_args'")
    if mask is not None:
        if mask not in masks:
            raise BadInput(f"{path}: there is no mask '{mask}'; there are: {', '.join(masks) or 'none'}")
        missing = sorted(masks[mask] - set(names))
        if missing:
            raise BadInput(f"{path}: the mask '{mask}' names '{missing[0]}', which is not there")
        names = [name for name in names if name in masks[mask]]
    settings = env_args.env_kwargs or EnvKwargs()
    operators = {demo: name for name, members in masks.items() if OPERATOR.fullmatch(name) for demo in members}
    episodes = (_episode(path, name, operators.get(name, ""), bool(settings.reward_shaping)) for name in names)
    return Recordings("robomimic", str(path), episodes, len(names), settings.control_freq)


def _texts(dataset: Any) -> set[str]:
    return {name.decode() if isinstance(name, bytes) else str(name) for name in np.ravel(dataset[()])}


def _episode(path: Path, name: str, operator: str, shaped: bool) -> RecordedEpisode:
    where = f"data/{name}"
    with reading(f"{path}: {where}"), h5py.File(path, "r") as file:
        group = file[where]
        if not isinstance(group, h5py.Group) or "obs" not in group:
            reason = "make them with robomimic's own dataset_states_to_obs"
            raise BadInput(f"{path}: {where} has no observations, 'obs'; {reason}")
        wanted = [part for part in ("obs", "next_obs", "actions", "rewards") if part in group]
        parts = {part: _arrays(group[part], f"{path}: {where}/{part}") for part in wanted}
    observations = timesteps(parts["obs"], f"{path}: {where}: its observations")
    if "next_obs" in parts:
        observations += timesteps(parts["next_obs"], f"{path}: {where}: its next_obs")[-1:]
    success = None if shaped or "rewards" not in parts else bool((parts["rewards"] > 0).any())
    return RecordedEpisode(where, observations, parts.get("actions"), None, success, operator)


def _arrays(part: Any, where: str) -> Any:
    """Return the numbers in a data set, or a dictionary of those in a group."""
    if isinstance(part, h5py.Group):
        return {name: _arrays(member, f"{where}/{name}") for name, member in part.items()}
    array: NDArray[Any] = np.asarray(part[()])
    if array.dtype.kind not in NUMBERS or array.ndim == 0:
        raise BadInput(f"{where}: holds {array.dtype} of shape {array.shape}, not numbers for each timestep")
    return array
