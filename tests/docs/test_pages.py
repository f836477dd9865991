"""Every fenced block of every page is carried out, or checked; there is none without a verdict."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
import symbolic_situations
import task_situations
from page_blocks import PAGES, ROOT, blocks_of
from page_runs import LINKED, Page
from page_tables import ILLUSTRATIONS, NEEDS, SMALLER

from bilevel import cli


@pytest.fixture(scope="session")
def sources() -> list[str]:
    """The texts of which a page may show a part."""
    files = [file for folder in ("examples", "src") for file in (ROOT / folder).rglob("*")]
    return [file.read_text(encoding="utf-8") for file in files if file.suffix in (".py", ".pddl")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the top of the repository, in which pages may write."""
    for name in LINKED:
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*precision lowered", "ignore:.*DISPLAY")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_has_a_verdict(
    path: Path, folder: Path, sources: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.name in NEEDS:
        pytest.importorskip(NEEDS[path.name])
    page = Page(path, folder, sources, monkeypatch)
    for block in page.blocks:
        verdict = page.verdict(block)
        assert verdict
        print(f"{block}: {verdict}")


def test_the_tables_have_nothing_that_no_page_has() -> None:
    texts = {path.name: [block.text for block in blocks_of(path)] for path in PAGES}
    everything = [text for page in texts.values() for text in page]
    for begin in (*symbolic_situations.SITUATIONS, *task_situations.SITUATIONS, *ILLUSTRATIONS):
        assert any(text.startswith(begin) for text in everything), begin
    for page, replaced in SMALLER.items():
        for pattern in replaced:
            assert any(re.search(pattern, text, re.MULTILINE) for text in texts[page]), (page, pattern)


def test_the_examples_of_commands_are_commands() -> None:
    for name in cli.COMMANDS:
        for example in re.findall(r"\bbilevel [^;\n]*", " ".join((cli.load(name).__doc__ or "").split("Example")[1:])):
            assert cli._asked(example.split()[1:]), example
