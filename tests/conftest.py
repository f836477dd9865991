"""What `make check` leaves out: folders and files whose tests take more than a few seconds together."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SLOW = (
    "baselines",
    "conformance",
    "demonstrations",
    "examples",
    "experiments",
    "learning/test_learn.py",
    "planning/test_fond.py",
    "planning/test_fond_against_definition.py",
    "rules/test_learning.py",
    "rules/test_problem_traces.py",
    "rules/verification",
    "tabletop",
    "test_benchmarks.py",
    "test_demo.py",
    "test_demonstration_commands.py",
    "test_learn_command.py",
    "test_task_benchmarks.py",
    "test_tutorial.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    assert all((TESTS / name).exists() for name in SLOW), "a name that is not there leaves nothing out"
    for item in items:
        path = item.path.relative_to(TESTS) if item.path.is_relative_to(TESTS) else item.path
        if any(path.is_relative_to(slow) for slow in SLOW):
            item.add_marker(pytest.mark.slow)
