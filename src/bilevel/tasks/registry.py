"""Finding tasks: by name, where one was registered or a package offers it; in a file; in a module.

A package offers tasks by entry points of the group `bilevel.tasks`. An entry point is a task, under its own name, or a
mapping from names to tasks. Only what a user names is ever imported, never what a data set or a policy folder names.
"""

from __future__ import annotations

import copyreg
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.task import Env, Task, failed, found_at

GROUP = "bilevel.tasks"

_REGISTERED: dict[str, Task] = {}


def register_task(task: Task) -> Task:
    """Make a task known by its name, in this process."""
    _REGISTERED[task.name] = task
    return task


def find_task(source: str) -> Task:
    """The task of this name, or in `file.py:task` or `module:task`; `BadInput` where there is none."""
    known = registered_task(source)
    if known is not None:
        return known
    if ":" in source:
        module, attribute = _named(source)
        found = getattr(module, attribute, None)
        if not isinstance(found, Task):
            tasks = ", ".join(name for name, value in vars(module).items() if isinstance(value, Task)) or "none"
            raise BadInput(f"{source}: no task called '{attribute}' there; tasks there: {tasks}")
        place = source.rpartition(":")[0]
        return found_at(found, f"{Path(place).resolve()}:{attribute}" if place.endswith(".py") else source)
    if source.endswith(".py"):
        raise BadInput(f"{source}: say which task in it, as in {source}:task")
    raise BadInput(f"unknown task '{source}'; known tasks: {', '.join(task_names())}; or name one as file.py:task")


def find_function(source: str) -> Callable[..., Any]:
    """The function in `file.py:function` or `module:function`; `BadInput` where there is none."""
    if ":" not in source:
        raise BadInput(f"'{source}' names no function; name one as file.py:function")
    module, attribute = _named(source)
    function: Callable[..., Any] | None = getattr(module, attribute, None)
    if not callable(function):
        raise BadInput(f"{source}: no function called '{attribute}' there")
    return function


def make_env(task: str, **arguments: Any) -> Env:
    """Make the environment of the task of this name; this is what Gymnasium calls."""
    return find_task(task).make_env(**arguments)


def _reduced(task: Task) -> tuple[Any, ...]:
    """A task that was found travels to other processes as the name under which they find it, too."""
    return (find_task, (task.source,)) if task.source else tuple(object.__reduce_ex__(task, 2))


copyreg.pickle(Task, _reduced)


def registered_task(name: str) -> Task | None:
    """The task that is known by this name without importing any file or module that the name itself names."""
    offered = (found_at(task, name) for known, task in _offered() if known == name)
    return _REGISTERED.get(name) or next(offered, None)


def task_names() -> list[str]:
    """The names of all tasks that are registered or offered by packages."""
    return sorted({*_REGISTERED, *(name for name, _ in _offered())})


def _offered() -> Iterator[tuple[str, Task]]:
    """Yield the tasks that packages offer, with their names."""
    for point in entry_points(group=GROUP):
        try:
            found = point.load()
        except (ImportError, AttributeError) as error:
            raise BadInput(f"the entry point '{point.name}' = '{point.value}' cannot be loaded: {error}") from None
        yield from found.items() if isinstance(found, Mapping) else [(point.name, found)]


def _named(source: str) -> tuple[ModuleType, str]:
    """The module of `file.py:attribute` or `module:attribute`, and the name of the attribute."""
    place, _, attribute = source.rpartition(":")
    try:
        return (_from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)), attribute
    except BadInput:
        raise
    except ModuleNotFoundError as error:
        raise BadInput(f"{source}: there is no module '{error.name}'; is it installed?") from None
    except Exception as error:
        raise failed(source, error) from error


def _from_file(path: Path) -> ModuleType:
    """The module in a file, whose neighbours it may import, as a script may."""
    path = path.resolve()
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    about = hashlib.sha256(str(path).encode() + path.read_bytes()).hexdigest()  # the same in all processes
    name = f"bilevel_task_{path.stem}_{about[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that dataclasses in it find themselves
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
