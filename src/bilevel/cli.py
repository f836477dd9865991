"""The command line: `bilevel --help`.

Exit codes: 0 all is well, 1 the answer is no (not solved, not valid, refuted), 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

import bilevel
from bilevel.commands.demonstration_commands import (
    CheckDemonstrations,
    Collect,
    ReplayDemonstrations,
    ShowDemonstrations,
)
from bilevel.commands.evaluate_command import Evaluate
from bilevel.commands.export_command import ExportDemonstrations
from bilevel.commands.learning_command import LearnRules
from bilevel.commands.methods_command import Methods
from bilevel.commands.plan_command import FindPlan
from bilevel.commands.policy_commands import Learn
from bilevel.commands.problem_commands import MakeProblem, Solve, Validate
from bilevel.commands.report_command import Report
from bilevel.commands.reproduce_command import Reproduce
from bilevel.commands.rule_commands import ShowRules, VerifyRules
from bilevel.commands.run_command import Run
from bilevel.commands.vla_command import Vla
from bilevel.symbolic.domain import BadInput

RulesCommand = (
    Annotated[LearnRules, tyro.conf.subcommand("learn")]
    | Annotated[ShowRules, tyro.conf.subcommand("show")]
    | Annotated[VerifyRules, tyro.conf.subcommand("verify")]
)


@dataclass(frozen=True)
class Rules:
    """Learn, show and verify rule policies."""

    command: Annotated[RulesCommand, tyro.conf.arg(name="")]

    def run(self) -> int:
        return self.command.run()


DemonstrationsCommand = (
    Annotated[CheckDemonstrations, tyro.conf.subcommand("check")]
    | Annotated[ReplayDemonstrations, tyro.conf.subcommand("replay")]
    | Annotated[ShowDemonstrations, tyro.conf.subcommand("show")]
    | Annotated[ExportDemonstrations, tyro.conf.subcommand("export")]
)


@dataclass(frozen=True)
class Demonstrations:
    """Check, replay, show and export data sets of demonstrations."""

    command: Annotated[DemonstrationsCommand, tyro.conf.arg(name="")]

    def run(self) -> int:
        return self.command.run()


Command = (
    Annotated[Rules, tyro.conf.subcommand("rules")]
    | Annotated[Solve, tyro.conf.subcommand("solve")]
    | Annotated[FindPlan, tyro.conf.subcommand("plan")]
    | Annotated[Validate, tyro.conf.subcommand("validate")]
    | Annotated[MakeProblem, tyro.conf.subcommand("problem")]
    | Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Demonstrations, tyro.conf.subcommand("demonstrations")]
    | Annotated[Learn, tyro.conf.subcommand("learn")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Methods, tyro.conf.subcommand("methods")]
    | Annotated[Vla, tyro.conf.subcommand("vla")]
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without … or é gets an escape, not a crash
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        print(f"bilevel {bilevel.__version__}")
        sys.exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a script in the background has ignored
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended too
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    """The command's exit code; what a user can mend is one line on standard error."""
    try:
        command = tyro.cli(
            Command,
            prog="bilevel",
            description="BISON: learn rule policies from small problems and run them on huge ones.",
            args=arguments,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
        code = command.run()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BadInput as error:
        return _complain(str(error), 2)
    except KeyboardInterrupt as interruption:
        return _complain(str(interruption) or "interrupted; nothing was written", 130)
    except BrokenPipeError:  # the reader has seen enough, as with | head
        _forget_output()
        return 0
    except OSError as error:
        _forget_output()
        return _complain(f"the output cannot be written: {error.strerror}", 2)


def _complain(message: str, code: int) -> int:
    print(f"bilevel: {message}", file=sys.stderr)
    return code


def _forget_output() -> None:
    """Let the interpreter's own flush at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
