"""A broken data set: which file, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bilevel.demonstrations.checking import check
from bilevel.demonstrations.dataset import read_dataset
from bilevel.demonstrations.manifest import MANIFEST, file_name
from bilevel.symbolic.domain import BadInput


def test_a_whole_data_set_has_no_problems(collected: Path) -> None:
    report = check(collected)
    assert report.problems == ()
    assert (report.summary.episodes, report.summary.exogenous) == (3, 0)
    assert report.summary.actions == {"pick": 3, "place": 3}
    assert report.summary.steps == sum(demonstration.steps for demonstration in read_dataset(collected))
    assert report.megabytes == sum(path.stat().st_size for path in collected.glob("*.npz")) / 1e6


def test_each_broken_file_is_named_with_its_reason(copied: Path) -> None:
    names = [copied / file_name(index) for index in range(3)]
    names[0].unlink()
    names[1].write_bytes(names[1].read_bytes()[:5000])
    names[2].write_bytes(names[2].read_bytes() + b"0")
    problems = check(copied).problems
    assert problems == (
        f"{names[0]}: missing",
        f"{names[1]}: no whole npz archive of plain arrays; it may be truncated",
        f"{names[2]}: not the file that the manifest describes (another sha256)",
    )


def test_exchanged_files_are_noticed(copied: Path) -> None:
    names = [copied / file_name(index) for index in range(2)]
    first, second = (path.read_bytes() for path in names)
    names[0].write_bytes(second)
    names[1].write_bytes(first)
    assert [problem.partition(": ")[0] for problem in check(copied).problems] == [str(path) for path in names]


def test_reading_a_broken_file_names_it(copied: Path) -> None:
    (copied / file_name(1)).write_bytes(b"")
    dataset = read_dataset(copied)
    assert len(dataset) == 3
    assert len(dataset[-1].actions) == dataset.manifest.entries[2].steps
    with pytest.raises(BadInput, match=r"episode-00001.npz: no whole npz archive"):
        dataset[1]
    with pytest.raises(IndexError):
        dataset[3]


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads((folder / MANIFEST).read_text())
    change(value)
    (folder / MANIFEST).write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.pop("slots"), "the manifest has no 'slots'"),
        (lambda m: m.update(mood="good"), "the manifest has an unknown 'mood'"),
        (lambda m: m.update(episodes="3"), "'episodes' in the manifest cannot be \"3\""),
        (lambda m: m.update(episodes=10**30), "the number of episodes must be at least 1, at most 100000"),
        (lambda m: m.update(episodes=0, files=[]), "the number of episodes must be at least 1"),
        (lambda m: m.update(seed=-1), "the seed must not be negative"),
        (lambda m: m.update(noise={"a": 1}), "'noise' has no 'amplitude'"),
        (lambda m: m["arguments"].update(objects="1"), "'objects' in 'arguments' cannot be"),
        (lambda m: m["arguments"].update(colours=2), "'arguments' has an unknown 'colours'"),
        (lambda m: m.update(complete=1), "'complete' in the manifest cannot be 1"),
        (lambda m: m.update(format=0), "'format' is 0, not 1"),
        (lambda m: m.update(slots=[["block1"]]), "'slots' must be pairs"),
        (lambda m: m["files"].pop(), "'files' must list 3 files"),
        (lambda m: m["files"][0].pop("sha256"), "an entry of 'files' has no 'sha256'"),
        (lambda m: m["features"].update(agent=["x"]), "'features' is"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_a_problem(
    copied: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    edit(copied, change)
    (problem,) = check(copied).problems
    assert problem.startswith(f"{copied / MANIFEST}: {reason}")
    with pytest.raises(BadInput, match="manifest"):
        read_dataset(copied)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m["slots"].pop(), "'slots' are not those of the task with these arguments"),
        (lambda m: m.update(slots=[]), "'slots' are not those of the task with these arguments"),
        (lambda m: m["arguments"].update(objects=99), "Blocks takes 1 to 20 objects, not 99"),
    ],
)
def test_a_manifest_that_does_not_fit_its_task_is_a_problem(
    copied: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    edit(copied, change)
    assert check(copied).problems == (f"{copied / MANIFEST}: {reason}",)


def test_a_manifest_that_is_truncated_or_nonsense_is_a_problem(copied: Path) -> None:
    text = (copied / MANIFEST).read_text()
    for broken in (text[: len(text) // 2], "[" * 100_000):
        (copied / MANIFEST).write_text(broken)
        (problem,) = check(copied).problems
        assert f"{MANIFEST}: not JSON" in problem


def test_a_newer_format_is_refused_with_advice(copied: Path) -> None:
    edit(copied, lambda manifest: manifest.update(format=2, novelty=True))
    for use in (check, read_dataset):
        with pytest.raises(BadInput, match=r"of format 2, but bilevel .* reads format 1; upgrade bilevel"):
            use(copied)


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BadInput, match="no data set: there is no manifest"):
            check(folder)


def test_an_incomplete_data_set_is_one_problem_with_the_command_that_completes_it(copied: Path) -> None:
    edit(copied, lambda manifest: manifest.update(complete=False, files=[], episodes=5))
    (problem,) = check(copied).problems
    assert "not complete, 3 of 5 episodes are there" in problem
    assert "bilevel collect blocks --objects 1 --teleport-rate 0.0 --episodes 5 --seed 0 --output" in problem
    with pytest.raises(BadInput, match="not complete; go on with: bilevel collect"):
        read_dataset(copied)
