"""What the commands share: types of arguments and checks of them, reading, counting, progress."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from bilevel.symbolic.domain import BadInput, Domain, Problem
from bilevel.symbolic.packed import PackedProblem, read_packed
from bilevel.symbolic.pddl import read_domain, read_problem

if TYPE_CHECKING:
    from rich.progress import Progress

    from bilevel.policies.recovery import Recovery
    from bilevel.tasks.task import Task


def _several(kind: type) -> PrimitiveConstructorSpec[Any]:
    return PrimitiveConstructorSpec(
        nargs="*",
        metavar="FILE..." if kind is Path else "NAME=VALUE...",
        instance_from_str=lambda words: tuple(map(kind, words)),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda value: list(map(str, value)),
    )


NAMELESS = Path()  # of an option that was given without the name of a file: `named_after` finds one


def _one_or_none() -> PrimitiveConstructorSpec[Any]:
    def path(words: list[str]) -> Path:
        if len(words) > 1:
            raise ValueError(f"takes at most one file, not {' '.join(words)}")
        return Path(words[0]) if words else NAMELESS

    return PrimitiveConstructorSpec(
        nargs="*",
        metavar="[FILE]",
        instance_from_str=path,
        is_instance=lambda value: value is None or isinstance(value, Path),
        str_from_instance=lambda value: [] if value is None else [str(value)],
    )


def named_after(task: str, file: Path | None, ending: str) -> Path | None:
    """Return the file of an option; one that was given without a name is named after the task."""
    if file is not NAMELESS:
        return file
    place = task.partition("+")[0].partition(":")[0]
    return Path((Path(place).stem if place.endswith(".py") else place.rpartition(".")[2]) + ending)


# Optional[X], not X | None, and a bare tuple: for others tyro imports typeguard, which takes longer than all else here.
if TYPE_CHECKING:
    Words = tuple[str, ...]
    Paths = tuple[Path, ...]
else:
    Words = Annotated[tuple, _several(str)]
    Paths = Annotated[tuple, _several(Path)]

DomainFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DOMAIN", help="PDDL domain file.")]
ProblemFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PROBLEM", help="PDDL problem file.")]
ProblemFiles = Annotated[Paths, tyro.conf.Positional, tyro.conf.arg(metavar="PROBLEM...")]
RulesFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
PlanFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PLAN")]
Output = Annotated[Path, tyro.conf.arg(metavar="FILE")]
OptionalOutput = Annotated[Optional[Path], tyro.conf.arg(metavar="FILE")]
OptionallyNamed = Annotated[Optional[Path], _one_or_none(), tyro.conf.arg(metavar="[FILE]")]
TASK_HELP = "The name of a task, such as blocks, or where it is: file.py:task, module:task."
TaskName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK", help=TASK_HELP)]
GivenTask = Annotated[Optional[str], tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
ENV_HELP = "Further arguments of the task's environment, such as teleport_rate=0.001."
EnvArguments = Annotated[Words, tyro.conf.arg(metavar="KEY=VALUE...", help=ENV_HELP)]
NOISE_HELP = "Perturb the controls by bursts of this amplitude, such as 0.7."
Noise = Annotated[float, tyro.conf.arg(help=NOISE_HELP)]
RECOVERY_HELP = (
    "What a bilevel policy does where it is at a loss, such as wait=20,plan,retry=3,nudge=5, or off (by default as the "
    "policy says)."
)
RecoveryText = Annotated[Optional[str], tyro.conf.arg(metavar="STRATEGY", help=RECOVERY_HELP)]
PERCEPTION_HELP = (
    "What is wrong with what is seen, such as noise=0.01,missed=0.05,occluded=0.04,delay=3 (also bias, every, "
    "swapped); success is judged on what is."
)
PerceptionText = Annotated[str, tyro.conf.arg(metavar="NAME=VALUE,...", help=PERCEPTION_HELP)]
ESTIMATION_HELP = (
    "State estimation between seeing and labelling: on, off, or the folder of a policy whose estimation to use, as the "
    "expert needs one (by default as the policy was learned)."
)
EstimationName = Annotated[Optional[str], tyro.conf.arg(metavar="on|off|POLICY", help=ESTIMATION_HELP)]
DataFolder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR", help="Folder of the data set.")]
SIZE_HELP = "Of the pictures, in pixels, where the task can draw them so (by default 800x600 in the shipped worlds)."
Size = Annotated[Optional[str], tyro.conf.arg(metavar="WIDTHxHEIGHT", help=SIZE_HELP)]
NAMES_HELP = "Write the names of things over them, in the pictures."
Names = Annotated[bool, tyro.conf.arg(help=NAMES_HELP)]
Json = Annotated[bool, tyro.conf.arg(help="Print one JSON object instead of text.")]
OptionalTask = Annotated[Optional[str], tyro.conf.arg(metavar="TASK")]
LogTarget = Annotated[Optional[str], tyro.conf.arg(metavar="tensorboard=DIR|wandb=PROJECT")]
WorkerCount = Annotated[Optional[int], tyro.conf.arg(metavar="N")]
Algorithm = Literal["single-goal", "printed"]  # by which rules are learned
Bound = Annotated[Optional[int], tyro.conf.arg(metavar="N")]


def read(domain_path: Path, *problem_paths: Path) -> tuple[Domain, list[Problem]]:
    """Read a domain and problems of it; where only `bilevel plan` reads such files, the error says so."""
    with _naming_planning(domain_path, problem_paths):
        domain = read_domain(domain_path)
        return domain, [read_problem(path, domain) for path in problem_paths]


def read_large(domain_path: Path, problem_path: Path) -> tuple[Domain, Problem | PackedProblem]:
    """Read a domain and a problem, which is packed where it can be."""
    with _naming_planning(domain_path, [problem_path]):
        domain = read_domain(domain_path)
        return domain, read_packed(problem_path, domain) or read_problem(problem_path, domain)


@contextmanager
def _naming_planning(domain_path: Path, problem_paths: Sequence[Path]) -> Iterator[None]:
    """Say of files that cannot be read if the command for planning reads them."""
    try:
        yield
    except BadInput as error:
        from bilevel.symbolic.adl import is_readable_for_planning

        if problem_paths and is_readable_for_planning(domain_path, problem_paths[0]):
            raise BadInput(f"{error}; only 'bilevel plan' reads such files") from None
        raise


def require_at_least(least: int, **options: float | None) -> None:
    """`BadInput` for an option that is given and less, or not even finite."""
    for name, value in options.items():
        if value is not None and not least <= value < math.inf:
            raise BadInput(f"--{name.replace('_', '-')} must be at least {least}, but is {value}")


def require_positive(**options: float | None) -> None:
    """`BadInput` for an option that is given and no number of seconds that can be waited."""
    for name, value in options.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise BadInput(f"--{name.replace('_', '-')} must be more than 0, but is {value:g}")


def env_arguments(texts: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `--env-args`: values are JSON where possible, else text."""
    from bilevel.json_files import is_too_deep
    from bilevel.tasks.task import NOT_OF_ENVIRONMENTS

    arguments = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadInput(f"--env-args takes KEY=VALUE, not '{text}'")
        if name in NOT_OF_ENVIRONMENTS:
            raise BadInput(f"--env-args: '{name}' is no argument of environments; see the options of the command")
        try:
            arguments[name] = json.loads(value)
            too_deep = is_too_deep(value)
        except ValueError:
            arguments[name], too_deep = value, False
        except RecursionError:
            too_deep = True
        if too_deep:
            raise BadInput(f"--env-args: lists and objects are nested too deeply in '{name}'")
    return arguments


