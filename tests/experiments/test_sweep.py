"""Evaluations: the same results for any number of workers, in their order, and taken up where they were left."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bilevel.experiments.methods import find_contender
from bilevel.experiments.records import EpisodeRecord, read_record
from bilevel.experiments.summary import make_row, rows_by_objects, table
from bilevel.experiments.sweep import Evaluation, open_results, read_results
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput

EXPERT = find_contender("expert", None)
SMALL = Evaluation(EXPERT, "blocks", objects=(1, 2), episodes=2)


def without_seconds(path: Path) -> list[dict[str, Any]]:
    """What is in a file of results; the order of the keys counts, too."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        assert set(line.pop("seconds")) == {"policy", "physics"}
        assert line.pop("peak_mebibytes") > 1
    return [{key: line[key] for key in line} for line in lines]


def write(path: Path, evaluation: Evaluation = SMALL, workers: int = 1) -> list[EpisodeRecord]:
    with open_results(path, evaluation) as results:
        for _ in results.collect(workers):
            pass
        return results.records


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("made") / "results.jsonl"
    write(path)
    return path.read_bytes()


@pytest.fixture
def path(made: bytes, tmp_path: Path) -> Path:
    (tmp_path / "results.jsonl").write_bytes(made)
    return tmp_path / "results.jsonl"


def test_the_records_say_what_was_measured_in_order(path: Path) -> None:
    records = list(read_results(path))
    assert [(record.objects, record.episode) for record in records] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert [record.seed for record in records] == [evaluation_seed(0, episode) for episode in (0, 1, 0, 1)]
    assert all(record.success and record.reason is None for record in records)
    assert [record.changes.own for record in records] == [2, 2, 4, 4]
    assert records == list(SMALL.run())
    assert [read_record(record.line()) for record in records] == records


def test_two_workers_write_the_same(path: Path, tmp_path: Path) -> None:
    write(tmp_path / "two.jsonl", workers=2)
    assert json.dumps(without_seconds(tmp_path / "two.jsonl")) == json.dumps(without_seconds(path))


def test_results_that_come_early_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(start: Callable[[], Callable[[int], Any]], items: range, workers: int) -> Any:
        return (result for result in [start()(item) for item in reversed(items)])

    monkeypatch.setattr("bilevel.experiments.sweep.spread", backwards)
    assert [record.seed for record in SMALL.run()] == [evaluation_seed(0, episode) for episode in (0, 1, 0, 1)]


@pytest.mark.parametrize("cut", [0, 1, 10, 15, -1, -20])
def test_a_torn_line_is_run_again_and_whole_ones_are_kept(path: Path, made: bytes, cut: int) -> None:
    lines = made.splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:cut])
    assert len(write(path)) == 4
    assert path.read_bytes().splitlines()[0] == lines[0].rstrip()
    again = without_seconds(path)
    path.write_bytes(made)
    assert again == without_seconds(path)


def test_nothing_is_run_when_all_is_there(path: Path, made: bytes) -> None:
    assert len(write(path)) == 4
    assert path.read_bytes() == made


def test_more_objects_are_added(path: Path, made: bytes) -> None:
    records = write(path, replace(SMALL, objects=(1, 2, 3), episodes=2))
    assert [record.objects for record in records] == [1, 1, 2, 2, 3, 3]
    assert path.read_bytes().startswith(made)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task": "factory"}, "made with another task"),
        ({"contender": replace(EXPERT, method="bison")}, "made with another method"),
        ({"contender": replace(EXPERT, digest="0123")}, "made with another policy"),
        ({"seed": 1}, "made with another --seed"),
        ({"noise": 0.7}, "made with another --noise"),
        ({"arguments": {"teleport_rate": 0.1}}, "made with other arguments of the world"),
        ({"objects": (1, 3)}, "made with other --objects or --episodes"),
        ({"episodes": 3}, "made with other --objects or --episodes"),
        ({"objects": (1,)}, "made with other --objects or --episodes"),
    ],
)
def test_another_evaluation_does_not_go_on_here(path: Path, made: bytes, change: dict[str, Any], reason: str) -> None:
    torn = made + b'{"task": "blo'
    path.write_bytes(torn)
    with pytest.raises(BadInput, match=f"results.jsonl: {reason}; choose another --output"):
        write(path, replace(SMALL, **change))
    assert path.read_bytes() == torn


@pytest.mark.parametrize("end", [b"mine", b"{}", b'{"task": 3'])
def test_an_end_that_is_no_torn_line_is_not_removed(path: Path, made: bytes, end: bytes) -> None:
    path.write_bytes(made + end)
    with pytest.raises(BadInput, match=r"results\.jsonl: holds something else than results"):
        write(path)
    assert path.read_bytes() == made + end


def test_results_of_other_versions_are_not_mixed(path: Path, made: bytes) -> None:
    path.write_bytes(made.replace(b'"mujoco": "', b'"mujoco": "0.'))
    with pytest.raises(
        BadInput, match="made with other versions of bilevel or of what it uses; choose another --output"
    ):
        write(path)


@pytest.mark.parametrize("line", [b"{}", b"no JSON", b"[1]", b"\xff", b'{"task": 3}', b"[" * 100_000, b""])
def test_a_line_that_is_no_result_is_named(path: Path, made: bytes, line: bytes) -> None:
    path.write_bytes(made + line + b"\n")
    with pytest.raises(BadInput, match=r"results\.jsonl, line 5: not the result of an episode: "):
        write(path)


def test_a_file_is_written_by_one_process_at_a_time(path: Path) -> None:
    with open_results(path, SMALL), pytest.raises(BadInput, match="another process is evaluating into it"):
        write(path)


def test_what_cannot_be_measured_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for change, reason in (
        ({"task": "cubes"}, "unknown task 'cubes'; known tasks: blocks,"),
        ({"contender": replace(EXPERT, policy="p", domain_name="gacha")}, "p: a policy for the domain 'gacha', but"),
        ({"objects": (1, 21)}, "takes 1 to 20 objects, not 21"),
        ({"episodes": 0}, "the number of episodes must be at least 1, but is 0"),
        ({"arguments": {"teleport_rate": 2}}, "the teleport rate is a probability"),
    ):
        evaluation: Evaluation = replace(SMALL, **change)
        with pytest.raises(BadInput, match=reason):
            write(tmp_path / "new.jsonl", evaluation)
        assert not (tmp_path / "new.jsonl").exists()
    with pytest.raises(BadInput, match="cannot be written: Is a directory"):
        write(tmp_path)


def test_a_summary_has_a_row_for_each_number_of_objects(path: Path) -> None:
    records = list(read_results(path))
    records[3] = replace(records[3], outcome="step limit", reason="stall", steps=4096)
    rows = rows_by_objects(records)
    assert [(size, row.successes, row.episodes) for size, row in rows.items()] == [(1, 2, 2), (2, 1, 2)]
    assert rows[2].mean_steps == records[2].steps
    total = make_row(records)
    assert (total.reasons, total.changes.own) == ({"stall": 1}, 12)
    lines = table(records)
    assert [line.split()[:2] for line in lines[:4]] == [
        ["objects", "successes"],
        ["1", "2/2"],
        ["2", "1/2"],
        ["total", "3/4"],
    ]
    assert lines[2].endswith("stall 1")
    assert lines[4].startswith("100.00% of the changes of the state were the chosen action's own effects: 12,")
