"""The commands about demonstrations, at tiny size: what they print, write and exit with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import av
import pytest

import drawn_task
import tiny_task
from bilevel import cli
from bilevel.demonstrations import collect as collect_module
from bilevel.demonstrations.collect import Recorder
from bilevel.demonstrations.dataset import Demonstrations, file_name
from bilevel.files import write_atomically
from command_line import run

TASK = f"{tiny_task.__file__}:TINY"
ARGUMENTS = ("collect", TASK, "--objects", "1", "--episodes", "2")


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("set")
    with pytest.raises(SystemExit):
        cli.main([*ARGUMENTS, "--output", str(folder)])
    return folder


@pytest.fixture
def folder(collected: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(collected, tmp_path / "set"))


def test_collecting_says_what_was_collected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *ARGUMENTS, "--output", tmp_path / "set")
    assert code == 0
    assert out.startswith("2 episodes, ")
    assert f"written to {tmp_path / 'set'} in" in out


def test_collecting_again_says_what_was_there_and_what_was_broken(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "2 episodes, 2 of them already there" in run(capsys, *ARGUMENTS, "--output", folder)[1]
    (folder / file_name(1)).write_bytes(b"")
    code, out, _ = run(capsys, *ARGUMENTS, "--output", folder)
    assert code == 0
    assert f"{folder / file_name(1)}: no whole npz archive of plain arrays; it may be truncated; collected again" in out
    assert "2 episodes, 1 of them already there" in out
    (folder / file_name(0)).write_bytes(b"")
    found = json.loads(run(capsys, *ARGUMENTS, "--output", folder, "--json")[1])
    assert [problem.partition(": ")[0] for problem in found["broken"]] == [str(folder / file_name(0))]
    assert (found["episodes"], found["already_there"], found["failed_attempts"]) == (2, 1, 0)


def test_arguments_that_do_not_fit_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, reason in (
        (("collect", TASK, "--objects", "2"), "was begun with objects 1 instead of 2"),
        (
            ("collect", TASK, "--env-args", "draw=uniform"),
            "the task 'tiny' takes no argument 'draw'; it takes: slip_rate",
        ),
        (("collect", TASK, "--env-args", "slip_rate"), "--env-args takes KEY=VALUE, not 'slip_rate'"),
        ((*ARGUMENTS, "--env-args", "slip_rate=0.5"), "was begun with slip rate 0.0 instead of 0.5"),
        (("collect", "cubes"), "unknown task 'cubes'; known tasks: blocks,"),
        (("collect", "cubes.py:task"), "cubes.py: there is no such file"),
        ((*ARGUMENTS, "--workers", "0"), "--workers must be at least 1"),
        ((*ARGUMENTS, "--episodes", "0"), "the number of episodes must be at least 1"),
    ):
        code, _, err = run(capsys, *arguments, "--output", folder)
        assert code == 2
        assert reason in err
        assert len(err.splitlines()) == 1


def test_an_interruption_says_how_far_it_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Recorder.record

    def interrupted(recorder: Recorder, index: int) -> Any:
        if index == 1:
            raise KeyboardInterrupt
        return real(recorder, index)

    monkeypatch.setattr(Recorder, "record", interrupted)
    code, _, err = run(capsys, *ARGUMENTS, "--output", tmp_path / "set")
    assert code == 130
    where = f"1 of 2 episodes are in {tmp_path / 'set'}; run the same command again to go on"
    assert err == f"bilevel: interrupted; {where}\n"


def test_a_full_disk_says_how_far_it_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        if path.name == file_name(1):
            path = Path("/dev/full")
        write_atomically(path, content)

    monkeypatch.setattr(collect_module, "write_atomically", full)
    code, _, err = run(capsys, *ARGUMENTS, "--output", tmp_path / "set")
    assert code == 2
    assert "cannot be written: No space left on device; 1 of 2 episodes are in" in err
    monkeypatch.undo()
    assert "1 of them already there" in run(capsys, *ARGUMENTS, "--output", tmp_path / "set")[1]


HELPLESS = """
from dataclasses import replace
from bilevel.tasks.task import Expert
from tiny_task import TINY, control
task = replace(TINY, expert=Expert(lambda state, goal: None, control))
silent = replace(TINY, expert=None)
"""


def test_an_expert_that_always_fails_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = tmp_path / "helpless.py"
    task.write_text(HELPLESS)
    code, _, err = run(capsys, "collect", f"{task}:task", "--output", tmp_path / "set")
    assert code == 2
    assert "the expert failed 20 times at episode 0 (no action (no rule)); try less noise or other arguments" in err
    code, _, err = run(capsys, "collect", f"{task}:silent", "--output", tmp_path / "other")
    assert (code, err.startswith("bilevel: the task 'tiny' has no expert that can show it")) == (2, True)


def test_checking_tells_what_is_there_and_what_is_broken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "demonstrations", "check", folder)
    assert code == 0
    assert "tiny: 2 episodes" in out
    assert "actions: pick 2, put 2" in out
    assert "exogenous changes: 0" in out
    assert "all files are whole" in out
    assert run(capsys, "demonstrations", "check", folder, "--task", TASK)[1] == out
    (folder / file_name(0)).unlink()
    code, out, _ = run(capsys, "demonstrations", "check", folder)
    assert code == 1
    assert f"{folder / file_name(0)}: there is no such file\n" in out
    assert "1 problem\n" in out
    code, out, _ = run(capsys, "demonstrations", "check", folder, "--json")
    found = json.loads(out)
    assert (code, found["problems"], found["episodes"]) == (1, [f"{folder / file_name(0)}: there is no such file"], 1)
    code, _, err = run(capsys, "demonstrations", "check", folder.parent)
    assert code == 2
    assert "no data set" in err


def test_replaying_says_whether_it_matches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "demonstrations", "replay", folder, "--task", TASK)
    assert (code, out) == (0, "2 episodes, 2 the same bit for bit\n")
    code, out, _ = run(capsys, "demonstrations", "replay", folder, "--episode", 1, "--json", "--task", TASK)
    assert (code, json.loads(out)) == (0, {"episode": 1, "matches": True, "difference": None})
    code, _, err = run(capsys, "demonstrations", "replay", folder, "--episode", 2, "--task", TASK)
    assert code == 2
    assert "there is no episode 2: they are counted from 0 to 1" in err
    code, _, err = run(capsys, "demonstrations", "replay", folder)
    assert code == 2
    assert err == f"bilevel: {folder} is of the task 'tiny', which is not registered here; add --task file.py:task\n"


def test_a_demonstration_is_filmed_while_it_is_replayed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn, film = f"{drawn_task.__file__}:DRAWN", folder / "film.mp4"
    replay = ("demonstrations", "replay", folder, "--task", drawn)
    code, out, _ = run(capsys, *replay, "--episode", 1, "--video", film)
    assert (code, out) == (0, f"1 episode, 1 the same bit for bit\nwritten to {film}\n")
    steps = Demonstrations.read(folder)[1].steps
    with av.open(str(film)) as container:
        assert len(list(container.decode(video=0))) == steps + 30  # a second of how it ended
    for words, what in (
        (("--video", film), "--video shows one episode: say which with --episode K"),
        (("--episode", 1, "--names"), "--names and --size are about pictures: add --video"),
        (("--episode", 1, "--names", "--video", folder / "other.mp4"), "no names in pictures: the task 'drawn' does "),
    ):
        code, out, err = run(capsys, *replay, *words)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert err.startswith(f"bilevel: {what}")
    assert not (folder / "other.mp4").exists()


SLOWER = """
from dataclasses import replace
from gymnasium.wrappers import TransformAction
from tiny_task import TINY, make_env
def make_slower(objects, slip_rate=0.0):
    env = make_env(objects, slip_rate)
    return TransformAction(env, lambda action: action * 0.9, env.action_space)
