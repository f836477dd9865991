"""Training: it learns, the best epoch is kept, samples are shown as their images, and the seed decides everything."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bilevel.lowlevel.encoding import Encoding, Samples, Situation, encode_episode, encoding_of
from bilevel.lowlevel.network import GraphNetwork
from bilevel.lowlevel.numpy_network import Weights
from bilevel.lowlevel.training import Epoch, Trained, TrainingConfig, images, split, train
from bilevel.symbolic.domain import Action, BadInput
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Angle, Mirror, Position, Role, Scalar, Spec, Symmetry, Transpose
from bilevel.tasks.task import Task
from tiny_demonstrations import EPISODES, samples, shown
from tiny_task import DOMAIN, TINY, TINY_DISCRETE

SHORT = TrainingConfig(epochs=3, batch=32)


def make_network(task: Task = TINY) -> GraphNetwork:
    return GraphNetwork(encoding_of(task.domain, task.spec), shown(task).controls, 16)


def trained(
    seed: int = 0,
    config: TrainingConfig = SHORT,
    initial: Weights | None = None,
    learned_from: Samples | None = None,
    task: Task = TINY,
) -> Trained:
    return train(learned_from or samples(task), partial(make_network, task), seed, config, initial)


def changed(**settings: object) -> TrainingConfig:
    return msgspec.structs.replace(SHORT, **settings)


def same(first: Weights, second: Weights) -> bool:
    """Bit by bit."""
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=["box", "discrete"])
def test_the_loss_goes_down_and_the_best_epoch_is_kept(task: Task) -> None:
    told: list[Epoch] = []
    config = TrainingConfig(epochs=15, batch=16, learning_rate=0.03)  # so large that the loss goes up and down
    found = train(samples(task), partial(make_network, task), 0, config, callback=told.append)
    assert tuple(told) == found.curve
    assert [epoch.number for epoch in told] == list(range(1, 16))
    assert told[-1].training_loss < 0.6 * told[0].training_loss
    losses = [epoch.validation_loss for epoch in told]
    assert (found.validation_loss, found.best_epoch) == (min(losses), 1 + losses.index(min(losses)))
    network, held_out = make_network(task), split(samples(task), config.set_aside)[1]
    network.load_state_dict({name: torch.tensor(array) for name, array in found.weights.items()})
    with torch.no_grad():
        loss = network.loss(*network.predict(network.table(held_out), torch.arange(len(held_out))))
    assert float(loss) == pytest.approx(found.validation_loss, rel=1e-4)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    before = torch.get_rng_state()
    first, again, other = (trained(seed) for seed in (4, 4, 5))
    assert torch.equal(torch.get_rng_state(), before)  # torch's own random numbers stay as they were
    assert same(first.weights, again.weights)
    assert first.curve == again.curve
    assert not same(first.weights, other.weights)
    one, another = (trained(seed, initial=first.weights) for seed in (1, 2))
    assert not same(one.weights, another.weights)  # the order of the samples


# Setting episodes aside


def numbered_samples(episodes: list[int]) -> Samples:
    """Samples that are nothing but a number, two for each episode."""
    numbers = np.repeat(np.array(episodes, np.int64), 2)
    zeros = np.zeros((len(numbers), 1), np.float32)
    return Samples(zeros, numbers, zeros, numbers, zeros[..., None])


@given(st.sets(st.integers(0, 300), min_size=2, max_size=100), st.integers(2, 20))
def test_whole_episodes_are_set_aside(episodes: set[int], every: int) -> None:
    given_ = numbered_samples(sorted(episodes))
    learned, held_out = split(given_, every)
    assert not set(learned.episodes) & set(held_out.episodes)
    assert sorted([*learned.episodes, *held_out.episodes]) == given_.episodes.tolist()
    assert len(set(held_out.episodes.tolist())) == max(1, len(episodes) // every)
    assert all(len(array) == len(held_out) for array in held_out.arrays())


def test_nothing_is_learned_from_what_is_set_aside() -> None:
    ours = samples()
    assert len(np.unique(ours.episodes)) == EPISODES
    aside = np.isin(ours.episodes, split(ours, SHORT.set_aside)[1].episodes)
    others = replace(ours, targets=np.where(aside[:, None], -ours.targets, ours.targets))
    first, second = (trained(config=changed(epochs=1), learned_from=each) for each in (ours, others))
    assert same(first.weights, second.weights)
    assert first.curve[0].training_loss == second.curve[0].training_loss
    assert first.validation_loss != second.validation_loss


# Images: those of a sample are what encoding the image of its scene gives

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
        for scale in map(network.get_buffer, network.scales):
            scale += torch.arange(len(scale))
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
    row = row_of(spec, encoding, (1, 1, 1), swapped=False)
    _, image = images([symmetry], network_of(encoding).columns((torch.from_numpy(row[None]),)))
    assert image @ row == pytest.approx(row_of(spec, encoding, signs, swapped), rel=1e-4)


def test_what_a_feature_is_swapped_with_must_be_told_in_the_same_way() -> None:
    spec = spec_with(Transpose(("x", "radius"), (0, 1)))
    encoding = encoding_of(DOMAIN, spec)
    network, row = network_of(encoding), row_of(spec, encoding, (1, 1, 1), swapped=False)
    with pytest.raises(BadInput, match="swaps 'x' with 'radius'"):
        images(network.symmetries, network.columns((torch.from_numpy(row[None]),)))
