"""The command that writes demonstrations in the form of another package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import tyro

from bilevel.commands.arguments import count, print_json, progress_bar
from bilevel.commands.demonstration_commands import Folder, needing_worlds
from bilevel.symbolic.domain import BadInput


@contextmanager
def needing_minari() -> Iterator[None]:
    """Minari is an extra; what it reads and writes files with, it imports only when it does."""
    try:
        yield
    except ImportError:
        packages = "minari, h5py and pillow"
        raise BadInput(
            f"Minari's data sets need {packages}; install them with: pip install 'bilevel[minari]'"
        ) from None


@dataclass(frozen=True)
class ExportDemonstrations:
    """Write a data set as one of Minari's, among the others in MINARI_DATASETS_PATH or ~/.minari/datasets.

    Actions are the controls as they were executed; what the expert wanted and was doing is in the infos.

    Example: bilevel demonstrations export build/blocks --minari bilevel/blocks-v0
    """

    folder: Folder
    """Folder of the data set."""
    minari: Annotated[str, tyro.conf.arg(metavar="NAMESPACE/NAME-vN")]
    """What Minari shall call it."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        with needing_worlds():
            from bilevel.demonstrations.dataset import read_dataset
        dataset = read_dataset(self.folder)
        with needing_minari(), progress_bar() as progress:
            from bilevel.demonstrations.minari_export import export_to_minari

            bar = progress.add_task("exporting", total=len(dataset))
            target = export_to_minari(dataset, self.minari, lambda done, _: progress.update(bar, completed=done))
        if self.json:
            print_json(minari=self.minari, output=str(target), episodes=len(dataset))
        else:
            print(f"{count(dataset, 'episode')} written to {target}")
            print(f"read them with: minari.load_dataset({self.minari!r})")
        return 0
