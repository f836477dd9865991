"""Does `bilevel reproduce` survive being killed? A tiny run is, at random times, and must end as an undisturbed one.

    python tests/killing.py
    python tests/killing.py --backend ray --address auto --kills 10

The run itself is killed, not its workers: these have to notice by themselves. The next run begins at once.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bilevel.demonstrations.dataset import read_manifest
from bilevel.methods.methods import read_learned

TINY = (
    *("--methods", "bison-paper", "expert", "--tasks", "blocks", "--parts", "table", "--seeds", "1"),
    *("--objects", "1-2", "--episodes", "2", "--demonstrations", "4", "--epochs", "2"),
)
LOOKED_EVERY = 0.01  # seconds
MOST_CHANGES = 4  # in the folder, before it is killed
JITTER = 0.3  # seconds from such a change until then, at most
AT_THE_BEGINNING = 1.5  # seconds, where no change is waited for
PATIENCE = 30.0  # seconds for workers to notice, at most


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command, in a session of its own, so that all that it starts can be found."""
    command = [sys.executable, "-m", "bilevel.cli", "reproduce", *arguments, "--output", str(folder)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def results(folder: Path) -> dict[str, Any]:
    """All that must not depend on what happened on the way: demonstrations, policies, and episodes."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("demonstrations/*")):
        found[path.name] = read_manifest(path).files
    for path in sorted(folder.glob("policies/*/*")):
        found[f"{path.parent.name} {path.name}"] = read_learned(path).digest
    for path in sorted(folder.glob("episodes/*/*/*.jsonl")):
        if ".timings" not in path.name:
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


# Killing


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """The files that work is for, also while they are being written, with when they were, and their sizes."""
    found = {}
    for path in folder.glob("*/**/*"):
        if path.relative_to(folder).parts[0] not in ("runs", "locks", "costs"):
            with suppress(FileNotFoundError):
                about = path.stat()
                if not stat.S_ISDIR(about.st_mode):
                    found[str(path)] = about.st_mtime_ns, about.st_size
    return found


def wait_for_changes(process: subprocess.Popen[str], folder: Path, changes: int) -> bool:
    """Until so many changes of the folder have been seen; whether the process lived for so long."""
    before = state(folder)
    while changes and process.poll() is None:
        time.sleep(LOOKED_EVERY)
        now = state(folder)
        changes -= now != before
        before = now
    return process.poll() is None


def kill_at_random(process: subprocess.Popen[str], folder: Path, random_: random.Random) -> bool:
    """Whether it was still running."""
    changes = random_.randint(0, MOST_CHANGES)
    seconds = random_.uniform(0, JITTER if changes else AT_THE_BEGINNING)
    alive = wait_for_changes(process, folder, changes)
    time.sleep(seconds)
    alive = alive and process.poll() is None
    process.kill()
    process.communicate()
    return alive


def left_behind(process: subprocess.Popen[str]) -> list[int]:
    """The processes of its session that do not end by themselves."""
    end = time.monotonic() + PATIENCE
    while (found := list(_session(process.pid))) and time.monotonic() < end:
        time.sleep(LOOKED_EVERY)
    return found


def _session(number: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state_, _, _, session = path.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == number and state_ != "Z":
            yield int(path.parent.name)


def survive(
    work: Path,
    arguments: Sequence[str],
    wanted: dict[str, Any],
    kills: int,
    random_: random.Random,
    callback: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Kill runs in a folder below `work` so many times, and let another one end; what is wrong then, if anything.

    A run that ends before its time has come is checked, and the next begins in a new folder.
    """
    wrong, killed, number = [], 0, 1
    started: list[subprocess.Popen[str]] = []
    while killed < kills:
        folder = work / str(number)
        started.append(process := start(folder, *arguments))
        if kill_at_random(process, folder, random_):
            killed += 1
            callback(f"kill {killed} of {kills}: folder {number} holds {len(state(folder))} files")
        else:
            wrong += _ended(process, folder, wanted)
            callback(f"folder {number} is complete; the next one is begun")
            number += 1
    started.append(process := start(work / str(number), *arguments))
    process.communicate()
    wrong += _ended(process, work / str(number), wanted)
    return wrong + [f"process {left} was left behind" for process in started for left in left_behind(process)]


def _ended(process: subprocess.Popen[str], folder: Path, wanted: dict[str, Any]) -> list[str]:
    if process.returncode:
        return [f"{folder}: it ended with the exit code {process.returncode}"]
    found = results(folder)
    return [
        f"{folder}: other results for {name}" for name in {**wanted, **found} if wanted.get(name) != found.get(name)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("processes", "ray"), default="processes")
    parser.add_argument("--address", default="auto", help="of the Ray cluster")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the times")
    parser.add_argument("--arguments", type=shlex.split, default=list(TINY), help="of the command, instead of a few")
    given = parser.parse_args()
    backend = ["--backend", "ray", "--address", given.address] if given.backend == "ray" else []
    with tempfile.TemporaryDirectory() as name:
        work, began = Path(name), time.monotonic()
        process = start(work / "undisturbed", *given.arguments, *backend)
        _, errors = process.communicate()
        if process.returncode:
            print(errors, end="", file=sys.stderr)
            return 1
        wanted = results(work / "undisturbed")
        print(f"undisturbed: {time.monotonic() - began:.1f} s, {len(wanted)} results", flush=True)
        began = time.monotonic()
        random_ = random.Random(given.seed)
        wrong = survive(work, [*given.arguments, *backend], wanted, given.kills, random_, callback=_say)
    print(*wrong or [f"killed {given.kills} times: the same results, {time.monotonic() - began:.1f} s"], sep="\n")
    return 1 if wrong else 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
