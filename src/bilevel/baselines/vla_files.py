"""Which files a SmolVLA consists of, which of them are here, and how to get those that are not.

Two things are needed: the policy, and the configuration and the tokenizer of its vision-language backbone, whose
weights are in the policy's own file. Each is a folder, or a name on Hugging Face's hub whose files are in the hub's
cache on this machine. Nothing is downloaded here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from bilevel.json_files import decode, read_bytes
from bilevel.symbolic.domain import BadInput

PROCESSORS = ("policy_preprocessor.json", "policy_postprocessor.json")
WEIGHTS = "model.safetensors"
POLICY_FILES = ("config.json", WEIGHTS, *PROCESSORS)
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

    @cached_property
    def digest(self) -> str:
        """Of the weights."""
        return hashlib.sha256(np.memmap(self.policy / WEIGHTS, np.uint8, "r").data).hexdigest()

    @property
    def as_downloaded(self) -> bool:
        """Whether the weights are what the hub gave, byte for byte.

        Its programs keep the digest of each large file: in the cache it is the file's real name, and beside a copy in a
        folder there is a note with the commit, the digest and the time.
        """
        note = self.policy / ".cache" / "huggingface" / "download" / f"{WEIGHTS}.metadata"
        noted = note.read_text(encoding="utf-8").splitlines()[1:2] if note.is_file() else []
        return self.digest in ((self.policy / WEIGHTS).resolve().name, *noted)


def find_model(hub_name: str, folder: Path | None = None) -> ModelFiles:
    """The files of a model from the hub, or its copy in a folder; `BadInput` lists every file that is missing."""
    if folder is not None and not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; make it with: hf download {hub_name} --local-dir {folder}")
    policy = folder or cached(hub_name)
    name, backbone = _find_backbone(policy)
    local = f" --local-dir {folder}" if folder else ""
    files = " ".join(BACKBONE_FILES)
    within = f"{BACKBONE} {files} --local-dir {name}" if policy and name == str(policy / "backbone") else None
    complaints = [
        f"{place}: missing {', '.join(missing)}; get them with: hf download {source}"
        for place, missing, source in (
            (folder or hub_name, _missing_from_policy(policy), f"{hub_name}{local}"),
            (name, _missing(backbone, BACKBONE_FILES), within or f"{name} {files}"),
        )
        if missing
    ]
    if complaints:
        raise BadInput("; ".join(complaints))
    assert policy is not None
    assert backbone is not None
    check_weights(policy / WEIGHTS)
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


def _missing_from_policy(policy: Path | None) -> list[str]:
    """The processors name further files: what they normalise by."""
    missing = _missing(policy, POLICY_FILES)
    for name in PROCESSORS:
        if policy is not None and name not in missing:
            steps = [step for step in _read_json(policy / name).get("steps", []) if isinstance(step, dict)]
            missing += _missing(policy, [step["state_file"] for step in steps if "state_file" in step])
    return missing


def _missing(folder: Path | None, names: Sequence[str]) -> list[str]:
    return [name for name in names if folder is None or not (folder / name).is_file()]


def _read_json(file: Path) -> dict[str, Any]:
    return decode(read_bytes(file), dict[str, Any], file)


def check_weights(file: Path) -> None:
    """`BadInput` for a safetensors file that is torn, or something else."""
    try:
        with safe_open(file, "numpy"):
            pass
    except (SafetensorError, OSError) as error:
        reason = "no weights, or not all of them; perhaps a Git LFS pointer to them"
        raise BadInput(f"{file}: {reason} ({error}); download it again") from None
