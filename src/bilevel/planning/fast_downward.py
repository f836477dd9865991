"""Fast Downward as a planner: a program of its own, run in a private directory and ended when its time is up.

Its package (`up_fast_downward`) is only looked up, never imported. Schemas are handed over as a1, a2, …, one per
outcome, with nature's variables as further parameters, and the plan is mapped back.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bilevel.planning.planner import Deadline, NoModel, PlanResult, PlanStep, Status, solved, without_needless_steps
from bilevel.planning.processes import last_words, private_directory, run_in_group
from bilevel.symbolic.domain import Action, BadInput, Domain, Problem, Schema
from bilevel.symbolic.pddl import write_domain, write_problem
from bilevel.symbolic.semantics import is_solved

NOT_INSTALLED = 'Fast Downward is not installed; install it with: pip install "bilevel[planners]"'

SHORTEST = ("--search", "astar(lmcut())")
QUICK = ("--alias", "lama-first")
SHORTEST_SHARE = 0.2  # of the time limit, for the search for a shortest plan

# Fast Downward also limits its own CPU time, this many seconds above ours.
GRACE = 5

SAME_PLAN = {"PYTHONHASHSEED": "0"}  # its translator is Python: the same problem, the same plan

# https://www.fast-downward.org/latest/documentation/exit-codes/
FOUND = range(4)
UNSOLVABLE = (10, 11)
OUT_OF_TIME = (21, 23, 24)
OUT_OF_MEMORY = (20, 22)


class Origin(NamedTuple):
    """The schema and the outcome that a determinised schema stands for."""

    schema: Schema
    outcome: int


def fast_downward(domain: Domain, problem: Problem, time_limit: float, optimal: bool = True) -> PlanResult:
    """Plan with Fast Downward.

    With `optimal`, a share of the time goes to a search for a shortest plan, because shorter plans give cleaner
    rules; where that does not finish, and without `optimal`, the first plan of LAMA is taken.
    """
    program = find_program()
    if is_solved(problem, problem.state):
        return solved(())
    determinised, origins = determinise(domain)
    deadline = Deadline(time_limit)
    with private_directory() as directory:
        (directory / "domain.pddl").write_text(write_domain(determinised), encoding="utf-8")
        (directory / "problem.pddl").write_text(write_problem(problem, determinised), encoding="utf-8")
        result = None
        if optimal:
            share = min(SHORTEST_SHARE * time_limit, deadline.seconds_left)
            result = _run(program, directory, SHORTEST, share, origins)
        if result is None or result.status in (Status.TIMED_OUT, Status.OUT_OF_MEMORY, Status.ERROR):
            result = _run(program, directory, QUICK, deadline.seconds_left, origins)
    if result.status is Status.TIMED_OUT:
        return replace(result, message=f"no plan within {time_limit:g} s")
    return replace(result, steps=without_needless_steps(domain, problem, result.steps, deadline))


def find_program() -> Path:
    """Fast Downward's driver inside the package that brings it."""
    package = importlib.util.find_spec("up_fast_downward")
    for folder in (package.submodule_search_locations or ()) if package else ():
        program = Path(folder) / "downward" / "fast-downward.py"
        if program.is_file():
            return program
    raise BadInput(NOT_INSTALLED)


def determinise(domain: Domain) -> tuple[Domain, dict[str, Origin]]:
    """The domain with one schema per outcome, and where each of them comes from."""
    schemas: dict[str, Schema] = {}
    origins: dict[str, Origin] = {}
    for schema in domain.schemas.values():
        for index, outcome in enumerate(schema.outcomes):
            if outcome.new:
                raise NoModel(
                    f"action '{schema.name}' makes new objects, which Fast Downward cannot plan for; "
                    "use the planner 'search'"
                )
            name = f"a{len(schemas) + 1}"
            schemas[name] = replace(
                schema,
                name=name,
                parameters=schema.parameters + outcome.chosen,
                outcomes=(replace(outcome, chosen=()),),
            )
            origins[name] = Origin(schema, index)
    return replace(domain, schemas=schemas), origins


def _run(
    program: Path, directory: Path, options: Sequence[str], seconds: float, origins: Mapping[str, Origin]
) -> PlanResult:
    """One run of Fast Downward; whatever happens, no process of it is left when this returns."""
    if seconds <= 0:
        return PlanResult(Status.TIMED_OUT)
    own_limit = ("--overall-time-limit", f"{math.ceil(seconds) + GRACE}s")
    plan_file = directory / "plan"
    command = [sys.executable, str(program), *own_limit, "--plan-file", plan_file.name]
    log_file = directory / "log"
    with log_file.open("wb") as log:
        exit_code = run_in_group([*command, *_placed(options)], directory, log.fileno(), seconds, SAME_PLAN)
    if exit_code is None or exit_code in OUT_OF_TIME:
        return PlanResult(Status.TIMED_OUT)
    if exit_code in FOUND:
        return solved(read_plan(plan_file.read_text(encoding="utf-8"), origins))
    if exit_code in OUT_OF_MEMORY:
        return PlanResult(Status.OUT_OF_MEMORY, message="no plan: Fast Downward ran out of memory")
    if exit_code in UNSOLVABLE:
        return PlanResult(Status.UNSOLVABLE, message="no plan exists")
    return PlanResult(Status.ERROR, message=f"Fast Downward ended with exit code {exit_code}: {last_words(log_file)}")


def _placed(options: Sequence[str]) -> list[str]:
    """The files go before a search and after an alias, as Fast Downward's command line wants it."""
    files = ["domain.pddl", "problem.pddl"]
    return [*files, *options] if options[0] == "--search" else [*options, *files]


def read_plan(text: str, origins: Mapping[str, Origin]) -> list[PlanStep]:
    """The steps of a plan file: lines such as `(a3 block1 place2)`; a comment gives the cost."""
    steps = []
    for line in text.splitlines():
        if line.startswith("("):
            name, *arguments = line.strip("() \t").split()
            origin = origins[name]
            count = len(origin.schema.parameters)
            chosen = (variable.name for variable in origin.schema.outcomes[origin.outcome].chosen)
            choice = tuple(zip(chosen, arguments[count:], strict=True))
            steps.append(PlanStep(Action(origin.schema.name, tuple(arguments[:count])), origin.outcome, choice))
    return steps
