"""The versions of what a result depends on."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata

import bilevel


def versions(packages: Iterable[str] = ()) -> dict[str, str]:
    """Of bilevel, Python, NumPy, Gymnasium, and those of the given packages that are installed."""
    found = {"bilevel": bilevel.__version__, "python": platform.python_version()}
    for package in ("numpy", "gymnasium", *packages):
        with suppress(metadata.PackageNotFoundError):
            found.setdefault(package, metadata.version(package))
    return found


def differences(then: Mapping[str, str], packages: Iterable[str] = ()) -> str:
    """Where versions differ from those at hand, in words."""
    now = versions(packages)
    return ", ".join(f"{name} {then.get(name)} instead of {now[name]}" for name in now if then.get(name) != now[name])
