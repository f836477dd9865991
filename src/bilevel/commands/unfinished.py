"""Learning that was stopped, and goes on only with the options that it was begun with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bilevel.files import write_atomically
from bilevel.policies.policy_folder import POLICY
from bilevel.symbolic.domain import BadInput

OPTIONS = "options.json"


def go_on_with(folder: Path, output: Path, options: Mapping[str, Any]) -> None:
    """Note the options in the folder of checkpoints; `BadInput` where there are some that were made with others."""
    path, now = folder / OPTIONS, dict(_flat(options))
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a new folder, or one that was killed before it was whole
        before = None
    is_made = any(folder.glob("*.safetensors")) or (output / POLICY).exists()
    if isinstance(before, dict) and before != now and is_made:
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        told = ", ".join(f"{name} {before.get(name)} instead of {now.get(name)}" for name in changed[:3])
        raise BadInput(
            f"{output}: learning was begun here with {told}; "
            "give the same options again, remove the folder, or choose another --output"
        )
    write_atomically(path, json.dumps(now) + "\n")


def is_begun(folder: Path) -> bool:
    """Return whether learning was begun with checkpoints in this folder and has not come to its end."""
    return (folder / OPTIONS).exists()


def finish(folder: Path) -> None:
    """Remove the checkpoints, now that all else is written; the options first, without which it counts as ended."""
    (folder / OPTIONS).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _flat(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All options in one level, those of a part with its name before them."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name} ")
        else:
            yield prefix + name.replace("_", " "), value
