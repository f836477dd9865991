from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tasks import registry
from bilevel.tasks.registry import find_task, register_task, registered_task, task_names
from tiny_task import TINY

TESTS = Path(__file__).parents[1]


@pytest.fixture
def registered() -> Iterator[None]:
    register_task(TINY)
    yield
    registry._REGISTERED.clear()


@pytest.mark.usefixtures("registered")
def test_a_registered_task_is_found_by_its_name() -> None:
    assert find_task("tiny") is TINY
    assert "tiny" in task_names()


def test_a_task_in_a_file_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TESTS)
    task = find_task("tiny_task.py:TINY")
    assert task.name == "tiny"
    assert task.source == f"{TESTS / 'tiny_task.py'}:TINY"
    assert find_task("tiny_task.py:TINY_DISCRETE").name == "tiny-discrete"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("bloks", "unknown task 'bloks'; known tasks: blocks"),
        ("missing.py:task", "there is no such file"),
        ("tiny_task.py", "say which task in it"),
        ("tiny_task.py:NOTHING", "no task called 'NOTHING' there; tasks there: TINY"),
        ("no_such_module:task", "there is no module 'no_such_module'"),
        ("broken.py:task", "ZeroDivisionError.*broken.py, line 2"),
    ],
)
def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny_task.py").write_text((TESTS / "tiny_task.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "broken.py").write_text("import os\n1 / 0\n", encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        find_task(source)


def test_what_a_folder_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    assert registered_task("evil.py:task") is None
    assert registered_task("evil:task") is None
    assert registered_task("evil") is None


def test_a_task_that_was_found_travels_by_its_name() -> None:
    task = find_task(f"{TESTS / 'tiny_task.py'}:TINY")
    again = pickle.loads(pickle.dumps(task))
    assert again.source == task.source
    code = f"import pickle; print(pickle.loads({pickle.dumps(task)!r}).name)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "tiny\n"


def test_a_task_that_was_changed_is_another() -> None:
    changed = replace(find_task("tiny_task:TINY"), name="mine", steps_per_object=7)
    again = pickle.loads(pickle.dumps(changed))
    assert (again.name, again.steps_per_object) == ("mine", 7)


def test_a_file_that_was_edited_is_read_again(tmp_path: Path) -> None:
    text = (TESTS / "tiny_task.py").read_text(encoding="utf-8")
    file = tmp_path / "edited.py"
    file.write_text(text, encoding="utf-8")
    assert find_task(f"{file}:TINY").steps_per_object == 400
    file.write_text(text.replace("steps_per_object=400", "steps_per_object=5"), encoding="utf-8")
    assert find_task(f"{file}:TINY").steps_per_object == 5
