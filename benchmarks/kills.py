"""Do commands survive being killed? They are, over and over, and must end with the files of an undisturbed one.

    python benchmarks/kills.py --kills 20
    python benchmarks/kills.py --kills 1000 --workers 16 --output results/kills.jsonl

At random times `collect`, `learn`, `evaluate` or `reproduce` is killed (SIGKILL), or one of its workers is, or it is
told to end (SIGTERM), or Ctrl-C is pressed; then the same command is given again. In the end its files must have the
same bytes as those of an undisturbed one, but for what was measured of the machine; nobody shows a traceback; no
process and no temporary file is left behind.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from killing import TINY, left_behind
from result_files import origin, read_rows, write_rows

TASK = f"{Path(__file__).parents[1] / 'tests' / 'tiny_task.py'}:TINY"
LEARNING = ("--epochs", "4", "--preset", "paper", "--completion", "off")
COMMANDS = {
    "collect": f"collect {TASK} --objects 2 --episodes 24 --workers 2 --output {{out}}",
    "learn": f"learn {{given}}/demos --task {TASK} --epochs 2 --dagger-rounds 1 --hidden 8 --completion off "
    "--workers 2 --output {out}",
    "evaluate": f"evaluate {TASK} --policy {{given}}/policy --objects 1-2 --episodes 6 --workers 2 --keep-incidents "
    "--output {out}/results.jsonl",
    "reproduce": f"reproduce {' '.join(TINY)} --workers 2 --output {{out}}",
}
SHARES = {"collect": 4, "learn": 2, "evaluate": 3, "reproduce": 1}  # of all kills
TOGETHER = 10  # kills of one command, one after the other, before it may end
MEASURED = ("runs", "locks", "costs", "findings.jsonl")  # in the folder of a reproduction: not the same every time
PATIENCE = 120.0  # seconds for a command to end

KILLED, WORKER, TOLD, INTERRUPTED = "killed", "worker killed", "told to end", "interrupted"
# How a command may end where this is done to it; 0 where it had all but ended, or does without that worker.
CODES = {KILLED: (-9, 0), WORKER: (2, 0), TOLD: (143, -15, 0), INTERRUPTED: (130, -2, 0)}


@dataclass
class Report:
    """What was done to commands, and what was wrong then."""

    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0  # that were gone on with to their end
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Victim:
    """A command in a folder of its own."""

    name: str
    folder: Path
    given: Path  # what commands need: demonstrations and a policy

    def start(self, number: int) -> subprocess.Popen[str]:
        """Start it in a session of its own, so that all that it starts can be found."""
        out = self.output(number)
        words = [word.format(out=out, given=self.given) for word in COMMANDS[self.name].split()]
        self.temporary.mkdir(parents=True, exist_ok=True)
        out.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "TMPDIR": str(self.temporary), "OMP_NUM_THREADS": "1"}
        command, pipe = [sys.executable, "-m", "bilevel", *words], subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env=environment)

    def output(self, number: int) -> Path:
        return self.folder / str(number)

    @property
    def temporary(self) -> Path:
        return self.folder / "temporary"

    def results(self, number: int) -> dict[str, bytes]:
        """Return all that must not depend on what happened on the way, by the names of the files."""
        out = self.output(number)
        paths = [path for path in sorted(out.rglob("*")) if path.is_file()]
        names = {path.relative_to(out).as_posix(): path for path in paths}
        kept = {name: path for name, path in names.items() if name.split("/")[0] not in MEASURED}
        return {name: path.read_bytes() for name, path in kept.items() if ".timings." not in name}


def kill(process: subprocess.Popen[str], kind: str, random_: random.Random) -> bool:
    """Do that to a command; return whether it could be done."""
    if process.poll() is not None:
        return False
    if kind == INTERRUPTED:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    elif kind == TOLD:
        process.terminate()
    elif kind == KILLED:
        process.kill()
    else:
        workers = list(children(process.pid))
        if not workers:
            return False
        try:
            os.kill(random_.choice(workers), signal.SIGKILL)
        except ProcessLookupError:
            return False
    return True


def children(number: int) -> Iterator[int]:
    try:
        text = Path(f"/proc/{number}/task/{number}/children").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return
    yield from map(int, text.split())


def complaints(process: subprocess.Popen[str], kind: str, errors: str) -> Iterator[str]:
    """Yield what is wrong with how a command has ended."""
    lines = [line for line in errors.splitlines() if not line.startswith(("6 units", "5 units", "4 units"))]
    if process.returncode not in CODES[kind]:
        yield f"the exit code is {process.returncode}: {errors[-1500:]}"
    if "Traceback" in errors or "Exception ignored" in errors:
        yield f"a traceback: {errors[-3000:]}"
    elif kind in (WORKER, INTERRUPTED) and process.returncode in (2, 130) and not lines[-1:][0].startswith("bilevel: "):
        yield f"not one line of error: {errors[-1500:]!r}"


def came_too_early(errors: str) -> bool:
    """Return whether it was Python itself, not yet ours, that was interrupted: it tells of that in a way of its own."""
    return "Failed to import the site module" in errors


def has_ended(process: subprocess.Popen[str], errors: str) -> bool:
    """Return whether all is done: by this process, or by one that was killed after it had written the last file."""
    return process.returncode == 0 or "already holds a policy" in errors


def torment(victim: Victim, wanted: dict[str, bytes], seconds: float, kills: int, seed: str) -> Report:
    """Kill a command so many times, and let another one end.

    A run that ends before its time has come is checked, and the next begins in a new folder. `seconds` is how long an
    undisturbed one takes.
    """
    random_, report, number, done = random.Random(seed), Report(), 0, 0
    where = f"{victim.name} with seed {seed}"
    while done < kills:
        process = victim.start(number)
        time.sleep(random_.uniform(0, seconds))
        kind = random_.choices(list(CODES), (2, 2, 1, 1))[0]
        was_alive = kill(process, kind, random_)
        errors = _end(process)
        if was_alive and not came_too_early(errors):
            done += 1
            report.kills[kind] += 1
            report.wrong += [f"{where}, {kind}: {one}" for one in complaints(process, kind, errors)]
        report.wrong += [f"{where}, {kind}: process {left} was left behind" for left in left_behind(process)]
        if has_ended(process, errors):
            report.wrong += [f"{where}: {one}" for one in _differences(victim, number, wanted)]
            report.runs, number = report.runs + 1, number + 1
    process = victim.start(number)
    errors = _end(process)
    if not has_ended(process, errors):
        report.wrong.append(f"{where}: it does not end: {errors[-1500:]}")
    report.wrong += [f"{where}: {one}" for one in _differences(victim, number, wanted)]
    usual = {path.name for path in (victim.folder.parent / "undisturbed" / "temporary").iterdir()}  # torch's own caches
    left = [path for path in victim.temporary.iterdir() if path.name not in usual]
    left += victim.temporary.glob("bilevel-*/*")
    report.wrong += [f"{where}: {path} was left behind" for path in left]
    report.runs += 1
    return report


def _end(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a command; return what it wrote to standard error, its workers included."""
    try:
        return process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return f"Traceback: none, but it did not end within {PATIENCE:g} s\n{process.communicate()[1]}"


