"""A fixture for tests of the rule engine: they are run with either executor."""

from __future__ import annotations

import pytest

from bilevel.native import PURE, find
from bilevel.rules.engine import COMPILED

EXECUTORS = {"compiled": "0", "python": "1"}  # what the variable `PURE` is for them


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The executor that engines have in the test."""
    name = str(request.param)
    monkeypatch.setenv(PURE, EXECUTORS[name])
    if name == "compiled" and not find(COMPILED):
        pytest.skip("the compiled executor is not built")
    return name
