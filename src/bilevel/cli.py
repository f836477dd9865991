"""The command line: `bilevel --help`.

Exit codes: 0 all is well, 1 the answer is no (not solved, not valid, refuted), 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import make_dataclass
from typing import Annotated, Any, Union

import bilevel
from bilevel.symbolic.domain import BadInput

# Where each command is. Only the one that is asked for is imported, and none for `bilevel --help`.
COMMANDS: Mapping[str, str] = {
    "check": "check_command:Check",
    "collect": "demonstration_commands:Collect",
    "import": "import_command:Import",
    "demonstrations check": "check_demonstrations_command:CheckDemonstrations",
    "demonstrations replay": "demonstration_commands:ReplayDemonstrations",
    "demonstrations show": "demonstration_commands:ShowDemonstrations",
    "demonstrations export": "demonstration_commands:ExportDemonstrations",
    "demonstrations thresholds": "thresholds_command:FitThresholds",
    "domain check": "domain_commands:CheckDomain",
    "domain show": "domain_commands:ShowDomain",
    "domain learn": "learn_domain_command:LearnDomain",
    "domain predicates": "domain_predicates_command:ProposePredicates",
    "learn": "policy_commands:Learn",
    "run": "run_command:Run",
    "evaluate": "evaluate_command:Evaluate",
    "compare": "compare_command:Compare",
    "methods": "evaluate_command:Methods",
    "reproduce": "reproduce_command:Reproduce",
    "report": "report_command:Report",
    "vla set-up": "vla_command:SetUpVla",
    "vla fetch": "vla_command:FetchVla",
    "vla check": "vla_command:CheckVla",
    "rules learn": "learn_rules_command:LearnRules",
    "rules complete": "completion_command:CompleteRules",
    "rules show": "show_rules_command:ShowRules",
    "rules verify": "verify_rules_command:VerifyRules",
    "solve": "problem_commands:Solve",
    "plan": "plan_command:FindPlan",
    "validate": "problem_commands:Validate",
    "problem": "make_problem_command:MakeProblem",
}
GROUPS = {
    "vla": "Set up SmolVLA, a vision-language-action model, and say whether it can be run.",
    "demonstrations": "Check, replay, show and export data sets of demonstrations; fit thresholds to them.",
    "domain": "Learn domains from demonstrations, check them against some, show them; propose their predicates.",
    "rules": "Learn, complete, show and verify rule policies.",
}

DESCRIPTION = "BISON: learn bilevel policies from demonstrations, run and measure them."

# Which extra has a package that only some commands need: these import it when they run.
EXTRAS = {
    **dict.fromkeys(("metaworld", "mujoco", "packaging"), "tabletop"),
    "torch": "learning",
    "tensorboard": "tensorboard",
    **dict.fromkeys(("av", "PIL"), "video"),
    "minari": "minari",
    **dict.fromkeys(("h5py", "pyarrow"), "data"),
    **dict.fromkeys(("jinja2", "markupsafe", "matplotlib"), "report"),
}


def _command(words: Sequence[str]) -> tuple[Any, int]:
    """Return the type of what the first words name, a command, a group or all of them, and how many words these are.

    Groups are made for their help and for errors, of summaries; only the shell's completion asks for every option.
    """
    for number in (2, 1):
        if " ".join(words[:number]) in COMMANDS:
            return _load(" ".join(words[:number])), number
    if any(word.startswith("--tyro-") for word in words):
        return _any_of("", summarised=False), 0
    return (_any_of(words[0]), 1) if words and words[0] in GROUPS else (_any_of(""), 0)


def _load(name: str) -> Any:
    """Return the type of a command, or of a group."""
    if name in GROUPS:
        return _any_of(name, summarised=False)
    module, _, kind = COMMANDS[name].partition(":")
    return getattr(importlib.import_module(f"bilevel.commands.{module}"), kind)


def _any_of(group: str, summarised: bool = True) -> Any:
    """Return a type whose values are the commands of a group, or all commands and groups."""
    import tyro

    from bilevel.commands.summaries import SUMMARIES

    summaries = {**SUMMARIES, **GROUPS}
    stand_in = make_dataclass("Command", [], frozen=True)
    names = [name for name in COMMANDS if name.startswith(f"{group} ")] if group else _first_words(COMMANDS)
    members = tuple(
        Annotated[stand_in, tyro.conf.subcommand(name.split()[-1], description=summaries[name])] if summarised
        else Annotated[_load(name), tyro.conf.subcommand(name.split()[-1])]
        for name in names
    )  # fmt: skip
    command = ("command", Annotated[Union[members], tyro.conf.arg(name="", help="")])  # noqa: UP007
    return make_dataclass("Commands", [command], namespace={"__doc__": GROUPS.get(group, DESCRIPTION)}, frozen=True)


def _first_words(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.split()[0] for name in names))


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without … or é gets an escape, not a crash
    words = sys.argv[1:] if arguments is None else arguments
    if words == ["--version"]:
        print(f"bilevel {bilevel.__version__}")
        sys.exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a script in the background has ignored
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended too
    sys.exit(_run(words))


def _run(words: list[str]) -> int:
    """The command's exit code; what a user can mend is one line on standard error."""
    try:
        code: int = _read(words).run()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BadInput as error:
        return _complain(str(error), 2)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        return _complain(f"{package} is missing; install it with: pip install 'bilevel[{EXTRAS[package]}]'", 2)
    except MemoryError:
        return _complain("there is not enough memory for this", 2)
    except KeyboardInterrupt as interruption:
        return _complain(str(interruption) or "interrupted; nothing was written", 130)
    except BrokenPipeError:  # the reader has seen enough, as with | head
        _forget_output()
        return 0
    except OSError as error:
        _forget_output()
        return _complain(f"the output cannot be written: {error.strerror}", 2)


def _read(words: list[str]) -> Any:
    """Return the command that the words are, with its options."""
    gc.disable()  # nothing that is imported is garbage
    try:
        import tyro

        kind, known = _command(words)
        program = " ".join(["bilevel", *words[:known]])
        return tyro.cli(kind, prog=program, args=words[known:], config=parsing())
    finally:
        gc.enable()


def parsing() -> tuple[Any, ...]:
    """Return how tyro shall read the options of every command."""
    import tyro

    return (tyro.conf.FlagCreatePairsOff,)


def _complain(message: str, code: int) -> int:
    print(f"bilevel: {message}", file=sys.stderr)
    return code


def _forget_output() -> None:
    """Let the interpreter's own flush at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
