"""The program, how its commands are made, and what their options share: types, and what they name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilevel import __version__
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.symbolic.domain import Domain, Problem
    from bilevel.tasks.task import Task

MOST = 1_000_000_000  # of whole numbers; more can only be a mistake
MODULES = {  # of the commands and groups, in the order of the help
    **dict.fromkeys(("check", "run"), "running"),
    **dict.fromkeys(("collect", "import", "demonstrations"), "data"),
    "domain": "domains",
    **dict.fromkeys(("learn", "policies"), "learning"),
    **dict.fromkeys(("evaluate", "methods", "compare"), "evaluation"),
    **dict.fromkeys(("reproduce", "benchmark", "report"), "experiments"),
    "lerobot": "lerobot",
    "rules": "rules",
    **dict.fromkeys(("solve", "validate", "problem", "plan"), "planning"),
}
GROUPS = {
    "demonstrations": "Check, replay, show and export data sets of demonstrations.",
    "domain": "Learn domains from demonstrations, check them against some, show them.",
    "benchmark": "Measure methods beyond the paper's table: where they fail as things get harder.",
    "lerobot": "Make LeRobot's environment, fetch its published models, and say whether a policy can be run.",
    "rules": "Learn, complete, show and verify rule policies.",
}
JSON = click.Option(
    ["--json"],
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, param, value: ctx.meta.update(json=value),
    help="Print JSON instead of text: one object, or one for each thing.",
)


class Program(click.Group):
    """The commands whose modules are loaded when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands and groups, in the order of the help."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or a group, which its module adds to the program; for a wrong name, all are looked at."""
        for name in [cmd_name] if cmd_name in MODULES else MODULES:
            import_module(f"bilevel.cli.{MODULES[name]}")
        return super().get_command(ctx, cmd_name)


class Command(click.Command):
    """A command whose options that may be repeated also take several words: `--tasks blocks gacha`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words as click does, after repeating the option before each of its words."""
        repeated = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        words: list[str] = []
        current = None
        for word in args:
            if word.startswith("-") and word != "-":
                current = word if word in repeated else None
            elif current and words[-1] != current:
                words.append(current)
            words.append(word)
        return super().parse_args(ctx, words)


@click.group(
    "bilevel",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
    epilog="bilevel COMMAND --help shows the options of a command.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """BISON: learn bilevel policies from demonstrations, run and measure them."""


for name, text in GROUPS.items():
    program.add_command(click.Group(name, help=text, short_help=text))


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], Command]:
    """Return the decorator that makes a command of a function and adds it to the program, or to its group there.

    Its help is the docstring, and what may stand behind its name as examples. It takes the option --json, which
    `answer` and `say` follow.
    """
    group, _, last = name.rpartition(" ")

    def add(function: Callable[..., Any]) -> Command:
        lines = [f"  bilevel {name} {example}".rstrip() for example in examples]
        head = "Examples:" if len(lines) > 1 else "Example:"
        about = cleandoc(function.__doc__ or "")
        text = "\n".join([about, "", "\b", head, *lines])
        brief = " ".join(re.split(r"(?<=[.])\s", about)[0].split())  # the first sentence, however long
        made = click.command(last, cls=Command, help=text, short_help=brief)(function)
        made.params.append(JSON)
        parent = program.commands[group] if group else program
        assert isinstance(parent, click.Group)
        parent.add_command(made)
        return made

    return add


def all_commands() -> dict[str, click.Command]:
    """Return the commands by their names, such as "rules learn", in the order of the help."""
    found: dict[str, click.Command] = {}
    for name in MODULES:
        each = program.get_command(click.Context(program), name)
        commands = each.commands.items() if isinstance(each, click.Group) else [("", each)]
        found |= {f"{name} {last}".rstrip(): command for last, command in commands if command}
    return found


def option(flag: str, kind: Any, text: str, default: Any = None, **further: Any) -> Callable[..., Any]:
    """Return the decorator that adds an option.

    Its kind is one of `KINDS`, `bool` for a switch, the words to choose from, or the name of a text, such as "TASK";
    one that ends in ... is of several words.
    """
    names = (flag, further.pop("name")) if "name" in further else (flag,)
    if kind is bool:
        return click.option(*names, is_flag=True, help=text, **further)
    if default is not None:
        further |= {"default": default, "show_default": default != ""}
    if isinstance(kind, tuple):
        return click.option(*names, type=click.Choice(kind), help=text, **further)
    further = {"metavar": kind.partition(">")[0], "multiple": kind.endswith("..."), **further}
    return click.option(*names, type=KINDS.get(kind, str), help=text, **further)


required = partial(option, required=True)  # an option that a command cannot do without


def argument(name: str, kind: str, text: str, **further: Any) -> Callable[..., Any]:
    """Return the decorator that adds an argument, which is known by its place."""
    return click.argument(name, type=KINDS.get(kind, str), help=text, **further)


# Types


class FiniteRange(click.FloatRange):
    """A finite number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        if not math.isfinite(number := super().convert(value, param, ctx)):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return float(number)


def local_path(text: str) -> Path:
    """Return the path of a file or a folder on this machine."""
    if "://" in text:
        raise click.BadParameter(f"{text!r} is a URL; name a file or a folder of this machine.")
    return Path(text)


def numbers_of_objects(text: str) -> tuple[int, ...]:
    """Return the numbers that 3, 1-10 or 1-3,10 stands for: in order, each of them once."""
    numbers: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r" *([0-9]{1,4})(?: *- *([0-9]{1,4}))? *", part)
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= low <= high:
            raise click.BadParameter(f"{part!r} is no range of numbers from 1 on, such as 3, 1-10 or 1-3,10.")
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


