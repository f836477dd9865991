"""The command line: `bilevel --help`.

Exit codes: 0 all is well, 1 the answer is no (not solved, not valid, refuted), 2 bad input, 130 interrupted.

Nothing is imported here, but when it is needed: then `main` has the first word when somebody presses Ctrl-C.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Where each command is. Only the one that is asked for is imported, and none for `bilevel --help`.
COMMANDS: Mapping[str, str] = {
    "check": "check_command:Check",
    "collect": "demonstration_commands:Collect",
    "import": "import_command:Import",
    "demonstrations check": "check_demonstrations_command:CheckDemonstrations",
    "demonstrations replay": "demonstration_commands:ReplayDemonstrations",
    "demonstrations show": "demonstration_commands:ShowDemonstrations",
    "demonstrations export": "demonstration_commands:ExportDemonstrations",
    "domain check": "domain_commands:CheckDomain",
    "domain show": "domain_commands:ShowDomain",
    "domain learn": "learn_domain_command:LearnDomain",
    "learn": "policy_commands:Learn",
    "policies": "policies_command:Policies",
    "run": "run_command:Run",
    "evaluate": "evaluate_command:Evaluate",
    "compare": "compare_command:Compare",
    "methods": "evaluate_command:Methods",
    "reproduce": "reproduce_command:Reproduce",
    "benchmark hard": "benchmark_command:BenchmarkHard",
    "benchmark axes": "benchmark_command:BenchmarkAxes",
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
    "benchmark": "Measure methods beyond the paper's table: where they fail as things get harder.",
    "vla": "Set up SmolVLA, a vision-language-action model, and say whether it can be run.",
    "demonstrations": "Check, replay, show and export data sets of demonstrations.",
    "domain": "Learn domains from demonstrations, check them against some, show them.",
    "rules": "Learn, complete, show and verify rule policies.",
}

DESCRIPTION = "BISON: learn bilevel policies from demonstrations, run and measure them."


# Which extra has a package that only some commands need: these import it when they run.
EXTRAS = {
    **dict.fromkeys(("glfw", "metaworld", "mujoco", "packaging"), "tabletop"),
    "torch": "learning",
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    **dict.fromkeys(("av", "PIL"), "video"),
    **dict.fromkeys(("h5py", "minari", "pyarrow"), "data"),
    **dict.fromkeys(("jinja2", "markupsafe", "matplotlib"), "report"),
    "ray": "cluster",
}


def load(name: str) -> Any:
    """Return the dataclass of a command."""
    import importlib

    module, _, kind = COMMANDS[name].partition(":")
    return getattr(importlib.import_module(f"bilevel.commands.{module}"), kind)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code. Without arguments they are those of this process, which is then ours."""
    interruptions = None
    try:
        from bilevel.interruption import Interruptions, let_go

        interruptions = Interruptions(main.__code__)
        interruptions.answer()
        if arguments is None:
            interruptions.raise_all()
        _prepare()
        code = _run(sys.argv[1:] if arguments is None else arguments)
        if arguments is None:
            let_go()
    except KeyboardInterrupt as interruption:  # even while the first modules are imported
        exec("")  # else Python may end by a signal: it takes one within the code of a dataclass for unhandled
        code = _complain(str(interruption) or "interrupted; nothing was written", 130)
    except Exception:
        if interruptions is None or not interruptions.came:
            raise
        code = _ended_by(interruptions.came)  # of which something has made another error, as the compiler does
    sys.exit(code)


def _ended_by(number: int) -> int:
    """Return the exit code after a signal, and say that it was Ctrl-C, if it was."""
    import signal

    return _complain("interrupted", 130) if number == signal.SIGINT else 128 + number


def _run(words: list[str]) -> int:
    """The command's exit code; what a user can mend is one line on standard error."""
    from bilevel.memory import LACKING, lacks_memory
    from bilevel.symbolic.domain import BadInput

    try:
        command = _asked(words)
        code: int = command.run() if command else 0
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BadInput as error:
        return _complain(str(error), 2)
    except ImportError as error:
        return _complain(LACKING if lacks_memory(error) else _not_imported(error), 2)
    except BrokenPipeError:  # the reader has seen enough, as with | head
        _forget_output()
        return 0
    except Exception as error:
        if lacks_memory(error):
            return _complain(LACKING, 2)
        if not isinstance(error, OSError):
            raise
        _forget_output()
        return _complain(f"the output cannot be written: {error.strerror}", 2)


