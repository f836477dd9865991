"""The virtual environment that LeRobot lives in: it wants other versions of packages than we do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bilevel.symbolic.domain import BadInput

VARIABLE = "BILEVEL_VLA"  # names the folder of the environment
SUPPORTED = re.compile(r"0\.4\.")
SUPPORTED_TEXT = "0.4"
REQUIREMENT = "lerobot[smolvla]>=0.4,<0.5"

# What LeRobot 0.4 allows, without the gigabytes for GPUs.
TORCH = ("torch>=2.2.1,<2.11", "torchvision>=0.21,<0.26")


def environment_folder(given: Path | None = None) -> Path:
    """The folder given, or else named by the variable, or else one in the user's cache."""
    if given is not None:
        return given
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "bilevel" / "smolvla"


def require_environment(folder: Path) -> Path:
    """The environment's Python; `BadInput` where there is none, or no LeRobot that we can run."""
    python = _python(folder)
    where = "" if folder == environment_folder() else f" --environment {folder}"
    make = f"make it with: bilevel vla set-up{where}"
    if not python.is_file():
        raise BadInput(f"{folder}: no such virtual environment for SmolVLA; {make}")
    version = lerobot_version(folder)
    if version is None:
        raise BadInput(f"{folder}: a virtual environment without lerobot; {make}")
    if not SUPPORTED.match(version):
        raise BadInput(f"{folder}: has lerobot {version}, but {SUPPORTED_TEXT} is supported; {make}")
    return python


def lerobot_version(folder: Path) -> str | None:
    """As pip noted it, which is sooner read than asked for."""
    for note in sorted(folder.glob("lib/python*/site-packages/lerobot-*.dist-info/METADATA")):
        found = re.search(r"^Version: *(\S+)", note.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if found:
            return found[1]
    return None


def setup_commands(folder: Path, torch_index: str | None) -> Iterator[Sequence[str]]:
    """What makes the environment, one command after the other."""
    pip = (str(_python(folder)), "-m", "pip", "install", "--disable-pip-version-check")
    yield sys.executable, "-m", "venv", str(folder)
    yield *pip, "--upgrade", "pip"  # an old one takes many minutes to find versions that go together
    if torch_index:
        yield *pip, "--index-url", torch_index, *TORCH
    yield *pip, REQUIREMENT


def fetch_commands(
    folder: Path, hub_name: str, backbone: str, backbone_files: Sequence[str]
) -> Iterator[Sequence[str]]:
    """What downloads a published model into the hub's cache."""
    download = str(folder / "bin" / "hf"), "download"
    yield *download, hub_name
    yield *download, backbone, *backbone_files


def run_all(commands: Iterator[Sequence[str]]) -> None:
    """One command after the other, each shown; `BadInput` for the first that fails."""
    for command in commands:
        print(f"$ {' '.join(command)}", flush=True)
        try:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, env=_online()).returncode
        except OSError as error:
            raise BadInput(f"{command[0]}: cannot be run: {error.strerror}") from None
        if code != 0:
            raise BadInput(f"exit code {code} of: {' '.join(command)}")


def _online() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"
