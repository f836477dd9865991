"""Who may import whom: the layers as a table, checked against every import of every file of the package.

All kinds of imports count: at the top of a file, inside a function, and under `TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import bilevel

PACKAGE = Path(bilevel.__file__).parent

# Modules that stand alone, below all that use them.
TOOLS = ("files", "json_files", "parallel", "progress", "seeds", "versions")
NUMERICAL = ("numpy", "msgspec")


class Allowed(NamedTuple):
    """What the files of a package may import besides its own and the standard library: of ours, and of others."""

    ours: tuple[str, ...]
    others: tuple[str, ...] = ()


LAYERS: Mapping[str, Allowed] = {
    "native": Allowed(()),
    "symbolic": Allowed(("native",)),
    "rules": Allowed(("symbolic", "native", "progress")),
    "planning": Allowed(("symbolic", "native"), ("matplotlib",)),
    "rule_learning": Allowed(("symbolic", "rules", "planning"), ("numpy",)),
    "tasks": Allowed(("symbolic", "seeds"), (*NUMERICAL, "gymnasium")),
    "lowlevel": Allowed(("symbolic", "tasks", "files", "json_files", "seeds"), (*NUMERICAL, "torch", "safetensors")),
    "policies": Allowed(("symbolic", "rules", "planning", "tasks", "lowlevel", *TOOLS), (*NUMERICAL, "av", "PIL")),
    "viewer": Allowed(("symbolic", "rules", "tasks", "lowlevel", "policies", *TOOLS), (*NUMERICAL, "PIL")),
    "demonstrations": Allowed(
        ("symbolic", "rules", "tasks", "policies", *TOOLS),
        (*NUMERICAL, "gymnasium", "minari", "h5py", "PIL", "pyarrow"),
    ),
    "domain_learning": Allowed(
        ("symbolic", "rules", "planning", "tasks", "policies", "demonstrations", *TOOLS), NUMERICAL
    ),
    "methods": Allowed(
        ("symbolic", "planning", "tasks", "tabletop", "lowlevel", "policies", *TOOLS),
        (*NUMERICAL, "torch", "lerobot", "safetensors", "transformers"),
    ),
    "learning": Allowed(
        (
            "symbolic", "rules", "planning", "tasks", "lowlevel", "policies", "demonstrations", "domain_learning",
            "methods", *TOOLS,
        ),
        (*NUMERICAL, "torch", "safetensors", "matplotlib"),
    ),
    "tabletop": Allowed(("symbolic", "tasks"), ("numpy", "gymnasium", "mujoco")),
    "experiments": Allowed(
        (
            "symbolic", "rules", "planning", "tasks", "lowlevel", "policies", "demonstrations", "learning",
            "tabletop", "methods", "viewer", *TOOLS,
        ),
        (*NUMERICAL, "filelock", "pandas", "matplotlib", "jinja2", "markupsafe", "av"),
    ),
    "cli": Allowed(("",), ("click", "joblib", "msgspec", "PIL")),
    "files": Allowed(("symbolic.domain",), ("filelock",)),
    "json_files": Allowed(("symbolic.domain",), ("msgspec",)),
    "parallel": Allowed(("symbolic.domain",), ("joblib", "cloudpickle", "ray")),
    "progress": Allowed(("symbolic.domain", "files"), ("torch", "wandb")),
    "seeds": Allowed((), ("numpy",)),
    "versions": Allowed(()),
    "__main__": Allowed(("cli",)),
    "": Allowed(("",)),  # the public names
}  # fmt: skip

# Of others' packages, those that only a few modules may import, wherever their layer would allow it.
ONLY_IN = {
    "torch": (
        "lowlevel.network",
        "lowlevel.relevance",
        "lowlevel.training",
        "methods.end_to_end",
        "methods.lerobot_server",
        "progress",
    ),
    "wandb": ("progress",),
    "minari": ("demonstrations.export", "demonstrations.importing.minari_reader"),
    "h5py": ("demonstrations.export", "demonstrations.importing"),
    "pyarrow": ("demonstrations.export", "demonstrations.importing.lerobot_reader"),
    "matplotlib": ("planning", "experiments.figures"),
    "jinja2": ("experiments.report",),
    "ray": ("parallel",),
    "mujoco": ("tabletop.simulation", "tabletop.rendering", "tabletop.opengl"),
}

FORBIDDEN_NAMES = {"utils", "common", "helpers", "structs"}
NOT_PULLED_IN = {"numpy", "torch", "mujoco", "gymnasium", "msgspec", "matplotlib", "click", "joblib"}


def module_name(file: Path, package: Path) -> str:
    """The dotted name within the package: `rules.rule` for `rules/rule.py`, `rules` for its `__init__.py`."""
    parts = file.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path, package: Path) -> Iterator[str]:
    """The full names of all that a file imports, wherever in the file, relative imports resolved."""
    name = module_name(file, package)
    folder = ("bilevel." + (name if file.name == "__init__.py" else name.rpartition(".")[0])).rstrip(".").split(".")
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(prefix == "" or name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def is_allowed(imported: str, layer: str, allowed: Allowed) -> bool:
    if imported == "bilevel" or imported == "bilevel.__version__":
        return True
    if within(imported, ("bilevel",)):
        return within(imported.removeprefix("bilevel."), (layer, *allowed.ours))
    return imported.split(".")[0] in sys.stdlib_module_names or within(imported, allowed.others)


def breaches(package: Path) -> list[str]:
    """Each breach of the rules, as `importing module: what is wrong`."""
    found = []
    for file in sorted(package.rglob("*.py")):
        name = module_name(file, package)
        layer = name.split(".")[0]
        if FORBIDDEN_NAMES & set(name.split(".")):
            found.append(f"{name}: a function lives where its noun lives, not in such a module")
        if layer not in LAYERS:
            found.append(f"{name}: has no row in the table of layers")
            continue
        for imported in imports(file, package):
            if not is_allowed(imported, layer, LAYERS[layer]):
                found.append(f"{name}: may not import {imported}")
            for restricted, places in ONLY_IN.items():
                if within(imported, (restricted,)) and not within(name, places):
                    found.append(f"{name}: may not import {imported}")
    return found


def import_graph(package: Path) -> dict[str, set[str]]:
    """For each module those of the package that it imports, in whatever way; the lazy public names are no imports."""
    names = {module_name(file, package): file for file in package.rglob("*.py")}
    graph: dict[str, set[str]] = {name: set() for name in names if name}
    for name, file in names.items():
        for imported in imports(file, package) if name else ():
            ours = imported.removeprefix("bilevel.")
            target = ours if ours in names else ours.rpartition(".")[0]
            if imported.startswith("bilevel.") and target in graph and target != name:
                graph[name].add(target)
    return graph


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, if there are any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_the_package_keeps_the_rules() -> None:
    assert breaches(PACKAGE) == []


def test_no_modules_import_each_other() -> None:
    assert cycle(import_graph(PACKAGE)) == []


def test_no_packages_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for name, others in import_graph(PACKAGE).items():
        layer = name.split(".")[0]
        graph.setdefault(layer, set()).update(other.split(".")[0] for other in others)
        graph[layer].discard(layer)
    assert cycle(graph) == []


def test_every_row_of_the_table_is_of_a_package_that_is_there() -> None:
    there = {module_name(file, PACKAGE).split(".")[0] for file in PACKAGE.rglob("*.py")}
    assert set(LAYERS) == there


def test_symbols_do_without_numbers() -> None:
    """In a fresh process, nothing heavy is loaded for them."""
    names = "read_domain read_rules solve verify learn_rules"
    program = f"import sys, bilevel\nfor name in '{names}'.split(): getattr(bilevel, name)\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in run.stdout.split()}.isdisjoint(NOT_PULLED_IN)


def test_every_public_name_is_there() -> None:
    assert [name for name in bilevel.__all__ if not hasattr(bilevel, name)] == []
