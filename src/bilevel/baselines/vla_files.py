"""Which files a SmolVLA consists of, which of them are here, and how to get those that are not.

Two things are needed: the policy, and the configuration and the tokenizer of its vision-language backbone, whose
weights are in the policy's own file. Each is a folder, or a name on Hugging Face's hub whose files are in the hub's
cache on this machine. Nothing is downloaded here.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bilevel.symbolic.domain import BadInput

PROCESSORS = ("policy_preprocessor.json", "policy_postprocessor.json")
POLICY_FILES = ("config.json", "model.safetensors", *PROCESSORS)
BACKBONE = "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"  # that of the published policies
BACKBONE_FILES = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


@dataclass(frozen=True)
class Published:
    """A model on Hugging Face's hub."""

    hub_name: str
    cut_actions: bool  # take the first numbers of a longer action, as LeRobot's evaluation in MetaWorld does


MODELS: Mapping[str, Published] = {
    # Its actions are the six joints of another arm; only the first four numbers can be used here.
    "smolvla": Published("lerobot/smolvla_base", cut_actions=True),
    "smolvla-metaworld": Published("jadechoghari/smolvla_metaworld", cut_actions=False),
}


def published_model(method: str) -> Published:
    if method not in MODELS:
        raise BadInput(f"unknown model '{method}'; known models: {', '.join(MODELS)}")
    return MODELS[method]


@dataclass(frozen=True)
class ModelFiles:
    """Two folders that hold every file that is needed."""

    policy: Path
    backbone: Path

    @property
    def digest(self) -> str:
        """Of the weights."""
        found = hashlib.sha256()
        with (self.policy / "model.safetensors").open("rb") as file:
            while part := file.read(1 << 20):
                found.update(part)
        return found.hexdigest()

    @property
    def as_downloaded(self) -> bool:
        """Whether the weights are what the hub gave, byte for byte.

        Its programs keep the digest of each large file: in the cache it is the file's real name, and beside a copy in a
        folder there is a note with the commit, the digest and the time.
        """
        weights = self.policy / "model.safetensors"
        note = self.policy / ".cache" / "huggingface" / "download" / "model.safetensors.metadata"
        noted = note.read_text(encoding="utf-8").splitlines()[1:2] if note.is_file() else []
        return self.digest in (weights.resolve().name, *noted)


def find_model(hub_name: str, folder: Path | None = None) -> ModelFiles:
    """The files of a model from the hub, or its copy in a folder; `BadInput` lists every file that is missing."""
    if folder is not None and not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; make it with: hf download {hub_name} --local-dir {folder}")
    policy = folder or cached(hub_name)
    complaints = []
    missing = list(_missing_from_policy(policy))
    if missing:
        local = f" --local-dir {folder}" if folder else ""
        complaints.append(_complaint(str(folder or hub_name), missing, f"hf download {hub_name}{local}"))
    name, backbone = _find_backbone(policy)
    missing = _missing(backbone, BACKBONE_FILES)
    if missing:
        source = f"{BACKBONE} {' '.join(BACKBONE_FILES)} --local-dir {backbone}"
        if backbone is None or backbone == cached(name):
            source = f"{name} {' '.join(BACKBONE_FILES)}"
        complaints.append(_complaint(name, missing, f"hf download {source}"))
    if complaints:
        raise BadInput("; ".join(complaints))
    assert policy is not None
    assert backbone is not None
    check_weights(policy / "model.safetensors")
    return ModelFiles(policy.absolute(), backbone.absolute())


def cached(hub_name: str) -> Path | None:
    """The folder in the hub's cache with the files of its main branch, as Hugging Face's own programs lay it out."""
    folder = hub_cache() / f"models--{hub_name.replace('/', '--')}"
    try:
        revision = (folder / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    snapshot = folder / "snapshots" / revision
    return snapshot if snapshot.is_dir() else None


def hub_cache() -> Path:
    """Where downloads go, by the same variables that Hugging Face's own programs follow."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(home).expanduser() / "hub"


def _find_backbone(policy: Path | None) -> tuple[str, Path | None]:
    """Its name, and the folder with its files: that within the policy, or the one that the policy's settings name."""
    if policy is not None and (policy / "backbone").is_dir():
        return str(policy / "backbone"), policy / "backbone"
    config = policy / "config.json" if policy else None
    name = str(_read_json(config).get("vlm_model_name", BACKBONE)) if config and config.is_file() else BACKBONE
    return name, Path(name) if Path(name).is_dir() else cached(name)


def _missing_from_policy(policy: Path | None) -> Iterator[str]:
    """The processors name further files: what they normalise by."""
    yield from _missing(policy, POLICY_FILES)
    for name in PROCESSORS:
        if policy is not None and (policy / name).is_file():
            steps = [step for step in _read_json(policy / name).get("steps", []) if isinstance(step, dict)]
            yield from _missing(policy, [step["state_file"] for step in steps if "state_file" in step])


def _missing(folder: Path | None, names: Sequence[str]) -> list[str]:
    return [name for name in names if folder is None or not (folder / name).is_file()]


def _complaint(place: str, missing: Sequence[str], command: str) -> str:
    return f"{place}: missing {', '.join(missing)}; get them with: {command}"


def _read_json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{file}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise BadInput(f"{file}: not a JSON object")
    return found


def check_weights(file: Path) -> None:
    """`BadInput` for a safetensors file that is torn, or something else."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        try:
            (length,) = struct.unpack("<Q", stream.read(8))
            tensors = json.loads(stream.read(length if length < size else 0))
            tensors.pop("__metadata__", None)
            end = max(tensor["data_offsets"][1] for tensor in tensors.values())
        except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadInput(f"{file}: no weights, but perhaps a Git LFS pointer to them; download it again") from None
    if size != 8 + length + end:
        raise BadInput(f"{file}: has {size} bytes, not {8 + length + end}; download it again")
