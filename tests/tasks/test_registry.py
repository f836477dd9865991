from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tasks import registry
from bilevel.tasks.registry import find_task, register_task, registered_task, task_names
from tiny_task import TINY

TESTS = Path(__file__).parents[1]


def test_a_registered_task_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {})
    register_task(TINY)
    assert find_task("tiny") is TINY
    assert "tiny" in task_names()


def test_a_task_in_a_file_is_found_and_travels_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TESTS)
    task = find_task("tiny_task.py:TINY")
    assert task.source == f"{TESTS / 'tiny_task.py'}:TINY"
    code = f"import pickle; print(pickle.loads({pickle.dumps(task)!r}).name)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "tiny\n"


def test_a_task_that_was_changed_is_another() -> None:
    changed = replace(find_task("tiny_task:TINY"), name="mine", steps_per_object=7)
    again = pickle.loads(pickle.dumps(changed))
    assert (again.name, again.steps_per_object) == ("mine", 7)


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
    assert [registered_task(name) for name in ("evil.py:task", "evil:task", "evil")] == [None] * 3
