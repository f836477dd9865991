"""Augmentation: the images of a sample are what encoding the image of its scene gives, and a run goes on bit by bit."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from bilevel.lowlevel.augmentation import augmentation, images
from bilevel.lowlevel.encoding import Encoding, Samples, Situation, encode_episode, encoding_of
from bilevel.lowlevel.network import GraphNetwork
from bilevel.lowlevel.training import Training, TrainingConfig
from bilevel.symbolic.domain import Action, BadInput
from bilevel.tasks.controls import BoxControls, DiscreteControls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Angle, Mirror, Position, Role, Scalar, Spec, Symmetry, Transpose
from tiny_task import DOMAIN

CONTROLS = BoxControls([-1.0] * 3, [1.0] * 3, [3])
MIRROR = Mirror(("x", "yaw"), controls=(0,))
TRANSPOSE = Transpose(("x", "y"), controls=(0, 1), angles=("yaw",))


def spec_with(*symmetries: Symmetry) -> Spec:
    place: dict[str, Role] = {"x": Position(absolute=True), "y": Position(absolute=True), "yaw": Angle(symmetry=2)}
    return Spec(
        {**place, "closed": Scalar}, {"parcel": place, "spot": {**place, "radius": Scalar()}}, None, {}, symmetries
    )


def drawn_scene(spec: Spec, rng: np.random.Generator, signs: Array, swapped: bool) -> tuple[Scene, Array]:
    """A random scene and control, as they are or as their image: signs of x, y and yaw, and x and y swapped."""

    def features(further: dict[str, float]) -> dict[str, float]:
        x, y, yaw = (rng.normal(size=3) * signs).tolist()
        return {"x": y, "y": x, "yaw": yaw, **further} if swapped else {"x": x, "y": y, "yaw": yaw, **further}

    seen = {"parcel": {"p": features({})}, "spot": {"s": features({"radius": 0.5})}}
    scene = Scene(spec, features({"closed": 1.0}), seen)
    control = np.append(rng.normal(size=2) * signs[:2], 0.3).astype(np.float32)
    return scene, control[[1, 0, 2]] if swapped else control


def row_of(spec: Spec, encoding: Encoding, signs: tuple[float, ...], swapped: bool) -> Array:
    scene, control = drawn_scene(spec, np.random.default_rng(1), np.array(signs), swapped)
    situation: Situation = frozenset(), frozenset(), Action("put", ("p", "s"))
    sample = encode_episode(encoding, [scene], [situation], control[None], 0)
    row: Array = network_of(encoding).table(sample)[0].numpy()[0]
    return row


def network_of(encoding: Encoding) -> GraphNetwork:
    network = GraphNetwork(encoding, CONTROLS, hidden=4)
    with torch.no_grad():  # scales of their own
        network.global_scale += torch.arange(encoding.global_size)
        network.object_scale += torch.arange(encoding.object_size)
    return network


@pytest.mark.parametrize(
    ("symmetry", "signs", "swapped"),
    [(MIRROR, (-1, 1, -1), False), (TRANSPOSE, (1, 1, -1), True)],
    ids=["mirror", "transpose"],
)
def test_an_image_is_what_encoding_the_image_of_a_scene_gives(
    symmetry: Symmetry, signs: tuple[float, ...], swapped: bool
) -> None:
    spec = spec_with(symmetry)
    encoding = encoding_of(DOMAIN, spec)
    columns = network_of(encoding).columns(())
    assert columns is not None
    _, image = images(columns.symmetries, columns.columns)
    row = row_of(spec, encoding, (1, 1, 1), swapped=False)
    assert row[image.sources] * image.factors == pytest.approx(row_of(spec, encoding, signs, swapped), rel=1e-4)


def test_mirrors_and_a_swap_make_eight_images() -> None:
    columns = network_of(encoding_of(DOMAIN, spec_with(MIRROR, Mirror(("y", "yaw"), (1,)), TRANSPOSE))).columns(())
    assert columns is not None
    assert len(images(columns.symmetries, columns.columns)) == 8
    assert len(images(columns.symmetries[:2], columns.columns)) == 4


def test_what_a_feature_is_swapped_with_must_be_told_in_the_same_way() -> None:
    columns = network_of(encoding_of(DOMAIN, spec_with(Transpose(("x", "radius"), (0, 1))))).columns(())
    assert columns is not None
    with pytest.raises(BadInput, match="swaps 'x' with 'radius'"):
        images(columns.symmetries, columns.columns)


def test_a_symmetry_of_features_that_nobody_has_is_bad_input() -> None:
    with pytest.raises(BadInput, match="a symmetry names the feature 'depth'"):
        spec_with(Mirror(("depth",), (0,)))


# Training with it


def drawn_samples(encoding: Encoding, count: int = 40) -> Samples:
    rng = np.random.default_rng(0)
    sizes = (count, encoding.global_size), (count, encoding.arity, encoding.object_size)
    globals_, objects = (rng.normal(size=size).astype(np.float32) for size in sizes)
    return Samples(objects[:, 0, :3], np.arange(count) // 4, globals_, np.arange(count) % 2, objects)


def table_after(symmetry: Symmetry) -> tuple[Array, Array, Samples]:
    encoding = encoding_of(DOMAIN, spec_with(symmetry))
    network, ours = network_of(encoding), drawn_samples(encoding)
    table = network.table(ours)
    before = table[0].numpy().copy()
    change = augmentation(network.columns(()), table, 0)
    assert change is not None
    change(0, 0)
    return before, table[0].numpy(), ours


def test_each_pass_shows_other_images_in_the_same_table() -> None:
    """A step that was recorded on a GPU reads where the table was when it was recorded."""
    network = network_of(encoding_of(DOMAIN, spec_with(MIRROR, TRANSPOSE)))
    (table,) = network.table(drawn_samples(network.encoding))
    change, place, passes = augmentation(network.columns(()), [table], 0), table.data_ptr(), []
    assert change is not None
    for number in (0, 1, 0):
        change(0, number)
        passes.append(table.clone())
    assert table.data_ptr() == place
    assert torch.equal(passes[0], passes[2])
    assert not torch.equal(passes[0], passes[1])


def test_an_exception_stays_as_it_is_and_some_of_the_others_change() -> None:
    before, after, ours = table_after(replace_exception(MIRROR, "pick"))
    changed = (before != after).any(axis=1)
    assert not changed[ours.schemas == 0].any()
    assert 3 < changed[ours.schemas == 1].sum() < 17


def replace_exception(symmetry: Mirror, name: str) -> Mirror:
    return Mirror(symmetry.features, symmetry.controls, (name,))


ALL = TrainingConfig(epochs=2, batch=8, updates=30, symmetries=True)


@pytest.mark.parametrize("pauses", [0, 1, 6])
def test_a_run_with_all_settings_goes_on_bit_by_bit(pauses: int) -> None:
    encoding = encoding_of(DOMAIN, spec_with(MIRROR, TRANSPOSE))
    make = partial(GraphNetwork, encoding, CONTROLS, 4)
    whole, stopped, resumed = (Training(drawn_samples(encoding), make, 0, ALL, None) for _ in range(3))
    stopped.learn()
    for _ in range(pauses):
        assert stopped.learn(seconds=0) is None
    resumed.restore(stopped.state(), stopped.curve)
    for training in (whole, resumed):
        while not training.done:
            training.learn()
    assert whole.curve == resumed.curve
    ours, theirs = whole.result().weights, resumed.result().weights
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_discrete_controls_have_no_images() -> None:
    network = GraphNetwork(encoding_of(DOMAIN, spec_with(MIRROR)), DiscreteControls(3), 4)
    columns = network.columns(())
    assert columns is not None
    assert not columns.symmetries
    assert augmentation(columns, network.table(drawn_samples(network.encoding)), 0) is None


def test_the_number_of_updates_does_not_depend_on_that_of_samples() -> None:
    """There are 36 samples to learn from, so 4 batches in a pass."""
    encoding = encoding_of(DOMAIN, spec_with())
    make = partial(GraphNetwork, encoding, CONTROLS, 4)
    config = TrainingConfig(epochs=2, batch=8, updates=30)
    for updates, steps in ((0, 8), (1, 2), (5, 4), (8, 8), (15, 14), (16, 16), (33, 32)):
        training = Training(drawn_samples(encoding), make, 0, replace_updates(config, updates), None)
        while not training.done:
            training.learn()
        assert training.state()["readout.0.weight step"] == steps


def replace_updates(config: TrainingConfig, updates: int) -> TrainingConfig:
    return TrainingConfig(epochs=config.epochs, batch=config.batch, updates=updates)
