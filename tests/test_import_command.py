"""`bilevel import`, at tiny size: what it reads, writes, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import recorded_episodes
import tiny_task
from bilevel.commands.import_command import Import
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.importing.importer import Format
from command_line import run
from recorded_episodes import Raw, raw

TASK = f"{tiny_task.__file__}:TINY"
HERE = recorded_episodes.__file__


def write(path: Path, *episodes: Raw, **further: Any) -> Path:
    """An npz file of vectors."""
    rows = [np.arange(len(one.observations)) == len(one.actions) for one in episodes]
    arrays = {
        "observations": np.concatenate([one.vectors for one in episodes]),
        "actions": np.concatenate([[*one.actions, np.zeros(3)] for one in episodes]),
        "terminals": np.concatenate(rows),
        **further,
    }
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Three episodes, of which one fails."""
    return write(tmp_path / "play.npz", raw(0), raw(1), raw(2, give_up_after=10))


def arguments(file: object, output: Path, *further: object) -> list[object]:
    return ["import", file, "--task", TASK, "--perceive", f"{HERE}:from_vector", "--output", output, *further]


def test_what_was_imported_is_told(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "set"
    code, out, _ = run(capsys, *arguments(file, output, "--objects", 2))
    assert code == 0
    steps = len(raw(0).actions) + len(raw(1).actions)
    assert out == (
        f"3 episodes read, 2 demonstrations kept, {steps} steps\n"
        "dropped: 1 that failed (see --keep-failed)\n"
        "controls: as recorded (3)\n"
        f"written to {output}\n"
    )
    shown = run(capsys, "demonstrations", "show", output)[1]
    assert shown.startswith(f"bilevel import {file} --format npz --task tiny --perceive {HERE}:from_vector --objects 2")
    assert run(capsys, "demonstrations", "check", output)[0] == 0
    code, out, _ = run(capsys, "demonstrations", "replay", output, "--task", TASK)
    assert code == 1
    assert out.endswith("the data set was imported: an episode happens again only if its seed was recorded, too\n")


def test_all_of_it_as_json(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--rate", 10, "--recorded-rate", 20, "--combine", "sum", "--clip", "--keep-failed", "--json")
    found = json.loads(run(capsys, *arguments(file, tmp_path / "set", *options))[1])
    assert (found["read"], found["kept"], found["rate"]) == (3, 2, 10)
    assert found["dropped"] == {"that failed, and in which nothing was achieved": 1}
    assert found["controls"] == {"as recorded": 3}
    assert found["notes"][0].endswith("numbers of controls were clipped")
    command = Demonstrations.read(tmp_path / "set").command
    assert command.endswith("--rate 10.0 --recorded-rate 20.0 --combine sum --clip --keep-failed")


def test_learning_without_controls_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "seen.npz", raw(0), raw(1), actions=None)
    task = tmp_path / "task.py"
    task.write_text("from dataclasses import replace\nfrom tiny_task import TINY\ntask = replace(TINY, expert=None)\n")
    output = tmp_path / "set"
    given = ["import", file, "--task", f"{task}:task", "--perceive", f"{HERE}:from_vector", "--output", output]
    assert "controls: none (2)\n" in run(capsys, *given)[1]
    assert run(capsys, "rules", "learn", "--demonstrations", output, "--output", tmp_path / "rules")[0] == 0
    code, _, err = run(capsys, "learn", output, "--task", f"{task}:task", "--output", tmp_path / "policy")
    assert code == 2
    assert err.splitlines()[-1].startswith("bilevel: no controls were recorded in this data set, so no network can")
    made = ["--controls-from", f"{HERE}:next_velocity", "--output", tmp_path / "made"]
    assert "controls: made by the function (2)\n" in run(capsys, *given[:-2], *made)[1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--perceive", "from_vector"], "'from_vector' names no function; name one as file.py:function"),
        (["--perceive", f"{HERE}:nothing"], f"{HERE}:nothing: no function called 'nothing' there"),
        (["--rate", "20"], "the recordings do not say how many timesteps there are per second: give --recorded-rate"),
        (["--rate", "-1"], "--rate must be more than 0, but is -1"),
        (["--mask", "train"], "--mask is for robomimic's files, and"),
        (["--format", "minari"], "there is no Minari data set here"),
        (["--demonstrator", "ann"], "of 3 episodes none can be used: 3 of other demonstrators"),
        (["--env-args", "wind=3"], "the task 'tiny' takes no argument 'wind'"),
        (["--objects", "99"], "the task 'tiny' takes 1 to 12 objects, not 99"),
    ],
)
def test_bad_input_is_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    code, _, err = run(capsys, *arguments(file, tmp_path / "set", *options))
    assert (code, err.count("\n")) == (2, 1)
    assert reason in err
    assert not (tmp_path / "set").exists()


def test_the_task_must_be_named(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "import", file, "--output", tmp_path / "set")
    assert (code, err) == (2, "bilevel: say what was demonstrated: --task file.py:task, or the name of a task\n")


def test_the_command_knows_all_formats() -> None:
    known = get_args(get_type_hints(Import)["format"])
    assert set(get_args(Format)) == {name for part in known for name in get_args(part)}


def test_formats_are_recognised(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, *arguments(file, tmp_path / "set"))
    (tmp_path / "empty").mkdir()
    for source, reason in (
        (tmp_path / "set", "is a data set of demonstrations already; use it as it is"),
        (tmp_path / "empty", "its format is none that is known here; formats: npz, minari"),
        (tmp_path / "nothing", "there is no such file, folder or data set; formats: npz, minari"),
        ("mine/nothing-v0", "mine/nothing-v0: there is no Minari data set here"),
        (tmp_path / "nothing.h5", "there is no such file"),
    ):
        code, _, err = run(capsys, *arguments(source, tmp_path / "another"))
        assert code == 2
        assert reason in err
