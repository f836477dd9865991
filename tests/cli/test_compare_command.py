"""`bilevel compare`: two results of an evaluation, episode by episode."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bilevel.experiments.evaluate import evaluate
from bilevel.experiments.records import Record
from bilevel.experiments.statistics import compare
from bilevel.symbolic.domain import BadInput
from command_line import refused, run_json, run_well
from tiny_task import TINY


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Twelve successes: six episodes with one object, six with two."""
    return evaluate("expert", TINY, objects=[1, 2], episodes=6)


def write(path: Path, records: Sequence[Record], failing: Sequence[int] = ()) -> Path:
    failed = {"outcome": "step limit", "reason": "drop", "steps": 400}
    lines = [(replace(each, **failed) if n in failing else each).line() for n, each in enumerate(records)]  # type: ignore[arg-type]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_success_differences_and_the_episodes_that_changed_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], records: list[Record]
) -> None:
    one = write(tmp_path / "one.jsonl", records, [0, 1])
    other = write(tmp_path / "the other.jsonl", [replace(record, noise=0.5) for record in records][:11], [1, 7])
    found = run_json(capsys, "compare", one, other)
    total = found["total"]
    assert (total["episodes"], total["successes"], total["lost"], total["gained"]) == (11, [9, 9], 1, 1)
    assert (found["only_first"], found["only_second"], found["differences"]) == (1, 0, {"noise": [0.0, 0.5]})
    assert [(each["objects"], each["episode"]) for each in found["changed"]] == [(2, 1), (1, 0)]
    out = run_well(capsys, "compare", one, other)
    assert "tiny: 11 episodes in both, 1 in A alone, 0 in B alone\n  noise: 0.0 → 0.5\n" in out
    assert f"success → drop: bilevel run --replay {shlex.quote(str(other))} --objects 2 --episode 1\n" in out
    assert f"drop → success: bilevel run --replay {one} --objects 1 --episode 0\n" in out
    assert run_well(capsys, "compare", one, one).endswith("\n0 episodes changed\n")


def test_what_cannot_be_compared_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], records: list[Record]
) -> None:
    good = write(tmp_path / "good.jsonl", records)
    elsewhere = write(tmp_path / "else.jsonl", [replace(record, task="other") for record in records])
    assert "these are results of different tasks: other, tiny" in refused(capsys, "compare", good, elsewhere)
    assert "there is no such file" in refused(capsys, "compare", good, tmp_path / "none.jsonl")
    refused(capsys, "compare", good, __file__)
    for content, message in (
        ([replace(record, seed=record.seed + 1) for record in records], "the two have no episode in common"),
        ([*records, records[3]], "the second results hold an episode twice"),
        ([], "the second results are empty"),
    ):
        with pytest.raises(BadInput, match=message):
            compare(records, content)
