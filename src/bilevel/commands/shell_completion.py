"""Scripts by which a shell completes commands, options and values; tyro makes them."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import make_dataclass
from typing import Annotated, Any, Union

import tyro

from bilevel.symbolic.domain import BadInput

SHELLS = ("bash", "zsh", "fish")
# What tyro says of options that are not given, and offers as a value even where it is told not to take it.
ODD = (" (default: None)", " (default: False)", " (default: '')", " (default: )", "'None', ", ", 'None'")

SPEC = "COMPLETION_SPEC = "  # begins the line with what can be completed
# What tyro does not know of, as it stands alone
OWN = [
    {"flags": ["--version"], "description": "Show the version.", "type": "flag"},
    {
        "flags": ["--completion"],
        "description": "Print a script that completes commands.",
        "type": "choice",
        "nargs": 1,
        "choices": list(SHELLS),
    },
]


def completion_script(shell: str, commands: Mapping[str, Any], config: tuple[Any, ...]) -> str:
    """Return the script for a shell; a command is a dataclass, and a group of them a mapping from names to these."""
    if shell not in SHELLS:
        raise BadInput(f"--completion takes a shell: {', '.join(SHELLS)}")
    with redirect_stdout(io.StringIO()) as printed, suppress(SystemExit):  # by which tyro ends
        tyro.cli(_any_of(commands), prog="bilevel", args=["--tyro-print-completion", shell], config=config)
    script = printed.getvalue()
    for words in ODD:
        script = script.replace(words, "")
    lines = (_tidied(line) if line.startswith(SPEC) else line for line in script.splitlines())
    return "\n".join(lines)


def _tidied(line: str) -> str:
    """Return the line with what can be completed, each description on one line: shells take others for values.

    It is text in a program in a script, whose quotes and backslashes depend on the shell.
    """
    own = ", ".join(map(repr, OWN))
    return re.sub(r"\\+n", " ", line).replace("'options': [", f"'options': [{own}, ", 1)


def _any_of(commands: Mapping[str, Any]) -> Any:
    """Return a type whose values are these commands."""
    members = tuple(
        Annotated[_any_of(kind) if isinstance(kind, Mapping) else kind, tyro.conf.subcommand(name)]
        for name, kind in commands.items()
    )
    command = ("command", Annotated[Union[members], tyro.conf.arg(name="", help="")])
    return make_dataclass("Commands", [command], namespace={"__doc__": ""})
