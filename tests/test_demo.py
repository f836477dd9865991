"""The demo at tiny size, which is also a test of the whole way from demonstrations to pictures of a learned policy."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from bilevel import demo
from bilevel.demo import CONTENTS, Size, demonstrate
from bilevel.policies.folder import read_policy
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from drawing import can_draw

TINY = Size(
    episodes=6,
    objects=1,
    learning=("--epochs", "60", "--dagger-rounds", "0"),  # so many that the episode which is drawn is a short one
    sizes="1",
    evaluated=1,
    shown=1,
    blocks=20,
    workers=1,
)
PICTURES = {"episode.mp4", "episode.png"}


def test_the_demo_learns_measures_shows_and_solves(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    demonstrate(tmp_path, TINY)
    out, err = capfd.readouterr()
    assert "6 episodes" in out
    assert "-> pick(?b)" in out
    assert "If you hold a block, a place is clear and the block belongs there, place it there." in out
    assert "blocks, bison: 1 episode\n" in out
    assert "Because block1 is clear" in out
    assert " after " in out.split("Because")[-1]
    assert "solved in 40 steps" in err
    assert out.count(" s]\n") == 6
    written = {path.name for path in tmp_path.iterdir()}
    assert written == set(CONTENTS) - (set() if can_draw() else PICTURES)
    assert all(str(tmp_path / name) in out.split("Written:")[1] for name in written)
    assert read_policy(tmp_path / "policy").card.task == "blocks"
    (line,) = (tmp_path / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["seed"] == evaluation_seed(0, 1, 0)
    assert (tmp_path / "episode.txt").read_text().startswith("     0  pick(block1)\n")


@pytest.mark.parametrize(("actions", "shown"), [(1, 4), (2, 8), (5, 9)])
def test_of_a_long_story_the_beginning_and_the_end_are_shown(
    actions: int, shown: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = [f"{step:6}  pick(block1)\n{'          why' * 3}".replace("why ", "why\n ") for step in range(actions)]
    text = "\n".join([*story, "no action after 9 steps", "  rule 1"])
    program = f"import sys; print({text!r}, file=sys.stderr); sys.exit(1)"
    assert demo._run_briefly([sys.executable, "-c", program], tmp_path / "copy.txt") == 1
    assert (tmp_path / "copy.txt").read_text() == text + "\n"
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == shown + 2
    assert lines[:4] == text.splitlines()[:4]
    assert ("        ... and so on" in lines) == (actions > 2)
    assert lines[-2:] == ["no action after 9 steps", "  rule 1"]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that the demo would run."""
    given: list[list[str]] = []
    monkeypatch.setattr(demo, "_run", lambda *arguments, copy=None: given.append([str(one) for one in arguments]))
    return given


def test_without_opengl_there_is_a_line_and_no_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing_works() -> str:
        raise BadInput("no pictures: nothing works here")

    monkeypatch.setattr(demo, "backend", lambda: "any")
    demonstrate(tmp_path, TINY)
    assert any("--video" in command and "--sheet" in command for command in commands)
    commands.clear()
    monkeypatch.setattr(demo, "backend", nothing_works)
    demonstrate(tmp_path, TINY)
    assert "no pictures: nothing works here; the demo goes on without pictures\n" in capsys.readouterr().out
    assert [command[0] for command in commands][-4:] == ["run", "problem", "solve", "validate"]
    assert not any("--video" in command or "--sheet" in command for command in commands)


@pytest.mark.usefixtures("commands")
def test_it_begins_afresh_and_leaves_the_files_of_others_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("policy/rules.txt", "results.jsonl", "mine/notes.txt", "mine.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    demonstrate(tmp_path, TINY)
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "mine.txt"}
    assert (tmp_path / "mine/notes.txt").exists()
    assert "results.jsonl" not in capsys.readouterr().out.split("Written:")[1].split("Try next")[0]


def test_it_stops_where_a_command_cannot_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "FOLDER", tmp_path)
    monkeypatch.setattr(demo, "Size", lambda: Size(objects=21))
    with pytest.raises(SystemExit) as stopped:
        demo.main()
    captured = capfd.readouterr()
    assert (stopped.value.code, captured.out.count("$ bilevel")) == (2, 1)
    assert captured.err == "bilevel: the task 'blocks' takes 1 to 20 objects, not 21\n"
    with pytest.raises(CalledProcessError, match="exit status 2"):
        demonstrate(tmp_path, Size(objects=0))


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt(), 130), (NotADirectoryError(20, "no"), "demo: [Err")])
def test_interruptions_and_unusable_folders_are_not_tracebacks(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int | str
) -> None:
    def fail(folder: Path, size: Size) -> None:
        raise raised

    monkeypatch.setattr(demo, "demonstrate", fail)
    with pytest.raises(SystemExit) as stopped:
        demo.main()
    assert str(stopped.value.code).startswith(str(code))
