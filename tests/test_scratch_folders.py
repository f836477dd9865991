"""Folders below the system's own for temporary files: only this user's, and gone afterwards."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from bilevel.files import make_scratch_folder, scratch_folder
from bilevel.symbolic.domain import BadInput


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"bilevel-{os.getuid()}"


def test_a_scratch_folder_is_gone_afterwards_and_so_are_those_of_the_dead(shared: Path) -> None:
    dead, handle = make_scratch_folder()
    (dead / "file").touch()
    with scratch_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {dead, folder} == set(shared.iterdir())
        os.close(handle)  # as the system does when a process dies
        with scratch_folder():
            assert not dead.exists()
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_refused(shared: Path, mode: int) -> None:
    shared.mkdir()
    shared.chmod(mode)
    with pytest.raises(BadInput, match=r"not safe: it must be a folder that is yours, .* set TMPDIR"):
        make_scratch_folder()


def test_a_folder_of_another_user_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    with pytest.raises(BadInput, match="not safe"):
        make_scratch_folder()


def test_a_link_or_a_file_in_its_place_is_refused(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    shared.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="not safe"):
        make_scratch_folder()
    shared.unlink()
    shared.touch()
    with pytest.raises(BadInput, match="cannot be used as a folder"):
        make_scratch_folder()