def _not_imported(error: ImportError) -> str:
    """Return what to do about a package of an extra that is missing or broken; raise any other error again."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        raise error
    advice = f"pip install 'bilevel[{EXTRAS[package]}]'"
    if isinstance(error, ModuleNotFoundError):
        return f"{package} is missing; install it with: {advice}"
    reason, again = str(error).partition("\n")[0], f"pip uninstall {package}; {advice}"
    return f"{package} is installed, but cannot be imported ({reason}); install it again: {again}"


def _prepare() -> None:
    import io
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for matrices as small as ours, threads only wait for a core
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without … or é gets an escape, not a crash


def _asked(words: list[str]) -> Any:
    """Return the command that the words are, or show what they ask for; `BadInput` where they are neither."""
    import gc

    gc.disable()  # nothing that is imported is garbage
    try:
        return _command(words)
    finally:
        gc.enable()


def _command(words: list[str]) -> Any:
    asked = words[: words.index("--")] if "--" in words else words
    name = next((name for name in (" ".join(words[:2]), *words[:1]) if name in COMMANDS or name in GROUPS), "")
    if words == ["--version"]:
        from bilevel import __version__

        print(f"bilevel {__version__}")
    elif words[:1] == ["--completion"]:
        from bilevel.commands.shell_completion import completion_script

        print(completion_script(" ".join(words[1:]), _all_commands(), parsing()))
    elif "--help" in asked or "-h" in asked:
        print(_help(name))
    elif name in COMMANDS:
        return _read(load(name), words[len(name.split()) :], f"bilevel {name}")
    else:
        from bilevel.commands.mistakes import command_mistake
        from bilevel.symbolic.domain import BadInput

        words = words[len(name.split()) :]
        raise BadInput(command_mistake(words[0] if words else None, _members(name), f"bilevel {name}".strip()))
    return None


def _help(name: str) -> str:
    from bilevel.commands.help_text import command_help, overview

    if name in COMMANDS:
        return command_help(f"bilevel {name}", load(name))
    from bilevel.commands.summaries import SUMMARIES

    summaries = {**SUMMARIES, **GROUPS}
    commands = {word: summaries[f"{name} {word}".strip()] for word in _members(name)}
    completion = "Print a script that completes commands and options in bash, zsh or fish."
    options = {} if name else {"--version": "Show the version.", "--completion SHELL": completion}
    return overview(f"bilevel {name}".strip(), GROUPS.get(name, DESCRIPTION), commands, options)


def _members(group: str) -> list[str]:
    """The names of the commands of a group, or of all commands and groups."""
    if group:
        return [name.split()[1] for name in COMMANDS if name.startswith(f"{group} ")]
    return list(dict.fromkeys(name.split()[0] for name in COMMANDS))


def _all_commands() -> dict[str, Any]:
    """The dataclasses of all commands by their names; those of a group are together under its name."""
    return {
        word: {name: load(f"{word} {name}") for name in _members(word)} if word in GROUPS else load(word)
        for word in _members("")
    }


def _read(kind: Any, words: Sequence[str], program: str) -> Any:
    """Return the command with the options that the words are; `BadInput` says what is wrong with them."""
    import io
    from contextlib import redirect_stderr

    import tyro

    def refuse(otherwise: str | None = None) -> None:
        from bilevel.commands.mistakes import mistake
        from bilevel.symbolic.domain import BadInput

        if found := mistake(kind, words, program) or otherwise:
            raise BadInput(found)

    if any(word.startswith("--") and ("=" in word or word.startswith("--tyro")) for word in words):
        refuse()  # what tyro would make something else of: a switch with a value, and options of its own
    try:
        with redirect_stderr(io.StringIO()):  # tyro would draw a box; what is in it depends on its version
            return tyro.cli(kind, prog=program, args=words, config=parsing(), add_help=False)
    except SystemExit as stopped:
        if stopped.code != 2:
            raise
    return refuse(f"{program} does not take these arguments; see {program} --help")


def parsing() -> tuple[Any, ...]:
    """Return how tyro shall read the options of every command."""
    import tyro

    return (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)


def _complain(message: str, code: int) -> int:
    """Print one line on standard error; return the exit code."""
    print("bilevel:", " ".join(message.split("\n")), file=sys.stderr)
    return code


def _forget_output() -> None:
    """Let the interpreter's own flush at exit go nowhere."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
