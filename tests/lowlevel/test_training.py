"""Training: the loss falls, the best epoch is kept, and the same seed gives the same weights."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_data import EPISODES, architecture, samples

from bilevel.lowlevel.architecture import Weights
from bilevel.lowlevel.samples import Samples
from bilevel.lowlevel.training import Epoch, Trained, Training, TrainingConfig, split
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import Array

CPU = torch.device("cpu")
SHORT = TrainingConfig(epochs=3)
EVERYTHING = 10_000  # samples in a batch: one batch per epoch


def begin(*seeds: int, config: TrainingConfig = SHORT, initial: tuple[Weights, ...] = ()) -> Training:
    return Training(samples(), architecture(hidden=16), seeds, config, initial, CPU)


def finish(training: Training) -> list[Trained]:
    while not training.done:
        training.one_epoch()
    return training.result()


def same(first: Weights, second: Weights) -> bool:
    """Bit by bit."""
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


# Losses


def test_the_loss_goes_down() -> None:
    training = begin(0, 1, config=TrainingConfig(epochs=30, batch=16))
    finish(training)
    assert [epoch.number for epoch in training.curve] == list(range(1, 31))
    for net in range(2):
        assert training.curve[-1].training_loss[net] < 0.5 * training.curve[0].training_loss[net]


def test_the_loss_is_the_mean_squared_error_of_the_network_as_it_is() -> None:
    """With one batch and no step to speak of, before and after are the same."""
    training = begin(5, config=replace(SHORT, batch=EVERYTHING, learning_rate=1e-30))
    (weights,) = training.network.weights()
    epoch = training.one_epoch()
    for part, (loss,) in zip(split(samples(), 10), (epoch.training_loss, epoch.validation_loss), strict=True):
        assert loss == pytest.approx(mean_squared_error(weights, part), rel=1e-5)


def mean_squared_error(weights: Weights, part: Samples) -> float:
    def layer(name: str, inputs: Array) -> Array:
        outputs: Array = inputs @ weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return outputs

    h_global, h_objects = layer("global.0", part.globals), layer("object.0", part.objects)
    h_action = weights["action.0.weight"][part.schemas] + weights["action.0.bias"]
    for number in (1, 2):
        most = h_objects.max(axis=1)
        h_global = np.maximum(layer(f"global.{number}", h_global + h_action + most), 0)
        h_objects = np.maximum(layer(f"object.{number}", h_objects + (h_global + h_action)[:, None]), 0)
        h_action = np.maximum(layer(f"action.{number}", h_global + h_action + most), 0)
    summed = h_global + h_action + h_objects.max(axis=1)
    controls = layer("readout.1", np.maximum(layer("readout.0", summed), 0))
    return float(np.mean((controls - part.controls) ** 2))


# Seeds


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    first, again, other = (finish(begin(seed))[0] for seed in (4, 4, 5))
    assert same(first.weights, again.weights)
    assert (first.best_epoch, first.validation_loss) == (again.best_epoch, again.validation_loss)
    assert not same(first.weights, other.weights)


def test_the_seed_decides_the_order_of_the_samples_too() -> None:
    (weights,) = begin(0).network.weights()
    first, second = finish(begin(1, 2, initial=(weights, weights)))
    assert not same(first.weights, second.weights)


def test_networks_trained_together_are_those_trained_alone() -> None:
    """Not bit by bit: how a product of matrices is summed up may depend on how many there are, and on the threads."""
    seeds = (3, 8, 5)
    for together, seed in zip(finish(begin(*seeds)), seeds, strict=True):
        (alone,) = finish(begin(seed))
        assert (together.seed, together.best_epoch) == (alone.seed, alone.best_epoch)
        for name, array in alone.weights.items():
            assert together.weights[name] == pytest.approx(array, abs=1e-6)


def test_given_weights_are_where_training_begins() -> None:
    (weights,) = begin(9).network.weights()
    assert same(begin(0, initial=(weights,)).network.weights()[0], weights)


# Stopping and going on


def test_a_restored_run_goes_on_bit_by_bit() -> None:
    config = TrainingConfig(epochs=4)
    never_stopped, stopped, resumed = (begin(0, 1, config=config) for _ in range(3))
    for _ in range(2):
        stopped.one_epoch()
    resumed.restore(stopped.state(), stopped.curve)
    assert resumed.epoch == 2
    for ours, theirs in zip(finish(resumed), finish(never_stopped), strict=True):
        assert same(ours.weights, theirs.weights)
        assert (ours.best_epoch, ours.validation_loss) == (theirs.best_epoch, theirs.validation_loss)
    assert resumed.curve == never_stopped.curve
    assert stopped.epoch == 2


@pytest.mark.parametrize("pause", [1, 4, 10])
def test_a_run_restored_in_the_middle_of_an_epoch_goes_on_bit_by_bit(pause: int) -> None:
    config = TrainingConfig(epochs=2, batch=16)
    never_stopped, stopped, resumed = (begin(0, 1, config=config) for _ in range(3))
    first = stopped.one_epoch()
    for _ in range(pause):
        assert stopped.learn(seconds=0) is None
    resumed.restore(stopped.state(), stopped.curve)
    assert (stopped.epoch, resumed.epoch) == (1, 1)
    for ours, theirs in zip(finish(resumed), finish(never_stopped), strict=True):
        assert same(ours.weights, theirs.weights)
    assert resumed.curve == never_stopped.curve
    assert resumed.curve[0] == first


def test_an_epoch_of_many_pauses_is_one_without_any() -> None:
    paused, whole = (begin(0, config=replace(SHORT, batch=16)) for _ in range(2))
    pauses = 0
    while (epoch := paused.learn(seconds=0)) is None:
        pauses += 1
    assert pauses == paused.state()["step"] - 1 > 3
    assert epoch == whole.one_epoch()
    assert same(paused.network.weights()[0], whole.network.weights()[0])


def test_a_state_from_between_epochs_need_not_say_so() -> None:
    """Files of versions that did not know any other."""
    stopped, resumed = begin(0), begin(0)
    stopped.one_epoch()
    known = {name: array for name, array in stopped.state().items() if name not in ("number", "loss")}
    resumed.restore(known, stopped.curve)
    assert [same(a.weights, b.weights) for a, b in zip(finish(resumed), finish(stopped), strict=True)] == [True]
    assert resumed.curve == stopped.curve


def test_what_was_handed_out_stays_as_it_is_while_training_goes_on() -> None:
    training = begin(0)
    training.one_epoch()
    state, (trained,) = training.state(), training.result()
    before = {name: array.copy() for name, array in state.items()}
    weights = {name: array.copy() for name, array in trained.weights.items()}
    training.one_epoch()
    assert training.result()[0].best_epoch == 2
    assert all(np.array_equal(state[name], before[name]) for name in state)
    assert same(trained.weights, weights)


# The best epoch


def test_the_network_of_the_best_epoch_is_kept() -> None:
    """With steps as large as these, the loss goes up and down."""
    seeds = (0, 1, 2, 3)
    training = begin(*seeds, config=TrainingConfig(epochs=8, batch=16, learning_rate=0.1))
    after = []
    while not training.done:
        training.one_epoch()
        after.append(training.network.weights())
    for net, trained in enumerate(training.result()):
        losses = [epoch.validation_loss[net] for epoch in training.curve]
        assert trained.validation_loss == min(losses)
        assert trained.best_epoch == 1 + losses.index(min(losses))
        assert same(trained.weights, after[trained.best_epoch - 1][net])
    assert any(trained.best_epoch < 8 for trained in training.result())
    assert len({trained.best_epoch for trained in training.result()}) > 1


# The learning rate


def test_the_learning_rate_falls_from_first_to_nothing_along_a_cosine() -> None:
    epochs = 20
    training = begin(0, config=TrainingConfig(epochs=epochs, batch=EVERYTHING))
    rates = []
    for _ in range(epochs):
        before = training.state()["flat"]
        training.one_epoch()
        rates.append(learning_rate(before, training))
    expected = [1e-3 * (1 + math.cos(math.pi * epoch / epochs)) / 2 for epoch in range(epochs)]
    assert rates == pytest.approx(expected, rel=0.02)
    assert rates[0] == pytest.approx(1e-3, rel=1e-3)
    assert rates[-1] < 1e-5


def learning_rate(before: Array, training: Training) -> float:
    """That of the last step, from how far Adam went and its moments."""
    now = training.state()
    first = now["exp_avg"] / (1 - 0.9 ** now["step"])
    second = now["exp_avg_sq"] / (1 - 0.999 ** now["step"])
    moving = np.abs(first) > 1e-3
    went = (before - now["flat"])[moving]
    return float(np.median(went / (first / (np.sqrt(second) + 1e-8))[moving]))


# Setting episodes aside


def numbered_samples(episodes: list[int]) -> Samples:
    """Samples that are nothing but a number, two for each episode."""
    numbers = np.repeat(np.array(episodes, np.int64), 2)
    zeros = np.zeros((len(numbers), 1), np.float32)
    return Samples(zeros, numbers, zeros[..., None], zeros, numbers)


@given(st.sets(st.integers(0, 300), min_size=2, max_size=200), st.integers(2, 20))
def test_whole_episodes_are_set_aside(episodes: set[int], every: int) -> None:
    given_ = numbered_samples(sorted(episodes))
    learned, held_out = split(given_, every)
    assert not set(learned.episodes) & set(held_out.episodes)
    assert sorted([*learned.episodes, *held_out.episodes]) == given_.episodes.tolist()
    assert len(set(held_out.episodes.tolist())) == max(1, len(episodes) // every)
    assert all(len(getattr(held_out, field.name)) == len(held_out) for field in fields(Samples))


def test_every_tenth_is_set_aside_and_stays_so_when_more_are_added() -> None:
    for count in (200, 260):
        _, held_out = split(numbered_samples(list(range(count))), TrainingConfig().set_aside)
        assert np.unique(held_out.episodes).tolist() == list(range(9, count, 10))


@pytest.mark.parametrize("episodes", [0, 1])
def test_too_few_episodes_are_bad_input(episodes: int) -> None:
    with pytest.raises(BadInput, match="at least two episodes"):
        split(numbered_samples(list(range(episodes))), 10)


def test_no_network_learns_from_what_is_set_aside() -> None:
    ours = samples()
    assert len(np.unique(ours.episodes)) == EPISODES
    _, held_out = split(ours, SHORT.set_aside)
    elsewhere = np.where(np.isin(ours.episodes, held_out.episodes)[:, None], -ours.controls, ours.controls)
    other = Training(replace(ours, controls=elsewhere), architecture(hidden=16), [0], SHORT, (), CPU)
    training = begin(0)
    first, second = training.one_epoch(), other.one_epoch()
    assert same(training.network.weights()[0], other.network.weights()[0])
    assert first.training_loss == second.training_loss
    assert first.validation_loss != second.validation_loss


def test_fewer_samples_than_a_batch_are_one_batch() -> None:
    training = begin(0, config=replace(SHORT, batch=EVERYTHING))
    assert isinstance(training.one_epoch(), Epoch)
    assert training.state()["step"] == 1


def test_a_torch_without_fused_steps_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = torch.optim.Adam

    def older(*arguments: object, fused: bool = False, **options: object) -> torch.optim.Adam:
        if fused:
            raise RuntimeError("`fused=True` requires all the params to be CUDA")
        return usual(*arguments, **options)  # type: ignore[arg-type]

    (first,) = finish(begin(0))
    monkeypatch.setattr(torch.optim, "Adam", older)
    (second,) = finish(begin(0))
    for name in first.weights:
        assert np.allclose(first.weights[name], second.weights[name], atol=1e-5)
