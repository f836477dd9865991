"""The package as a house: which of its parts imports which, how large they are, and what a command loads.

    python benchmarks/import_graph.py                     # a minute: the drawing for docs, and results/house.jsonl
    python benchmarks/import_graph.py --before HEAD~10

Draws an earlier commit beside the working tree. An arrow is an import, in functions and for types too; those in red are
part of a cycle. Generic tools, which import nothing but symbols and may be imported by all, are left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from import_drawing import draw
from result_files import Row, origin, write_rows
from revisions import BEFORE, ROOT, checked_out

TOOLS = ("__init__", "cpu_time", "demo", "files", "json_files", "processes", "seeds", "versions", "video")
TOGETHER = {"cli": "commands"}  # modules that belong to a package
COUNT = """
import atexit, sys
atexit.register(lambda: print("loaded", *(name for name in sys.modules if name.startswith("bilevel")), file=sys.stderr))
from bilevel.cli import main
main(sys.argv[1:])
"""


@dataclass
class Part:
    """A package, or a module that is in none."""

    modules: int = 0
    lines: int = 0
    imports: set[str] = field(default_factory=set)


def part_of(module: str) -> str:
    """Return the part that a module is in, given without the name of the package."""
    name = module.partition(".")[0]
    return TOGETHER.get(name, name)


def read_parts(source: Path) -> dict[str, Part]:
    """Return the parts of the package in a folder."""
    parts: dict[str, Part] = {}
    root = source / "bilevel"
    for path in sorted(root.rglob("*.py")):
        name = part_of(".".join(path.relative_to(root).with_suffix("").parts))
        text = path.read_text(encoding="utf-8")
        part = parts.setdefault(name, Part())
        part.modules += 1
        part.lines += len(text.splitlines())
        part.imports |= {part_of(module) for module in imported(text)} - {name}
    for part in parts.values():
        part.imports &= set(parts)
    return parts


def imported(text: str) -> Iterator[str]:
    """Return the modules of ours that a module imports, given without the name of the package."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "bilevel":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bilevel."):
            yield (node.module or "").removeprefix("bilevel.")
        elif isinstance(node, ast.Import):
            yield from (n.name.removeprefix("bilevel.") for n in node.names if n.name.startswith("bilevel."))


def reachable(parts: dict[str, Part], start: str) -> set[str]:
    """Return all that a part imports, and what that imports, and so on."""
    found: set[str] = set()
    waiting = list(parts[start].imports)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += parts[name].imports
    return found


def cycles(parts: dict[str, Part]) -> list[list[str]]:
    """Return the knots: parts that import each other, in any number of steps."""
    reach = {name: reachable(parts, name) for name in parts}
    knots = {tuple(sorted(b for b in reach[a] if a in reach[b])) for a in parts if a in reach[a]}
    return sorted(map(list, knots))


def loaded(source: Path) -> dict[str, dict[str, int]]:
    """Return how many modules of each part have been loaded when a command has done its work, at its smallest."""
    with tempfile.TemporaryDirectory() as folder:

        def run(*words: str) -> dict[str, int]:
            environment = {**os.environ, "PYTHONPATH": str(source)}
            command = [sys.executable, "-c", COUNT, *words]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if "loaded " not in done.stderr or done.returncode > 1:  # 1: the policy fails, having learned so little
                sys.exit(f"bilevel {' '.join(words)}: {done.stderr}")
            modules = done.stderr.rpartition("loaded ")[2].split()
            return dict(Counter(part_of(name.removeprefix("bilevel.")) for name in sorted(modules)))

        run("collect", "blocks", "--objects", "1", "--episodes", "2", "--output", "data")
        learn = run("learn", "data", "--epochs", "1", "--dagger-rounds", "0", "--output", "policy")
        act = run("run", "blocks", "--policy", "policy", "--objects", "1")
        run("problem", "blocks", "--objects", "3", "--output", "problem.pddl")
        solve = run("solve", "policy/domain.pddl", "problem.pddl", "--rules", "policy/rules.txt", "--plan", "plan")
        return {"learn": learn, "run": act, "solve": solve}


def describe(source: Path, revision: str) -> tuple[Row, dict[str, Part]]:
    parts, found = read_parts(source), loaded(source)
    row = {
        "revision": revision,
        "modules": sum(part.modules for part in parts.values()),
        "lines": sum(part.lines for part in parts.values()),
        "loaded": {command: sum(counts.values()) for command, counts in found.items()},
        "cycles": cycles(parts),
        "packages": {
            name: {"modules": part.modules, "lines": part.lines, "imports": sorted(part.imports)}
            for name, part in sorted(parts.items())
        },
        "loaded_by_package": found,
    }
    return row, {name: part for name, part in parts.items() if name not in TOOLS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT")
    parser.add_argument("--output", type=Path, default=Path("results/house.jsonl"))
    parser.add_argument("--figure", type=Path, default=Path("docs/images/import-graph.png"))
    given = parser.parse_args()
    with checked_out(given.before, "src") as folder:
        before, old = describe(folder / "src", given.before)
    after, new = describe(ROOT / "src", "after")
    found = {"before": before, "after": after}
    for row in found.values():
        print(json.dumps({key: row[key] for key in ("revision", "modules", "lines", "loaded", "cycles")}), flush=True)
    write_rows(given.output, [{**row, **origin()} for row in found.values()])
    titles = [f"{when}: {row['modules']} modules, {row['lines']:,} lines" for when, row in found.items()]
    drawn = [(parts, row["cycles"]) for row, parts in ((before, old), (after, new))]
    draw(dict(zip(titles, drawn, strict=True)), given.figure)


if __name__ == "__main__":
    main()