def _differences(victim: Victim, number: int, wanted: dict[str, bytes]) -> list[str]:
    found = victim.results(number)
    return [
        f"{victim.output(number)}: other bytes in {name}"
        for name in {**wanted, **found}
        if wanted.get(name) != found.get(name)
    ]


# All of them


def prepare(folder: Path) -> None:
    """Make what the commands need, by commands."""
    for words in (
        ("collect", TASK, "--objects", "2", "--episodes", "4", "--workers", "1", "--output", folder / "demos"),
        ("learn", folder / "demos", "--task", TASK, *LEARNING, "--workers", "1", "--output", folder / "policy"),
    ):
        subprocess.run([sys.executable, "-m", "bilevel", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def undisturbed(name: str, work: Path) -> tuple[dict[str, bytes], float]:
    """Return the results of a command that nobody kills, and the seconds that it takes."""
    victim, began = Victim(name, work / name / "undisturbed", work / "given"), time.monotonic()
    process = victim.start(0)
    errors = _end(process)
    if process.returncode:
        raise SystemExit(f"{name} fails: {errors}")
    return victim.results(0), time.monotonic() - began


def torment_all(
    work: Path,
    kills: int,
    workers: int,
    seed: int,
    names: Sequence[str],
    callback: Callable[[str], None],
    latest: float = math.inf,
) -> dict[str, Report]:
    """Kill all of these commands, several at the same time; after the `latest` time, nothing new is begun."""
    prepare(work / "given")
    total = sum(SHARES[name] for name in names)
    reports = {name: Report() for name in names}
    parts = []
    for name in names:
        left = round(kills * SHARES[name] / total)
        known = undisturbed(name, work)
        callback(f"{name}: {known[1]:.1f} s undisturbed, {len(known[0])} files")
        while left > 0:
            parts.append((name, known, min(TOGETHER, left), f"{seed}-{name}-{left}"))
            left -= TOGETHER

    def one(part: tuple[str, tuple[dict[str, bytes], float], int, str]) -> tuple[str, Report]:
        name, (wanted, seconds), kills_, seed_ = part
        if time.monotonic() > latest:
            return name, Report()
        return name, torment(Victim(name, work / name / seed_, work / "given"), wanted, seconds, kills_, seed_)

    random.Random(seed).shuffle(parts)
    with ThreadPoolExecutor(workers) as pool:
        for done, (name, report) in enumerate(pool.map(one, parts), 1):
            reports[name].kills.update(report.kills)
            reports[name].runs += report.runs
            reports[name].wrong += report.wrong
            callback(f"{done} of {len(parts)} parts: {name}, {dict(report.kills)}, wrong: {len(report.wrong)}")
            for one_ in report.wrong:
                callback(one_)
    return reports


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1, help="commands at the same time, each with two workers")
    parser.add_argument("--seed", type=int, default=0, help="of the times")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing new after so long")
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--output", type=Path, help="add a row to this file")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        how = (given.kills, given.workers, given.seed, given.commands)
        reports = torment_all(Path(name), *how, lambda line: print(line, flush=True), began + given.seconds)
    seconds = time.monotonic() - began
    wrong = sum(len(report.wrong) for report in reports.values())
    rows = {name: {**report.kills, "runs": report.runs, "wrong": len(report.wrong)} for name, report in reports.items()}
    kills = sum(sum(report.kills.values()) for report in reports.values())
    print(json.dumps(rows), f"{kills} kills in {seconds:.0f} s, wrong: {wrong}", sep="\n")
    if given.output:
        about = {
            "kills": kills,
            "workers": given.workers,
            "seed": given.seed,
            "seconds": round(seconds),
            "wrong": wrong,
        }
        write_rows(given.output, [*read_rows(given.output), {**about, "commands": rows, **origin(["numpy", "torch"])}])
    return 1 if wrong else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
