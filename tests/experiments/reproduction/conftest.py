"""A tiny experiment that nobody disturbed, for the tests of what disturbs one and of what adds to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from killing import TINY, left_behind, start


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two methods; not to be changed."""
    folder = tmp_path_factory.mktemp("undisturbed") / "folder"
    process = start(folder, *TINY, "--json")
    out, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert '"done": 6' in out
    assert left_behind(process) == []
    return folder
