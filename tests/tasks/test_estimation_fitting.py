"""What demonstrations show of how things move."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.demonstrations.traces import label
from bilevel.tasks.estimation import Estimation
from bilevel.tasks.estimation_fitting import EstimationFit
from bilevel.tasks.estimator import Estimator
from bilevel.tasks.perception import Perception, Sensor
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Position, Scalar, Spec
from tiny_demonstrations import shown
from tiny_task import SPEC, TINY

SLIDING = Spec(
    agent={"x": Position, "y": Position, "closed": Scalar},
    objects={"drawer": {"x": Position, "y": Position, "pulled": Scalar}},
)


@pytest.fixture(scope="module")
def fitted() -> Estimation:
    fit = EstimationFit(SPEC)
    for demonstration in shown():
        scenes = demonstration.scenes(SPEC)
        fit.add(scenes, label(demonstration, TINY, scenes)[0], demonstration.executed)
    return fit.result()


def test_what_is_carried_and_what_is_not_is_seen(fitted: Estimation) -> None:
    assert fitted.types["spot"].carrying is None
    carrying = fitted.types["parcel"].carrying
    assert carrying is not None
    assert carrying.offset == pytest.approx((0, 0), abs=1e-6)  # a parcel that is carried is where the agent is
    low, high = carrying.agent["closed"]
    assert low <= 1 <= high
    assert low > 0


def test_how_fast_the_agent_moves_says_what_a_jump_is(fitted: Estimation) -> None:
    assert 0.1 < fitted.jump < 0.3  # its steps lead up to 0.1 along each axis
    assert 0 < fitted.floor < 0.01
    assert fitted.steps >= 1


def test_the_controls_explain_how_the_agent_moves(fitted: Estimation) -> None:
    assert fitted.agent is not None
    assert fitted.agent.features[:2] == ("x", "y")
    assert np.array(fitted.agent.response)[:2, :2] == pytest.approx(np.eye(2), abs=0.05)


def test_demonstrations_pass_through_an_estimator_that_was_fitted_to_them(fitted: Estimation) -> None:
    estimator = Estimator(SPEC, fitted)
    for demonstration in shown():
        estimator.reset()
        for scene, control in zip(demonstration.scenes(SPEC), [*demonstration.controls, None], strict=True):
            assert estimator.update(scene) is scene
            if control is not None:
                estimator.act(control)


def test_noise_is_taken_off_what_was_shown(fitted: Estimation) -> None:
    estimator, scenes = Estimator(SPEC, fitted), shown()[0].scenes(SPEC)
    sensor, errors, raw = Sensor(Perception(noise=0.02), SPEC, 1), [], []
    for scene in scenes:
        noisy = sensor.see(scene)
        estimate = estimator.update(noisy)
        rows = estimate.rows(scene.roster.names)
        errors.append(np.abs(estimate.features[rows] - scene.features)[:, :2].mean())
        raw.append(np.abs(noisy.features - scene.features)[:, :2].mean())
    assert np.mean(errors[10:]) < 0.6 * np.mean(raw[10:])


def test_coordinates_and_numbers_that_belong_to_the_way_of_an_object_are_found() -> None:
    def scene(step: int) -> Scene:
        way = 0.02 * max(0, min(step - 10, 20))
        agent = {"x": 0.02 * (step - 10), "y": 0.5, "closed": float(10 <= step < 30)}
        return Scene(SLIDING, agent, {"drawer": {"drawer": {"x": way, "y": 0.5, "pulled": way}}})

    fit = EstimationFit(SLIDING)
    fit.add([scene(step) for step in range(40)], [frozenset()] * 40)
    motion = fit.result().types["drawer"]
    assert motion.carrying is not None
    assert motion.carrying.coupled["pulled"][0] == pytest.approx(1.0)
    assert motion.bounds["pulled"] == pytest.approx((0, 0.4))
    assert motion.known == {"y": 0.5}


def test_nothing_is_learned_from_nothing() -> None:
    assert EstimationFit(SPEC).result() == Estimation(floor=0, near=0, jump=0, steps=1, types={})
