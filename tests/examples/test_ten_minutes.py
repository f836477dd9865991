"""The tutorial with an arm of others: its code is that of the example, and its commands do what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import run

pytest.importorskip("ogbench", reason="ogbench is not installed: pip install ogbench")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ogbench"
SMALLER = {  # what makes a command of the page quick
    "collect": ("--episodes 60", "--episodes 4"),
    "learn": ("--output", "--epochs 2 --dagger-rounds 0 --output"),
    "evaluate": ("--objects 1,3,8 --episodes 20", "--objects 1 --episodes 1"),
}


def blocks(language: str) -> list[str]:
    page = (ROOT / "docs" / "ten_minutes.md").read_text(encoding="utf-8")
    return [
        text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if kind == language
    ]


def test_the_code_on_the_page_is_that_of_the_example() -> None:
    code = {"python": (EXAMPLE / "first_cubes.py").read_text(), "pddl": (EXAMPLE / "first_cubes.pddl").read_text()}
    shown = [(kind, text) for kind in code for text in blocks(kind) if "import gymnasium" not in text]
    assert len(shown) == 6
    for kind, text in shown:
        assert text in code[kind]


def test_what_there_is_to_look_at_is_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    program = next(text for text in blocks("python") if "import gymnasium" in text)
    exec(program, {})
    said = [line.partition("# ")[2] for line in program.splitlines() if "# " in line]
    assert capsys.readouterr().out.splitlines() == said


@pytest.mark.filterwarnings("ignore:.*precision lowered")
def test_the_commands_lead_to_the_rules_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    printed = {}
    for command in (line for text in blocks("sh") for line in text.splitlines() if line.startswith("bilevel ")):
        name, *_ = command.removeprefix("bilevel ").split()
        code, printed[name], errors = run(capsys, *command.replace(*SMALLER.get(name, ("", ""))).split()[1:])
        assert code == 0, errors
    assert printed["check"] == "first-cubes: no errors: a policy can be learned\n"
    rules = next(text for text in blocks("") if text.startswith("# Rules"))
    assert [line for line in rules.splitlines() if line[:1].isdigit()] == [
        line for line in printed["learn"].splitlines() if re.match(r"\d+: ", line)
    ]
    assert printed["evaluate"].startswith("first-cubes, bison: 1 episode\n")


@pytest.mark.filterwarnings("ignore:.*precision lowered")
def test_the_trap_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = next(text for text in blocks("") if text.startswith("error: "))
    first = (EXAMPLE / "first_cubes.py").read_text()
    first = first.replace("terminate_at_goal=False, ", "").replace(", success=success", "")
    (tmp_path / "first_cubes.py").write_text(first)
    (tmp_path / "first_cubes.pddl").write_text((EXAMPLE / "first_cubes.pddl").read_text())
    code, printed, _ = run(capsys, "check", f"{tmp_path / 'first_cubes.py'}:task")
    assert code == 1
    assert re.sub(r"step \d+", "step", printed) == re.sub(r"step \d+", "step", message)
