"""A run goes on from its own checkpoint as if it had never stopped, and from no other and no damaged one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_data import architecture, samples

from bilevel.lowlevel.architecture import Architecture, Weights
from bilevel.lowlevel.checkpoint import (
    fingerprint,
    practice_fingerprint,
    read_episode,
    resume,
    write_checkpoint,
    write_episode,
)
from bilevel.lowlevel.dagger import DaggerConfig
from bilevel.lowlevel.samples import Samples
from bilevel.lowlevel.training import Trained, Training, TrainingConfig

SHORT = TrainingConfig(epochs=3)
CPU = torch.device("cpu")


def begin(
    seed: int = 0,
    config: TrainingConfig = SHORT,
    shape: Architecture | None = None,
    learned_from: Samples | None = None,
    initial: tuple[Weights, ...] = (),
) -> Training:
    """A run with a network so small that its checkpoint has few bytes."""
    shape = shape or architecture(hidden=3)
    return Training(learned_from or samples(), shape, [seed], config, initial, CPU)


def identity(training: Training) -> str:
    return fingerprint(training, samples())


def finish(training: Training) -> list[Trained]:
    while not training.done:
        training.one_epoch()
    return training.result()


def numbers(training: Training) -> tuple[object, ...]:
    """All that a checkpoint holds, to be compared bit by bit."""
    return repr(training.curve), *((name, array.tobytes()) for name, array in sorted(training.state().items()))


@cache
def first_epoch() -> Training:
    """A run after its first epoch."""
    training = begin()
    training.one_epoch()
    return training


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("checkpoint") / "run.safetensors"
    write_checkpoint(path, first_epoch(), identity(begin()))
    return path.read_bytes()


def test_a_resumed_run_ends_as_one_that_never_stopped(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "run.safetensors"
    never_stopped, stopped = begin(), begin()
    finish(never_stopped)
    run = identity(stopped)
    for _ in range(2):
        stopped.one_epoch()
        write_checkpoint(path, stopped, run)
    resumed = begin()
    assert resume(path, resumed, run)
    assert numbers(resumed) == numbers(stopped)
    finish(resumed)
    assert numbers(resumed) == numbers(never_stopped)
    assert [path.name for path in path.parent.iterdir()] == [path.name]


def test_a_run_resumed_in_the_middle_of_an_epoch_ends_as_one_that_never_stopped(tmp_path: Path) -> None:
    config = replace(SHORT, batch=16)
    never_stopped, stopped, resumed = (begin(config=config) for _ in range(3))
    finish(never_stopped)
    run = identity(stopped)
    stopped.one_epoch()
    assert stopped.learn(seconds=0) is None
    write_checkpoint(tmp_path / "run", stopped, run)
    assert resume(tmp_path / "run", resumed, run)
    assert numbers(resumed) == numbers(stopped)
    finish(resumed)
    assert numbers(resumed) == numbers(never_stopped)


def test_a_finished_run_is_resumed_with_nothing_left_to_do(tmp_path: Path) -> None:
    finished = begin()
    finish(finished)
    write_checkpoint(tmp_path / "run", finished, identity(begin()))
    resumed = begin()
    assert resume(tmp_path / "run", resumed, identity(resumed))
    assert resumed.done
    assert resumed.result()[0].best_epoch == finished.result()[0].best_epoch


def test_where_there_is_no_checkpoint_nothing_is_resumed(tmp_path: Path) -> None:
    training = begin()
    untouched = numbers(training)
    (tmp_path / "empty").touch()
    for path in (tmp_path / "missing", tmp_path, tmp_path / "empty"):
        assert not resume(path, training, identity(training))
    assert numbers(training) == untouched


def test_a_checkpoint_of_another_run_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run"
    write_checkpoint(path, first_epoch(), identity(begin()))
    training = begin(seed=1)
    untouched = numbers(training)
    assert not resume(path, training, identity(training))
    assert numbers(training) == untouched


def test_a_fingerprint_depends_on_all_that_a_run_depends_on() -> None:
    ours = samples()
    other_controls = replace(ours, controls=-ours.controls)
    (weights,) = begin().network.weights()
    moved = {name: array + np.float32(0.5) for name, array in weights.items()}
    runs = {
        "the same": fingerprint(begin(), ours),
        "another seed": fingerprint(begin(seed=1), ours),
        "more epochs": fingerprint(begin(config=replace(SHORT, epochs=4)), ours),
        "another network": fingerprint(begin(shape=architecture(hidden=4)), ours),
        "other samples": fingerprint(begin(learned_from=other_controls), other_controls),
        "other weights to begin with": fingerprint(begin(initial=(moved,)), ours),
    }
    assert len(set(runs.values())) == len(runs)
    assert runs["the same"] == fingerprint(begin(), ours)


# Practice


def test_an_episode_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, ours = tmp_path / "folder" / "episode", samples()
    nothing = ours.where(np.zeros(len(ours), np.bool_))
    for episode in (ours, nothing):
        write_episode(path, episode, "run")
        found = read_episode(path, ours, "run")
        assert isinstance(found, Samples)
        assert [(array.dtype, array.tobytes()) for array in found.arrays()] == [
            (array.dtype, array.tobytes()) for array in episode.arrays()
        ]


def test_a_damaged_episode_is_none_and_so_is_one_of_another_practice(tmp_path: Path) -> None:
    path = tmp_path / "episode"
    assert read_episode(path, samples(), "run") is None
    write_episode(path, samples(), "run")
    assert read_episode(path, samples(), "another run") is None
    data = path.read_bytes()
    for damaged in (data[:-1], data[:100], b"", data[:-1] + bytes([data[-1] ^ 1])):
        path.write_bytes(damaged)
        assert read_episode(path, samples(), "run") is None


def test_practice_depends_on_all_that_its_episodes_depend_on() -> None:
    shape, ours, config = architecture(hidden=3), samples(), DaggerConfig(rounds=1)
    (network,) = first_epoch().result()
    moved = {name: array + np.float32(0.5) for name, array in network.weights.items()}
    less = ours.where(ours.episodes > 0)
    runs = {
        practice_fingerprint(shape, network, ours, config, 1),
        practice_fingerprint(shape, network, ours, config, 2),
        practice_fingerprint(shape, network, ours, replace(config, noise=0.5), 1),
        practice_fingerprint(shape, network, less, config, 1),
        practice_fingerprint(shape, replace(network, weights=moved), ours, config, 1),
        practice_fingerprint(shape, replace(network, seed=1), ours, config, 1),
    }
    assert len(runs) == 6


# Damage


def check_damaged(path: Path, data: bytes) -> None:
    """Nothing is raised, and either nothing is resumed or, where the damage hurts nothing, just what was written."""
    path.write_bytes(data)
    training = begin()
    untouched = numbers(training)
    wanted = numbers(first_epoch()) if resume(path, training, identity(begin())) else untouched
    assert numbers(training) == wanted


DAMAGE = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@DAMAGE
@given(st.data())
def test_a_flipped_byte_never_leads_astray(whole: bytes, tmp_path: Path, data: st.DataObject) -> None:
    header = 8 + int.from_bytes(whole[:8], "little")
    position = data.draw(st.integers(0, header - 1) | st.integers(header, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[position] ^= data.draw(st.integers(1, 255))
    check_damaged(tmp_path / "flipped", bytes(flipped))


@DAMAGE
@given(st.data())
def test_a_torn_checkpoint_never_leads_astray(whole: bytes, tmp_path: Path, data: st.DataObject) -> None:
    check_damaged(tmp_path / "torn", whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize("part", [b"best_loss", b'\\"number\\"', b"curve", b"digest", b"F32", b"exp_avg_sq"])
def test_a_misspelt_part_is_damage_too(whole: bytes, tmp_path: Path, part: bytes) -> None:
    assert part in whole
    changed = whole.replace(part, part[:-1] + bytes([part[-1] ^ 1]))
    training = begin()
    (tmp_path / "misspelt").write_bytes(changed)
    assert not resume(tmp_path / "misspelt", training, identity(training))
    assert numbers(training) == numbers(begin())


def test_numbers_that_have_changed_on_the_disk_are_noticed(whole: bytes, tmp_path: Path) -> None:
    """The file is still what safetensors takes for whole."""
    for position in range(8 + int.from_bytes(whole[:8], "little"), len(whole), 97):
        changed = bytearray(whole)
        changed[position] ^= 1
        (tmp_path / "changed").write_bytes(bytes(changed))
        training = begin()
        assert not resume(tmp_path / "changed", training, identity(training))
