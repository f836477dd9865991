"""One measurement, in a process of its own so that memory is measured too: prints one JSON object.

    python benchmarks/measurement.py rules blocks 1000 --rules blocks.rules

Times of the rules and of SQLite are CPU seconds: both use one core, and others may be at work on the machine. Both may
prepare themselves on another problem of the same shape, of size 1,000 at most, before the clock starts: the engine
plans its joins, and can use the plans again for data of the same magnitude, and SQLite's join orders are chosen.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType

from sqlite_executor import SqliteExecutor
from sqlite_join_order import join_orders

from bilevel.compiled import PURE
from bilevel.planning.fast_downward import FOUND, QUICK, determinise, find_program, run_in_group
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import read_rules
from bilevel.rules.solving import solve
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.pddl import write_domain, write_problem
from bilevel.symbolic.plans import Plan, read_plan, validate
from bilevel.tabletop.problems import GENERATORS, domain_text, shipped_domain

LARGEST_VALIDATED = 1_000
LARGEST_REPEATED = 10_000  # above, the engine's program compiles in no time compared with the rollout
REPEATS = 5  # of which the quickest counts, for the cost per action
CLOCK_INTERVAL = 0.5  # seconds
EXAMPLE_SIZE = 1_000  # at most
EXAMPLE_SEED = "example"


@dataclass(frozen=True)
class Task:
    """A problem of a shape, the rules for its domain, and how many seconds a method may take."""

    domain: Domain
    problem: Problem
    example: Problem
    rules: Sequence[Rule]
    rule_file: Path
    limit: float
    seed: int


@dataclass(frozen=True)
class Measurement:
    """Seconds from the problem in memory to the plan; `setup_seconds` of them come before the first action."""

    seconds: float
    solved: bool
    actions: int
    setup_seconds: float | None = None
    action_microseconds: float | None = None  # without the set-up
    timed_out: bool = False
    valid: bool | None = None  # `None`: not checked
    preparation_seconds: float | None = None  # on the example, not part of `seconds`
    peak_mebibytes: float | None = None  # `None`: that of the whole process


class OutOfTime(Exception):
    pass


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises `OutOfTime` soon after the process has used so many more CPU seconds."""
    end = time.process_time() + seconds

    def look_at_clock(number: int, frame: FrameType | None) -> None:
        if time.process_time() > end:
            raise OutOfTime

    signal.signal(signal.SIGALRM, look_at_clock)
    # Not ITIMER_PROF: while it runs, the CPU clock is too coarse on some systems.
    signal.setitimer(signal.ITIMER_REAL, CLOCK_INTERVAL, CLOCK_INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def timed(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def accepted(task: Task, size: int, plan: Plan) -> bool | None:
    return validate(task.domain, task.problem, plan).is_valid if size <= LARGEST_VALIDATED else None


def measure_rules(task: Task, size: int) -> Measurement:
    """The whole of `solve`, and the cost per action once the program for such data is there."""

    def quickest(max_steps: int | None = None) -> float:
        def run() -> None:
            solve(task.domain, task.problem, task.rules, seed=task.seed, max_steps=max_steps)

        return min(timed(run) for _ in range(REPEATS))

    preparation = timed(lambda: solve(task.domain, task.example, task.rules))
    start = time.process_time()
    try:
        with time_limit(task.limit):
            solution = solve(task.domain, task.problem, task.rules, seed=task.seed)
    except OutOfTime:
        return Measurement(task.limit, False, 0, timed_out=True, preparation_seconds=preparation)
    seconds = time.process_time() - start
    peak = peak_mebibytes("rules")  # before the repetitions, which add their garbage
    if size <= LARGEST_REPEATED:
        setup = quickest(max_steps=0)
        rollout = quickest() - setup
    else:
        setup = timed(lambda: solve(task.domain, task.problem, task.rules, max_steps=0))
        rollout = seconds - setup
    actions = len(solution.plan.actions)
    per_action = 1e6 * rollout / max(actions, 1)
    valid = accepted(task, size, solution.plan)
    return Measurement(seconds, solution.is_solved, actions, setup, per_action, False, valid, preparation, peak)


def measure_sqlite(task: Task, size: int) -> Measurement:
    start = time.process_time()
    orders = join_orders(task.rules, task.domain, task.example)
    preparation = time.process_time() - start
    start = time.process_time()
    solved, timed_out = False, False
    executor = SqliteExecutor(task.domain, task.problem, task.rules, orders, task.seed)
    setup = time.process_time() - start
    try:
        with time_limit(task.limit - setup):
            solved = executor.run()
    except OutOfTime:
        timed_out = True
    seconds = time.process_time() - start
    actions = len(executor.actions)
    per_action = 1e6 * (seconds - setup) / max(actions, 1)
    valid = None if timed_out else accepted(task, size, executor.plan)
    return Measurement(seconds, solved, actions, setup, per_action, timed_out, valid, preparation)


def measure_lama(task: Task, size: int) -> Measurement:
    """The first plan of LAMA, by the wall clock."""
    determinised, _ = determinise(task.domain)
    with tempfile.TemporaryDirectory() as name, (Path(name) / "log").open("wb") as log:
        folder = Path(name)
        (folder / "domain.pddl").write_text(write_domain(determinised), encoding="utf-8")
        (folder / "problem.pddl").write_text(write_problem(task.problem, determinised), encoding="utf-8")
        command = [sys.executable, str(find_program()), "--plan-file", "plan", *QUICK]
        start = time.perf_counter()
        code = run_in_group(command, folder, log.fileno(), task.limit, {})
        seconds = time.perf_counter() - start
        solved = code in FOUND
        actions = (folder / "plan").read_text(encoding="utf-8").count("(a") if solved else 0
    return Measurement(seconds, solved, actions, timed_out=code is None)


# A process counts what its parent had in memory as its own, so commands are started by one that has next to nothing.
LAUNCHER = """import os, sys
process = os.posix_spawn(sys.executable, [sys.executable, "-m", "bilevel.cli", *sys.argv[1:]], os.environ)
_, status, usage = os.wait4(process, 0)
print(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def measure_command(task: Task, size: int) -> Measurement:
    """The command `bilevel solve`, reading and writing files, by the wall clock."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        domain_file, problem_file, plan_file = folder / "domain.pddl", folder / "problem.pddl", folder / "plan"
        domain_file.write_text(domain_text(task.domain.name), encoding="utf-8")
        problem_file.write_text(write_problem(task.problem, task.domain), encoding="utf-8")
        files = [str(domain_file), str(problem_file), "--rules", str(task.rule_file), "--plan", str(plan_file)]
        command = [sys.executable, "-S", "-c", LAUNCHER, "solve", *files]
        start = time.perf_counter()
        try:
            done = subprocess.run(command, timeout=task.limit, capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            return Measurement(task.limit, False, 0, timed_out=True)
        seconds = time.perf_counter() - start
        status, _, memory = done.stdout.splitlines()[-1].split()
        if status != "0":
            sys.exit(f"bilevel solve failed: {done.stderr}")
        plan = read_plan(plan_file, task.domain)
        valid = validate(task.domain, task.problem, plan).is_valid
    return Measurement(seconds, True, len(plan.actions), valid=valid, peak_mebibytes=_mebibytes(int(memory)))


def measure_written(task: Task, size: int) -> Measurement:
    """The same as the rules, without the compiled parts."""
    os.environ[PURE] = "1"
    return measure_rules(task, size)


METHODS = {
    "rules": measure_rules,
    "written": measure_written,
    "sqlite": measure_sqlite,
    "lama": measure_lama,
    "command": measure_command,
}
OTHER_PROCESS = ("lama",)


def peak_mebibytes(method: str) -> float:
    who = resource.RUSAGE_CHILDREN if method in OTHER_PROCESS else resource.RUSAGE_SELF
    return _mebibytes(resource.getrusage(who).ru_maxrss)


def _mebibytes(maxrss: int) -> float:
    return round(maxrss / (2**20 if sys.platform == "darwin" else 2**10), 1)  # bytes there, KiB elsewhere


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("shape", choices=GENERATORS)
    parser.add_argument("size", type=int)
    parser.add_argument("--rules", type=Path, required=True, help="rule file for the shape's domain")
    parser.add_argument("--limit", type=float, default=100.0, help="seconds")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    gc.disable()
    generate = GENERATORS[given.shape]
    problem = generate(given.size, random.Random(given.seed))
    example = generate(min(given.size, EXAMPLE_SIZE), random.Random(EXAMPLE_SEED))
    domain = shipped_domain(problem.domain_name)
    rules = read_rules(given.rules)
    task = Task(domain, problem, example, rules, given.rules, given.limit, given.seed)
    measurement = METHODS[given.method](task, given.size)
    if measurement.peak_mebibytes is None:
        measurement = replace(measurement, peak_mebibytes=peak_mebibytes(given.method))
    print(json.dumps(asdict(measurement)))


if __name__ == "__main__":
    main()
