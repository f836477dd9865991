"""Only the worlds and the experiment know a task: none is named elsewhere, so the same code serves all of them.

Ordinary English is let through: docstrings, sentences, and small letters in the names of variables ("blocks" of text, a
"factory" of values). What gives a task away is its name as a string, its world in the name of a class, or its module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bilevel
from bilevel.tabletop import TASKS

PACKAGE = Path(bilevel.__file__).parent
KNOWING = ("tabletop", "experiments", "cli/demo.py")
WORLDS = {name.split("-")[0] for name in TASKS}
SUITES = ("ogbench", "kinder", "robosuite", "minigrid")  # whose environments the examples use


def words(code: str) -> Iterator[str]:
    """The words, in small letters, of strings that are no sentences, of class names, and of modules of ours."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield from re.findall("[a-z]+", node.value.lower())
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [f"{getattr(node, 'module', None) or ''}.{alias.name}".lstrip(".") for alias in node.names]
            yield from re.findall("[a-z]+", " ".join(name for name in names if name.startswith("bilevel")).lower())
        for identifier in (getattr(node, field, None) for field in ("id", "attr", "name", "arg")):
            if isinstance(identifier, str):
                yield from map(str.lower, re.findall("[A-Z][a-z]+", identifier))


def task_names(code: str) -> set[str]:
    return WORLDS & set(words(code))


def test_no_task_is_named_in_what_serves_all_of_them() -> None:
    files = {file.relative_to(PACKAGE): file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")}
    assert len(files) > 100
    ignorant = {path: code for path, code in files.items() if not path.as_posix().startswith(KNOWING)}
    assert {path: found for path, code in ignorant.items() if (found := task_names(code))} == {}


@pytest.mark.parametrize(
    "code",
    [
        "if task == 'gacha': ...",
        "if task.name.startswith('colour-'): ...",
        "if name in ('blocks-noisy', 'other'): ...",
        "table = {'factory': 1}",
        "path = f'{folder}/blocks.pddl'",
        "labels = labelling.GachaLabels(slots)",
        "from bilevel.tabletop.colour import Tray",
        "from bilevel.tabletop import factory",
        "import bilevel.tabletop.gacha",
        "def train(kind: Blocks) -> None: ...",
    ],
)
def test_a_task_that_is_named_is_found(code: str) -> None:
    assert len(task_names(code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "'''Blocks of rows, each of one colour.'''",
        "blocks = [text for text in parts]",
        "field(default_factory=dict)",
        "raise BadInput('write for example block=4 or colour+tray=3')",
        "# gacha",
        "from lerobot.policies.factory import make_policy",
    ],
)
def test_ordinary_english_is_let_through(code: str) -> None:
    assert task_names(code) == set()


def suites_named(text: str) -> set[str]:
    return {suite for suite in SUITES if suite in text.lower()}


def test_nothing_in_the_package_serves_a_suite_of_others_alone() -> None:
    """Not even a comment or a sentence names one: what their environments need, everybody's may need."""
    files = [file for file in PACKAGE.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert len(files) > 100
    named = {str(file.relative_to(PACKAGE)): suites_named(file.read_bytes().decode(errors="ignore")) for file in files}
    assert {path: found for path, found in named.items() if found} == {}


@pytest.mark.parametrize(
    "text", ["import ogbench", "# as KinDER rejects a step", "kindergarden", "'robosuite'", "MiniGrid"]
)
def test_a_suite_that_is_named_is_found(text: str) -> None:
    assert len(suites_named(text)) == 1


def test_every_world_is_looked_for() -> None:
    assert {"blocks", "factory", "colour", "gacha"} <= WORLDS
