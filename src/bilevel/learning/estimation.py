"""The parameters of state estimation from a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.symbolic.domain import Facts
from bilevel.tasks import estimation_fitting
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.estimation import Estimation
from bilevel.tasks.scene import Array, Scene

ENOUGH = 50  # demonstrations; further ones say nothing new about how things move


def fit_estimation(demonstrations: Demonstrations) -> Estimation:
    """Return what demonstrations show of how things move and how long facts last, for an `Estimator`."""
    return estimation_fitting.fit_estimation(demonstrations.spec, _shown(demonstrations))


def _shown(demonstrations: Demonstrations) -> Iterator[tuple[Sequence[Scene], Sequence[Facts], Array | None]]:
    spec, are_numbers = demonstrations.spec, isinstance(demonstrations.controls, BoxControls)
    for number in range(min(len(demonstrations), ENOUGH)):
        shown = demonstrations[number]
        controls = shown.executed.reshape(shown.steps, -1) if are_numbers else None
        yield shown.scenes(spec), shown.at_each_timestep(shown.states), controls
