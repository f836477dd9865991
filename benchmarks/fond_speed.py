"""How far the strong-cyclic planner gets in growing problems, before and after, in CPU seconds of the whole command.

    python benchmarks/fond_speed.py

Plans for each problem of `fond_families` with the project as it was and as it is, in turns, and checks every policy.
Prints a line for each and writes them all to results/fond-families.jsonl. After a problem that took too long the larger
ones of its family are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from fond_families import FAMILIES, texts
from result_files import Row, origin, write_rows
from revisions import ROOT, checked_out

BEFORE = "83293b6"  # the last commit before the planner went back to what it knows, and was compiled in part
CPU_SECONDS = 20
NO_END = "36000"  # seconds by the wall clock, which is not what counts here


def limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def planned(source: Path, files: tuple[Path, Path]) -> Row:
    """The answer of `bilevel plan` with this source, how it was checked, and its CPU seconds."""
    command = [sys.executable, "-m", "bilevel.cli", "plan", *map(str, files), "--timeout", NO_END, "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, preexec_fn=limit_cpu)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if run.returncode not in (0, 1):
        return {"answer": "timed out" if run.returncode < 0 else run.stderr.strip(), "cpu_seconds": round(seconds, 2)}
    found = json.loads(run.stdout)
    decisions = (found["sizes"] or {}).get("decisions")
    checked = found["checked"] if found["status"] == "solved" else None
    return {"answer": found["status"], "decisions": decisions, "checked": checked, "cpu_seconds": round(seconds, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("results/fond-families.jsonl"))
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    given = parser.parse_args()
    rows: list[Row] = []
    with checked_out(BEFORE, "src") as old, tempfile.TemporaryDirectory() as name:
        sources = {"before": old / "src", "after": ROOT / "src"}
        for family in given.families:
            given_up = set[str]()
            for size in FAMILIES[family].sizes:
                files = Path(name) / "domain.pddl", Path(name) / "problem.pddl"
                for file, text in zip(files, texts(family, size), strict=True):
                    file.write_text(text, encoding="utf-8")
                for version, source in sources.items():
                    if version not in given_up:
                        row = {"family": family, "size": size, "version": version, **planned(source, files)}
                        given_up |= {version} if row["answer"] == "timed out" else set()
                        print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)
                        rows.append({**row, "limit": CPU_SECONDS, "revision": BEFORE, **origin()})
    write_rows(given.output, rows)


if __name__ == "__main__":
    main()
