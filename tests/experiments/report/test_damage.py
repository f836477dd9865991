"""Whatever is damaged in a folder of a reproduction, its report is made without that, or there is one line of error."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from damage import CONTENTS, Damage, damages, make_folder

from bilevel.experiments.report import page as report_page
from command_line import run

TRIED = 80  # values of the several thousand that may be damaged, besides every file as a whole
LONGEST = 500  # characters of an error


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing wrong in it."""
    return make_folder(tmp_path_factory.mktemp("damage") / "all")


def drawn_once(draw: Callable[..., str]) -> Callable[..., str]:
    """What draws the same chart, of which there are hundreds here, no more than once."""
    known: dict[str, str] = {}

    def remember(*given: Any) -> str:
        key = repr(given)
        if key not in known:
            known[key] = draw(*given)
        return known[key]

    remember.__name__ = draw.__name__
    return remember


@cache
def remembering(name: str) -> Callable[..., str]:
    return drawn_once(getattr(report_page, name))


def some_damages(folder: Path) -> list[Damage]:
    every = list(damages(folder))
    of_files = [damage for damage in every if damage.what in CONTENTS]
    return of_files + random.Random(0).sample([damage for damage in every if damage not in of_files], TRIED)


def test_a_damaged_folder_makes_a_report_or_one_line(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("panel_svg", "swatch"):
        monkeypatch.setattr(report_page, name, remembering(name))
    folder, page, codes = tmp_path / "all", tmp_path / "page.html", set()
    for damage in some_damages(whole):
        shutil.copytree(whole, folder)
        damage.inflict(folder)
        for source in {folder, folder / damage.file} if damage.file == "findings.jsonl" else {folder}:
            page.unlink(missing_ok=True)
            code, _, error = run(capsys, "report", source, "--output", page, "--page-only")
            assert code in (0, 2), damage
            assert page.exists() is (code == 0), damage
            assert error.count("\n") == (code == 2), damage
            assert len(error) < LONGEST + len(str(tmp_path)), damage
            codes.add(code)
        shutil.rmtree(folder)
    assert codes == {0, 2}


@pytest.mark.parametrize(
    "name",
    [
        "costs/blocks/bison-best-0.json",
        "memory/blocks/bison.json",
        "scaling/blocks-rules-10.json",
        "runs/one.json",
        "failures/film+blocks.json",
        "episodes/blocks/expert-0/01.jsonl",
    ],
)
def test_what_is_damaged_is_left_out_and_named(
    name: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / "all")
    Damage(name, "", b'{"seconds": "many"}\n').inflict(tmp_path / "all")
    code, _, _ = run(capsys, "report", tmp_path / "all", "--output", tmp_path / "page.html", "--page-only")
    assert code == 0
    assert f"{name}: damaged, or of a policy" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("odd", [b"chess", b"caf\xe9"])
def test_a_folder_that_is_of_no_task_is_left_out(
    odd: bytes, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / "all")
    for part in ("episodes", "policies"):
        shutil.copytree(tmp_path / "all" / part / "blocks", tmp_path / "all" / part / os.fsdecode(odd))
    code, _, _ = run(capsys, "report", tmp_path / "all", "--output", tmp_path / "page.html", "--page-only")
    assert code == 0
    assert f"episodes/{odd.decode(errors='replace')[:3]}" in (tmp_path / "page.html").read_text(encoding="utf-8")
