"""The command, at its smallest: it makes what is not there yet, says what it does, and refuses what makes no sense."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from bilevel.cli.output import duration
from bilevel.experiments.records import read_records as read_results
from bilevel.experiments.reproduction.findings import Findings, read_findings
from bilevel.policies.folder import read_policy
from command_line import run
from killing import results

SMALL = ("--tasks", "blocks", "--demonstrations", "4", "--epochs", "2", "--parts", "table", "--workers", "2")
TWO = ("--methods", "bison-paper", "expert", "--objects", "1-2", "--episodes", "2", "--seeds", "1")
Capture = pytest.CaptureFixture[str]


def reproduce(capsys: Capture, folder: Path, *arguments: str) -> tuple[int, str, str]:
    return run(capsys, "reproduce", *SMALL, *arguments, "--output", folder)


def told(capsys: Capture, folder: Path, *arguments: str) -> dict[str, Any]:
    """What it says in JSON, if all is well."""
    code, out, err = reproduce(capsys, folder, *arguments, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    assert (found["failed"], found["not_done"], found["complete"]) == ({}, [], True)
    return found


@pytest.fixture
def folder(undisturbed: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(undisturbed, tmp_path / "folder")
    return tmp_path / "folder"


def findings(folder: Path) -> Findings:
    return read_findings(folder / "findings.jsonl")


# What it finds


def test_the_findings_are_those_of_the_episodes(undisturbed: Path) -> None:
    found = findings(undisturbed)
    assert (len(found.about.asked), found.missing()) == (1, [])
    assert [(row.variant, row.task, row.seed) for row in found.rows] == [
        ("bison-paper", "blocks", 0),
        ("expert", "blocks", 0),
    ]
    for row in found.rows:
        assert [(size.objects, size.episodes) for size in row.sizes] == [(1, 2), (2, 2)]
        for size in row.sizes:
            path = undisturbed / f"episodes/blocks/{row.variant}-0/{size.objects:02d}.jsonl"
            records = list(read_results(path))
            assert [record.episode for record in records] == [0, 1]
            assert [record.policy_seed for record in records] == [0 if row.method == "bison" else None] * 2
            assert size.successes == sum(record.success for record in records)
            assert sum(size.reasons.values()) == 2 - size.successes
    ours, expert = found.rows
    assert expert.successes == expert.episodes == 4
    assert expert.training is None
    policy = read_policy(undisturbed / "policies/blocks/bison-paper-0")
    assert (ours.digest, ours.preset) == (policy.digest, "paper")
    assert ours.training is not None
    assert (ours.training.epochs, ours.training.samples) == (2, policy.card.summary["samples"])
    assert (ours.training.device, ours.training.networks) == ("cpu", 1)
    assert ours.training.seconds > 0
    about = found.about
    assert (about.experiment.demonstrations, about.experiment.quick) == (4, False)
    assert (list(about.rules), list(about.failures), found.scaling) == (["blocks"], [], [])
    assert [machine["cores"] for machine in about.machines] == [os.cpu_count()]


def test_the_second_time_there_is_nothing_to_do(folder: Path, capsys: Capture) -> None:
    before = results(folder)
    code, out, err = reproduce(capsys, folder, *TWO)
    assert code == 0
    checking = "checking what is there: 6 units of work"
    assert err.splitlines() == [checking, "6 units of work, 6 of them there; to do: nothing"]
    assert out.startswith("0 units of work done in 0 s, 6 were there\n")
    assert out.endswith(f"findings: {folder / 'findings.jsonl'}\n")
    assert results(folder) == before


def test_asking_for_more_adds_only_that(folder: Path, capsys: Capture) -> None:
    before, first = results(folder), findings(folder)
    expert = ("--methods", "expert")
    more = told(capsys, folder, *expert, "--objects", "1-3", "--episodes", "3", "--seeds", "2")
    assert (more["done"], more["already_there"]) == (6, 0)
    after = results(folder)
    assert [name for name in before if "expert" not in name and before[name] != after[name]] == []
    for name in ("episodes/blocks/expert-0/01.jsonl", "episodes/blocks/expert-0/02.jsonl"):
        assert after[name].startswith(before[name])
        assert len(after[name].splitlines()) == 3
    ours, expert_0, expert_1 = findings(folder).rows
    assert ours == first.rows[0]
    assert [row.episodes for row in (expert_0, expert_1)] == [9, 9]
    again = told(capsys, folder, *expert, "--objects", "3", "--episodes", "1", "--seeds", "1")
    assert (again["done"], again["already_there"]) == (0, 1)


# What it says


def test_what_fails_is_tried_twice_and_listed_and_the_rest_is_done(folder: Path, capsys: Capture) -> None:
    weights = folder / "policies/blocks/bison-paper-0/weights.safetensors"
    weights.write_bytes(b"no weights")
    more = ("--methods", "bison-paper", "expert", "--objects", "1", "--episodes", "3", "--seeds", "1")
    code, out, err = reproduce(capsys, folder, *more)
    assert code == 1
    assert out.startswith("1 unit of work done in ")
    assert "incomplete: 1 of" in out.splitlines()[1]
    (line,) = [line for line in err.splitlines() if "failed: " in line]
    assert line.startswith(f"failed: evaluate blocks/bison-paper-0/01: {weights}")
    (failure,) = findings(folder).about.failures
    assert failure.unit == "evaluate blocks/bison-paper-0/01"
    assert str(weights) in failure.error

    shutil.rmtree(folder / "demonstrations")
    (folder / "demonstrations").write_text("in the way")
    shutil.rmtree(folder / "policies")
    code, out, _ = reproduce(capsys, folder, *more, "--json")
    told = json.loads(out)
    assert code == 1
    assert list(told["failed"]) == ["collect blocks"]
    assert told["not_done"] == ["train blocks/bison-paper-0", "evaluate blocks/bison-paper-0/01"]
    assert (told["done"], told["already_there"], told["complete"]) == (0, 1, False)

    (folder / "demonstrations").unlink()
    found = json.loads(reproduce(capsys, folder, *more, "--json")[1])
    assert (found["failed"], found["done"]) == ({}, 3)
    assert findings(folder).about.failures == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (2.5 * 3600, "2.5 h"), (72 * 3600, "3.0 days")],
)
def test_how_long_is_said_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


# What is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--methods", "bizon"), "unknown method 'bizon'; what can be reproduced: bison-printed, bison-paper, "),
        (("--tasks", "block"), "unknown task 'block'"),
        (("--parts", "tables"), "unknown part 'tables'; there are: table, memory, scaling, films, report"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: Capture
) -> None:
    code, out, err = run(capsys, "reproduce", *arguments, "--output", tmp_path / "folder")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {message}")
    assert not (tmp_path / "folder").exists()


def test_other_folders_are_refused(undisturbed: Path, tmp_path: Path, capsys: Capture) -> None:
    before = sorted(undisturbed.rglob("*"))
    code, out, err = reproduce(capsys, undisturbed, *TWO, "--epochs", "3")
    assert (code, out) == (2, "")
    told = "was begun with epochs 2, not 3; choose another --output"
    assert err == f"error: {undisturbed}: {told}\n"
    assert sorted(undisturbed.rglob("*")) == before
    (tmp_path / "file").touch()
    code, _, err = reproduce(capsys, tmp_path / "file")
    assert (code, err) == (2, f"error: {tmp_path / 'file'}: cannot be used as a folder: File exists\n")
    code, _, err = reproduce(capsys, tmp_path)
    assert (code, err) == (2, f"error: {tmp_path}: holds other files; choose a new folder as --output\n")
