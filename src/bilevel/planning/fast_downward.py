"""Fast Downward as a planner: a program of its own, run in a private directory and ended when its time is up.

Its package (`up_fast_downward`) is only looked up, never imported. Schemas are handed over as a1, a2, …, one per
outcome, with nature's variables as further parameters, and the plan is mapped back.

It and its children form a process group, which is ended when its time is up and whenever we go on without it. Should
we be killed, it ends at the time limit of its own.
"""

from __future__ import annotations

import importlib.util
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bilevel.planning.planner import Deadline, NoModel, PlanResult, PlanStep, Status, without_needless_steps
from bilevel.symbolic.domain import ROOT_TYPE, Action, Atom, BadInput, Domain, Parameter, Predicate, Problem, Schema
from bilevel.symbolic.pddl import write_domain, write_problem
from bilevel.symbolic.semantics import is_solved

NOT_INSTALLED = 'Fast Downward is not installed; install it with: pip install "bilevel[planners]"'

FILES = ("domain.pddl", "problem.pddl")
SHORTEST = (*FILES, "--search", "astar(lmcut())")
QUICK = ("--alias", "lama-first", *FILES)
CHEAP = ("--alias", "lama", *FILES)  # better and better plans until its time is up
TYPE = "type:"  # no user's name has a colon
SHORTEST_SHARE = 0.2  # of the time limit, for the search for a shortest plan

# Fast Downward also limits its own CPU time, this many seconds above ours.
GRACE = 5

SAME_PLAN = {"PYTHONHASHSEED": "0"}  # its translator is Python: the same problem, the same plan

# https://www.fast-downward.org/latest/documentation/exit-codes/
FOUND = range(4)
UNSOLVABLE = (10, 11)
OUT_OF_TIME = (21, 23, 24)
OUT_OF_MEMORY = (20, 22)


Origin = tuple[Schema, int]  # a schema, and the one of its outcomes that a determinised schema stands for


def fast_downward(domain: Domain, problem: Problem, time_limit: float, optimal: bool = True) -> PlanResult:
    """Plan with Fast Downward.

    With `optimal`, a share of the time goes to a search for a shortest plan, because shorter plans give cleaner
    rules; where that does not finish, and without `optimal`, the first plan of LAMA is taken or, where the problem has
    costs, the cheapest that it finds.
    """
    program = find_program()
    if is_solved(problem, problem.state):
        return PlanResult(Status.SOLVED)
    determinised, untyped, origins = determinise(domain, problem)
    deadline = Deadline(time_limit)
    with tempfile.TemporaryDirectory(prefix="bilevel-") as scratch:
        directory = Path(scratch)
        for file, text in zip(FILES, (write_domain(determinised), write_problem(untyped, determinised)), strict=True):
            (directory / file).write_text(text, encoding="utf-8")
        result = None
        if optimal:
            share = min(SHORTEST_SHARE * time_limit, deadline.seconds_left)
            result = _run(program, directory, SHORTEST, share, origins)
        if result is None or result.status in (Status.TIMED_OUT, Status.OUT_OF_MEMORY, Status.ERROR):
            options = QUICK if problem.costs is None else CHEAP
            result = _run(program, directory, options, deadline.seconds_left, origins)
    return replace(result, steps=without_needless_steps(domain, problem, result.steps, deadline))


def find_program() -> Path:
    """Fast Downward's driver inside the package that brings it."""
    package = importlib.util.find_spec("up_fast_downward")
    for folder in (package.submodule_search_locations or ()) if package else ():
        program = Path(folder) / "downward" / "fast-downward.py"
        if program.is_file():
            return program
    raise BadInput(NOT_INSTALLED)


