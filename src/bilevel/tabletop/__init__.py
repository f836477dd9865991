"""Worlds on a table, registered as a user's own tasks are: by an entry point that names `TASKS`.

Each module in `worlds/` is found by its file and imported when one of its tasks is asked for: `task`, which has the
module's name, and `noisy`, its twin, in which objects teleport away from their goals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bilevel.tasks.task import Task

_NOISY = "-noisy"
_WORLDS = [module.name for module in iter_modules([str(Path(__file__).with_name("worlds"))])]


class _Tasks(Mapping[str, "Task"]):
    """All tasks by their names."""

    def __getitem__(self, name: str) -> Task:
        world = name.removesuffix(_NOISY)
        if world not in _WORLDS:
            raise KeyError(name)
        module = import_module(f"bilevel.tabletop.worlds.{world}")
        task: Task = module.task if name == world else module.noisy
        return task

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        return (world + twin for world in _WORLDS for twin in ("", _NOISY))

    def __len__(self) -> int:
        return 2 * len(_WORLDS)


TASKS: Mapping[str, Task] = _Tasks()
