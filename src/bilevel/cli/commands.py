"""The program `bilevel`: it runs a command, and turns what a user can mend into one line.

Exit codes: 0 all is well, 1 the answer is no (not solved, not valid, refuted), 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click
from click.exceptions import Exit, NoArgsIsHelpError
from click.shell_completion import shell_complete

from bilevel.cli.options import program
from bilevel.cli.output import printable
from bilevel.symbolic.domain import BadInput

# Which extra has a package that only some commands need: these import it when they run.
EXTRAS = {
    **dict.fromkeys(("metaworld", "mujoco", "packaging"), "tabletop"),
    "torch": "learning",
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    **dict.fromkeys(("av", "PIL"), "video"),
    **dict.fromkeys(("h5py", "minari", "pyarrow"), "data"),
    **dict.fromkeys(("jinja2", "markupsafe", "matplotlib", "pandas"), "report"),
    "ray": "cluster",
}
LONGEST_ERROR = 600  # characters
COMPLETE = "_BILEVEL_COMPLETE"  # the variable by which a shell asks for completions


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
