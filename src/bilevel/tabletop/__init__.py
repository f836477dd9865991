"""Worlds on a table, registered as a user's own tasks are: by an entry point that names `TASKS`, all tasks by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bilevel.tabletop.worlds import TASKS as TASKS


def __getattr__(name: str) -> object:
    """Make `TASKS` when it is asked for: domains and problems do without the worlds."""
    if name == "TASKS":
        from bilevel.tabletop.worlds import TASKS

        return TASKS
    raise AttributeError(f"module 'bilevel.tabletop' has no attribute '{name}'")
