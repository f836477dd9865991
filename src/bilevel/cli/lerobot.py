"""Commands about LeRobot: make its environment, fetch a published model, say whether a policy can be run."""

from __future__ import annotations

from pathlib import Path

from bilevel.cli.options import argument, command, option
from bilevel.cli.output import answer
from bilevel.symbolic.domain import BadInput


@command("lerobot install", "")
def install() -> None:
    """Make the virtual environment in which LeRobot runs its policies: 2 to 8 gigabytes, fetched by pip.

    It is in the folder that BILEVEL_LEROBOT names, or in the user's cache. Pip's own variables hold, such as
    PIP_EXTRA_INDEX_URL for builds of torch for the CPU, which are small. `lerobot-train` is in its folder bin.
    """
    from bilevel.methods import lerobot

    lerobot.install()
    answer({"installed": lerobot.lerobot_versions(), "folder": lerobot.environment_folder()})


@command("lerobot fetch", "smolvla-metaworld")
@argument("method", "TEXT", "smolvla or smolvla-metaworld.")
def fetch(method: str) -> None:
    """Download a published model, and its backbone, for LeRobot; make its environment first, where there is none."""
    from bilevel.methods import lerobot

    lerobot.install(method)
    answer({"fetched": method})


@command("lerobot check", "--policy outputs/train/act/checkpoints/last/pretrained_model")
@option("--policy", "DIR", "A policy that LeRobot saved (by default the published models are looked for).")
def check(policy: Path | None) -> int:
    """Load a policy that LeRobot saved, or the published models, as `evaluate` does; say what is missing.

    The exit code is 1 if one cannot be run.
    """
    from bilevel.methods.lerobot import PUBLISHED, environment_folder, find_model, loaded_server

    def state(method: str) -> str:
        try:
            model = find_model(method, policy)
            loaded_server(model).ask({"seed": 0})
        except BadInput as error:
            return f"not run: {error}"
        return f"ready: {model.config.type} on {model.device}"

    found = {method: state(method) for method in (("lerobot",) if policy else PUBLISHED)}
    answer({"environment": environment_folder(), **found})
    return 1 if any(text.startswith("not") for text in found.values()) else 0