def determinise(domain: Domain, problem: Problem) -> tuple[Domain, Problem, dict[str, Origin]]:
    """The domain with a schema for each outcome, without events, and where each comes from; and the problem.

    Types become facts, as Fast Downward knows no object of one of several types.
    """
    schemas: dict[str, Schema] = {}
    origins: dict[str, Origin] = {}
    for schema in (*domain.schemas.values(), *domain.axioms):
        for index, outcome in enumerate(schema.outcomes):
            if outcome.new:
                what = "makes new objects, which Fast Downward cannot plan for; use the planner 'search'"
                raise NoModel(f"action '{schema.name}' {what}")
            name, parameters = f"a{len(schemas) + 1}", schema.parameters + outcome.chosen
            types = frozenset(Atom(TYPE + each.type, (each.name,)) for each in parameters)
            bare, untyped = replace(outcome, chosen=()), tuple(Parameter(each.name) for each in parameters)
            schemas[name] = Schema(
                name, untyped, schema.precondition | types, (bare,), schema.negative_precondition, schema.cost
            )
            origins[name] = schema, index
    axioms = tuple(schemas.pop(name) for name, (origin, _) in origins.items() if origin in domain.axioms)
    kinds = {p.type for schema, index in origins.values() for p in schema.parameters + schema.outcomes[index].chosen}
    arities = {predicate.name: predicate.arity for predicate in domain.predicates.values()}
    arities |= dict.fromkeys((TYPE + kind for kind in sorted(kinds)), 1)
    predicates = {n: Predicate(n, tuple(Parameter(f"?{i}") for i in range(arity))) for n, arity in arities.items()}
    objects = problem.all_objects(domain)
    facts = {Atom(TYPE + kind, (o,)) for kind in kinds for o, own in objects.items() if domain.is_subtype(own, kind)}
    constants, others = dict.fromkeys(domain.constants, ROOT_TYPE), dict.fromkeys(problem.objects, ROOT_TYPE)
    domain = replace(domain, predicates=predicates, schemas=schemas, types={}, constants=constants, events={})
    domain = replace(domain, axioms=axioms)
    return domain, replace(problem, objects=others, state=problem.state | facts), origins


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
        exit_code = run_in_group([*command, *options], directory, log.fileno(), seconds, SAME_PLAN)
    plans = sorted(directory.glob(f"{plan_file.name}*"), key=lambda file: int(file.suffix[1:] or 0))
    whole = [text for file in plans if "cost" in (text := file.read_text(encoding="utf-8"))]  # written to the end
    if whole and (exit_code is None or exit_code in FOUND):
        return PlanResult(Status.SOLVED, read_plan(whole[-1], origins))  # the last is the cheapest
    if exit_code is None or exit_code in OUT_OF_TIME:
        return PlanResult(Status.TIMED_OUT)
    if exit_code in OUT_OF_MEMORY:
        return PlanResult(Status.OUT_OF_MEMORY)
    if exit_code in UNSOLVABLE:
        return PlanResult(Status.UNSOLVABLE, message="no plan exists")
    lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    last_words = next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "no output")
    return PlanResult(Status.ERROR, message=f"Fast Downward ended with exit code {exit_code}: {last_words}")


def read_plan(text: str, origins: Mapping[str, Origin]) -> tuple[PlanStep, ...]:
    """The steps of a plan file: lines such as `(a3 block1 place2)`; a comment gives the cost."""
    steps = []
    for line in text.splitlines():
        if line.startswith("("):
            name, *arguments = line.strip("() \t").split()
            schema, outcome = origins[name]
            count = len(schema.parameters)
            chosen = (variable.name for variable in schema.outcomes[outcome].chosen)
            choice = tuple(zip(chosen, arguments[count:], strict=True))
            steps.append(PlanStep(Action(schema.name, tuple(arguments[:count])), outcome, choice))
    return tuple(steps)


def run_in_group(
    command: Sequence[str], directory: Path, output: int, seconds: float, environment: Mapping[str, str]
) -> int | None:
    """Return the exit code, or `None` where the time was up; the process and all its children are ended either way.

    `output` is the file that what they print goes to, `environment` what they find there besides our own.
    """
    with subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:  # on KeyboardInterrupt too
            with suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
                os.killpg(process.pid, signal.SIGKILL)  # a new session and its group have their leader's number
