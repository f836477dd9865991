"""The page about an environment of one's own: its code is that of the example, and its commands do what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.networks import LearningConfig
from bilevel.lowlevel.training import TrainingConfig
from command_line import run

ROOT = Path(__file__).parents[1]
WORLD = ROOT / "examples" / "own_world"
SMALLER = {  # what makes a command of the page quick
    "collect": ("--episodes 100", "--episodes 40"),
    "learn": ("--output", "--epochs 40 --dagger-rounds 0 --output"),
    "evaluate": ("--episodes 100", "--episodes 2"),
}
QUICK = LearningConfig(training=TrainingConfig(epochs=1), dagger=DaggerConfig(rounds=0))


class Block(NamedTuple):
    language: str
    text: str


def blocks() -> list[Block]:
    page = (ROOT / "docs" / "own_environment.md").read_text(encoding="utf-8")
    return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, to work in."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_code_on_the_page_is_that_of_the_example() -> None:
    code = {"python": (WORLD / "own_world.py").read_text(), "pddl": (WORLD / "scrapyard.pddl").read_text()}
    shown = [block for block in blocks() if block.language in code and "import bilevel" not in block.text]
    assert len(shown) == 6
    for block in shown:
        assert block.text in code[block.language]


def test_the_commands_print_what_the_page_says(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = blocks()
    printed = {}
    for command in (line for block in page if block.language == "sh" for line in block.text.splitlines()):
        name, *_ = command.removeprefix("bilevel ").split()
        code, printed[name], errors = run(capsys, *command.replace(*SMALLER.get(name, ("", ""))).split()[1:])
        assert code == 0, errors
    checked, _, rules, explained, evaluated = (block.text for block in page if block.language == "")
    assert printed["check"] == checked
    assert printed["learn"].startswith(rules)
    assert printed["run"].startswith(explained)
    assert printed["evaluate"].splitlines()[1] == evaluated.splitlines()[1]


def test_the_mistake_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = next(block.text for block in blocks() if block.text.startswith("error: "))
    world = (WORLD / "own_world.py").read_text()
    (tmp_path / "own_world.py").write_text(world.replace('else "clean"', 'else "washed"'))
    (tmp_path / "scrapyard.pddl").write_text((WORLD / "scrapyard.pddl").read_text())
    assert run(capsys, "check", f"{tmp_path / 'own_world.py'}:task") == (1, message, "")


def test_the_same_in_python(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = next(block.text for block in blocks() if "import bilevel" in block.text)
    quick = program.replace("episodes=100", "episodes=2").replace("task=task)", "task=task, config=QUICK)")
    exec(quick, {"QUICK": QUICK})
    assert capsys.readouterr().out.endswith(" grab(scrap0)\n")
