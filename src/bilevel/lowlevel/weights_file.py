"""The weights of a network as a safetensors file: arrays of numbers and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from bilevel.lowlevel.architecture import Layers, Weights
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import Array


def weights_data(weights: Weights) -> bytes:
    """The bytes of the file."""
    return save({name: np.ascontiguousarray(array) for name, array in weights.items()})


def read_weights(path: Path, layers: Layers) -> Weights:
    """`BadInput` where they are not whole, or not those of a network with these layers."""
    try:
        tensors = dict(deserialize(path.read_bytes()))  # type: ignore[no-untyped-call]
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except SafetensorError as error:
        raise BadInput(f"{path}: damaged: {error}") from None
    weights = {}
    for name, shape in _shapes(layers).items():
        if name not in tensors:
            raise BadInput(f"{path}: the tensor '{name}' is missing")
        weights[name] = _array(tensors.pop(name), shape, f"{path}: the tensor '{name}'")
    if tensors:
        raise BadInput(f"{path}: the tensor {min(tensors)!r} is none of this network")
    return weights


def _shapes(layers: Layers) -> dict[str, tuple[int, ...]]:
    weight: dict[str, tuple[int, ...]] = {f"{name}.weight": shape for name, shape in layers.items()}
    return weight | {f"{name}.bias": (outputs,) for name, (_, outputs) in layers.items()}


def _array(tensor: Mapping[str, Any], shape: tuple[int, ...], what: str) -> Array:
    found = tensor["dtype"], tuple(tensor["shape"])
    if found != ("F32", shape):
        raise BadInput(f"{what} is {found[0]} of shape {found[1]}, not F32 of shape {shape}")
    array = np.frombuffer(tensor["data"], np.dtype("<f4")).reshape(shape).astype(np.float32)
    if not np.isfinite(array).all():
        raise BadInput(f"{what} holds numbers that are not finite")
    return array
