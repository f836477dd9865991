"""Which format something is in, and the reader of it, which is imported when it is needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args

from bilevel.demonstrations.importing.recorded import Recordings
from bilevel.demonstrations.manifest import MANIFEST
from bilevel.symbolic.domain import BadInput

Format = Literal["npz", "minari", "lerobot", "robomimic"]
NAME = re.compile(r"([\w-]+/)*[\w-]+-v\d+")  # of a Minari data set
HDF5 = (".hdf5", ".h5")


def read_recordings(source: str, format: Format | None = None, mask: str | None = None) -> Recordings:
    """Return the episodes at a path, or in Minari's data set of that name, in the format that is seen or given."""
    chosen = format or recognise(source)
    if mask is not None and chosen != "robomimic":
        raise BadInput(f"--mask is for robomimic's files, and {source} is read as {chosen}")
    if chosen == "minari":
        from bilevel.demonstrations.importing.minari_reader import read_minari

        return read_minari(source)
    if chosen == "lerobot":
        from bilevel.demonstrations.importing.lerobot_reader import read_lerobot

        return read_lerobot(Path(source))
    if chosen == "robomimic":
        from bilevel.demonstrations.importing.robomimic_reader import read_robomimic

        return read_robomimic(Path(source), mask)
    from bilevel.demonstrations.importing.array_reader import read_npz

    return read_npz(Path(source))


def recognise(source: str) -> Format:
    """Return the format of what is at a path, or of what a name is one of; `BadInput` where that cannot be seen."""
    path = Path(source)
    if (path / MANIFEST).is_file():
        raise BadInput(f"{source}: is a data set of demonstrations already; use it as it is")
    if path.is_dir():
        if (path / "data" / "metadata.json").is_file():
            return "minari"
        if (path / "meta" / "info.json").is_file():
            return "lerobot"
        if any(path.glob("*.npz")):
            return "npz"
    elif path.suffix == ".npz":
        return "npz"
    elif path.suffix in HDF5:
        return "robomimic"
    elif not path.exists() and NAME.fullmatch(source):
        return "minari"
    what = "its format is none that is known here" if path.exists() else "there is no such file, folder or data set"
    raise BadInput(f"{source}: {what}; formats: {', '.join(get_args(Format))}")
