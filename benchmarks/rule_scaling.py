"""How solving time grows with the number of objects: rules, compiled or written in Python or in SQLite, and LAMA.

    python benchmarks/rule_scaling.py                     # everything, up to a million objects: an hour
    python benchmarks/rule_scaling.py --quick             # a minute
    python benchmarks/rule_scaling.py --shapes depot trays --sizes 1000 10000

Learns each domain's rules from its training problems, then measures every shape of problems (see
`bilevel.tabletop.problems`) at every size, each time in a fresh process, rules and SQLite in turns. What is in the
output file already is not measured again, so an interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from result_files import Row, origin, read_rows, write_rows
from revisions import ROOT
from scaling_tables import print_tables

from bilevel.planning.search import search
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_file import domain_line, format_rules
from bilevel.rules.traces import traces_from_problems
from bilevel.symbolic.domain import Domain, Outcome, Problem
from bilevel.symbolic.semantics import GroundAction
from bilevel.tabletop.problems import DOMAINS, UNTANGLED, shipped_domain, training_problems

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (100, 1_000, 10_000)
LARGEST = {"gacha": 100_000}  # n colours take n log n rolls: a million would be 70 million actions
LAMA_SIZES = (10, 30, 100, 200, 300, 500, 1_000, 3_000, 10_000)  # until it first runs out of time
COMMAND_SIZES = (10_000, 100_000, 1_000_000)
COMMAND_SHAPE = "blocks"
PLANNING_SECONDS = 60.0
COMPARED = ("rules", "written", "sqlite")  # written: without the compiled parts
METHODS = (*COMPARED, "command", "lama")  # the command is `bilevel solve`


class Run(NamedTuple):
    """One measurement to make; the rounds of equal ones differ by number."""

    method: str
    shape: str
    size: int
    round: int

    @property
    def seed(self) -> int:
        return self.round


def rounds(size: int) -> int:
    """Small problems are quick and their times scatter."""
    return 5 if size <= 10_000 else 3 if size <= 100_000 else 1


def has_lama() -> bool:
    return importlib.util.find_spec("up_fast_downward") is not None


def plan_by_search(domain: Domain, problem: Problem) -> list[tuple[GroundAction, Outcome]]:
    return [step.ground(domain) for step in search(domain, problem, PLANNING_SECONDS).steps]


def write_rules(folder: Path) -> None:
    for name in DOMAINS:
        domain = shipped_domain(name)
        rules = learn_rules(traces_from_problems(domain, training_problems(name), plan_by_search).traces, domain)
        (folder / f"{name}.rules").write_text(format_rules(rules, [domain_line(name)]), encoding="utf-8")


class Benchmark:
    """The records so far, in memory and in the file, and the way to make more."""

    def __init__(self, output: Path, rule_folder: Path, limit: float) -> None:
        self.output, self.rule_folder, self.limit = output, rule_folder, limit
        self.records: dict[Run, Row] = {}
        for record in read_rows(output):
            self.records[Run(*(record[key] for key in Run._fields))] = record
        output.parent.mkdir(parents=True, exist_ok=True)
        self.origin = origin(["up-fast-downward"])
        self.origin["versions"]["sqlite"] = sqlite3.sqlite_version

    def forget(self, methods: Sequence[str], shapes: Sequence[str]) -> None:
        """Drop the records of these methods and shapes, from the file too."""
        kept = {r: record for r, record in self.records.items() if r.method not in methods or r.shape not in shapes}
        self.records = kept
        write_rows(self.output, kept.values())

    def measure(self, run: Run) -> Row:
        """Make a measurement unless the file has it already."""
        if run in self.records:
            return self.records[run]
        domain_name = domain_of(run.shape).name
        options = ["--rules", str(self.rule_folder / f"{domain_name}.rules"), "--limit", str(self.limit)]
        measured = [run.method, run.shape, str(run.size), "--seed", str(run.seed)]
        command = [sys.executable, str(Path(__file__).with_name("measurement.py")), *measured, *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        shown = (
            f"python benchmarks/measurement.py {' '.join(measured)} --rules {domain_name}.rules --limit {self.limit:g}"
        )
        record = {**run._asdict(), **json.loads(done.stdout), "limit": self.limit, **self.origin, "command": shown}
        self.records[run] = record
        with self.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(progress_line(record), flush=True)
        return record

    def compare(self, methods: list[str], shape: str, sizes: Sequence[int], repeats: int | None) -> None:
        """The methods in turns; what ran out of time is neither repeated nor tried at larger sizes."""
        for size in sizes:
            for number in range(repeats or rounds(size)):
                for method in tuple(methods):
                    if self.measure(Run(method, shape, size, number))["timed_out"]:
                        methods.remove(method)

    def try_lama(self, shape: str, largest: int) -> None:
        for size in LAMA_SIZES:
            if size > largest or not self.measure(Run("lama", shape, size, 0))["solved"]:
                return


def domain_of(shape: str) -> Domain:
    return shipped_domain(UNTANGLED[shape](1, random.Random(0)).domain_name)


def progress_line(record: Mapping[str, Any]) -> str:
    time = f">{record['limit']:g} s" if record["timed_out"] else f"{record['seconds']:.3f} s"
    state = "solved" if record["solved"] else "out of time" if record["timed_out"] else "NOT SOLVED"
    plan = " PLAN NOT VALID" if record["valid"] is False else ""
    return f"{record['method']:8}{record['shape']:12}{record['size']:>9,} {time:>12}  {state}{plan}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=UNTANGLED, default=list(UNTANGLED), metavar="SHAPE")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help=f"default: {' '.join(map(str, SIZES))}")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help=f"default: {' '.join(METHODS)}")
    parser.add_argument("--limit", type=float, default=100.0, help="seconds a run may take (default: 100)")
    parser.add_argument("--rounds", type=int, help="how often each is measured (default: 5, large ones 3 or once)")
    parser.add_argument("--quick", action="store_true", help="small sizes, once; no LAMA, no command line")
    parser.add_argument("--fresh", action="store_true", help="measure these shapes by these methods again")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "rule-scaling.jsonl")
    parser.add_argument("--figure", type=Path, default=ROOT / "docs" / "images" / "rule-scaling.png")
    return parser.parse_args()


def measure_all(benchmark: Benchmark, given: argparse.Namespace) -> None:
    sizes = sorted(given.sizes or (QUICK_SIZES if given.quick else SIZES))
    methods = given.methods or (COMPARED if given.quick else METHODS)
    if given.fresh:
        benchmark.forget(methods, given.shapes)
    for shape in given.shapes:
        fitting = [size for size in sizes if size <= LARGEST.get(shape, size)]
        compared = [method for method in COMPARED if method in methods]
        benchmark.compare(compared, shape, fitting, given.rounds or (1 if given.quick else None))
    if "command" in methods and COMMAND_SHAPE in given.shapes:
        for size in (size for size in COMMAND_SIZES if size <= sizes[-1]):
            benchmark.measure(Run("command", COMMAND_SHAPE, size, 0))
    if "lama" in methods and has_lama():
        for shape in (shape for shape in given.shapes if domain_of(shape).is_deterministic):
            benchmark.try_lama(shape, sizes[-1])


def main() -> None:
    given = arguments()
    with tempfile.TemporaryDirectory() as name:
        write_rules(Path(name))
        benchmark = Benchmark(given.output, Path(name), given.limit)
        measure_all(benchmark, given)
    records = list(benchmark.records.values())
    print_tables(records)
    if importlib.util.find_spec("matplotlib"):
        from scaling_figure import draw

        draw(records, given.figure)
    unsolved = [r for r in records if r["method"] != "lama" and not (r["solved"] or r["timed_out"])]
    if unsolved or any(record["valid"] is False for record in records):
        raise SystemExit("some problems were not solved or their plans are not valid")


if __name__ == "__main__":
    main()
