"""Which arguments of an action play a part in how it is done, found from the demonstrations.

An action names what it is about, and some of that plays no part in the movement: to pick a block up, it does not matter
what it lies on. A network that is told of it anyway sees, in a few demonstrations, a pattern where there is none. So,
for each schema, its controls are predicted by a smooth function of what is seen of some of the arguments, for episodes
that the function was not fitted to. An argument is left out where others predict clearly better; in doubt it stays.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bilevel.lowlevel.encoding import Encoding, Samples
from bilevel.seeds import FOLDS
from bilevel.tasks.scene import Array

MOST_SAMPLES = 400  # of a schema: what is fitted takes the cube of it
MOST_ARGUMENTS = 6  # of a schema: what is tried doubles with each
PARTS = 5  # in which the episodes are divided, each of them predicted from the others
LENGTHS = (0.4, 0.8, 1.6)  # scales of the kernel, in standard deviations, by the root of the dimensions
NOISE = 1e-2  # variance of the controls that nothing explains
ENOUGH = 0.75  # some arguments suffice where the least error of any is at least so much of the error with them
NEARLY = 0.5  # and nearly do where it is at least so much: what is told apart must be so beyond noise


def irrelevant_arguments(samples: Samples, encoding: Encoding) -> dict[str, frozenset[int]]:
    """Return for each schema the numbers of arguments that do not help to predict its controls.

    One argument always stays, and from a single demonstration all do. Those that the network is not told of already are
    not among them.
    """
    found: dict[str, frozenset[int]] = {}
    for index, name in enumerate(encoding.schemas):
        chosen = np.flatnonzero(samples.schemas == index)
        arguments = seen_arguments(samples, encoding, chosen)
        if len(np.unique(samples.episodes[chosen])) >= 2 <= len(arguments) <= MOST_ARGUMENTS:
            kept = _kept(prediction_errors(samples, encoding, chosen, len(arguments)))
            dropped = frozenset(number for place, number in enumerate(arguments) if kept and place not in kept)
            found |= {name: dropped} if dropped else {}
    return found


def without(samples: Samples, encoding: Encoding, untold: dict[str, frozenset[int]]) -> Samples:
    """Return the samples as they are encoded where these arguments are not told, either."""
    objects = samples.objects.copy()
    for name, numbers in untold.items():
        rows = np.flatnonzero(samples.schemas == encoding.schemas.index(name))
        arguments = seen_arguments(samples, encoding, rows)
        kept = encoding.padded([place for place, number in enumerate(arguments) if number not in numbers])
        objects[rows] = samples.objects[rows][:, kept]
    return replace(samples, objects=objects)


def seen_arguments(samples: Samples, encoding: Encoding, rows: NDArray[np.int64]) -> list[int]:
    """The numbers of the arguments that the network is told of, in the order in which it is."""
    if not len(rows):
        return []
    last = samples.objects[rows[0], :, -encoding.arity :].argmax(axis=1).tolist()
    return list(dict.fromkeys(last))


def _kept(errors: dict[tuple[int, ...], float]) -> set[int]:
    """The arguments that are in one of the smallest sets that suffice, or in one of that size that nearly does.

    Where each of two arguments would do, as a block and the box that it lies in, both stay. Where none is needed, as in
    a movement that was always the same, the result is empty.
    """
    least = min(errors.values())
    size = next(len(places) for places, error in errors.items() if least >= ENOUGH * error)
    near = [places for places, error in errors.items() if len(places) == size and least >= NEARLY * error]
    return set().union(*near)


def prediction_errors(
    samples: Samples, encoding: Encoding, chosen: NDArray[np.int64], arguments: int
) -> dict[tuple[int, ...], float]:
    """Return how well controls can be predicted from the agent and from each set of arguments, the smaller ones first.

    That is the mean squared error for episodes that the prediction was not made from.
    """
    episodes, places = np.unique(samples.episodes[chosen], return_inverse=True)
    order = np.random.default_rng(FOLDS).permutation(len(episodes))
    some = np.unique(np.linspace(0, len(chosen) - 1, MOST_SAMPLES).astype(np.int64))
    chosen, folds = chosen[some], (order[places] % min(PARTS, len(episodes)))[some]
    agent = _standardised(samples.globals[chosen][:, : encoding.features.agent_size])
    seen, targets = _standardised(samples.objects[chosen][..., : -encoding.arity]), samples.targets[chosen]
    targets = targets - targets.mean(axis=0)

    def error(told: tuple[int, ...]) -> float:
        inputs = np.concatenate([agent, *(seen[:, place] for place in told)], axis=1).astype(np.float64)
        inputs = inputs[:, inputs.std(axis=0) > 0]
        squares = (inputs**2).sum(axis=1)
        distances = np.maximum(squares[:, None] + squares - 2 * inputs @ inputs.T, 0.0)
        scales = [2 * length**2 * max(inputs.shape[1], 1) for length in LENGTHS]
        return min(_error_of_kernel(np.exp(-distances / scale), targets, folds) for scale in scales)

    sets = [told for size in range(arguments + 1) for told in combinations(range(arguments), size)]
    return {told: error(told) for told in sets}


def _error_of_kernel(kernel: NDArray[np.float64], targets: Array, folds: NDArray[np.int64]) -> float:
    total = 0.0
    for fold in np.unique(folds):
        test, rest = folds == fold, folds != fold
        inner = kernel[np.ix_(rest, rest)] + NOISE * np.eye(int(rest.sum()))
        predicted = kernel[np.ix_(test, rest)] @ np.linalg.solve(inner, targets[rest])
        total += float(((predicted - targets[test]) ** 2).sum())
    return total / targets.size


def _standardised(numbers: Array) -> Array:
    """Each number less its mean, by its standard deviation; those that do not change are 0."""
    spread = numbers.std(axis=0)
    found: Array = np.where(spread > 0, (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1), 0)
    return found
