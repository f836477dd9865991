"""The weights of a network as a safetensors file: arrays of numbers and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene import Array

Weights = Mapping[str, Array]


def weights_data(weights: Weights) -> bytes:
    """The bytes of the file."""
    return save({name: np.ascontiguousarray(array) for name, array in weights.items()})


def read_weights(path: Path) -> Weights:
    """All arrays of a file, which must be whole, of 32-bit numbers, and finite."""
    try:
        weights = load(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except (SafetensorError, KeyError, ValueError) as error:
        raise BadInput(f"{path}: damaged: {error}") from None
    for name, array in weights.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise BadInput(f"{path}: the tensor '{name}' does not hold finite 32-bit numbers")
    return weights


def check_shapes(path: Path, weights: Weights, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """`BadInput` where the weights are not those of a network with these shapes."""
    for name in sorted({*weights, *shapes}):
        if name not in weights:
            raise BadInput(f"{path}: the tensor '{name}' is missing")
        if name not in shapes:
            raise BadInput(f"{path}: the tensor '{name}' is none of this network")
        if weights[name].shape != shapes[name]:
            raise BadInput(f"{path}: the tensor '{name}' is of shape {weights[name].shape}, not {shapes[name]}")
