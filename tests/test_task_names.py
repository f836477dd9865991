"""Only the worlds and the experiment know a task: none is named elsewhere, so the same code serves all of them.

Ordinary English is let through: docstrings, sentences, and small letters in the names of variables ("blocks" of text, a
"factory" of values). What gives a task away is its name as a string, its world in the name of a class, or its module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import bilevel
from bilevel.tabletop import TASKS

PACKAGE = Path(bilevel.__file__).parent
KNOWING = ("tabletop", "experiments")
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


def test_nothing_in_the_package_serves_a_suite_of_others_alone() -> None:
    """Not even a comment or a sentence names one: what their environments need, everybody's may need."""
    files = [file for file in PACKAGE.rglob("*") if file.is_file() and file.suffix not in (".pyc", ".so")]
    texts = {file: file.read_bytes().decode(errors="ignore").lower() for file in files}
    assert [str(file) for file, text in texts.items() if any(suite in text for suite in SUITES)] == []
