"""State estimation: clean scenes pass, noise is averaged away, what is hidden is remembered; and how it is fitted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace as changed

from bilevel.tasks.estimation import AgentMotion, Carrying, Estimation, Estimator, ObjectMotion, fit_estimation
from bilevel.tasks.perception import Perception, Sensor
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import LabelOnly, Position, Scalar, Spec
from tiny_demonstrations import shown
from tiny_task import SPEC as TINY_SPEC

SPEC = Spec(
    agent={"x": Position, "y": Position, "z": Position, "opening": Scalar},
    objects={
        "cube": {"x": Position, "y": Position, "z": Position, "red": LabelOnly, "turned": Scalar},
        "spot": {"x": Position, "y": Position, "z": Position},
    },
)
CARRYING = Carrying(
    offset=(0.0, 0.0, -0.02),
    radius=0.02,
    agent={"opening": (0.3, 0.6)},
    coupled={"turned": (2.0, 0.0, 0.0)},
)
ESTIMATION = Estimation(
    floor=0.0003,
    jump=0.03,
    types={
        "cube": ObjectMotion(bounds={"turned": (0.0, 0.5)}, carrying=CARRYING),
        "spot": ObjectMotion(),
    },
)
CUBES = {"cube0": (0.3, 0.1), "cube1": (-0.3, 0.2), "cube2": (0.0, -0.3)}


def scene(agent: tuple[float, float, float, float] = (0.0, 0.0, 0.2, 1.0), **cubes: tuple[float, ...]) -> Scene:
    """The agent, cubes at rest but for those that are given, and two spots."""
    where = {name: (*at, 0.02)[:3] for name, at in {**CUBES, **cubes}.items()}
    objects = {
        "cube": {
            name: {"x": x, "y": y, "z": z, "red": float(name[-1]), "turned": 0.0} for name, (x, y, z) in where.items()
        },
        "spot": {"spot0": {"x": 0.1, "y": 0.1, "z": 0.0}, "spot1": {"x": 0.1, "y": -0.1, "z": 0.0}},
    }
    return Scene(SPEC, dict(zip(SPEC.agent, agent, strict=True)), objects)


def without(found: Scene, *names: str) -> Scene:
    kept = {kind: [name for name in found.roster.of_type(kind) if name not in names] for kind in SPEC.objects}
    objects = {
        kind: {name: {feature: found[name][feature] for feature in SPEC.objects[kind]} for name in members}
        for kind, members in kept.items()
    }
    return Scene(SPEC, {name: found.agent[name] for name in SPEC.agent}, objects)


def carried() -> Iterator[Scene]:
    """The hand comes down on a cube, closes, lifts it, carries it along x, opens, and leaves."""
    for z in np.linspace(0.2, 0.04, 20):
        yield scene((0.3, 0.1, z, 1.0))
    yield from [scene((0.3, 0.1, 0.04, 0.45))] * 3
    for way in np.linspace(0, 0.2, 20):
        yield scene((0.3 - way, 0.1, 0.04 + way, 0.45), cube0=(0.3 - way, 0.1, 0.02 + way))
    yield scene((0.1, 0.1, 0.24, 1.0), cube0=(0.1, 0.1, 0.22))
    for z in np.linspace(0.24, 0.4, 10):
        yield scene((0.1, 0.1, z, 1.0), cube0=(0.1, 0.1, 0.02))


def seen(scenes: Iterator[Scene] | list[Scene], seed: int = 0, **wrong: float) -> Iterator[tuple[Scene, Scene]]:
    """What is, and what is seen of it."""
    sensor = Sensor(Perception(**wrong), SPEC, seed)  # type: ignore[arg-type]
    return ((found, sensor.see(found)) for found in scenes)


def off(one: Scene, other: Scene, name: str) -> float:
    return max(abs(one[name][axis] - other[name][axis]) for axis in "xyz")


def test_where_nothing_is_wrong_scenes_are_given_back_as_they_are() -> None:
    estimator = Estimator(SPEC, ESTIMATION)
    for found in carried():
        assert estimator.update(found) is found


def test_noise_is_averaged_away_while_things_rest() -> None:
    estimator = Estimator(SPEC, ESTIMATION)
    for number, (true, noisy) in enumerate(seen([scene()] * 200, noise=0.01)):
        estimate = estimator.update(noisy)
        if number > 50:
            assert max(off(estimate, true, name) for name in true.objects) < 0.006
    assert max(off(estimate, true, name) for name in true.objects) < 0.003
    assert estimate["cube2"].red == 2


def test_what_is_carried_is_known_in_spite_of_noise() -> None:
    estimator = Estimator(SPEC, ESTIMATION)
    for true, noisy in seen([scene()] * 50 + list(carried()), noise=0.01):
        estimate = estimator.update(noisy)
        if true["cube0"].z > 0.03 and true.agent.opening < 0.5:
            assert off(estimate, true, "cube0") < 0.007
    assert off(estimate, true, "cube1") < 0.005


def test_what_is_hidden_is_remembered_and_moves_along_while_it_is_carried() -> None:
    estimator = Estimator(SPEC, ESTIMATION)
    for true, hidden in seen(carried(), occluded=0.05):
        estimate = estimator.update(hidden)
        assert estimate.objects == true.objects
        if true["cube0"].z < 0.2:  # it falls in the end, unseen
            assert off(estimate, true, "cube0") < 1e-6
    assert off(estimate, true, "cube0") == 0


def test_numbers_that_change_with_the_way_of_what_is_carried_are_estimated_while_it_is_hidden() -> None:
    estimator = Estimator(SPEC, ESTIMATION)
    turned = [estimator.update(hidden)["cube0"].turned for _, hidden in seen(carried(), occluded=0.05)]
    assert min(turned) >= 0.0
    assert turned[22] == 0
    assert turned[41] == 0  # it was carried along x downwards, and there is a lower bound
    backwards = changed(CARRYING, coupled={"turned": (-2.0, 0.0, 0.0)})
    types = {**ESTIMATION.types, "cube": changed(ESTIMATION.types["cube"], carrying=backwards)}
    estimator = Estimator(SPEC, changed(ESTIMATION, types=types))
    turned = [estimator.update(hidden)["cube0"].turned for _, hidden in seen(carried(), occluded=0.05)]
    assert turned[41] == pytest.approx(0.4, abs=0.05)


def test_what_vanishes_is_forgotten_where_things_do_and_at_once_if_nothing_flickers() -> None:
    gone = changed(ESTIMATION, types={**ESTIMATION.types, "cube": ObjectMotion(gone=0.1)})
    for estimation, flickers, expected in ((ESTIMATION, 0, True), (gone, 0, False), (gone, 1, True)):
        estimator = Estimator(SPEC, estimation)
        estimator.update(scene())
        for _ in range(flickers):
            estimator.update(without(scene(), "spot0"))
            estimator.update(scene())
        estimates = [estimator.update(without(scene(), "cube1")) for _ in range(40)]
        assert ("cube1" in estimates[0]) is expected
        assert ("cube1" in estimates[-1]) is (estimation is ESTIMATION)


def test_new_objects_join_those_of_their_type() -> None:
    estimator = Estimator(SPEC, ESTIMATION)
    estimator.update(without(scene(), "cube1", "spot1"))
    assert {*estimator.update(without(scene(), "cube2")).objects} == {*scene().objects}
    assert estimator.update(scene()) == scene()


def test_the_agent_is_predicted_if_scenes_are_late() -> None:
    motion = AgentMotion(("x", "y", "z"), ((0.0,) * 3,) * 3, ((0.01, 0, 0), (0, 0.01, 0), (0, 0, 0.01)), 0.0001)
    for delay, waits in ((0, 0), (4, 0), (0, 5), (4, 5)):
        estimator = Estimator(SPEC, changed(ESTIMATION, agent=motion))
        sensor, x = Sensor(Perception(delay=delay), SPEC, 0), 0.0
        for step in range(40):
            true = scene((x, 0.0, 0.2, 1.0))
            estimate = estimator.update(sensor.see(true))
            if delay == 0:
                assert estimate is true
            elif step > waits + delay + 2:
                assert estimate.agent.x == pytest.approx(true.agent.x, abs=1e-5)
            control = np.array([0.0 if step < waits else 1.0 if step % 7 else -1.0, 0.0, 0.0])
            estimator.act(control)
            x += 0.01 * control[0]


# What demonstrations show of how things move


@pytest.fixture(scope="module")
def fitted() -> Estimation:
    return fit_estimation(TINY_SPEC, [(item.scenes(TINY_SPEC), item.executed) for item in shown()])


def test_what_is_carried_and_how_the_agent_moves_is_seen(fitted: Estimation) -> None:
    assert fitted.types["spot"].carrying is None
    carrying = fitted.types["parcel"].carrying
    assert carrying is not None
    assert carrying.offset == pytest.approx((0, 0), abs=1e-6)  # a parcel that is carried is where the agent is
    assert carrying.agent["closed"][0] > 0
    assert 0.1 < fitted.jump < 0.3  # its steps lead up to 0.1 along each axis
    assert 0 < fitted.floor < 0.01
    assert fitted.agent is not None
    assert np.array(fitted.agent.response)[:2] == pytest.approx(np.eye(2), abs=0.05)


def test_demonstrations_pass_through_an_estimator_that_was_fitted_to_them(fitted: Estimation) -> None:
    estimator = Estimator(TINY_SPEC, fitted)
    for demonstration in shown():
        estimator.reset()
        for scene, control in zip(demonstration.scenes(TINY_SPEC), [*demonstration.controls, np.zeros(3)], strict=True):
            assert estimator.update(scene) is scene
            estimator.act(control)


def test_coordinates_and_numbers_that_belong_to_the_way_of_an_object_are_found() -> None:
    spec = Spec(
        agent={"x": Position, "y": Position, "closed": Scalar},
        objects={"drawer": {"x": Position, "y": Position, "pulled": Scalar}},
    )

    def scene(step: int) -> Scene:
        way = 0.02 * max(0, min(step - 10, 20))
        agent = {"x": 0.02 * (step - 10), "y": 0.5, "closed": float(10 <= step < 30)}
        return Scene(spec, agent, {"drawer": {"drawer": {"x": way, "y": 0.5, "pulled": way}}})

    motion = fit_estimation(spec, [([scene(step) for step in range(40)], None)]).types["drawer"]
    assert motion.carrying is not None
    assert motion.carrying.coupled["pulled"][0] == pytest.approx(1.0)
    assert motion.bounds["pulled"] == pytest.approx((0, 0.4))


def test_nothing_is_learned_from_nothing() -> None:
    assert fit_estimation(SPEC, []) == Estimation(floor=0, jump=0, types={})
