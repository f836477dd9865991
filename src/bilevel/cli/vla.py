"""Commands about SmolVLA, a vision-language-action model: set up its environment, fetch a model, check both."""

from __future__ import annotations

from pathlib import Path

from bilevel.cli.options import argument, command, option
from bilevel.cli.output import answer
from bilevel.symbolic.domain import BadInput


@command("vla set-up", "", json=False)
@option("--environment", "DIR", "Its folder (by default BILEVEL_VLA, or bilevel/smolvla in the user's cache).")
@option("--torch-index", "URL", "Fetch torch from this index, such as one with builds for the CPU, which are small.")
def set_up_vla(environment: Path | None, torch_index: str | None) -> None:
    """Make the virtual environment in which LeRobot runs SmolVLA: some gigabytes, fetched by pip."""
    from bilevel.methods import smolvla

    folder = environment or smolvla.environment_folder()
    smolvla.run_all(smolvla.setup_commands(folder, torch_index))
    smolvla.require_environment(folder)
    print(f"lerobot {smolvla.lerobot_version(folder)} is in {folder}")
    if folder != smolvla.environment_folder():
        print(f"set BILEVEL_VLA={folder.absolute()} to use it")


@command("vla fetch", "smolvla-metaworld", json=False)
@argument("method", "TEXT", "smolvla or smolvla-metaworld.")
def fetch_vla(method: str) -> None:
    """Download a published model into Hugging Face's cache: the policy, and its backbone's settings and tokenizer.

    Nothing else here ever downloads a model.
    """
    from bilevel.methods.smolvla import MODELS, fetch_commands, run_all

    if method not in MODELS:
        raise BadInput(f"unknown model '{method}'; known models: {', '.join(MODELS)}")
    run_all(fetch_commands(method))


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
