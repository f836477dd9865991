"""`bilevel run`: what it tells, explains, shows and refuses."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import av
import pytest

import drawn_task
import tiny_task
from command_line import refused, run, run_json, run_well
from tiny_policies import PICK, PUT, moving_as_the_expert, still_folder

TINY = f"{tiny_task.__file__}:TINY"
DRAWN = f"{drawn_task.__file__}:DRAWN"
ONE = ("--objects", 1, "--seed", 1)


@pytest.fixture
def skilled() -> Iterator[Path]:
    """A policy whose network moves as the expert does."""
    with moving_as_the_expert():
        yield still_folder()


def test_a_run_tells_every_action_and_event_with_its_step(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", TINY, "--policy", "expert", "--objects", 2, "--seed", 1)
    told = [line.split(maxsplit=1)[1] for line in out.splitlines()]
    assert (code, told[:2]) == (0, ["pick(parcel1)", "put(parcel1, spot1)"])
    assert sorted(told[2:]) == ["(arrival parcel2)", "pick(parcel2)", "put(parcel2, spot2)"]
    assert err == f"success after {err.split()[2]} steps\n"


def test_each_decision_is_told_with_its_rule_binding_and_sentence(
    capsys: pytest.CaptureFixture[str], skilled: Path
) -> None:
    lines = run_well(capsys, "run", TINY, *ONE, "--policy", skilled, "--explain").splitlines()
    assert lines[0] == "     0  pick(parcel1)"
    indent, binding = 10 * " ", "with ?p = parcel1, ?s = spot1"
    assert lines[1:3] == [f"{indent}rule {PICK}", indent + binding]
    assert lines[5:7] == [f"{indent}rule {PUT}", indent + binding]
    assert run_well(capsys, "run", TINY, *ONE, "--policy", skilled).splitlines() == [lines[0], lines[4]]
    found = run_json(capsys, "run", TINY, *ONE, "--policy", skilled, "--explain")
    assert [decision["rule"] for decision in found["decisions"]] == [PICK, PUT]


def test_a_trace_is_a_table_with_a_row_for_each_step(
    capsys: pytest.CaptureFixture[str], skilled: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "new" / "trace.csv"
    _, _, err = run(capsys, "run", TINY, *ONE, "--policy", skilled, "--trace", trace)
    steps = int(err.split()[2])
    with trace.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(steps + 1))
    assert (rows[0]["action"], rows[-1]["outcome"]) == ("pick(parcel1)", "success")
    assert err.splitlines()[-1] == f"written to {trace}"


def test_an_episode_of_an_evaluation_runs_again_as_it_was(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    noisy = ("--noise", 0.3, "--env-args", "slip_rate=0.01", "--perception", "noise=0.001")
    evaluate = ("evaluate", TINY, "--policy", "expert", "--objects", "1-2", "--episodes", 2, *noisy)
    run_well(capsys, *evaluate, "--output", results)
    replay = ("run", TINY, "--replay", results, "--objects", 2, "--episode", 1)
    code, _, err = run(capsys, *replay)
    assert (code, err.splitlines()[-1]) == (0, "as recorded")
    assert run_json(capsys, *replay)["as_recorded"]
    for given in (("--seed", 0), ("--seed", 1), ("--noise", 0), ("--method", "expert")):
        assert refused(capsys, *replay, *given) == (
            f"{given[0]} does not go with --replay, which runs the episode as it was recorded"
        )
    assert "not registered here; name it before --replay, as file.py:task" in refused(capsys, "run", *replay[2:])


MISTAKES = {
    "": "name a TASK, such as blocks",
    f"{TINY} --episode 1": "--episode needs --replay FILE",
    "cubes": "unknown task 'cubes'; known tasks: blocks, blocks-noisy,",
    f"{TINY} --objects 13": "the task 'tiny' takes 1 to 12 objects, not 13",
    f"{TINY} --view --json": "--view does not go together with --video, --trace or --json; choose one",
    f"{TINY} --view --port 70000": "70000 is not in the range 0<=x<=65535",
    f"{TINY} --names": "--names is about pictures: add --video or --view",
    f"{TINY} --policy ./expert": "expert: there is no such folder; `bilevel learn` makes one",
    f"{TINY} --method det-plan": "the method 'det-plan' needs a --policy; `bilevel learn` makes one",
    "gacha --policy blocks": "the policy was learned on 'blocks': its domain lacks ",
    f"{DRAWN} --video /dev/null/out.mp4": "/dev/null/out.mp4: cannot be written: ",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_what_makes_no_sense_is_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert MISTAKES[words] in refused(capsys, "run", *words.split())


def test_a_video_shows_the_episode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, "run", DRAWN, "--policy", "expert", *ONE, "--video")
    steps = int(err.split()[2])
    assert (code, err.splitlines()[1:]) == (0, ["written to episode.mp4"])
    with av.open("episode.mp4") as container:
        widths = [frame.width for frame in container.decode(video=0)]
    assert widths == [drawn_task.WIDTH] * (steps + 30)  # a second of how it ended
