"""What all benchmarks share: commands of the program, and files of results."""

from __future__ import annotations

import json
import os
import platform
import select
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
Row = dict[str, Any]


class Done(NamedTuple):
    """What a command printed, its exit code, and the CPU seconds it took with all its processes."""

    output: str
    code: int
    seconds: float


def run(
    *words: object,
    source: Path = ROOT / "src",
    folder: Path | None = None,
    may_fail: bool = False,
    most_seconds: float | None = None,
) -> Done:
    """Run `bilevel` with these words in a process of its own; stop with its message if it fails.

    It is interrupted when it has used `most_seconds` of processor time with all its processes.
    """
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bilevel", *map(str, words)]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    seen = 0.0 if most_seconds is None else _end_after(process, most_seconds)
    output = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if code and not may_fail:
        sys.exit(f"bilevel {' '.join(map(str, words))}: exit code {code}\n{output}")
    return Done(output, code, max(seen, used.ru_utime + used.ru_stime))


def _end_after(process: subprocess.Popen[str], seconds: float) -> float:
    """Wait until a process has something to say, or interrupt it after so many seconds; return those it has used."""
    used = 0.0
    while process.stdout and not select.select([process.stdout], [], [], 1.0)[0]:
        used = _processor_time(process.pid)
        if used > seconds:
            process.terminate()  # in the background of a shell, interrupts are ignored
            break
    return used


def _processor_time(number: int) -> float:
    """Return how many seconds of processor time a process and its children have used; 0 where there is no `/proc`."""
    try:
        used = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:15]
        children = Path(f"/proc/{number}/task/{number}/children").read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK") + sum(_processor_time(int(child)) for child in children)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file, without its first line, which says where they come from."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return [row for row in rows if "command" not in row]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]], packages: Iterable[str] = ()) -> None:
    """Write results: a line that says how they were made, and a line for each row."""
    versions = {package: version(package) for package in ("bilevel", "numpy", "gymnasium", *packages)}
    words = (Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:])  # no paths of a machine
    command = f"python benchmarks/{Path(sys.argv[0]).name} {' '.join(words)}".strip()
    origin = {"command": command, "versions": {"python": platform.python_version(), **versions}, "machine": machine()}
    lines = [json.dumps(row, separators=(",", ":")) for row in (origin, *rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def machine() -> Row:
    """Return the kind of processor, how many cores, and the system."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {"cpu": (names or [platform.processor()])[0], "cores": os.cpu_count(), "system": platform.system()}


def print_table(rows: Sequence[Row]) -> None:
    """Print rows below each other, with a heading."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines: list[list[str]] = [columns, *([_text(row.get(key, "")) for key in columns] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)), flush=True)


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
