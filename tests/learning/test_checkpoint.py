"""A run goes on from its own checkpoint as if it had never stopped, and from no other and no damaged one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilevel.learning.dagger import DaggerConfig, DaggerEpisode
from bilevel.learning.networks import (
    dagger_fingerprint,
    fingerprint,
    read_episode,
    resume,
    write_checkpoint,
    write_episode,
)
from bilevel.learning.rule_gaps import RuleGaps
from bilevel.lowlevel.encoding import Samples
from bilevel.lowlevel.network import GraphNetwork, weights_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.lowlevel.training import Training, TrainingConfig
from bilevel.rules.traces import Trace, TraceStep
from bilevel.symbolic.domain import Action, Atom, Problem
from bilevel.symbolic.semantics import ground_action
from tiny_demonstrations import samples, shown, studied
from tiny_task import TINY

SHORT = TrainingConfig(epochs=3, batch=32)


def begin(
    seed: int = 0,
    config: TrainingConfig = SHORT,
    hidden: int = 2,
    learned_from: Samples | None = None,
    initial: Weights | None = None,
) -> Training:
    """A run with a network so small that its checkpoint has few bytes."""
    make = partial(GraphNetwork, studied().encoding, shown().controls, hidden, 1)
    return Training(learned_from or samples(), make, seed, config, initial, torch.device("cpu"))


def identity(training: Training) -> str:
    return fingerprint(training, samples())


def finish(training: Training) -> None:
    while not training.done:
        training.learn()


def numbers(training: Training) -> tuple[object, ...]:
    """All that a checkpoint holds, to be compared bit by bit."""
    state = {name: np.asarray(array) for name, array in training.state().items()}
    return repr(training.curve), *((name, array.shape, array.tobytes()) for name, array in sorted(state.items()))


@cache
def first_epoch() -> Training:
    """A run after its first epoch, and one step."""
    training = begin()
    training.learn()
    training.learn(seconds=0)
    return training


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("checkpoint") / "run.safetensors"
    write_checkpoint(path, first_epoch(), identity(begin()))
    return path.read_bytes()


def test_a_resumed_run_ends_as_one_that_never_stopped(tmp_path: Path, whole: bytes) -> None:
    """Stopped in the middle of an epoch."""
    path = tmp_path / "run.safetensors"
    path.write_bytes(whole)
    never_stopped, resumed = begin(), begin()
    assert resume(path, resumed, identity(begin()))
    assert numbers(resumed) == numbers(first_epoch())
    finish(resumed)
    finish(never_stopped)
    assert numbers(resumed) == numbers(never_stopped)
    write_checkpoint(path, resumed, identity(begin()))
    again = begin()
    assert resume(path, again, identity(begin()))
    assert again.done
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_where_there_is_no_checkpoint_of_this_run_nothing_is_resumed(tmp_path: Path, whole: bytes) -> None:
    training = begin(seed=1)
    untouched = numbers(training)
    (tmp_path / "empty").touch()
    (tmp_path / "another").write_bytes(whole)
    for path in (tmp_path / "missing", tmp_path, tmp_path / "empty", tmp_path / "another"):
        assert not resume(path, training, identity(training))
    assert numbers(training) == untouched


def test_a_fingerprint_depends_on_all_that_a_run_depends_on() -> None:
    ours = samples()
    other_targets = replace(ours, targets=-ours.targets)
    moved = {name: array + np.float32(0.5) for name, array in weights_of(begin().network).items()}
    runs = {
        "the same": identity(begin()),
        "another seed": identity(begin(seed=1)),
        "more epochs": identity(begin(config=msgspec.structs.replace(SHORT, epochs=4))),
        "another network": identity(begin(hidden=4)),
        "other samples": fingerprint(begin(learned_from=other_targets), other_targets),
        "other weights to begin with": identity(begin(initial=moved)),
    }
    assert len(set(runs.values())) == len(runs)
    assert runs["the same"] == identity(begin())


# DAgger rollouts

STEP = ground_action(TINY.domain, Action("pick", ("parcel1",)))
MET = frozenset({Atom("free"), Atom("lying", ("parcel1",)), Atom("empty", ("spot1",))})
WANTED = frozenset({Atom("at", ("parcel1", "spot1"))})
OBJECTS = {"parcel1": "parcel", "spot1": "spot"}
GAPS = RuleGaps(
    (Problem("no-rule", "delivery", OBJECTS, MET, WANTED),),
    (Trace((TraceStep(MET, STEP, STEP.outcomes[0], WANTED),), OBJECTS),),
)


def test_an_episode_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, ours = tmp_path / "folder" / "episode", samples()
    for part, gaps in ((ours, GAPS), (ours.where(np.zeros(len(ours), np.bool_)), RuleGaps())):
        write_episode(path, DaggerEpisode(part, gaps), "run")
        found = read_episode(path, ours, "run")
        assert found is not None
        assert isinstance(found.samples, Samples)
        assert found.gaps == gaps
        pairs = zip(found.samples.arrays(), part.arrays(), strict=True)
        assert all(one.dtype == other.dtype and np.array_equal(one, other) for one, other in pairs)


def test_a_damaged_episode_is_none_and_so_is_one_of_another_run(tmp_path: Path) -> None:
    path = tmp_path / "episode"
    assert read_episode(path, samples(), "run") is None
    write_episode(path, DaggerEpisode(samples(), GAPS), "run")
    assert read_episode(path, samples(), "another run") is None
    data = path.read_bytes()
    for damaged in (data[:-1], data[:100], b"", data[:-1] + bytes([data[-1] ^ 1])):
        path.write_bytes(damaged)
        assert read_episode(path, samples(), "run") is None


def test_rollouts_depend_on_all_that_their_episodes_depend_on() -> None:
    ours, config, network = samples(), DaggerConfig(rounds=1), first_epoch().result()
    moved = {name: array + np.float32(0.5) for name, array in network.weights.items()}
    runs = {
        dagger_fingerprint(network, ours, config, 1),
        dagger_fingerprint(network, ours, config, 2),
        dagger_fingerprint(network, ours, msgspec.structs.replace(config, noise=0.5), 1),
        dagger_fingerprint(network, ours.where(ours.episodes > 0), config, 1),
        dagger_fingerprint(replace(network, weights=moved), ours, config, 1),
        dagger_fingerprint(replace(network, seed=1), ours, config, 1),
    }
    assert len(runs) == 6


# Damage

Change = Callable[[bytes, Any], bytes]


def flipped(data: bytes, draw: Any) -> bytes:
    header = 8 + int.from_bytes(data[:8], "little")
    position = draw(st.integers(0, header - 1) | st.integers(header, len(data) - 1))
    found = bytearray(data)
    found[position] ^= draw(st.integers(1, 255))
    return bytes(found)


def torn(data: bytes, draw: Any) -> bytes:
    return data[: draw(st.integers(0, len(data) - 1))]


@pytest.mark.parametrize("change", [flipped, torn])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_never_leads_astray(whole: bytes, tmp_path: Path, change: Change, data: st.DataObject) -> None:
    """Nothing is raised, and either nothing is resumed or, where the damage hurts nothing, just what was written."""
    (tmp_path / "damaged").write_bytes(change(whole, data.draw))
    training = begin()
    untouched = numbers(training)
    resumed = resume(tmp_path / "damaged", training, identity(training))
    assert numbers(training) == (numbers(first_epoch()) if resumed else untouched)


@pytest.mark.parametrize("part", [b"best_loss", b'\\"number\\"', b"text", b"digest", b"F32", b"exp_avg_sq"])
def test_a_misspelt_part_is_damage_too(whole: bytes, tmp_path: Path, part: bytes) -> None:
    assert part in whole
    (tmp_path / "misspelt").write_bytes(whole.replace(part, part[:-1] + bytes([part[-1] ^ 1])))
    training = begin()
    assert not resume(tmp_path / "misspelt", training, identity(training))
    assert numbers(training) == numbers(begin())
