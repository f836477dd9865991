"""What was done: controls as recorded or made afterwards, in the shape of the task's, finite, and within bounds."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, BadInput
from bilevel.tasks.controls import BoxControls, Control, Controls, DiscreteControls
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import call

# Where the controls of an episode come from
RECORDED, MADE, ASKED, UNKNOWN = "as recorded", "made by the function", "asked of the expert", "none"

ROUNDING = 1e-5  # of the range of a control: so far out of bounds is not out of bounds


@dataclass
class ControlReader:
    """Turns recorded controls into those of a task, and counts how many are out of bounds."""

    controls: Controls
    clip: bool = False
    total: int = 0  # numbers that were looked at
    outside: int = 0  # of these, numbers that were out of bounds
    worst: tuple[float, str] = 0.0, ""  # by how much, and where

    @property
    def still(self) -> Control:
        """The control in the middle of a Box, which does nothing as far as anybody knows; else the first of all."""
        return self.controls.decode(np.zeros(self.controls.size, np.float32))

    def read(self, recorded: Any, where: str) -> NDArray[Any]:
        """Return controls, (steps, ...), as the task has them; `where` says whose they are."""
        array = np.asarray(recorded)
        if array.dtype.kind not in "fiub":
            raise BadInput(f"{where}: the controls are {array.dtype}, not numbers")
        if isinstance(self.controls, DiscreteControls):
            return self._choices(array, self.controls, where)
        return self._numbers(array, self.controls, where)

    def _choices(self, array: NDArray[Any], controls: DiscreteControls, where: str) -> NDArray[Any]:
        flat = array.reshape(len(array), -1)
        if flat.size != len(array):
            raise BadInput(f"{where}: a control has {flat.shape[1]} numbers, but the task takes one of {controls.n}")
        chosen = flat[:, 0]
        _require_finite(flat, where)
        wrong = np.flatnonzero(
            (chosen != np.floor(chosen)) | (chosen < controls.start) | (chosen >= controls.start + controls.n)
        )
        if wrong.size:
            last = controls.start + controls.n - 1
            what = f"the control is {chosen[wrong[0]]:g}, but the task takes whole numbers, {controls.start} to {last}"
            raise BadInput(f"{where}, step {wrong[0]}: {what}")
        return chosen.astype(controls.dtype)

    def _numbers(self, array: NDArray[Any], controls: BoxControls, where: str) -> NDArray[Any]:
        size = math.prod(array.shape[1:])
        if size != controls.size:
            remedy = "give --controls-from file.py:function, which makes those of the task"
            raise BadInput(f"{where}: a control has {size} numbers, but the task takes {controls.size}; {remedy}")
        flat = array.reshape(len(array), size).astype(np.float64)
        _require_finite(flat, where)
        low, high = np.array(controls.low), np.array(controls.high)
        excess = np.maximum(low - flat, flat - high)
        outside = excess > ROUNDING * (high - low)
        self.total += flat.size
        self.outside += int(outside.sum())
        if outside.any() and excess.max() > self.worst[0]:
            step, number = (int(index) for index in np.unravel_index(excess.argmax(), excess.shape))
            bounds = f"{low[number]:g} to {high[number]:g}"
            self.worst = excess.max(), f"{where}, step {step}: number {number} is {flat[step, number]:g}, not {bounds}"
        return np.clip(flat, low, high).astype(controls.dtype).reshape(len(flat), *controls.shape)

    def require_within_bounds(self) -> None:
        """`BadInput` where controls were out of bounds and are not to be clipped."""
        if self.outside and not self.clip:
            excess, where = self.worst
            how_many = f"{self.outside} of {self.total} numbers of controls are out of the action space's bounds"
            raise BadInput(f"{how_many}, by up to {excess:g} ({where}); --clip moves them to the bounds")


def _require_finite(flat: NDArray[Any], where: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(flat).all(axis=1)) if flat.dtype.kind == "f" else np.zeros(0)
    if wrong.size:
        raise BadInput(f"{where}, step {wrong[0]}: the control is {flat[wrong[0]].tolist()}, which is not finite")


@dataclass(frozen=True)
class ControlSource:
    """Where the controls of recorded episodes come from.

    A user's `function` makes them; else they were recorded; else the `expert` is asked what it would have done, always
    if `always_ask`. For steps of which nobody knows what they were for, it is not asked: there, the control is `still`.
    """

    reader: ControlReader
    function: Callable[..., Control] | None = None
    expert: Callable[[Scene, Action], Control] | None = None
    always_ask: bool = False
    still: Control | None = None

    def origin(self, recorded: NDArray[Any] | None) -> str:
        """Return where the controls of an episode come from, given those that were recorded."""
        if self.function is not None:
            return MADE
        if recorded is not None and not self.always_ask:
            return RECORDED
        return UNKNOWN if self.expert is None else ASKED

    def controls(
        self,
        scenes: Sequence[Scene],
        recorded: NDArray[Any] | None,
        actions: Callable[[], Sequence[Action | None]],
        where: str,
    ) -> NDArray[Any] | None:
        """Return the controls that lead from scene to scene, if they are known; `actions` finds what they were for."""
        origin = self.origin(recorded)
        if origin == UNKNOWN:
            return None
        if origin == RECORDED:
            return self.reader.read(recorded, where)
        found = self._made(scenes, recorded, where) if origin == MADE else self._asked(scenes, actions(), where)
        try:
            return self.reader.read(np.array([np.asarray(control) for control in found]), where)
        except ValueError:
            raise BadInput(f"{where}: the controls that were made are not all of one shape") from None

    def _made(self, scenes: Sequence[Scene], recorded: NDArray[Any] | None, where: str) -> list[Control]:
        assert self.function is not None
        number = min(places(self.function), 3)
        known = [None] * len(scenes) if recorded is None else recorded
        return [
            call(f"{where}, step {step}: controls(scene, next_scene)", self.function, *given[:number])
            for step, given in enumerate(zip(scenes, scenes[1:], known, strict=False))
        ]

    def _asked(self, scenes: Sequence[Scene], actions: Sequence[Action | None], where: str) -> list[Control]:
        assert self.expert is not None
        still = self.reader.still if self.still is None else self.still
        return [
            still
            if action is None
            else call(f"{where}, step {step}: control(scene, {action})", self.expert, scene, action)
            for step, (scene, action) in enumerate(zip(scenes, actions, strict=False))
        ]


def places(function: Callable[..., Any]) -> int:
    """Return how many arguments a function takes by their places."""
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in by_place for parameter in inspect.signature(function).parameters.values())
