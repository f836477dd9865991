"""What the commands share: types of arguments and checks of them, reading, counting, progress."""

from __future__ import annotations

import json
import math
from collections.abc import Sized
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import check_rules, read_rules
from bilevel.symbolic.adl import is_readable_for_planning
from bilevel.symbolic.domain import BadInput, Domain, Problem
from bilevel.symbolic.pddl import read_domain, read_problem

DomainFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DOMAIN")]
ProblemFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PROBLEM")]
ProblemFiles = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PROBLEM...")]
RulesFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
PlanFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PLAN")]
Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
Output = Annotated[Path, tyro.conf.arg(metavar="FILE")]
OptionalOutput = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
Bound = Annotated[int | None, tyro.conf.arg(metavar="N")]


def read(domain_path: Path, *problem_paths: Path) -> tuple[Domain, list[Problem]]:
    try:
        domain = read_domain(domain_path)
        return domain, [read_problem(path, domain) for path in problem_paths]
    except BadInput as error:
        if problem_paths and is_readable_for_planning(domain_path, problem_paths[0]):
            raise BadInput(f"{error}; only 'bilevel plan' reads such files") from None
        raise


def fitting_rules(path: Path, domain: Domain) -> tuple[Rule, ...]:
    """The rules of a file, which must fit the domain."""
    file = read_rules(path)
    check_rules(file, domain)
    return file.rules


def require_at_least(least: int, **options: int | None) -> None:
    """`BadInput` for an option that is given and less."""
    for name, value in options.items():
        if value is not None and value < least:
            raise BadInput(f"--{name.replace('_', '-')} must be at least {least}, but is {value}")


def require_positive(**options: float | None) -> None:
    """`BadInput` for an option that is given and no number of seconds that can be waited."""
    for name, value in options.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise BadInput(f"--{name.replace('_', '-')} must be more than 0, but is {value:g}")


def require_amplitude(noise: float) -> None:
    if not (math.isfinite(noise) and noise >= 0):
        raise BadInput(f"--noise is an amplitude of controls, 0 or more, not {noise}")


def progress_bar() -> Progress:
    columns = TextColumn("[progress.description]{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)


def count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def print_json(**values: object) -> None:
    print(json.dumps(values))
