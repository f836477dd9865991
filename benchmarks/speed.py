"""How long things take: a step of a policy, and the commands `collect`, `learn` and `evaluate` with two workers.

    python benchmarks/speed.py                                          # three minutes
    python benchmarks/speed.py --against ../another-checkout/src        # both in turns, and the ratios

Only the command line is used. Seconds of commands are CPU seconds of all their processes, and by the clock; a step is
the microseconds that the policy takes of it, as `bilevel evaluate` notes beside its results. Each is the least of
several measurements.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import RESULTS, ROOT, Row, print_table, run, write_rows


def startup(source: Path, folder: Path, task: str) -> Row:
    return _timed(source, "--help")


def collect(source: Path, folder: Path, task: str) -> Row:
    shutil.rmtree(folder / "data", ignore_errors=True)
    return _timed(source, "collect", task, "--episodes", 20, "--workers", 2, "--output", folder / "data")


def learn(source: Path, folder: Path, task: str) -> Row:
    shutil.rmtree(folder / "policy", ignore_errors=True)
    options = ("--epochs", 2, "--updates", 500, "--dagger-rounds", 1, "--workers", 2)
    return _timed(source, "learn", folder / "data", *options, "--output", folder / "policy")


def evaluate(source: Path, folder: Path, task: str) -> Row:
    for file in folder.glob("results*"):
        file.unlink()
    size = ("--objects", "3,10", "--episodes", 6, "--workers", 2)
    return _timed(source, "evaluate", task, *size, "--output", folder / "results.jsonl")


def step(source: Path, folder: Path, task: str) -> Row:
    """Return the microseconds of a step that are the policy's, over what `evaluate` noted."""
    records, timings = (
        [json.loads(line) for line in (folder / f"results{end}.jsonl").read_text(encoding="utf-8").splitlines()]
        for end in ("", ".timings")
    )
    seconds = sum(timing["seconds"]["policy"] for timing in timings)
    return {"microseconds": round(1e6 * seconds / sum(record["steps"] for record in records), 1)}


PARTS: Mapping[str, Callable[[Path, Path, str], Row]] = {
    part.__name__: part for part in (startup, collect, learn, evaluate, step)
}


def _timed(source: Path, *words: object) -> Row:
    began = time.perf_counter()
    done = run(*words, source=source)
    return {"cpu": round(done.seconds, 2), "clock": round(time.perf_counter() - began, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="blocks", help="one with a pretrained policy")
    parser.add_argument("--against", type=Path, metavar="SRC", help="the folder src of another checkout")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("build/speed"))
    parser.add_argument("--output", type=Path, default=RESULTS / "speed.jsonl")
    given = parser.parse_args()
    sources = {"here": ROOT / "src"} | ({"there": given.against.resolve()} if given.against else {})
    found: dict[tuple[str, str], list[Row]] = {}
    for _ in range(given.repeats):
        for name, source in sources.items():
            folder = given.folder / name
            folder.mkdir(parents=True, exist_ok=True)
            for part, measure in PARTS.items():
                found.setdefault((part, name), []).append(measure(source, folder, given.task))
    rows = []
    for part in PARTS:
        for unit in found[part, "here"][0]:
            row: Row = {"part": part, "unit": unit}
            row |= {name: min(each[unit] for each in found[part, name]) for name in sources}
            rows.append({**row, "ratio": round(row["here"] / row["there"], 3)} if given.against else row)
    print_table(rows)
    write_rows(given.output, [{"task": given.task, **row} for row in rows])


if __name__ == "__main__":
    main()
