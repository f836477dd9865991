"""Checkpoints of a training run: all of its numbers in one file, from which it goes on as if it had never stopped."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bilevel.files import write_atomically
from bilevel.lowlevel.samples import Samples
from bilevel.lowlevel.training import Epoch, Training


def fingerprint(training: Training, samples: Samples) -> str:
    """All that a run depends on: no other one goes on from its checkpoint."""
    digest = hashlib.sha256(repr((training.architecture, training.seeds, training.config, training.device)).encode())
    for field in fields(samples):
        digest.update(np.ascontiguousarray(getattr(samples, field.name)).tobytes())
    return digest.hexdigest()


def write_checkpoint(path: Path, training: Training, run: str) -> None:
    """`run` is the fingerprint."""
    curve = json.dumps([asdict(epoch) for epoch in training.curve])
    write_atomically(path, save(training.state(), {"run": run, "curve": curve}))


def resume(path: Path, training: Training, run: str) -> bool:
    """Go on from a checkpoint, if there is one that is whole and of this run."""
    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata() or {}
            if about.get("run") != run:
                return False
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        training.restore(state, [Epoch(**epoch) for epoch in json.loads(about["curve"])])
    except (OSError, SafetensorError):
        return False
    return True
