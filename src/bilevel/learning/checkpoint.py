"""What is kept of a training run: all of its numbers in one file, from which it goes on as if it had never stopped.

The same goes for DAgger rollouts, of which every episode is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bilevel.files import write_atomically
from bilevel.lowlevel.network import weights_of
from bilevel.lowlevel.samples import ImitationSamples
from bilevel.lowlevel.training import Epoch, Trained, Training

Found = TypeVar("Found", bound=ImitationSamples)


def fingerprint(training: Training, samples: ImitationSamples) -> str:
    """All that a run depends on, asked before its first epoch: no other one goes on from its checkpoint."""
    about = (str(training.network), training.seed, training.config, training.device)
    return _fingerprint(about, [*weights_of(training.network).values(), *samples.arrays()])


def dagger_fingerprint(network: Trained, samples: ImitationSamples, *settings: object) -> str:
    """The same for the rollouts of a network that has learned from these samples."""
    weights = [network.weights[name] for name in sorted(network.weights)]
    return _fingerprint((network.seed, *settings), [*weights, *samples.arrays()])


def _fingerprint(about: tuple[object, ...], arrays: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.sha256(repr(about).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_checkpoint(path: Path, training: Training, run: str) -> None:
    """`run` is the fingerprint."""
    _write(path, run, training.state(), msgspec.json.encode(training.curve).decode())


def resume(path: Path, training: Training, run: str) -> bool:
    """Go on from a checkpoint, if there is one that is whole and of this run."""
    found = _read(path, run)
    if found is None:
        return False
    state, curve = found
    training.restore(state, msgspec.json.decode(curve, type=list[Epoch]))
    return True


def write_episode(path: Path, episode: ImitationSamples, run: str) -> None:
    _write(path, run, {f"{number:02d}": array for number, array in enumerate(episode.arrays())})


def read_episode(path: Path, like: Found, run: str) -> Found | None:
    """An episode that was kept, if it is whole and of this run."""
    found = _read(path, run)
    return like.with_arrays([array for _, array in sorted(found[0].items())]) if found else None


def _write(path: Path, run: str, state: Mapping[str, NDArray[Any]], curve: str = "") -> None:
    about = {"run": run, "curve": curve, "digest": _digest(state, curve)}
    contiguous = {name: np.array(array, order="C") for name, array in state.items()}  # keeps the shape, even ()
    write_atomically(path, save(contiguous, about))


def _read(path: Path, run: str) -> tuple[dict[str, NDArray[Any]], str] | None:
    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (OSError, SafetensorError):
        return None
    curve = about.get("curve", "")
    return (state, curve) if about.get("run") == run and about.get("digest") == _digest(state, curve) else None


def _digest(state: Mapping[str, NDArray[Any]], curve: str) -> str:
    """Of all that is restored: safetensors itself does not notice numbers that have changed on the disk."""
    digest = hashlib.sha256(curve.encode())
    for name in sorted(state):
        digest.update(f"{name} {state[name].dtype} {state[name].shape}".encode())
        digest.update(state[name].tobytes())
    return digest.hexdigest()