def env_argument(text: str) -> tuple[str, Any]:
    """Return the name and the value of an argument of environments; values are JSON where possible, else text."""
    from bilevel.tasks.task import NOT_OF_ENVIRONMENTS

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadInput(f"--env-args takes KEY=VALUE, not '{text}'")
    if name in NOT_OF_ENVIRONMENTS:
        raise BadInput(f"--env-args: '{name}' is no argument of environments; see the options of the command")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


KINDS: dict[str, Any] = {  # of options and arguments; other names are those of texts
    **dict.fromkeys(("FILE", "FILE...", "DIR"), local_path),
    "N": click.IntRange(0, MOST),
    "N>0": click.IntRange(1, MOST),
    "N>1": click.IntRange(2, MOST),
    "SEED": click.IntRange(0, 2**63 - 1),
    "PORT": click.IntRange(0, 65535),
    "X": FiniteRange(0),
    **dict.fromkeys(("X>0", "GB", "HZ"), FiniteRange(0, min_open=True)),
    "SHARE": FiniteRange(0, 0.99),
    "SECONDS": FiniteRange(0, 1_000_000, min_open=True),
    "N-M": numbers_of_objects,
    "on|off": click.BOOL,
    "KEY=VALUE...": env_argument,
}


# Options and arguments of several commands

task_argument = argument("task", "TASK", "A task, such as blocks, or where it is: file.py:task, module:task.")
folder_argument = argument("folder", "DIR", "Folder of the data set.", metavar="DIR")
domain_argument = argument("domain", "FILE", "PDDL domain file.")
problem_argument = argument("problem", "FILE", "PDDL problem file.")

SHARED: Mapping[str, tuple[Any, ...]] = {  # options: their kind and text, and their default if they have one
    "task": ("TASK", "Label every timestep anew with this task (by default as was recorded)."),
    "seed": ("SEED", "Decides everything that is random.", 0),
    "policy": ("POLICY|expert", "A policy's folder, a pretrained one's name, or expert (by default a pretrained one)."),
    "method": ("METHOD", "How it acts, see `bilevel methods` (by default as the policy was learned)."),
    "planner": ("PLANNER", "What a method plans with: det-* with lama or search, ndt-* with fond."),
    "planning-seconds": ("X>0", "How long each plan may take (by default 100)."),
    "noise": ("X", "Perturb the controls by bursts of this amplitude, such as 0.7.", 0.0),
    "recovery": ("STRATEGY", "What to do where no rule applies, such as wait=20,plan,retry=3,nudge=5, or off."),
    "perception": ("NAME=VALUE,…", "Errors of what is seen, such as noise=0.01,missed=0.05,occluded=0.04,delay=3.", ""),
    "estimation": ("on|off|POLICY", "Estimate what is there from what is seen: on, off, or as this policy does."),
    "env-args": ("KEY=VALUE...", "Further arguments of the task's environment, such as teleport_rate=0.001."),
    "workers": ("N>0", "Processes at the same time, with the same results (by default one per core where that pays)."),
    "log": ("tensorboard=DIR|wandb=PROJECT", "Note what is measured on the way; needs the extra of that name."),
}


def decorated(options: Sequence[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that adds these options, in their order."""
    return lambda function: reduce(lambda done, add: add(done), reversed(options), function)


def shared(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that adds those of these names."""
    return decorated([option(f"--{name}", *SHARED[name]) for name in names])


# What options name


def read(domain_path: Path, *problem_paths: Path) -> tuple[Domain, list[Problem]]:
    """Read a domain and problems of it."""
    from bilevel.symbolic.pddl import read_domain, read_problem

    domain = read_domain(domain_path)
    return domain, [read_problem(path, domain) for path in problem_paths]


def task_of(name: str, source: str | None, whose: str, remedy: str = "add --task") -> Task:
    """Return the task that `source` names, else the one that is registered by this name; `BadInput` without one."""
    from bilevel.tasks.registry import find_task, registered_task

    if task := find_task(source) if source else registered_task(name):
        return task
    raise BadInput(f"{whose} is of the task '{name}', which is not registered here; {remedy} file.py:task")
