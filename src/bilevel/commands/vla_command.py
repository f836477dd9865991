"""Commands about vision-language-action models: the environment that they run in, and the files they consist of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bilevel.baselines.vla_files import BACKBONE, BACKBONE_FILES, MODELS, published_model
from bilevel.baselines.vla_setup import (
    environment_folder,
    fetch_commands,
    lerobot_version,
    require_environment,
    run_all,
    setup_commands,
)
from bilevel.commands.arguments import print_json
from bilevel.commands.demonstration_commands import needing_worlds

Method = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="METHOD")]
OptionalFolder = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]


@dataclass(frozen=True)
class SetUpVla:
    """Make the virtual environment in which LeRobot runs SmolVLA: some gigabytes, fetched by pip.

    Example: bilevel vla set-up
    """

    environment: OptionalFolder = None
    """Its folder; by default that of the variable BILEVEL_VLA, or else bilevel/smolvla in the user's cache."""
    torch_index: Annotated[str | None, tyro.conf.arg(metavar="URL")] = None
    """Fetch torch from this index of packages, such as one with builds for the CPU, without the gigabytes for GPUs."""

    def run(self) -> int:
        folder = environment_folder(self.environment)
        run_all(setup_commands(folder, self.torch_index))
        require_environment(folder)
        print(f"lerobot {lerobot_version(folder)} is in {folder}")
        if folder != environment_folder():
            print(f"set BILEVEL_VLA={folder.absolute()} to use it")
        return 0


@dataclass(frozen=True)
class FetchVla:
    """Download a published model into Hugging Face's cache: the policy, and its backbone's settings and tokenizer.

    Nothing else here ever downloads a model.

    Example: bilevel vla fetch smolvla-metaworld
    """

    method: Method
    """smolvla or smolvla-metaworld."""

    def run(self) -> int:
        published = published_model(self.method)
        folder = environment_folder()
        require_environment(folder)
        run_all(fetch_commands(folder, published.hub_name, BACKBONE, BACKBONE_FILES))
        return 0


@dataclass(frozen=True)
class CheckVla:
    """Say which of the methods smolvla and smolvla-metaworld can be run here, and what is missing for the others.

    The exit code is 1 if one cannot be run.

    Example: bilevel vla check
    """

    folder: OptionalFolder = None
    """A copy of the model to look at, instead of Hugging Face's cache."""
    json: bool = False
    """Print one JSON object instead."""

    def run(self) -> int:
        with needing_worlds():
            from bilevel.baselines.vla import NotRun, vla_status
        found = {method: vla_status(method, self.folder) for method in MODELS}
        reasons = {method: status.reason for method, status in found.items() if isinstance(status, NotRun)}
        if self.json:
            print_json(environment=str(environment_folder()), **{name: reasons.get(name, "ready") for name in found})
        else:
            for method in found:
                print(f"{method}: not run: {reasons[method]}" if method in reasons else f"{method}: ready")
        return 1 if reasons else 0


VlaCommand = (
    Annotated[SetUpVla, tyro.conf.subcommand("set-up")]
    | Annotated[FetchVla, tyro.conf.subcommand("fetch")]
    | Annotated[CheckVla, tyro.conf.subcommand("check")]
)


@dataclass(frozen=True)
class Vla:
    """Set up SmolVLA, a vision-language-action model, and say whether it can be run."""

    command: Annotated[VlaCommand, tyro.conf.arg(name="")]

    def run(self) -> int:
        return self.command.run()
