"""What a command takes, read from its dataclass: for its help, and to say what is wrong with what it was given."""

from __future__ import annotations

import ast
import sys
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import PrimitiveConstructorSpec

METAVARS = {int: "N", float: "X"}  # others are named like their option


@dataclass(frozen=True)
class Option:
    """An option of a command, or an argument that is known by its place."""

    name: str
    help: str
    kind: Any  # bool for a switch, int, float, str or Path
    metavar: str
    default: object
    choices: tuple[str, ...] = ()
    is_positional: bool = False
    takes_several: bool = False  # words, or none at all

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def usage(self) -> str:
        """How it is written: TASK, --seed N, or --json."""
        if self.is_positional:
            return self.metavar
        return self.flag if self.kind is bool else f"{self.flag} {self.metavar}"

    @property
    def default_text(self) -> str:
        """The default, where it says something: not that of a switch, nor of what is left out unless it is given."""
        if self.is_required or self.default is None or self.default is False or self.default in ("", ()):
            return ""
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


def options_of(command: Any) -> list[Option]:
    """Return all that a command takes, in the order of its declaration."""
    hints, helps = get_type_hints(command, include_extras=True), _field_docs(command)
    return [_option(field.name, hints[field.name], helps.get(field.name, ""), field) for field in fields(command)]


def _option(name: str, hint: Any, help_text: str, field: Any) -> Option:
    kind, *about = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if get_origin(kind) is Union:  # Optional[X]
        (kind,) = (part for part in get_args(kind) if part is not type(None))
    choices = tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()
    metavar = "|".join(choices) or METAVARS.get(kind, name.upper())
    for part in about:
        metavar = getattr(part, "metavar", None) or metavar
        help_text = getattr(part, "help", None) or help_text
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return Option(
        name,
        help_text,
        str if choices else kind,
        metavar,
        default,
        choices,
        is_positional=tyro.conf.Positional in about,
        takes_several=any(isinstance(part, PrimitiveConstructorSpec) for part in about),
    )


def _field_docs(command: Any) -> dict[str, str]:
    """The strings below the fields of a dataclass, and of those that it extends, each on one line."""
    docs: dict[str, str] = {}
    for kind in reversed(command.__mro__[:-1]):
        for before, after in _statements(kind.__module__, kind.__name__):
            docs[before] = " ".join(after.split())
    return docs


@cache
def _statements(module: str, name: str) -> list[tuple[str, str]]:
    path = sys.modules[module].__file__
    assert path is not None
    (kind,) = (
        part
        for part in ast.parse(Path(path).read_text(encoding="utf-8")).body
        if isinstance(part, ast.ClassDef) and part.name == name
    )
    found = []
    for before, after in zip(kind.body, kind.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(after, ast.Expr):
            found.append((before.target.id, ast.literal_eval(after.value)))
    return found
