"""Which arguments of an action play a part in how it is done, found from the demonstrations.

An action names what it is about, and some of that plays no part in the movement: to pick a block up, it does not matter
what it lies on. A network that is told of it anyway sees, in a few demonstrations, a pattern where there is none. So,
for each schema, its controls are predicted by a smooth function of what is seen, once with an argument and once
without, for stretches that the function was not fitted to; an argument that does not help there is not told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bilevel.lowlevel.encoding import Encoding, Samples
from bilevel.tasks.scene import Array

MOST_SAMPLES = 400  # of a schema: what is fitted takes the cube of it
FOLDS = 5
LENGTHS = (0.4, 0.8, 1.6)  # scales of the kernel, in standard deviations, by the root of the dimensions
NOISE = 1e-2  # variance of the controls that nothing explains
HELPS = 0.75  # an argument helps where the error with it is below so much of the error without it
HARMS = 2.0  # from one demonstration, in which places do not change, one is left out only where it does harm
_APART = 4  # keeps these random numbers apart from others of the same seed


def irrelevant_arguments(samples: Samples, encoding: Encoding) -> dict[str, frozenset[int]]:
    """Return for each schema the numbers of arguments that do not help to predict its controls.

    One argument always stays. Those that the network is not told of already are not among them.
    """
    found: dict[str, frozenset[int]] = {}
    for index, name in enumerate(encoding.schemas):
        chosen = np.flatnonzero(samples.schemas == index)
        if len(chosen) and (dropped := _dropped(samples, encoding, chosen)):
            found[name] = frozenset(dropped)
    return found


def without(samples: Samples, encoding: Encoding, untold: dict[str, frozenset[int]]) -> Samples:
    """Return the samples as they are encoded where these arguments are not told, either."""
    objects = samples.objects.copy()
    for name, numbers in untold.items():
        rows = np.flatnonzero(samples.schemas == encoding.schemas.index(name))
        told = _told(samples, encoding, rows)
        kept = encoding.padded([place for place, number in enumerate(told) if number not in numbers])
        objects[rows] = samples.objects[rows][:, kept]
    return replace(samples, objects=objects)


def _told(samples: Samples, encoding: Encoding, rows: NDArray[np.int64]) -> list[int]:
    """The numbers of the arguments that the network is told of, in the order in which it is."""
    if not len(rows):
        return []
    last = samples.objects[rows[0], :, -encoding.arity :].argmax(axis=1).tolist()
    return list(dict.fromkeys(last))


def _dropped(samples: Samples, encoding: Encoding, chosen: NDArray[np.int64]) -> list[int]:
    """Leave out, one after the other, the argument without which the error is least, while that is no loss."""
    told, size = _told(samples, encoding, chosen), encoding.features.object_size
    if len(told) < 2:
        return []
    task = _prediction(samples, chosen, encoding, size)
    left, dropped = list(range(len(told))), []
    error = task.error(left)
    while len(left) > 1:
        errors = {place: task.error([other for other in left if other != place]) for place in left}
        place = min(errors, key=lambda one: (errors[one], one))
        if error < task.required * errors[place]:
            break
        left.remove(place)
        dropped.append(told[place])
        error = errors[place]
    return sorted(dropped)


@dataclass(frozen=True)
class _Prediction:
    """Controls to be predicted from what is seen of the agent and of some arguments."""

    agent: Array  # (samples, numbers), standardised
    arguments: Array  # (samples, arguments, numbers), standardised
    targets: Array  # (samples, outputs), less their mean
    folds: NDArray[np.int64]  # (samples,)
    required: float  # an argument stays where the error with it is below so much of the error without it

    def error(self, places: list[int]) -> float:
        """Return the mean squared error of predictions for folds that they were not made from."""
        parts = [self.agent, *(self.arguments[:, place] for place in places)]
        seen = np.concatenate(parts, axis=1).astype(np.float64)
        seen = seen[:, seen.std(axis=0) > 0]
        squares = (seen**2).sum(axis=1)
        distances = np.maximum(squares[:, None] + squares - 2 * seen @ seen.T, 0.0)
        return min(self._error(np.exp(-distances / (2 * length**2 * max(seen.shape[1], 1)))) for length in LENGTHS)

    def _error(self, kernel: NDArray[np.float64]) -> float:
        total = 0.0
        for fold in np.unique(self.folds):
            test, rest = self.folds == fold, self.folds != fold
            inner = kernel[np.ix_(rest, rest)] + NOISE * np.eye(int(rest.sum()))
            predicted = kernel[np.ix_(test, rest)] @ np.linalg.solve(inner, self.targets[rest])
            total += float(((predicted - self.targets[test]) ** 2).sum())
        return total / self.targets.size


def _prediction(samples: Samples, chosen: NDArray[np.int64], encoding: Encoding, size: int) -> _Prediction:
    """Some of the samples of a schema. A fold holds whole episodes, or of a single one whole stretches of an action."""
    several = samples.episodes[chosen[0]] != samples.episodes[chosen[-1]]
    breaks = np.diff(samples.episodes[chosen]) != 0 if several else np.diff(chosen) != 1
    stretches = np.concatenate([[0], np.cumsum(breaks)])
    order = np.random.default_rng(_APART).permutation(stretches[-1] + 1)
    folds = order[stretches] % min(FOLDS, max(stretches[-1] + 1, 2))
    step = max(1, len(chosen) // MOST_SAMPLES)
    chosen, folds = chosen[::step], folds[::step]
    agent = samples.globals[chosen][:, : encoding.features.agent_size]
    seen, targets = samples.objects[chosen][..., :size], samples.targets[chosen]
    return _Prediction(
        _standardised(agent), _standardised(seen), targets - targets.mean(axis=0), folds, HELPS if several else HARMS
    )


def _standardised(numbers: Array) -> Array:
    """Each number less its mean, by its standard deviation; those that do not change are 0."""
    spread = numbers.std(axis=0)
    found: Array = np.where(spread > 0, (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1), 0)
    return found
