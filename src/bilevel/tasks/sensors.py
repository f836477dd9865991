"""How good the sensors are, found out while they are used: their noise from things at rest, their bias from coordinates
that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.tasks.perception import REMEMBERED, Coordinates
from bilevel.tasks.scene import Roster, Scene

Floats = NDArray[np.float64]

NORMAL = 0.6745 * 2**0.5  # the median difference of two numbers that are drawn with a standard deviation of 1
_SLOW = 200  # measurements over which means are taken
_ENOUGH = 3  # coordinates that are known along an axis, or one that is not what it was would be taken for a bias
_SOON, _SELDOM = 50, 5  # measure at each of the first steps, then at every so manieth


class SensorError:
    """The noise and the bias of what is seen in one episode."""

    def __init__(
        self, coordinates: Coordinates, floor: float, most: float, known: Mapping[str, Mapping[str, float]]
    ) -> None:
        """Errors below the `floor` do not matter, and a bias of more than `most` is none.

        `known` are coordinates that objects of a type have at rest.
        """
        self._coordinates, self._floor, self._most, self._known = coordinates, floor, most, known
        self._landmarks: dict[Roster, list[tuple[int, NDArray[np.intp], Floats]]] = {}
        self._places: dict[Roster, NDArray[np.intp]] = {}
        self.reset()

    def reset(self) -> None:
        """Forget everything: an episode begins."""
        self.noise = 0.0  # a standard deviation; 0 if it does not matter
        self.bias = np.zeros(len(self._coordinates.agent_names))  # along each of the agent's axes; 0 where none matters
        self._variance = 0.0
        self._off = np.zeros_like(self.bias)
        self._is_biased = False
        self._steps = self._noise_steps = self._bias_steps = 0

    def measure_noise(self, before: Scene, now: Scene) -> None:
        """Compare two scenes in a row: most things are at rest, so their median coordinate shows nothing but noise."""
        self._steps += 1
        if self._steps > _SOON and self._steps % _SELDOM:
            return
        if now.roster is before.roster or now.roster == before.roster:
            changes = (now.features - before.features).reshape(-1).take(self._places_of(now.roster))
        else:
            names = [name for name in now.roster.names if name in before]
            rows = now.rows(names)
            changes = (now.features[rows] - before.features[before.rows(names)])[:, self._coordinates.columns]
            changes = changes[self._coordinates.has(now.roster)[rows]]
        if len(changes):
            middle = _median(np.abs(changes)) / NORMAL
            self._noise_steps = min(self._noise_steps + 1, _SLOW)
            self._variance += (middle * middle - self._variance) / self._noise_steps
            noise = self._variance**0.5
            self.noise = noise if noise > self._floor else 0.0

    def _places_of(self, roster: Roster) -> NDArray[np.intp]:
        """Where coordinates stand among all features."""
        found = self._places.get(roster)
        if found is None:
            if len(self._places) >= REMEMBERED:
                self._places.clear()
            rows, coordinates = np.nonzero(self._coordinates.has(roster))
            found = rows * self._coordinates.width + self._coordinates.columns[coordinates]
            self._places[roster] = found
        return found

    def without_bias(self, scene: Scene) -> Scene:
        """Compare what is seen with what is known, and return it less what everything is off."""
        if self._steps <= _SOON or self._steps % _SELDOM == 0:
            self._measure_bias(scene)
        if not self._is_biased:
            return scene
        found, features = self._coordinates, scene.features.copy()
        features[:, found.columns] -= self.bias[found.axis] * found.has(scene.roster)
        return Scene.from_arrays(scene.spec, scene.values, features, scene.roster)

    def _measure_bias(self, scene: Scene) -> None:
        self._bias_steps = min(self._bias_steps + 1, _SLOW)
        flat = scene.features.reshape(-1)
        for axis, where, known in self._landmarks_of(scene.roster):
            off = self._off[axis] + (_median(flat.take(where) - known) - self._off[axis]) / self._bias_steps
            doubt = self._floor + self.noise / (len(where) * self._bias_steps) ** 0.5
            self._off[axis], self.bias[axis] = off, off if 3 * doubt < abs(off) < self._most else 0.0
        self._is_biased = bool(self.bias.any())

    def _landmarks_of(self, roster: Roster) -> list[tuple[int, NDArray[np.intp], Floats]]:
        """For each axis along which some coordinates are known: where they stand among all features, and the values."""
        found = self._landmarks.get(roster)
        if found is None:
            if len(self._landmarks) >= REMEMBERED:
                self._landmarks.clear()
            found, names = [], self._coordinates.names
            for axis in range(len(self.bias)):
                indices = [index for index in range(len(names)) if self._coordinates.axis[index] == axis]
                pairs = [
                    (row * self._coordinates.width + int(self._coordinates.columns[index]), known[names[index]])
                    for row, kind in enumerate(roster.objects.values())
                    for known in [self._known.get(kind, {})]
                    for index in indices
                    if names[index] in known
                ]
                if len(pairs) >= _ENOUGH:
                    found.append((axis, np.array([at for at, _ in pairs]), np.array([value for _, value in pairs])))
            self._landmarks[roster] = found
        return found


def _median(values: NDArray[Any]) -> float:
    """The lower median, which is sooner found than NumPy's."""
    half = (len(values) - 1) // 2
    return float(np.partition(values, half)[half])
