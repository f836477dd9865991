"""`bilevel compare`: two results of an evaluation, episode by episode."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import tiny_task
from bilevel.cli import evaluation
from bilevel.experiments.compare import compare
from bilevel.experiments.evaluate import evaluate
from bilevel.experiments.records import Record
from bilevel.symbolic.domain import BadInput
from command_line import run
from tiny_task import TINY


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Twelve successes: six episodes with one object, six with two."""
    return evaluate("expert", TINY, objects=[1, 2], episodes=6)


def write(path: Path, records: Sequence[Record]) -> Path:
    path.write_text("".join(record.line() for record in records), encoding="utf-8")
    return path


def failing(record: Record) -> Record:
    return replace(record, outcome="step limit", reason="drop", steps=400)


def changed(
    records: Sequence[Record], which: Sequence[int], change: Callable[[Record], Record] = failing
) -> list[Record]:
    return [change(record) if number in which else record for number, record in enumerate(records)]


def test_success_differences_and_the_episodes_that_changed_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], records: list[Record]
) -> None:
    one = write(tmp_path / "one.jsonl", changed(records, [0, 1]))
    better = [replace(record, noise=0.5, settings={"recovery": "off"}) for record in changed(records, [1, 7])]
    other = write(tmp_path / "the other.jsonl", better)
    code, out, err = run(capsys, "compare", one, other)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:5] == [
        f"A: {one}",
        f"B: {other}",
        "tiny: 12 episodes in both",
        "  noise: 0.0 → 0.5",
        "  settings.recovery: – → off",
    ]
    cells = [line.split() for line in lines[6:9]]
    assert [(row[0], row[1], row[3], row[5]) for row in cells] == [
        ("1", "4/6", "5/6", "+16.7"),
        ("2", "6/6", "5/6", "-16.7"),
        ("total", "10/12", "10/12", "+0.0"),
    ]
    assert "p = 1 by McNemar's exact test" in lines[9]
    assert "for these two policies" in lines[10]
    assert lines[11].startswith("mean steps in the 9 episodes that both solve: A ")
    assert lines[12:] == [
        "2 episodes changed; to see what happens where one fails:",
        f"  success → drop: bilevel run --replay {shlex.quote(str(other))} --objects 2 --episode 1",
        f"  drop → success: bilevel run --replay {one} --objects 1 --episode 0",
    ]


def test_json_holds_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], records: list[Record]) -> None:
    one = write(tmp_path / "a.jsonl", records)
    slower = [replace(record, steps=record.steps + 10) for record in changed(records, range(6))]
    other = write(tmp_path / "b.jsonl", slower)
    found = json.loads(run(capsys, "compare", one, other, "--json")[1])
    total = found["total"]
    assert (total["episodes"], total["successes"], total["lost"], total["gained"]) == (12, [12, 6], 6, 0)
    assert (total["difference"], total["p_value"]) == (-0.5, round(2 / 2**6, 4))
    assert total["difference_interval"][1] < 0
    assert (total["both"], total["steps_difference"], total["steps_interval"]) == (6, 10.0, [10.0, 10.0])
    assert found["by_objects"]["1"]["mean_steps"] is None
    assert found["differences"] == {}
    assert [(each["objects"], each["episode"]) for each in found["changed"]] == [(1, number) for number in range(6)]


def test_episodes_that_only_one_has_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = write(tmp_path / "a.jsonl", records[:9]), write(tmp_path / "b.jsonl", changed(records, range(12))[1:])
    monkeypatch.setattr(evaluation, "MAX_SHOWN", 5)
    lines = run(capsys, "compare", one, other)[1].splitlines()
    assert lines[2] == "tiny: 8 episodes in both; 1 only in A, left out; 3 only in B, left out"
    assert lines[3] == "nothing else that is recorded differs between them"
    assert "no episode is solved by both, so steps are not compared" in lines
    assert lines[-1] == "  and 3 more: see --json"
    assert run(capsys, "compare", one, one)[1].endswith("no episode changed: each succeeds in both, or fails in both\n")


def test_what_cannot_be_compared_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], records: list[Record]
) -> None:
    good = write(tmp_path / "good.jsonl", records)
    elsewhere = write(tmp_path / "else.jsonl", [replace(record, task="other") for record in records])
    code, _, err = run(capsys, "compare", good, elsewhere)
    what = "these are results of different tasks: other, tiny; compare results of the same task"
    assert (code, err) == (2, f"error: {what}\n")
    for content, message in (
        ([replace(record, seed=record.seed + 1) for record in records], "the two have no episode in common"),
        ([*records, records[3]], "the second results hold an episode twice: tiny, 1 objects, episode 3"),
        ([], "the second results are empty"),
    ):
        with pytest.raises(BadInput, match=message):
            compare(records, content)
    code, _, err = run(capsys, "compare", good, tmp_path / "none.jsonl")
    assert (code, err) == (2, f"error: {tmp_path / 'none.jsonl'}: there is no such file\n")
    code, _, err = run(capsys, "compare", good, tiny_task.__file__)
    assert (code, len(err.splitlines())) == (2, 1)
