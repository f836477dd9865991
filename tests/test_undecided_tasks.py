"""Commands with a task that has no actions yet: they work, and say what is missing and how it is learned."""

from __future__ import annotations

from pathlib import Path

import pytest

import undecided_task
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.task import Task
from command_line import refused, run_well
from undecided_task import BARE, FRAMED


@pytest.mark.parametrize("task", [BARE, FRAMED], ids=["no domain", "predicates alone"])
def test_all_but_learning_works_and_names_the_way(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, task: Task
) -> None:
    place, folder = f"{undecided_task.__file__}:{task.name.upper()}", tmp_path / "data"
    advice = f"the domain '{task.domain.name}' has no actions: learn them from demonstrations"
    assert advice in run_well(capsys, "check", place, "--objects", 2)
    assert "deliver(spot2, parcel2)" in run_well(capsys, "run", place, "--objects", 2)
    run_well(capsys, "collect", place, "--objects", 2, "--episodes", 3, "--output", folder)
    assert read_domain(folder / "domain.pddl") == task.domain
    assert "rules: no: the domain has no actions" in run_well(capsys, "demonstrations", "check", folder)
    assert "fetch(parcel1)" in run_well(capsys, "demonstrations", "show", folder, "--episode", 0)
    run_well(capsys, "demonstrations", "replay", folder, "--task", place)
    for method in ("bison", "pddl-nn"):
        told = refused(capsys, "learn", folder, "--task", place, "--method", method, "--output", tmp_path / "policy")
        assert f"{folder}: its domain '{task.domain.name}' has no actions" in told
        assert "--learn-domain" in told
    assert not (tmp_path / "policy").exists()
