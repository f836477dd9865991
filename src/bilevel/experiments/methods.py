"""The names by which the experiments know the methods until they use `bilevel.methods` itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bilevel.methods import methods
from bilevel.methods.methods import METHODS, Method, RunnablePolicy

__all__ = ["METHODS", "find_policy", "is_published", "missing"]


def missing(method: Method) -> str | None:
    """Return what a method needs and is not here, in one line; `None` where it can be run."""
    return method.missing()


def is_published(method: Method) -> bool:
    """Return whether a method is a published model, whose weights nothing stands in for."""
    return method.is_published


def find_policy(method: str, policy: Path | None = None, planner: str | None = None, **options: Any) -> RunnablePolicy:
    """Return what is to be measured."""
    return methods.find_policy(policy, method=method, planner=planner, **options)
