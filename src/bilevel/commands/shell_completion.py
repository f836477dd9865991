"""Scripts by which a shell completes commands, options and values; tyro makes them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import make_dataclass
from typing import Annotated, Any, Union

import tyro

from bilevel.symbolic.domain import BadInput

SHELLS = ("bash", "zsh", "fish")
# What tyro says of options that are not given, and offers as a value even where it is told not to take it.
ODD = (" (default: None)", " (default: False)", " (default: '')", " (default: )", "'None', ", ", 'None'")


def completion_script(shell: str, commands: Mapping[str, Any], config: tuple[Any, ...]) -> str:
    """Return the script for a shell; a command is a dataclass, and a group of them a mapping from names to these."""
    if shell not in SHELLS:
        raise BadInput(f"--completion takes a shell: {', '.join(SHELLS)}")
    with redirect_stdout(io.StringIO()) as printed, suppress(SystemExit):  # by which tyro ends
        tyro.cli(_any_of(commands), prog="bilevel", args=["--tyro-print-completion", shell], config=config)
    script = printed.getvalue()
    for words in ODD:
        script = script.replace(words, "")
    return script


def _any_of(commands: Mapping[str, Any]) -> Any:
    """Return a type whose values are these commands."""
    members = tuple(
        Annotated[_any_of(kind) if isinstance(kind, Mapping) else kind, tyro.conf.subcommand(name)]
        for name, kind in commands.items()
    )
    command = ("command", Annotated[Union[members], tyro.conf.arg(name="", help="")])
    return make_dataclass("Commands", [command], namespace={"__doc__": ""})
