"""Commands about SmolVLA, a vision-language-action model: set up its environment, fetch a model, check both."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from bilevel.cli.options import argument, command, option
from bilevel.cli.output import answer
from bilevel.symbolic.domain import BadInput


@command("vla set-up", "", json=False)
def set_up_vla() -> None:
    """Make the virtual environment in which LeRobot runs SmolVLA: some gigabytes, fetched by pip.

    It is in the folder that BILEVEL_VLA names, or in the user's cache. Pip's own variables hold, such as
    PIP_EXTRA_INDEX_URL for builds of torch for the CPU, which are small.
    """
    from bilevel.methods import smolvla

    _run_all(smolvla.setup_commands())
    folder = smolvla.environment_folder()
    print(f"lerobot {smolvla.lerobot_version(folder)} is in {folder}")


@command("vla fetch", "smolvla-metaworld", json=False)
@argument("method", "TEXT", "smolvla or smolvla-metaworld.")
def fetch_vla(method: str) -> None:
    """Download a published model into Hugging Face's cache: the policy, and its backbone's settings and tokenizer.

    Nothing else here ever downloads a model.
    """
    from bilevel.methods.smolvla import MODELS, fetch_commands

    if method not in MODELS:
        raise BadInput(f"unknown model '{method}'; known models: {', '.join(MODELS)}")
    _run_all(fetch_commands(method))


def _run_all(commands: Iterable[Sequence[str]]) -> None:
    """Run one command after the other, each shown, and allowed to download; `BadInput` for the first that fails."""
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    for words in commands:
        print(f"$ {' '.join(words)}", flush=True)
        code = subprocess.run(words, stdin=subprocess.DEVNULL, env=environment).returncode
        if code != 0:
            raise BadInput(f"exit code {code} of: {' '.join(words)}")


@command("vla check", "")
@option("--folder", "DIR", "A copy of the model to look at, instead of Hugging Face's cache.")
def check_vla(folder: Path | None) -> int:
    """Say which of the methods smolvla and smolvla-metaworld can be run here, and what is missing for the others.

    The exit code is 1 if one cannot be run.
    """
    from bilevel.methods.methods import METHODS
    from bilevel.methods.smolvla import MODELS, environment_folder

    reasons = {method: METHODS[method].missing(folder) for method in MODELS}
    found = {method: reason or "ready" for method, reason in reasons.items()}
    lines = (f"{method}: not run: {reason}" if reason else f"{method}: ready" for method, reason in reasons.items())
    answer({"environment": str(environment_folder()), **found}, *lines)
    return 1 if any(reasons.values()) else 0
