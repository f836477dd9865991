"""Commands about vision-language-action models: the environment that they run in, and the files they consist of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import tyro

from bilevel.commands.arguments import Json, answer
from bilevel.symbolic.domain import BadInput

Method = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="METHOD")]
OptionalFolder = Annotated[Optional[Path], tyro.conf.arg(metavar="DIR")]


@dataclass(frozen=True)
class SetUpVla:
    """Make the virtual environment in which LeRobot runs SmolVLA: some gigabytes, fetched by pip.

    Example: bilevel vla set-up
    """

    environment: OptionalFolder = None
    """Its folder; by default that of the variable BILEVEL_VLA, or else bilevel/smolvla in the user's cache."""
    torch_index: Annotated[Optional[str], tyro.conf.arg(metavar="URL")] = None
    """Fetch torch from this index of packages, such as one with builds for the CPU, without the gigabytes for GPUs."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.methods.smolvla import (
            environment_folder,
            lerobot_version,
            require_environment,
            run_all,
            setup_commands,
        )

        folder = self.environment or environment_folder()
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
        """Run the command; return the exit code."""
        from bilevel.methods.smolvla import MODELS, fetch_commands, run_all

        if self.method not in MODELS:
            raise BadInput(f"unknown model '{self.method}'; known models: {', '.join(MODELS)}")
        run_all(fetch_commands(self.method))
        return 0


@dataclass(frozen=True)
class CheckVla:
    """Say which of the methods smolvla and smolvla-metaworld can be run here, and what is missing for the others.

    The exit code is 1 if one cannot be run.

    Example: bilevel vla check
    """

    folder: OptionalFolder = None
    """A copy of the model to look at, instead of Hugging Face's cache."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.methods.smolvla import MODELS, environment_folder

        reasons = {method: self._missing(method) for method in MODELS}
        found = {method: reason or "ready" for method, reason in reasons.items()}
        lines = (f"{method}: not run: {reason}" if reason else f"{method}: ready" for method, reason in reasons.items())
        answer({"environment": str(environment_folder()), **found}, self.json, *lines)
        return 1 if any(reasons.values()) else 0

    def _missing(self, method: str) -> str | None:
        """What it takes to run a method, on the worlds that come with the package, and is not here."""
        from bilevel.methods.smolvla import find_vla
        from bilevel.tabletop import opengl

        try:
            find_vla(method, self.folder)
            opengl.backend()
        except BadInput as error:
            return str(error)
        return None
