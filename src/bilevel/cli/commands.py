"""The table of commands, and the program that runs them: `bilevel --help`.

Exit codes: 0 all is well, 1 the answer is no (not solved, not valid, refuted), 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click
from click.exceptions import Exit, NoArgsIsHelpError, NoSuchCommand

from bilevel import __version__
from bilevel.cli.output import printable

# Where each command is, and what it does in a line: so only the module of the one that is asked for is imported.
COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("tasks:check", "Say what is wrong with a task, before anything is learned."),
    "collect": ("data:collect", "Let a task's expert demonstrate it: a data set."),
    "import": ("data:import_", "Make a data set of episodes that others recorded."),
    "demonstrations check": ("data:check_data", "Name broken files, and say whether a policy could be learned."),
    "demonstrations replay": ("data:replay", "Execute episodes again, and say whether they are the same bit for bit."),
    "demonstrations show": ("data:show", "Say what a data set is, or tell one of its episodes."),
    "demonstrations export": ("data:export", "Write a data set as one of Minari's or LeRobot's."),
    "domain check": ("domains:check", "Compare a domain with demonstrations, change by change."),
    "domain show": ("domains:show", "Print a domain in plain English, as PDDL, or as JSON."),
    "domain learn": ("domains:learn", "Learn the actions of a domain from demonstrations."),
    "learn": ("learning:learn", "Learn a policy from demonstrations: rules and a network."),
    "policies": ("learning:policies", "List the pretrained policies, or show what is in one policy."),
    "run": ("running:run", "Run a policy for one episode: tell it, film it, watch it live."),
    "evaluate": ("evaluation:evaluate", "Say how often a policy succeeds, and why it fails."),
    "compare": ("evaluation:compare", "Compare two results of evaluate, episode by episode."),
    "methods": ("evaluation:methods", "List the methods that can be compared."),
    "reproduce": ("experiments:reproduce", "Run the paper's whole experiment, and report on it."),
    "benchmark hard": ("experiments:benchmark_hard", "Measure how far each method gets as things get harder."),
    "benchmark axes": ("experiments:benchmark_axes", "List what the hard suite makes harder, on which tasks."),
    "report": ("experiments:report", "Make one page of what reproduce has found."),
    "vla set-up": ("tasks:set_up_vla", "Make the virtual environment in which LeRobot runs SmolVLA."),
    "vla fetch": ("tasks:fetch_vla", "Download a published model."),
    "vla check": ("tasks:check_vla", "Say which of the models can be run here."),
    "rules learn": ("rules:learn", "Learn a rule policy from small problems, or from demonstrations."),
    "rules complete": ("rules:complete", "Add rules for the states in which none applies."),
    "rules show": ("rules:show", "Print rules as text, a table, LaTeX, or in plain English."),
    "rules verify": ("rules:verify", "Prove that a policy always solves a problem, or refute it."),
    "solve": ("planning:solve", "Solve a problem by rules, without search."),
    "plan": ("planning:plan", "Find a plan, or a policy where the domain is nondeterministic."),
    "validate": ("planning:validate", "Check that a plan can be carried out and reaches the goal."),
    "problem": ("planning:problem", "Write a random problem of one of the shipped domains."),
}
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


class LazyGroup(click.Group):
    """The commands whose names begin with that of the group, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands and groups in it, in the order of the table."""
        if self.name in GROUPS:
            return [name.split()[1] for name in COMMANDS if name.startswith(f"{self.name} ")]
        return list(dict.fromkeys(name.split()[0] for name in COMMANDS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or a group, or `None` where there is none of this name."""
        name = f"{self.name} {cmd_name}" if self.name in GROUPS else cmd_name
        if name in COMMANDS:
            return load(name)
        return LazyGroup(name, help=GROUPS[name]) if name in GROUPS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is asked for; where there is none, the error suggests names like it."""
        names = self.list_commands(ctx)
        if args[0] not in names and not ctx.resilient_parsing:
            raise NoSuchCommand(args[0], possibilities=names, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and summaries, for which nothing is imported."""
        of = f"{self.name} " if self.name in GROUPS else ""
        rows = [(name, GROUPS.get(name) or COMMANDS[of + name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def load(name: str) -> click.Command:
    """Return a command of the table."""
    module, _, function = COMMANDS[name][0].partition(":")
    found: click.Command = getattr(importlib.import_module(f"bilevel.cli.{module}"), function)
    return found


def _print_completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    """Print the script that makes a shell complete commands, options and values."""
    if shell is not None and not ctx.resilient_parsing:
        from click.shell_completion import get_completion_class

        kind = get_completion_class(shell)
        assert kind is not None
        click.echo(kind(program, {}, "bilevel", COMPLETE).source())
        ctx.exit()


@click.group(
    "bilevel",
    cls=LazyGroup,
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


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code; without arguments, they are those of this process."""
    if arguments is None:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # and so clean up
        if instruction := os.environ.get(COMPLETE):
            from click.shell_completion import shell_complete

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
        return _fail(_missing_extra(error))
    except Exception as error:
        from bilevel.symbolic.domain import BadInput

        if not isinstance(error, BadInput):
            raise
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


def _missing_extra(error: ImportError) -> str:
    """Return what to do about a package of an extra that is missing or broken; raise any other error again."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        raise error
    advice = f"pip install 'bilevel[{EXTRAS[package]}]'"
    if isinstance(error, ModuleNotFoundError):
        return f"{package} is missing; install it with: {advice}"
    return (
        f"{package} is installed, but cannot be imported ({error}); install it again: pip uninstall {package}; {advice}"
    )


def _fail(message: Any, code: int = 2) -> int:
    """Print one line on standard error; return the exit code."""
    print("error:", printable(" ".join(message.split("\n")), LONGEST_ERROR), file=sys.stderr)
    return code
