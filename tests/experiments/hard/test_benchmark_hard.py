"""The command, at its smallest: it makes curves, goes on where it was stopped, and refuses what makes no sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bilevel.experiments.hard.axes import AXES
from bilevel.experiments.hard.curves import read_curves, summarise_curves
from bilevel.experiments.report import writing
from bilevel.experiments.reproduction.folder import ExperimentFolder, read_experiment
from command_line import run

TINY = ("--episodes", "2", "--seeds", "1", "--workers", "1", "--demonstrations", "4", "--epochs", "1", "--no-report")
BLOCKS = ("--tasks", "blocks", "--objects", "1")
Capture = pytest.CaptureFixture[str]


def benchmark(capsys: Capture, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run the command, and return what it says in JSON, if all is well."""
    code, out, err = run(capsys, "benchmark", "hard", *TINY, *BLOCKS, *arguments, "--output", folder, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    assert (found["failed"], found["not_done"]) == ({}, [])
    return found


def test_curves_are_measured_and_added_to(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    first = benchmark(capsys, folder, "--methods", "expert", "--axes", "budget", "control-noise")
    assert (first["done"], first["already_there"], first["report"]) == (5, 0, None)
    noise, budget = read_curves(folder / "curves.jsonl").curves
    assert [point.value for point in noise.points] == [0, 0.5, 1, 1.5, 2]
    assert [point.value for point in budget.points] == [1, 1.5, 2, 3, 5]
    assert [point.successes for point in budget.points] == [1, 2, 2, 2, 2]  # one of two takes longer than their mean
    assert budget.points[0].reasons == {"time": 1}
    before = {path: path.read_bytes() for path in folder.glob("episodes/**/*.jsonl")}

    both = ("--methods", "bison-paper", "expert", "--axes", "budget")
    second = benchmark(capsys, folder, *both)
    assert (second["done"], second["already_there"]) == (3, 1)  # collect, train and evaluate
    assert {path: path.read_bytes() for path in before} == before
    found = read_curves(folder / "curves.jsonl")
    known = [("control-noise", "expert"), ("budget", "bison-paper"), ("budget", "expert")]
    assert [(curve.axis, curve.variant) for curve in found.curves] == known

    monkeypatch.setattr(writing, "PICTURES", ())
    code, out, _ = run(capsys, "benchmark", "hard", *TINY[:-1], *BLOCKS, *both, "--output", folder)
    assert code == 0
    assert out.splitlines()[-1] == f"findings: {folder / 'curves.jsonl'}; report: {folder / 'hard.html'}"
    assert read_curves(folder / "curves.jsonl").curves == found.curves
    assert (folder / "report-files/hard-budget.md").is_file()

    (folder / "episodes/blocks/expert-0/01-control-noise-2.jsonl").write_text("no episode\n")
    left = summarise_curves(ExperimentFolder(folder, read_experiment(folder)), "")
    assert left.about.left_out == ["episodes/blocks/expert-0/01-control-noise-2.jsonl"]
    assert [point.value for point in left.curves[0].points] == [0, 0.5, 1, 1.5]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--axes", "telepots"), "unknown axis 'telepots'; there are: teleports, "),
        (("--tasks", "chess"), "unknown task 'chess'; tasks of the hard suite: blocks, factory, "),
        (("--methods", "magic"), "unknown method 'magic'; "),
        (("--objects", "30"), "--objects: there can be 1 to 20 objects"),
        (("--axes", "swap", "--tasks", "gacha"), "there is nothing to measure: swap: its tasks are swap"),
        (("--episodes", "0"), "--episodes must be at least 1"),
        (("--address", "auto"), "--address is that of a Ray cluster"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path, capsys: Capture) -> None:
    code, _, err = run(capsys, "benchmark", "hard", *arguments, "--output", tmp_path / "folder")
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert not (tmp_path / "folder").exists()


def test_the_axes_are_listed(capsys: Capture) -> None:
    code, out, _ = run(capsys, "benchmark", "axes")
    assert code == 0
    for axis in AXES.values():
        assert f"{axis.name}: {axis.about}\n" in out
    _, out, _ = run(capsys, "benchmark", "axes", "--json")
    assert [row["axis"] for row in json.loads(out)["axes"]] == list(AXES)
