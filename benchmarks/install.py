"""How long it takes from `pip install` to a film of a pretrained policy, in an empty virtual environment:

    python -m build && python benchmarks/install.py dist/*.whl dist/*.tar.gz         # or: make package

For each file, README's first commands are run, with the file in place of the package's name: pip, with the extras that
README asks for, then a policy that comes with the package. All happens in a temporary folder, with nothing of this
environment in reach. What pip fetches depends on the network, or on its cache.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import RESULTS, ROOT, Row, write_rows

README = ROOT / "README.md"


def first_commands(page: str) -> tuple[str, list[list[str]]]:
    """Return the extras, as in [tabletop,video], and the commands that follow in the first block that installs."""
    for block in re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        lines = [shlex.split(line, comments=True) for line in block.splitlines()]
        if lines and lines[0][:2] == ["pip", "install"]:
            return "".join(re.findall(r"\[.*\]", lines[0][-1])), [line for line in lines[1:] if line]
    sys.exit("README has no block that begins with pip install")


def run(folder: Path, *words: str) -> None:
    """Run a command of the environment in a folder beside it, without anything of ours."""
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    binaries = folder / "environment" / "bin"
    work = folder / "work"
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        [str(binaries / words[0]), *words[1:]],
        cwd=work,
        env={**outside, "PATH": f"{binaries}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{shlex.join(words)}:\n{done.stdout}{done.stderr}")


def timed(work: Callable[[], None]) -> Row:
    """Do some work in other processes; return how long it took, and how long processors were busy with it."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(time.perf_counter() - began, 1), "cpu_seconds": round(busy, 1)}


def measure(file: Path) -> Row:
    """Install a file and run what README says; return how long each step took."""
    extras, commands = first_commands(README.read_text(encoding="utf-8"))
    with TemporaryDirectory() as name:
        folder = Path(name)
        steps = {"python -m venv": timed(lambda: venv.create(folder / "environment", with_pip=True))}
        install = "pip", "install", "--quiet", f"{file.resolve()}{extras}"
        steps[f"pip install '{file.name}{extras}'"] = timed(partial(run, folder, *install))
        for words in commands:
            steps[shlex.join(words)] = timed(partial(run, folder, *words))
        packages = set(_packages(folder))
        return {
            "file": file.name,
            "megabytes": round(file.stat().st_size / 1e6, 2),
            "steps": steps,
            **{key: round(sum(step[key] for step in steps.values()), 1) for key in ("seconds", "cpu_seconds")},
            "packages": len(packages),
            "has_torch": "torch" in packages,
            "environment_megabytes": round(_size(folder / "environment") / 1e6),
            "written": {path.name: path.stat().st_size for path in sorted((folder / "work").iterdir())},
        }


def _packages(folder: Path) -> Iterator[str]:
    for path in folder.glob("environment/lib/*/site-packages/*.dist-info"):
        yield path.name.partition("-")[0].lower()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a wheel or a source distribution")
    parser.add_argument("--output", type=Path, default=RESULTS / "install.jsonl")
    given = parser.parse_args()
    rows = []
    for file in given.files:
        rows.append(measure(file))
        print(f"{file.name}: {rows[-1]['seconds']} s", flush=True)
        for command, step in rows[-1]["steps"].items():
            print(f"  {step['seconds']:6} s, {step['cpu_seconds']:6} s of processors: {command}", flush=True)
        write_rows(given.output, rows)


if __name__ == "__main__":
    main()
