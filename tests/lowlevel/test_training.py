"""Training: it learns, the best epoch is kept, the same seed gives the same weights, and a run goes on bit by bit."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bilevel.lowlevel.encoding import Samples, encoding_of
from bilevel.lowlevel.network import GraphNetwork, weights_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.lowlevel.training import Epoch, Trained, Training, TrainingConfig, split
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls, DiscreteControls
from bilevel.tasks.scene import Array
from bilevel.tasks.task import Task
from tiny_demonstrations import EPISODES, samples, shown
from tiny_task import TINY, TINY_DISCRETE

CPU = torch.device("cpu")
SHORT = TrainingConfig(epochs=3, batch=32)
EVERYTHING = 10_000  # samples in a batch: one batch per epoch


def make_network(task: Task = TINY, hidden: int = 16, controls: Controls | None = None) -> GraphNetwork:
    return GraphNetwork(encoding_of(task.domain, task.spec), controls or shown(task).controls, hidden)


def begin(
    seed: int = 0,
    config: TrainingConfig = SHORT,
    initial: Weights | None = None,
    learned_from: Samples | None = None,
    task: Task = TINY,
) -> Training:
    return Training(learned_from or samples(task), partial(make_network, task), seed, config, initial, CPU)


def one_epoch(training: Training) -> Epoch:
    epoch = training.learn()
    assert epoch is not None
    return epoch


def finish(training: Training) -> Trained:
    while not training.done:
        training.learn()
    return training.result()


def same(first: Weights, second: Weights) -> bool:
    """Bit by bit."""
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


# Losses


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=["box", "discrete"])
def test_the_loss_goes_down(task: Task) -> None:
    training = begin(task=task, config=TrainingConfig(epochs=15, batch=16, learning_rate=3e-3))
    finish(training)
    assert [epoch.number for epoch in training.curve] == list(range(1, 16))
    assert training.curve[-1].training_loss < 0.6 * training.curve[0].training_loss


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=["squared error", "cross-entropy"])
def test_the_loss_is_what_it_is_called(task: Task) -> None:
    """With one batch and no step to speak of, the network is the same before and after."""
    training = begin(5, task=task, config=msgspec.structs.replace(SHORT, batch=EVERYTHING, learning_rate=1e-30))
    epoch = one_epoch(training)
    for part, loss in zip(split(samples(task), 10), (epoch.training_loss, epoch.validation_loss), strict=True):
        with torch.no_grad():
            outputs, targets = training.network.predict(training.network.table(part), torch.arange(len(part)))
        slowly = slow_loss(outputs.numpy(), targets.numpy(), isinstance(shown(task).controls, DiscreteControls))
        assert loss == pytest.approx(slowly, rel=1e-4)


def slow_loss(outputs: Array, targets: Array, is_choice: bool) -> float:
    if not is_choice:
        return float(np.mean((outputs - targets) ** 2))
    losses = []
    for scores, wanted in zip(outputs.tolist(), targets.tolist(), strict=True):
        total = sum(math.exp(score) for score in scores)
        losses.append(-math.log(math.exp(scores[wanted.index(1.0)]) / total))
    return sum(losses) / len(losses)


def test_a_simple_function_is_learned() -> None:
    """The first control is the first number that is seen of the first argument."""
    ours = samples()
    first = ours.objects[:, 0, 0]
    wanted = replace(ours, targets=np.stack([first, 0 * first, 0 * first], axis=1))
    config = TrainingConfig(epochs=30, batch=16, learning_rate=5e-3)
    trained = finish(begin(learned_from=wanted, config=config))
    assert trained.validation_loss < 0.02 * float(np.mean(wanted.targets**2))


# Seeds


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    first, again, other = (finish(begin(seed)) for seed in (4, 4, 5))
    assert same(first.weights, again.weights)
    assert (first.best_epoch, first.validation_loss) == (again.best_epoch, again.validation_loss)
    assert not same(first.weights, other.weights)


def test_the_seed_decides_the_order_of_the_samples_too() -> None:
    weights = weights_of(begin(0).network)
    first, second = (finish(begin(seed, initial=weights)) for seed in (1, 2))
    assert not same(first.weights, second.weights)


def test_given_weights_are_where_training_begins_and_their_scales_stay() -> None:
    weights = weights_of(begin(9).network)
    weights["object_scale"] = weights["object_scale"] + np.float32(1)
    training = begin(0, initial=weights)
    assert same(weights_of(training.network), weights)
    one_epoch(training)
    assert np.array_equal(weights_of(training.network)["object_scale"], weights["object_scale"])


def test_torchs_own_random_numbers_stay_as_they_were() -> None:
    before = torch.get_rng_state()
    one_epoch(begin(3))
    assert torch.equal(torch.get_rng_state(), before)


# Stopping and going on


@pytest.mark.parametrize("pauses", [0, 1, 2])
def test_a_restored_run_goes_on_bit_by_bit(pauses: int) -> None:
    """Between two epochs, or in the middle of one."""
    config = TrainingConfig(epochs=3, batch=16)
    never_stopped, stopped, resumed = (begin(config=config) for _ in range(3))
    one_epoch(stopped)
    for _ in range(pauses):
        assert stopped.learn(seconds=0) is None
    resumed.restore(stopped.state(), stopped.curve)
    assert (stopped.epoch, resumed.epoch) == (1, 1)
    ours, theirs = finish(resumed), finish(never_stopped)
    assert same(ours.weights, theirs.weights)
    assert (ours.best_epoch, ours.validation_loss) == (theirs.best_epoch, theirs.validation_loss)
    assert resumed.curve == never_stopped.curve


def test_an_epoch_of_many_pauses_is_one_without_any() -> None:
    paused, whole = begin(), begin()
    pauses = 0
    while (epoch := paused.learn(seconds=0)) is None:
        pauses += 1
    assert pauses > 1
    assert epoch == one_epoch(whole)
    assert same(weights_of(paused.network), weights_of(whole.network))


def test_what_was_handed_out_stays_as_it_is_while_training_goes_on() -> None:
    training = begin()
    one_epoch(training)
    state, weights = training.state(), training.result().weights
    copies = [{name: array.copy() for name, array in arrays.items()} for arrays in (state, weights)]
    one_epoch(training)
    assert training.result().best_epoch == 2
    assert same(state, copies[0])
    assert same(weights, copies[1])


# The best epoch


def test_the_network_of_the_best_epoch_is_kept() -> None:
    """With steps as large as these, the loss goes up and down."""
    best = set()
    for seed in range(4):
        training = begin(seed, config=TrainingConfig(epochs=6, batch=16, learning_rate=0.1))
        after = []
        while not training.done:
            one_epoch(training)
            after.append(weights_of(training.network))
        losses = [epoch.validation_loss for epoch in training.curve]
        trained = training.result()
        assert trained.validation_loss == min(losses)
        assert trained.best_epoch == 1 + losses.index(min(losses))
        assert same(trained.weights, after[trained.best_epoch - 1])
        best.add(trained.best_epoch)
    assert best != {6}


def test_the_learning_rate_falls_to_nothing_along_a_cosine() -> None:
    """Adam's first steps are as large as the rate, whatever the gradient."""
    config = TrainingConfig(epochs=4, batch=EVERYTHING, learning_rate=1e-4)
    training, rates = begin(config=config), []
    for _ in range(4):
        before = weights_of(training.network)["readout.2.bias"]
        one_epoch(training)
        rates.append(float(np.abs(weights_of(training.network)["readout.2.bias"] - before).max()))
    assert rates == pytest.approx([1e-4 * (1 + math.cos(math.pi * epoch / 4)) / 2 for epoch in range(4)], rel=0.05)


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


