"""The commands by their names, and the program that runs them: `bilevel --help`.

Exit codes: 0 all is well, 1 the answer is no (not solved, not valid, refuted), 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click
from click.exceptions import Exit, NoArgsIsHelpError
from click.shell_completion import get_completion_class, shell_complete

from bilevel import __version__
from bilevel.cli.options import COMMANDS
from bilevel.cli.output import printable
from bilevel.symbolic.domain import BadInput

GROUPS = {
    "demonstrations": "Check, replay, show and export data sets of demonstrations.",
    "domain": "Learn domains from demonstrations, check them against some, show them.",
    "benchmark": "Measure methods beyond the paper's table: where they fail as things get harder.",
    "vla": "Set up SmolVLA, a vision-language-action model, and say whether it can be run.",
    "rules": "Learn, complete, show and verify rule policies.",
}

# Which extra has a package that only some commands need: these import it when they run.
EXTRAS = {
    **dict.fromkeys(("glfw", "metaworld", "mujoco", "packaging"), "tabletop"),
    "torch": "learning",
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    **dict.fromkeys(("av", "PIL"), "video"),
    **dict.fromkeys(("h5py", "minari", "pyarrow"), "data"),
    **dict.fromkeys(("jinja2", "markupsafe", "matplotlib", "pandas", "scipy"), "report"),
    "ray": "cluster",
}
COMPLETE = "_BILEVEL_COMPLETE"
LONGEST_ERROR = 600  # characters


class CommandGroup(click.Group):
    """Commands that are listed in the order in which they were added, each with the first sentence of its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the whole sentences, where click would cut those that are long."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(200)) for name, each in self.commands.items()])


def _print_completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    """Print the script that makes a shell complete commands, options and values."""
    if shell is not None and (kind := get_completion_class(shell)):
        click.echo(kind(program, {}, "bilevel", COMPLETE).source())
        ctx.exit()


@click.group(
    "bilevel",
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
    epilog="bilevel COMMAND --help shows the options of a command.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option(
    "--completion",
    metavar="SHELL",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print a script that completes commands and options in bash, zsh or fish.",
)
def program() -> None:
    """BISON: learn bilevel policies from demonstrations, run and measure them."""


def _add(name: str, command: click.Command) -> None:
    """Add a command to the program, or to its group there."""
    of, _, last = name.rpartition(" ")
    if of and of not in program.commands:
        program.add_command(CommandGroup(of, help=GROUPS[of]))
    group = program.commands[of] if of else program
    assert isinstance(group, click.Group)
    group.add_command(command, last)


for _module in ("running", "data", "domains", "learning", "evaluation", "experiments", "vla", "rules", "planning"):
    import_module(f"bilevel.cli.{_module}")  # which adds its commands to COMMANDS
for _name, _command in COMMANDS.items():
    _add(_name, _command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code; without arguments, they are those of this process."""
    if arguments is None:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # and so clean up
        if instruction := os.environ.get(COMPLETE):
            sys.exit(shell_complete(program, {}, "bilevel", COMPLETE, instruction))
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(words: list[str]) -> int:
    """Run a command and return its exit code; what a user can mend is one line on standard error."""
    _prepare()
    try:
        with program.make_context("bilevel", words) as ctx:
            code: int | None = program.invoke(ctx)
            sys.stdout.flush()
            return code or 0
    except Exit as end:  # after --help
        return end.exit_code
    except NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "bilevel"
        return _fail(f"{error.format_message().rstrip('.')}; see {path} --help")
    except KeyboardInterrupt as interruption:
        return _fail(str(interruption) or "interrupted", 130)
    except BrokenPipeError:  # the reader has seen enough, as with | head
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error))
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        return _fail(f"{error}; install it with: pip install 'bilevel[{EXTRAS[package]}]'")
    except BadInput as error:
        return _fail(str(error))


def _prepare() -> None:
    """Make a closed output one that discards, and let a terminal without … or é show escapes."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for matrices as small as ours, threads only wait for a core
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Let the interpreter's own flush at exit go nowhere."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int = 2) -> int:
    """Print one line on standard error; return the exit code."""
    print("error:", printable(" ".join(message.split("\n")), LONGEST_ERROR), file=sys.stderr)
    return code
