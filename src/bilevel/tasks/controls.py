"""Controls: an environment's action space, as the network sees it.

A Box is normalised by its bounds, so that every control lies between -1 and 1, whatever its unit. A Discrete space is
learned as a choice: the network scores each control, and the highest score wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    import gymnasium

Control = Any  # what the environment takes: an array for a Box, a whole number for a Discrete space

LARGEST = 1e30  # bound that 32 bits can be computed with


class BoxControls(msgspec.Struct, frozen=True, tag="box", dict=True):
    """Numbers between bounds; `shape` is that of the environment's actions."""

    low: list[float]
    high: list[float]
    shape: list[int]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if not len(self.low) == len(self.high) == math.prod(self.shape) or np.dtype(self.dtype).kind not in "fiu":
            raise ValueError("'low', 'high', 'shape' and 'dtype' are not those of a Box")
        if not all(-LARGEST <= low < high <= LARGEST for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("'low' must be less than 'high', and both be numbers that can be computed with")

    @property
    def size(self) -> int:
        """How many numbers the network puts out."""
        return len(self.low)

    @cached_property
    def _middle(self) -> NDArray[np.float32]:
        return np.asarray((np.array(self.high) + np.array(self.low)) / 2, np.float32)

    @cached_property
    def _half(self) -> NDArray[np.float32]:
        return np.asarray((np.array(self.high) - np.array(self.low)) / 2, np.float32)

    def encode(self, controls: NDArray[Any]) -> NDArray[np.float32]:
        """(steps, size): normalised controls, of which some may be out of bounds."""
        flat = np.asarray(controls, np.float32).reshape(-1, self.size)
        return (flat - self._middle) / self._half

    def decode(self, output: NDArray[np.float32]) -> Control:
        """The control from what the network puts out, (size,)."""
        control = (self._middle + self._half * np.clip(output, -1, 1)).astype(self.dtype).reshape(self.shape)
        return np.clip(control, np.reshape(self.low, self.shape), np.reshape(self.high, self.shape)).astype(self.dtype)


class DiscreteControls(msgspec.Struct, frozen=True, tag="discrete"):
    """One of `n` controls, counted from `start`."""

    n: Annotated[int, msgspec.Meta(ge=1)]
    start: int = 0

    dtype: ClassVar[str] = "int64"
    shape: ClassVar[Sequence[int]] = ()

    @property
    def size(self) -> int:
        """How many controls there are to choose from."""
        return self.n

    def encode(self, controls: NDArray[Any]) -> NDArray[np.float32]:
        """(steps, n): ones where the controls are, zeros elsewhere."""
        chosen = np.asarray(controls, np.int64).reshape(-1) - self.start
        return np.eye(self.n, dtype=np.float32)[chosen]

    def decode(self, output: NDArray[np.float32]) -> Control:
        """Return the control with the highest score."""
        return np.int64(self.start + int(np.argmax(output)))


Controls = BoxControls | DiscreteControls


def are_alike(one: Controls, other: Controls) -> bool:
    """Return whether two are the same controls, but for how the bounds of a Box are rounded."""
    if isinstance(one, BoxControls) and isinstance(other, BoxControls) and one.shape == other.shape:
        return np.allclose([one.low, one.high], [other.low, other.high], rtol=1e-6)
    return one == other


def controls_of(space: gymnasium.Space[Any]) -> Controls:
    """The controls of an action space; `BadInput` for one that is neither a bounded Box nor Discrete."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return DiscreteControls(int(space.n), int(space.start))
    if not isinstance(space, spaces.Box):
        raise BadInput(f"the action space is {space}; only Box and Discrete can be imitated: wrap the environment")
    if np.dtype(space.dtype or np.float32).kind != "f":
        raise BadInput(f"the action space {space} is of whole numbers: make it Discrete, or a Box of float32")
    low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
    if not (np.abs([low, high]) <= LARGEST).all() or (low >= high).any():
        raise BadInput(f"the action space {space} has no finite bounds: clip it by gymnasium.wrappers.RescaleAction")
    return BoxControls(low.tolist(), high.tolist(), list(space.shape), str(space.dtype))
