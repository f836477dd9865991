"""Which files a SmolVLA consists of, which of them are here, and how to get those that are not.

Two things are needed: the policy, and the configuration and the tokenizer of its vision-language backbone, whose
weights are in the policy's own file. Each is a folder, or a name on Hugging Face's hub whose files are in the hub's
cache on this machine. LeRobot, which runs it, lives in a virtual environment of its own.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
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
    """Return the model of this name; `BadInput`, which lists the names, where there is none."""
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


# The virtual environment that LeRobot lives in: it wants other versions of packages than we do


VARIABLE = "BILEVEL_VLA"  # names the folder of the environment
SUPPORTED = "0.4"
REQUIREMENT = "lerobot[smolvla]>=0.4,<0.5"

# What LeRobot 0.4 allows, without the gigabytes for GPUs.
TORCH = ("torch>=2.2.1,<2.11", "torchvision>=0.21,<0.26")


def environment_folder(given: Path | None = None) -> Path:
    """The folder given, or else named by the variable, or else one in the user's cache."""
    named, cache = os.environ.get(VARIABLE), os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return given or Path(named or f"{cache}/bilevel/smolvla").expanduser()


def require_environment(folder: Path) -> Path:
    """The environment's Python; `BadInput` where there is none, or no LeRobot that we can run."""
    python, version = folder / "bin" / "python", lerobot_version(folder)
    if not python.is_file():
        reason = "no such virtual environment for SmolVLA"
    elif version is None:
        reason = "a virtual environment without lerobot"
    elif not version.startswith(f"{SUPPORTED}."):
        reason = f"has lerobot {version}, but {SUPPORTED} is supported"
    else:
        return python
    where = "" if folder == environment_folder() else f" --environment {folder}"
    raise BadInput(f"{folder}: {reason}; make it with: bilevel vla set-up{where}")


def lerobot_version(folder: Path) -> str | None:
    """As pip noted it, which is sooner read than asked for."""
    places = [str(place) for place in folder.glob("lib/python*/site-packages")]
    return next((found.version for found in metadata.distributions(name="lerobot", path=places)), None)


def setup_commands(folder: Path, torch_index: str | None) -> Iterator[Sequence[str]]:
    """What makes the environment, one command after the other."""
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check")
    yield sys.executable, "-m", "venv", str(folder)
    yield *pip, "--upgrade", "pip"  # an old one takes many minutes to find versions that go together
    if torch_index:
        yield *pip, "--index-url", torch_index, *TORCH
    yield *pip, REQUIREMENT


def run_all(commands: Iterable[Sequence[str]]) -> None:
    """One command after the other, each shown, and allowed to download; `BadInput` for the first that fails."""
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    for command in commands:
        print(f"$ {' '.join(command)}", flush=True)
        try:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, env=environment).returncode
        except OSError as error:
            raise BadInput(f"{command[0]}: cannot be run: {error.strerror}") from None
        if code != 0:
            raise BadInput(f"exit code {code} of: {' '.join(command)}")
