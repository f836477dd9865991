"""Checkpoints of a training run: all of its numbers in one file, from which it goes on as if it had never stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bilevel.files import write_atomically
from bilevel.lowlevel.samples import Experience
from bilevel.lowlevel.training import Epoch, Training


def fingerprint(training: Training, samples: Experience) -> str:
    """All that a run depends on, asked before its first epoch: no other one goes on from its checkpoint."""
    digest = hashlib.sha256(repr((training.architecture, training.seeds, training.config, training.device)).encode())
    digest.update(training.network.flat.detach().cpu().numpy().tobytes())
    for array in samples.arrays():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_checkpoint(path: Path, training: Training, run: str) -> None:
    """`run` is the fingerprint."""
    state, curve = training.state(), json.dumps([asdict(epoch) for epoch in training.curve])
    write_atomically(path, save(state, {"run": run, "curve": curve, "digest": _digest(state, curve)}))


def resume(path: Path, training: Training, run: str) -> bool:
    """Go on from a checkpoint, if there is one that is whole and of this run."""
    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (OSError, SafetensorError):
        return False
    curve = about.get("curve", "")
    if about.get("run") != run or about.get("digest") != _digest(state, curve):
        return False
    training.restore(state, [Epoch(**epoch) for epoch in json.loads(curve)])
    return True


def _digest(state: Mapping[str, NDArray[Any]], curve: str) -> str:
    """Of all that is restored: safetensors itself does not notice numbers that have changed on the disk."""
    digest = hashlib.sha256(curve.encode())
    for name in sorted(state):
        digest.update(f"{name} {state[name].dtype} {state[name].shape}".encode())
        digest.update(state[name].tobytes())
    return digest.hexdigest()