def picture_size(text: str | None) -> tuple[int, int] | None:
    """Return the width and height of `--size`, such as 1280x960, if it is given."""
    if text is None:
        return None
    width, cross, height = text.lower().partition("x")
    if not (cross and width.isascii() and width.isdecimal() and height.isascii() and height.isdecimal()):
        raise BadInput(f"--size takes WIDTHxHEIGHT, such as 1280x960, not '{text}'")
    if max(len(width), len(height)) > 5:
        raise BadInput(f"--size: a picture of {text} pixels is too large")
    return int(width), int(height)


def recovery_of(text: str | None) -> Recovery | None:
    """Return the strategy of `--recovery`, if there is one."""
    from bilevel.policies.recovery import parse_recovery

    return None if text is None else parse_recovery(text)


def task_of(name: str, source: str | None, whose: str, remedy: str = "add --task") -> Task:
    """Return the task that `source` names, else the one that is registered by this name; `BadInput` without one.

    `remedy` says how the command is told another one.
    """
    from bilevel.tasks.registry import find_task, registered_task

    task = find_task(source) if source else registered_task(name)
    if task is None:
        of, _, labels = name.partition("+")
        place = f"{of}+{Path(whose) / labels}.py" if labels else "file.py:task"
        raise BadInput(f"{whose} is of the task '{name}', which is not registered here; {remedy} {place}")
    return task


def progress_bar() -> Progress:
    """Return a bar on standard error, which is shown on a terminal alone."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("[progress.description]{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def resumable(state: Callable[[], str], failure: type[BadInput] = BadInput) -> Iterator[None]:
    """Say how far work has come that is stopped, or fails, but can be taken up again; a task's own errors come back."""
    from bilevel.tasks.task import TaskError

    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {state()}; run the same command again to go on") from None
    except TaskError:
        raise
    except failure as error:
        raise BadInput(f"{error}; {state()}; run the same command again to go on") from None


def count(things: Sized | int, noun: str) -> str:
    """Return `1 unit` or `2 units`."""
    number = things if isinstance(things, int) else len(things)
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_json(**values: object) -> None:
    """Print these values as one JSON object."""
    print(json.dumps(values))


def answer(values: Mapping[str, object], as_json: bool, *lines: str) -> None:
    """Print what a command has found: as one JSON object, or as those lines of text that are not empty."""
    if as_json:
        print_json(**values)
    else:
        print("\n".join(filter(None, lines)))
