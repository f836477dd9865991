"""A folder belongs to one experiment, and whatever is half there is not taken for there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from msgspec.structs import replace

from bilevel.experiments.reproduction.folder import (
    EXPERIMENT,
    QUICK,
    Experiment,
    ExperimentFolder,
    Run,
    open_folder,
    read_experiment,
    read_intact,
)
from bilevel.symbolic.domain import BadInput

USUAL = Experiment()


def refusal(folder: Path, experiment: Experiment = USUAL) -> str:
    with pytest.raises(BadInput) as refused:
        open_folder(folder, experiment)
    return str(refused.value)


def test_a_folder_is_begun_and_taken_up(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "folder"
    opened = open_folder(folder, QUICK)
    assert opened == open_folder(folder, QUICK) == ExperimentFolder(folder, QUICK)
    assert read_experiment(folder) == QUICK
    assert [path.name for path in folder.iterdir()] == [EXPERIMENT]


def test_another_experiment_is_refused_with_what_differs(tmp_path: Path) -> None:
    folder = tmp_path / "my_folder"
    open_folder(folder, USUAL)
    other = replace(USUAL, epochs=3, demonstrations=4)
    told = f"{folder}: was begun with demonstrations 200, not 4, epochs 200, not 3; choose another --output"
    assert refusal(folder, other) == told
    assert "quick False, not True" in refusal(folder, QUICK)


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    assert refusal(tmp_path) == f"{tmp_path}: holds other files; choose a new folder as --output"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file") == f"{tmp_path / 'file'}: cannot be used as a folder: File exists"
    below = tmp_path / "file" / "below"
    assert refusal(below) == f"{below}: cannot be used as a folder: Not a directory"


def test_a_beginning_that_was_killed_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / f".{EXPERIMENT}.0123").write_text("{")
    assert open_folder(tmp_path, USUAL).experiment == USUAL


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', '{"epoch": 3}', "[" * 100_000])
def test_garbage_in_the_place_of_an_experiment_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / EXPERIMENT).write_text(content)
    assert refusal(tmp_path).startswith(f"{tmp_path / EXPERIMENT}: not what `bilevel reproduce` wrote there: ")


def test_a_folder_without_one_is_no_reproduction(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no reproduction: there is no experiment"):
        read_experiment(tmp_path)


def test_of_many_who_begin_a_folder_at_once_all_have_the_same(tmp_path: Path) -> None:
    start = Barrier(8)

    def begin(epochs: int) -> str:
        start.wait()
        try:
            return (
                f"begun with epochs {open_folder(tmp_path / 'folder', replace(USUAL, epochs=epochs)).experiment.epochs}"
            )
        except BadInput as refused:
            return str(refused)

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(begin, [1, 2] * 4))
    known = read_experiment(tmp_path / "folder").epochs
    assert all(f"begun with epochs {known}" in line for line in told)
    assert len([line for line in told if "choose another" in line]) == 4
    assert [path.name for path in (tmp_path / "folder").iterdir()] == [EXPERIMENT]


# JSON


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert read_intact(tmp_path / "file", Run) is None
    assert read_intact(tmp_path / "missing", Run) is None
    assert read_intact(tmp_path, Run) is None
    (tmp_path / "file").write_text('{"machine": {"cores": 2}}', encoding="utf-8")
    assert read_intact(tmp_path / "file", Run) == Run({"cores": 2})
