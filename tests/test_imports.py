"""Who may import whom: the rules as tables, checked against the imports of every file of the package."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import bilevel

PACKAGE = Path(bilevel.__file__).parent


class Allowed(NamedTuple):
    """What the files of a folder may import besides the standard library: of ours, and of others."""

    ours: tuple[str, ...]
    others: tuple[str, ...] = ()


ALLOWED = {
    "symbolic": Allowed(("symbolic",)),
    "rules": Allowed(("rules", "symbolic")),
    "planning": Allowed(("planning", "symbolic")),
}

# What only some files or folders may import.
ONLY_IN = {
    "torch": ("lowlevel", "baselines"),
    "matplotlib": ("experiments.report",),
    "jinja2": ("experiments.report",),
    "mako": ("experiments.report",),
    "minari": ("demonstrations.minari_export",),
    "ray": ("experiments.reproduction.ray_backend",),
    "rich": ("cli", "commands", "demo"),
    "tyro": ("cli", "commands"),
    "bilevel.baselines": ("baselines", "experiments", "commands"),
    "bilevel.experiments": ("experiments", "commands", "policies.narration"),
    "bilevel.cli": ("cli",),
    "bilevel.commands": ("cli", "commands"),
}

FORBIDDEN_NAMES = {"utils", "common", "helpers", "structs"}

NOT_PULLED_IN = {"numpy", "torch", "mujoco", "matplotlib", "rich", "tyro"}


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
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def is_allowed(imported: str, allowed: Allowed) -> bool:
    if within(imported, ("bilevel",)):
        return within(imported.removeprefix("bilevel").removeprefix("."), allowed.ours)
    return imported.split(".")[0] in sys.stdlib_module_names or within(imported, allowed.others)


def breaches(package: Path) -> list[str]:
    """Each breach of the rules, as `importing module: what is wrong`."""
    found = []
    for file in sorted(package.rglob("*.py")):
        name = module_name(file, package)
        if FORBIDDEN_NAMES & set(name.split(".")):
            found.append(f"{name}: a function lives where its noun lives, not in such a module")
        allowed = ALLOWED.get(name.split(".")[0])
        for imported in imports(file, package):
            if allowed and not is_allowed(imported, allowed):
                found.append(f"{name}: may not import {imported}")
            for restricted, places in ONLY_IN.items():
                if within(imported, (restricted,)) and not within(name, places):
                    found.append(f"{name}: may not import {imported}")
    return found


def test_the_package_keeps_the_rules() -> None:
    assert breaches(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("symbolic/domain.py", "import numpy"),
        ("symbolic/domain.py", "from bilevel.rules.rule import Rule"),
        ("symbolic/domain.py", "from ..rules import rule"),
        ("symbolic/__init__.py", "from ..rules import rule"),
        ("symbolic/domain.py", "import bilevel"),
        ("rules/rule.py", "from bilevel.planning.search import search"),
        ("rules/rule.py", "from bilevel import planning"),
        ("rules/rule.py", "def f():\n    import numpy.random"),
        ("planning/search.py", "from bilevel.rules.rule import Rule"),
        ("planning/search.py", "import networkx"),
        ("rules/rule.py", "import numpy"),
        ("tabletop/blocks.py", "import torch"),
        ("policies/rollout.py", "import torch.nn as nn"),
        ("experiments/methods.py", "from torch import nn"),
        ("experiments/scaling.py", "import matplotlib.pyplot"),
        ("experiments/scaling.py", "from jinja2 import Template"),
        ("policies/policy_folder.py", "from bilevel.baselines.learning import learn_end_to_end"),
        ("learning/bilevel.py", "from bilevel.experiments.methods import METHODS"),
        ("lowlevel/training.py", "from rich.progress import track"),
        ("demo.py", "from bilevel.cli import main"),
        ("demo.py", "from .cli import main"),
        ("demo.py", "from . import cli"),
        ("rules/utils.py", ""),
        ("common/names.py", ""),
        ("helpers.py", ""),
        ("structs.py", ""),
    ],
)
def test_a_breach_is_found(tmp_path: Path, file: str, line: str) -> None:
    write(tmp_path, file, line)
    assert len(breaches(tmp_path)) >= 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("symbolic/domain.py", "import random\nfrom .semantics import regress\nfrom . import pddl"),
        ("rules/rule.py", "from bilevel.symbolic.domain import Atom\nfrom bilevel.rules.matching import unify"),
        ("planning/search.py", "from collections.abc import Iterator\nfrom bilevel.symbolic import semantics"),
        ("tabletop/blocks.py", "import numpy as np\nimport mujoco\nfrom bilevel.symbolic.domain import Atom"),
        ("tabletop/blocks.py", "import gymnasium\nfrom bilevel.tabletop.tabletop import Tabletop"),
        ("lowlevel/training.py", "import torch\nimport numpy\nfrom bilevel.tabletop.labelling import label"),
        ("baselines/vla.py", "from torch import nn\nfrom bilevel.policies.rollout import rollout"),
        ("experiments/methods.py", "from bilevel.baselines.vla import require_vla"),
        ("experiments/report.py", "import matplotlib.pyplot as plt\nimport jinja2"),
        ("cli.py", "import tyro\nfrom rich.table import Table\nfrom bilevel.rules.rule import Rule"),
        ("demo.py", "from rich import print"),
    ],
)
def test_what_is_allowed_is_no_breach(tmp_path: Path, file: str, line: str) -> None:
    write(tmp_path, file, line)
    assert breaches(tmp_path) == []


def write(package: Path, file: str, text: str) -> None:
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(text, encoding="utf-8")


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    command = "import sys, bilevel; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    modules = set(run.stdout.split())
    assert "bilevel" in modules
    assert modules.isdisjoint(NOT_PULLED_IN)
