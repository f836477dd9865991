"""The statistics of a data set's columns, by which LeRobot normalises what its policies see and do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}

Statistics = dict[str, dict[str, NDArray[Any]]]  # of each column, by their names


def statistics_of(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the statistics of a column; those of plain numbers are arrays of one number, as in LeRobot."""
    numbers = np.asarray(array, np.float64).reshape(len(array), -1)
    return {
        "min": numbers.min(0),
        "max": numbers.max(0),
        "mean": numbers.mean(0),
        "std": numbers.std(0),
        "count": np.array([len(numbers)]),
        **{name: np.quantile(numbers, share, axis=0) for name, share in QUANTILES.items()},
    }


def joined(episodes: Sequence[Statistics]) -> Statistics:
    """Return the statistics of all episodes together; as in LeRobot, the quantiles are the mean ones."""
    return {name: _of_all([statistics[name] for statistics in episodes]) for name in (episodes[0] if episodes else ())}


def _of_all(parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    stacked = {key: np.stack([part[key] for part in parts]) for key in parts[0]}
    weights = stacked["count"] / stacked["count"].sum()
    mean = (weights * stacked["mean"]).sum(0)
    variance = (weights * (stacked["std"] ** 2 + (stacked["mean"] - mean) ** 2)).sum(0)
    return {
        "min": stacked["min"].min(0),
        "max": stacked["max"].max(0),
        "mean": mean,
        "std": np.sqrt(variance),
        "count": stacked["count"].sum(0),
        **{name: (weights * stacked[name]).sum(0) for name in QUANTILES},
    }
