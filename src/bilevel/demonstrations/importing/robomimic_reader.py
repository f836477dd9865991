"""Reads robomimic's HDF5 files: `data/demo_N` with `actions` and `obs`, and `mask` with the names of subsets.

An observation is a dictionary of that timestep's arrays; the last row of `next_obs` is what was seen at the very end.
An episode succeeded if it has a reward, unless rewards are shaped. Where masks name operators, as in data of several
people, these are the demonstrators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings, Timesteps
from bilevel.json_files import decode
from bilevel.symbolic.domain import BadInput


def read_robomimic(path: Path, mask: str | None = None) -> Recordings:
    """Return the episodes of a file, or those that a mask names, such as train."""
    with _opened(path) as file:
        if "data" not in file or not isinstance(file["data"], h5py.Group):
            raise BadInput(f"{path}: there is no group 'data', so it is no file of robomimic's")
        names = sorted(file["data"], key=_number)
        masks = {name: _texts(file["mask"][name]) for name in file.get("mask", {})}
        about = _env_args(file["data"].attrs.get("env_args", "{}"), path)
    if mask is not None:
        if mask not in masks:
            raise BadInput(f"{path}: there is no mask '{mask}'; there are: {', '.join(masks) or 'none'}")
        missing = sorted(masks[mask] - set(names), key=_number)
        if missing:
            raise BadInput(f"{path}: the mask '{mask}' names '{missing[0]}', which is not there")
        names = [name for name in names if name in masks[mask]]
    keywords = about.get("env_kwargs", {})
    rate = keywords.get("control_freq")
    operators = {demo: name for name in _operators(masks) for demo in masks[name]}
    episodes = _episodes(path, names, operators, bool(keywords.get("reward_shaping")))
    return Recordings("robomimic", str(path), episodes, len(names), float(rate) if rate else None)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """An open file; `BadInput` where it is damaged, however that is noticed."""
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except BadInput:
        raise
    except Exception as error:  # h5py raises a dozen kinds
        raise BadInput(
            f"{path}: cannot be read as HDF5; it may be truncated ({' '.join(str(error).split())})"
        ) from None


def _env_args(text: Any, path: Path) -> Mapping[str, Any]:
    found = decode(text, object, f"{path}: the attribute 'env_args' is no JSON")
    return found if isinstance(found, dict) else {}


def _number(name: str) -> tuple[str, int]:
    """Return what sorts demo_10 after demo_9."""
    match = re.fullmatch(r"(.*?)(\d*)", name)
    assert match is not None
    return match[1], int(match[2] or 0)


def _operators(masks: Iterable[str]) -> list[str]:
    """Return the masks that name an operator, such as better_operator_1, but not parts of these, such as ..._train."""
    return [name for name in masks if re.search(r"operator_?\d+$", name)]


def _texts(dataset: Any) -> set[str]:
    return {name.decode() if isinstance(name, bytes) else str(name) for name in dataset[()]}


def _episodes(path: Path, names: list[str], operators: Mapping[str, str], shaped: bool) -> Iterator[RecordedEpisode]:
    with _opened(path) as file:
        for name in names:
            group, where = file["data"][name], f"data/{name}"
            if not isinstance(group, h5py.Group) or "obs" not in group:
                reason = "make them with robomimic's own dataset_states_to_obs"
                raise BadInput(f"{path}: {where} has no observations, 'obs'; {reason}")
            controls = _array(group["actions"], f"{path}: {where}/actions") if "actions" in group else None
            observations = Timesteps(
                _arrays(group["obs"], f"{path}: {where}/obs"), f"{path}: {where}: its observations"
            )
            rows: Any = observations
            if "next_obs" in group:
                following = _arrays(group["next_obs"], f"{path}: {where}/next_obs")
                rows = [*observations, *Timesteps(following, f"{path}: {where}: its next_obs")[-1:]]
            success = None
            if "rewards" in group and not shaped:
                success = bool((_array(group["rewards"], f"{path}: {where}/rewards") > 0).any())
            yield RecordedEpisode(where, rows, controls, None, success, operators.get(name, ""))


def _arrays(group: Any, where: str) -> dict[str, Any]:
    return {
        name: _arrays(part, f"{where}/{name}") if isinstance(part, h5py.Group) else _array(part, f"{where}/{name}")
        for name, part in group.items()
    }


def _array(dataset: Any, where: str) -> NDArray[Any]:
    array = np.asarray(dataset[()])
    if array.dtype.kind not in "fiub" or array.ndim == 0:
        raise BadInput(f"{where}: holds {array.dtype} of shape {array.shape}, not numbers for each timestep")
    return array