def test_every_tenth_is_set_aside_and_stays_so_when_more_are_added() -> None:
    for count in (200, 260):
        _, held_out = split(numbered_samples(list(range(count))), TrainingConfig().set_aside)
        assert np.unique(held_out.episodes).tolist() == list(range(9, count, 10))


def test_no_episodes_are_bad_input() -> None:
    with pytest.raises(BadInput, match="at least one episode"):
        split(numbered_samples([]), 10)


@pytest.mark.parametrize(("episodes", "fewest"), [(1, 2), (5, 10)])
def test_of_few_episodes_none_is_set_aside(episodes: int, fewest: int) -> None:
    ours = numbered_samples(list(range(episodes)))
    for part in split(ours, 10, fewest):
        assert part.episodes.tolist() == ours.episodes.tolist()


def test_nothing_is_learned_from_what_is_set_aside() -> None:
    ours = samples()
    assert len(np.unique(ours.episodes)) == EPISODES
    aside = np.isin(ours.episodes, split(ours, SHORT.set_aside)[1].episodes)
    training = begin()
    other = begin(learned_from=replace(ours, targets=np.where(aside[:, None], -ours.targets, ours.targets)))
    first, second = one_epoch(training), one_epoch(other)
    assert same(weights_of(training.network), weights_of(other.network))
    assert first.training_loss == second.training_loss
    assert first.validation_loss != second.validation_loss


def test_fewer_samples_than_a_batch_are_one_batch() -> None:
    training = begin(config=msgspec.structs.replace(SHORT, batch=EVERYTHING))
    one_epoch(training)
    assert training.state()["readout.0.bias step"] == 1


def test_a_torch_without_fused_steps_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = torch.optim.Adam

    def older(*arguments: object, fused: bool = False, **options: object) -> torch.optim.Adam:
        if fused:
            raise RuntimeError("`fused=True` requires all the params to be CUDA")
        return usual(*arguments, **options)  # type: ignore[arg-type]

    first = finish(begin())
    monkeypatch.setattr(torch.optim, "Adam", older)
    second = finish(begin())
    assert all(np.allclose(first.weights[name], second.weights[name], atol=1e-5) for name in first.weights)
