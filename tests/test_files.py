"""Files that are there whole or not at all, folders too, and one process at a time in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilevel.files import folder_lock, new_folder, write_atomically
from bilevel.symbolic.domain import BadInput


def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path) -> None:
    left, other = tmp_path / ".a.rules.0123abcd.part", tmp_path / ".a.rules.mine"
    left.touch()
    other.touch()
    write_atomically(tmp_path / "a.rules", "new")
    assert {path.name for path in tmp_path.iterdir()} == {"a.rules", other.name}


def test_a_link_is_followed_and_permissions_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_atomically(link, [b"n", b"ew"])
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    beside = tmp_path / ".data.importing"  # somebody else's
    beside.mkdir()
    (beside / "file").touch()
    output = tmp_path / "data"
    with pytest.raises(FileNotFoundError), new_folder(output) as folder:
        (folder / "half" / "way").touch()
    assert [path.name for path in tmp_path.iterdir()] == [beside.name]
    with new_folder(output) as folder:
        (folder / "whole").touch()
        assert not output.exists()
    assert (output / "whole").exists()
    assert {path.name for path in tmp_path.iterdir()} == {beside.name, "data"}
    assert (beside / "file").exists()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_new_folder_takes_nobodys_place(tmp_path: Path, kind: str) -> None:
    output, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        output.symlink_to(elsewhere)
    elif kind == "file":
        output.touch()
    else:
        output.mkdir()
        (output / "file").touch()
    with pytest.raises(BadInput, match="there is something already"), new_folder(output):
        pass


def test_a_folder_is_locked_for_others_until_its_user_is_done(tmp_path: Path) -> None:
    place = tmp_path / "data"
    with folder_lock(place, "collecting"), pytest.raises(BadInput, match="is collecting here"):
        folder_lock(place, "collecting").__enter__()
    with folder_lock(place, "collecting"):
        pass
