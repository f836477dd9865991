"""Every test here goes over all tasks, and one task after the other, so that its worlds and episodes are made once."""

from __future__ import annotations

import pytest

from bilevel.tasks import TASKS


@pytest.fixture(scope="session", params=list(TASKS))
def task(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session", params=[1, 3])
def objects(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count
