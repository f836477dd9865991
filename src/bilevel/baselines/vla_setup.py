"""The virtual environment that LeRobot lives in: it wants other versions of packages than we do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

from bilevel.symbolic.domain import BadInput

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
