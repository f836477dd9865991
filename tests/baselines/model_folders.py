"""Folders that look like a SmolVLA's, with next to nothing in them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from bilevel.baselines.vla_files import BACKBONE_FILES, PROCESSORS

STATES = {"policy_preprocessor.json": "before.safetensors", "policy_postprocessor.json": "after.safetensors"}


def weights(*shape: int) -> bytes:
    """A safetensors file with one tensor of zeros, a byte for each number."""
    size = 1
    for length in shape:
        size *= length
    tensor = {"dtype": "U8", "shape": list(shape), "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "weight": tensor}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


def make_policy_folder(folder: Path, **config: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"type": "smolvla", **config}))
    (folder / "model.safetensors").write_bytes(weights(4, 5))
    for name in PROCESSORS:
        steps = [{"registry_name": "to_batch_processor"}, {"registry_name": "any", "state_file": STATES[name]}]
        (folder / name).write_text(json.dumps({"steps": steps}))
        (folder / STATES[name]).write_bytes(weights(1))
    return folder


def note_download(folder: Path, content: bytes) -> None:
    """What Hugging Face's program leaves beside the copy of a file that had this content."""
    note = folder / ".cache" / "huggingface" / "download" / "model.safetensors.metadata"
    note.parent.mkdir(parents=True)
    note.write_text(f"c0ffee\n{hashlib.sha256(content).hexdigest()}\n1763226508.1\n")


def make_backbone_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in BACKBONE_FILES:
        (folder / name).write_text("{}")
    return folder


def snapshot(cache: Path, hub_name: str) -> Path:
    """Where the hub's cache keeps the files of a model, once this has been called."""
    folder = cache / f"models--{hub_name.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("c0ffee")
    return folder / "snapshots" / "c0ffee"


def make_environment(folder: Path, lerobot: str | None = "0.4.4") -> Path:
    """A virtual environment by the look of it, in which nothing can be run."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    if lerobot:
        note = folder / "lib" / "python3.11" / "site-packages" / f"lerobot-{lerobot}.dist-info" / "METADATA"
        note.parent.mkdir(parents=True)
        note.write_text(f"Metadata-Version: 2.4\nName: lerobot\nVersion: {lerobot}\n")
    return folder
