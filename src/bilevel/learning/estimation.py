"""The parameters of state estimation from a data set."""

from __future__ import annotations

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.estimation import Estimation
from bilevel.tasks.estimation_fitting import EstimationFit

ENOUGH = 50  # demonstrations; further ones say nothing new about how things move


def fit_estimation(demonstrations: Demonstrations) -> Estimation:
    """Return what demonstrations show of how things move and how long facts last, for an `Estimator`."""
    fit = EstimationFit(demonstrations.spec)
    for number in range(min(len(demonstrations), ENOUGH)):
        shown = demonstrations[number]
        controls = shown.executed.reshape(shown.steps, -1) if isinstance(demonstrations.controls, BoxControls) else None
        fit.add(shown.scenes(demonstrations.spec), shown.at_each_timestep(shown.states), controls)
    return fit.result()