task = replace(TINY, make_env=make_slower, save=None)
"""


def test_a_replay_that_differs_names_the_step_and_the_versions(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = tmp_path / "slower.py"
    slower.write_text(SLOWER)
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"numpy": "', '"numpy": "1.'))
    code, out, _ = run(capsys, "demonstrations", "replay", folder, "--task", f"{slower}:task")
    assert code == 1
    assert "episode 0: first differs at step 1: 'agent' by " in out
    assert "2 episodes, 0 the same bit for bit" in out
    assert "the data set was made with numpy 1." in out


def test_showing_tells_a_data_set_and_an_episode(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "demonstrations", "show", collected)
    assert code == 0
    assert out.startswith(
        f"bilevel collect tiny --objects 1 --env-args slip_rate=0.0 --episodes 2 --seed 0 --output {collected}"
    )
    assert "parcel1 (parcel), spot1 (spot)" in out
    code, out, _ = run(capsys, "demonstrations", "show", collected, "--episode", 0)
    assert [line.split(maxsplit=1)[1] for line in out.splitlines()] == [
        "goal: at(parcel1, spot1)", "pick(parcel1)", "put(parcel1, spot1)", "success",
    ]  # fmt: skip
    story = json.loads(run(capsys, "demonstrations", "show", collected, "--episode", 0, "--json")[1])["story"]
    assert story[0] == [0, "goal: at(parcel1, spot1)"]
    assert json.loads(run(capsys, "demonstrations", "show", collected, "--json")[1])["episodes"] == 2


def test_rules_are_learned_from_a_data_set(collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "tiny.rules"
    arguments = ("rules", "learn", "--demonstrations", collected, "--output", output)
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert output.read_text() in out
    assert "# learned from 2 demonstrations of tiny, 2 traces" in out
    assert "1: carrying(?p) & empty(?s) & goal at(?p, ?s) -> put(?p, ?s)" in out
    assert "changes that no action explains: 0" in out
    found = json.loads(run(capsys, *arguments, "--json")[1])
    assert (found["rules"], found["demonstrations"], found["exogenous"]) == (2, 2, 0)


def test_rules_need_one_source(collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = ("--output", tmp_path / "x.rules")
    code, _, err = run(capsys, "rules", "learn", "domain.pddl", "--demonstrations", collected, *output)
    assert (code, "not both" in err) == (2, True)
    code, _, err = run(capsys, "rules", "learn", *output)
    assert (code, "no problems to learn from" in err) == (2, True)


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        (
            ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"),
            "torch is missing; install it with: pip install 'bilevel[learning]'",
        ),
        (
            ImportError("libarrow.so: no such file\nand so on", name="pyarrow.lib"),
            "pyarrow is installed, but cannot be imported (libarrow.so: no such file); "
            "install it again: pip uninstall pyarrow; pip install 'bilevel[data]'",
        ),
        (ModuleNotFoundError("No module named 'bilevel.nowhere'", name="bilevel.nowhere"), None),
        (ImportError("cannot import name 'x' from 'bilevel'", name="bilevel"), None),
    ],
)
def test_an_extra_that_is_missing_or_broken_is_one_line_and_a_module_of_ours_is_a_bug(
    missing: ImportError,
    line: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lack(*_: object) -> None:
        raise missing

    monkeypatch.setattr("bilevel.learning.diagnosis.diagnose", lack)
    if line is None:
        with pytest.raises(ImportError):
            run(capsys, "demonstrations", "check", tmp_path)
    else:
        code, _, err = run(capsys, "demonstrations", "check", tmp_path)
        assert (code, err) == (2, f"bilevel: {line}\n")
