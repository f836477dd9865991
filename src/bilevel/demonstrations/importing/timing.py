"""Other frame rates: every k-th timestep is kept, and the controls in between are combined into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import RecordedEpisode
from bilevel.symbolic.domain import BadInput

Combine = Literal["mean", "sum", "last"]
COMBINED: dict[Combine, Callable[[NDArray[Any]], Any]] = {
    "mean": lambda controls: controls.mean(axis=0),
    "sum": lambda controls: controls.sum(axis=0),
    "last": lambda controls: controls[-1],
}


def every(recorded: float | None, wanted: float | None) -> int:
    """Return k where every k-th timestep is to be kept, so that there are `wanted` ones per second."""
    if wanted is None:
        return 1
    if not wanted > 0:
        raise BadInput(f"--rate is in Hz, and more than 0, not {wanted:g}")
    if recorded is None:
        raise BadInput("the recordings do not say how many timesteps there are per second: give --recorded-rate HZ")
    k = round(recorded / wanted)
    if k < 1 or abs(recorded / wanted - k) > 1e-6 * k:
        fitting = ", ".join(f"{recorded / divisor:g}" for divisor in range(1, 6))
        raise BadInput(f"{wanted:g} Hz is no whole part of the recorded {recorded:g} Hz; that would be: {fitting}, ...")
    return k


def thin(episode: RecordedEpisode, k: int, combine: Combine, switches: Sequence[int] = ()) -> RecordedEpisode:
    """Return an episode with every k-th timestep, and the last one, wherever that is.

    The numbers of a control that are `switches` are the last ones of each stretch, as nothing lies between open and
    closed; so are controls that are whole numbers.
    """
    if k == 1:
        return episode
    last = len(episode.observations) - 1
    kept = [*range(0, last, k), last]
    controls = None if episode.controls is None else _combined(np.asarray(episode.controls), kept, combine, switches)
    infos = None if episode.infos is None else [episode.infos[now] for now in kept]
    return replace(episode, observations=[episode.observations[now] for now in kept], controls=controls, infos=infos)


def _combined(controls: NDArray[Any], kept: Sequence[int], combine: Combine, switches: Sequence[int]) -> NDArray[Any]:
    latest = controls[np.array(kept[1:], np.intp) - 1]
    if controls.dtype.kind != "f" and controls.ndim == 1:
        return latest
    stretches = (controls[start:end] for start, end in pairwise(kept))
    combined = np.array([COMBINED[combine](stretch) for stretch in stretches]).reshape(latest.shape)
    if controls.ndim == 2 and switches:
        combined[:, list(switches)] = latest[:, list(switches)]
    return combined
