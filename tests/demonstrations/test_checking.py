"""A broken data set: which file, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bilevel.demonstrations.checking import check
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.manifest import DOMAIN, MANIFEST, file_name
from bilevel.symbolic.domain import BadInput
from tiny_task import TINY


def test_a_whole_data_set_has_no_problems(collected: Path) -> None:
    report = check(collected)
    assert report.problems == ()
    assert report == check(collected, TINY)  # which labels it anew
    assert (report.summary.episodes, report.summary.exogenous) == (3, 0)
    assert report.summary.actions == {"pick": 3, "put": 3}
    assert report.summary.steps == sum(demonstration.steps for demonstration in Demonstrations.read(collected))
    assert report.megabytes == sum(path.stat().st_size for path in collected.glob("*.npz")) / 1e6


def test_each_broken_file_is_named_with_its_reason(copied: Path) -> None:
    names = [copied / file_name(index) for index in range(3)]
    names[0].unlink()
    names[1].write_bytes(names[1].read_bytes()[:500])
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
    data = Demonstrations.read(copied)
    assert len(data) == 3
    assert data.manifest
    assert len(data[-1].actions) == data.manifest.files[2].steps
    with pytest.raises(BadInput, match=r"episode-00001.npz: no whole npz archive"):
        data[1]
    with pytest.raises(IndexError):
        data[3]


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads((folder / MANIFEST).read_text())
    change(value)
    (folder / MANIFEST).write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.pop("controls"), "missing required field `controls`"),
        (lambda m: m.update(mood="good"), "unknown field `mood`"),
        (lambda m: m.update(episodes="3"), "Expected `int`, got `str` - at `$.episodes`"),
        (lambda m: m.update(episodes=10**30), "Expected `int`"),
        (lambda m: m.update(episodes=0, files=[]), "Expected `int` >= 1 - at `$.episodes`"),
        (lambda m: m["settings"].update(seed=-1), "Expected `int` >= 0 - at `$.settings.seed`"),
        (
            lambda m: m["settings"].update(noise={"rate": "a"}),
            "Expected `float`, got `str` - at `$.settings.noise.rate`",
        ),
        (lambda m: m["settings"]["arguments"].update(objects="1"), "'objects' among the arguments must be"),
        (lambda m: m.update(complete=1), "Expected `bool`, got `int` - at `$.complete`"),
        (lambda m: m.update(format=0), "Invalid enum value 0 - at `$.format`"),
        (lambda m: m.update(keyframe=3), "Invalid enum value 3 - at `$.keyframe`"),
        (lambda m: m["spec"].update(agent={"x": {"type": "mood"}}), "no spec: Invalid value 'mood'"),
        (lambda m: m["spec"]["agent"].pop("x"), "the type 'parcel' has the Position 'x', but the agent has no 'x'"),
        (lambda m: m["controls"].update(type="knob"), "Invalid value 'knob' - at `$.controls.type`"),
        (lambda m: m["files"].pop(), "'files' must list 3 files"),
        (lambda m: m["files"][0].pop("sha256"), "missing required field `sha256` - at `$.files[0]`"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_a_problem(
    copied: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    edit(copied, change)
    (problem,) = check(copied).problems
    assert problem.startswith(f"{copied / MANIFEST}: ")
    assert reason in problem
    with pytest.raises(BadInput, match="manifest"):
        Demonstrations.read(copied)


def test_a_domain_that_cannot_be_read_is_a_problem(copied: Path) -> None:
    (copied / DOMAIN).write_text("(define (domain delivery)")
    (problem,) = check(copied).problems
    assert problem.startswith(f"{copied / DOMAIN}:1:")
    with pytest.raises(BadInput, match=DOMAIN):
        Demonstrations.read(copied)


def test_a_manifest_that_is_truncated_or_nonsense_is_a_problem(copied: Path) -> None:
    text = (copied / MANIFEST).read_text()
    for broken in (text[: len(text) // 2], "[" * 100_000):
        (copied / MANIFEST).write_text(broken)
        (problem,) = check(copied).problems
        assert problem.startswith(f"{copied / MANIFEST}: ")


def test_a_newer_format_is_refused_with_advice(copied: Path) -> None:
    edit(copied, lambda manifest: manifest.update(format=3, novelty=True))
    for use in (check, Demonstrations.read):
        with pytest.raises(BadInput, match=r"of format 3, but bilevel .* reads format 2; upgrade bilevel"):
            use(copied)


OLD = {
    "format": 1,
    "task": "gacha",
    "arguments": {"objects": 3, "teleport_rate": 0.0, "draw": "empty"},
    "noise": {"amplitude": 0.7, "rate": 0.02, "shortest": 5, "longest": 20, "flips": 0.15},
    "seed": 2,
    "episodes": 40,
}


def test_a_data_set_of_the_first_format_is_refused_with_the_command_that_makes_it_anew(copied: Path) -> None:
    (copied / MANIFEST).write_text(json.dumps(OLD))
    command = (
        "bilevel collect gacha --objects 3 --env-args teleport_rate=0.0 draw=empty --episodes 40 --seed 2 --noise 0.7"
    )
    for use in (check, Demonstrations.read):
        with pytest.raises(BadInput, match=f"made by bilevel 0.1; collect it again with: {command} --output"):
            use(copied)


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BadInput, match="no data set: there is no manifest"):
            check(folder)


def test_an_incomplete_data_set_is_one_problem_with_the_command_that_completes_it(copied: Path) -> None:
    edit(copied, lambda manifest: manifest.update(complete=False, files=[], episodes=5))
    (problem,) = check(copied).problems
    assert "not complete, 3 of 5 episodes are there" in problem
    assert "bilevel collect tiny --objects 1 --env-args slip_rate=0.0 --episodes 5 --seed 0 --output" in problem
    with pytest.raises(BadInput, match="not complete; go on with: bilevel collect"):
        Demonstrations.read(copied)
