"""What `pip install` gets: the wheel and the source distribution have all that is needed, and nothing else."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from email.message import Message
from email.parser import Parser
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

import bilevel
from bilevel import cli

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bilevel"
COMPILED = {".pyx", ".pxd", ".hpp"}  # what compiled parts are made of
ELSEWHERE = {"methods/lerobot_server.py"}  # runs in an environment of its own, which `bilevel lerobot install` makes
# Without Cython, so that nothing is compiled, which would take a minute.
BUILD = """import sys
sys.modules["Cython"] = None
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""


class Built(NamedTuple):
    """The names of the files in both, those of the wheel without its metadata, and that metadata."""

    source: set[str]
    wheel: set[str]
    about: Message
    entry_points: str


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the source distribution from a copy of what is here, and the wheel from that."""
    copy, unpacked = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("unpacked")
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    without = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    shutil.copytree(ROOT / "src", copy / "src", ignore=without)
    (copy / "tests").mkdir()
    (copy / "tests" / "test_nothing.py").touch()
    with tarfile.open(_build(copy, "build_sdist")) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames() if not archive.getmember(name).isdir()}
        archive.extractall(unpacked)
    (folder,) = unpacked.iterdir()
    with zipfile.ZipFile(_build(folder, "build_wheel")) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (info,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
        about = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
        return Built(inside, names, about, wheel.read(f"{info}/entry_points.txt").decode())


def _build(folder: Path, what: str) -> Path:
    command = [sys.executable, "-c", BUILD, what, str(folder / "dist")]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return folder / "dist" / done.stdout.splitlines()[-1]


def sources() -> set[str]:
    """All files of the package as they are in the repository, by their paths below src."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in files if path.suffix not in {".so", ".pyd"}}


def test_the_wheel_is_the_package(built: Built) -> None:
    assert built.wheel == {name for name in sources() if Path(name).suffix not in COMPILED}


def test_the_source_distribution_has_what_the_wheel_is_made_of(built: Built) -> None:
    inside = {name for name in built.source if not name.startswith("src/bilevel.egg-info/")}
    assert {name.removeprefix("src/") for name in inside if name.startswith("src/")} == sources()
    others = {name for name in inside if not name.startswith("src/")}
    assert others >= {"LICENSE", "README.md", "pyproject.toml", "setup.py", "CITATION.cff"}
    assert not any("/" in name for name in others)


def test_the_version_and_the_command_are_ours(built: Built) -> None:
    assert built.about["Version"] == bilevel.__version__
    assert "bilevel = bilevel.cli:main" in built.entry_points
    assert f"\nversion: {bilevel.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


# Extras


def requirements(about: Message, extra: str = "") -> set[str]:
    """The packages that an extra brings, or those that come in any case."""
    found = [Requirement(text) for text in about.get_all("Requires-Dist", [])]
    return {
        need.name.lower()
        for need in found
        if (need.marker is None if not extra else need.marker is not None and need.marker.evaluate({"extra": extra}))
    }


def imported(file: Path) -> Iterator[str]:
    """The packages that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


DISTRIBUTIONS = cache(metadata.packages_distributions)


def distributions(module: str) -> set[str]:
    """The packages, as pip calls them, that have a module."""
    return {name.lower() for name in DISTRIBUTIONS().get(module, [module])}


def brought(names: set[str]) -> set[str]:
    """These packages and those that they need themselves, as far as they are installed."""
    texts: list[str] = []
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            texts += [text for text in metadata.requires(name) or () if "extra ==" not in text]
    return names | {Requirement(text).name.lower() for text in texts}


def test_every_package_that_is_imported_comes_along_or_has_an_extra(built: Built) -> None:
    files = {file.relative_to(PACKAGE).as_posix(): file for file in PACKAGE.rglob("*.py")}
    modules = {name for path, file in files.items() if path not in ELSEWHERE for name in imported(file)}
    others = modules - set(sys.stdlib_module_names) - {"bilevel"}
    always = requirements(built.about)
    optional = {name for name in others if not distributions(name) & always}
    assert optional >= {"torch", "av", "PIL", "pyarrow", "ray", "jinja2", "matplotlib"}
    assert optional <= set(cli.EXTRAS)
    for name in optional:
        assert distributions(name) & brought(requirements(built.about, cli.EXTRAS[name])), name


def test_every_extra_that_an_error_names_is_there_and_among_all(built: Built) -> None:
    extras = set(built.about.get_all("Provides-Extra", []))
    assert set(cli.EXTRAS.values()) | {"planners"} <= extras
    (everything,) = (
        Requirement(text) for text in built.about.get_all("Requires-Dist", []) if text.startswith("bilevel[")
    )
    assert everything.extras == extras - {"all", "wandb", "examples", "docs", "dev"}
