"""Evaluations: the same results for any number of workers, in their order, and taken up where they were left."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bilevel.experiments.evaluation import Evaluation, evaluate, open_results, read_results
from bilevel.experiments.methods import find_policy
from bilevel.experiments.records import Record, read_record
from bilevel.experiments.statistics import OF_POLICY, Z, summarise as make_row, summarise_by_objects as rows_by_objects, table, wilson_interval
from bilevel.experiments.timings import timing_of, timings_path
from bilevel.policies.changes import ChangeCounts
from bilevel.policies.policy_folder import read_policy
from bilevel.seeds import evaluation_seed, training_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_policies import learned_folder, moving_as_the_expert, still_folder
from tiny_task import TINY

EXPERT = find_policy("expert")
SMALL = Evaluation(EXPERT, TINY, objects=(1, 2), episodes=2)
SEEDS = [evaluation_seed(0, objects, episode) for objects in (1, 2) for episode in (0, 1)]
SMALL_RECORD = replace(next(SMALL.run()), seconds={"policy": 10.0, "physics": 10.0})


def write(path: Path, evaluation: Evaluation = SMALL, workers: int = 1) -> list[Record]:
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


# Results


def test_the_records_say_what_was_measured_in_order(path: Path) -> None:
    records = list(read_results(path))
    assert [(record.objects, record.episode) for record in records] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert [record.seed for record in records] == SEEDS
    assert all(record.success and record.reason is None for record in records)
    assert [record.changes.own for record in records] == [2, 2, 4, 4]
    assert records == list(SMALL.run())
    assert [read_record(record.line()) for record in records] == records


def test_no_demonstration_has_a_seed_of_an_evaluation() -> None:
    training = {training_seed(0, episode, attempt) for episode in range(30) for attempt in range(9)}
    assert not training & {evaluation_seed(0, objects, episode) for objects in range(11) for episode in range(300)}


def test_episodes_with_different_numbers_of_objects_have_nothing_in_common() -> None:
    """Worlds place one object after another: from one seed, the first would stand in the same place in every size."""
    first = [SceneEnv(TASKS["blocks"], size).reset(evaluation_seed(0, size, 0))["block1"] for size in (1, 2, 3)]
    assert len({(block.x, block.y) for block in first}) == len(first)


def test_two_workers_write_the_same(path: Path, tmp_path: Path) -> None:
    write(tmp_path / "two.jsonl", workers=2)
    assert (tmp_path / "two.jsonl").read_bytes() == path.read_bytes()


def test_results_that_come_early_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(start: Callable[[], Callable[[int], Any]], items: range, workers: int) -> Any:
        return (result for result in [start()(item) for item in reversed(items)])

    monkeypatch.setattr("bilevel.experiments.evaluation.spread", backwards)
    assert [record.seed for record in SMALL.run()] == SEEDS


def test_an_episode_does_not_depend_on_those_before_it() -> None:
    noisy = replace(SMALL, noise=0.7, arguments={"slip_rate": 0.05})
    assert list(noisy.run(begin=2)) == list(noisy.run())[2:]
    assert [record.steps for record in noisy.run()] != [record.steps for record in SMALL.run()]


def test_a_policy_in_a_folder_is_measured_in_a_line() -> None:
    with moving_as_the_expert():
        records = evaluate(still_folder(), TINY, objects=[3], episodes=2)
    assert [record.success for record in records] == [True, True]
    assert {(record.method, record.policy, record.policy_seed) for record in records} == {
        ("bison", str(still_folder()), 7)
    }
    assert records[0].policy_digest == read_policy(still_folder()).digest
    (failed,) = evaluate(learned_folder(), TINY, objects=[1], episodes=1)
    assert (failed.outcome, failed.reason) == ("step limit", "stall")
    (shown,) = evaluate("expert", TINY, objects=[2], episodes=1, slip_rate=0.0)
    assert (shown.success, shown.changes, shown.arguments) == (
        True,
        ChangeCounts(own=4, exogenous=1),
        {"slip_rate": 0.0},
    )


# Going on


@pytest.mark.parametrize("cut", [0, 1, 10, 15, -1, -20])
def test_a_torn_line_is_run_again_and_whole_ones_are_kept(path: Path, made: bytes, cut: int) -> None:
    lines = made.splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:cut])
    assert len(write(path)) == 4
    assert path.read_bytes() == made


def test_nothing_is_run_when_all_is_there_and_more_objects_are_added(path: Path, made: bytes) -> None:
    assert len(write(path)) == 4
    assert path.read_bytes() == made
    records = write(path, replace(SMALL, objects=(1, 2, 3)))
    assert [record.objects for record in records] == [1, 1, 2, 2, 3, 3]
    assert path.read_bytes().startswith(made)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task": replace(TINY, name="another")}, "made with another task"),
        ({"policy": replace(EXPERT, method="bison")}, "made with another method"),
        ({"policy": replace(EXPERT, digest="0123")}, "made with another policy"),
        ({"policy": replace(EXPERT, settings={"planner": "lama"})}, "made with other settings of the method"),
        ({"seed": 1}, "made with another --seed"),
        ({"noise": 0.7}, "made with another --noise"),
        ({"arguments": {"slip_rate": 0.1}}, "made with other --env-args"),
        ({"objects": (1, 3)}, "made with other --objects or --episodes"),
        ({"episodes": 3}, "made with other --objects or --episodes"),
        ({"objects": (1,)}, "made with other --objects or --episodes"),
        ({"task": replace(TINY, packages=("msgspec",))}, "made with other versions of bilevel or of what it uses"),
    ],
)
def test_another_evaluation_does_not_go_on_here(path: Path, made: bytes, change: dict[str, Any], reason: str) -> None:
    torn = made + b'{"task": "ti'
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


@pytest.mark.parametrize("line", [b"{}", b"no JSON", b"[1]", b"\xff", b'{"task": 3}', b"[" * 100_000, b""])
def test_a_line_that_is_no_result_is_named(path: Path, made: bytes, line: bytes) -> None:
    path.write_bytes(made + line + b"\n")
    with pytest.raises(BadInput, match=r"results\.jsonl, line 5: not the result of an episode: "):
        write(path)


def test_a_file_is_written_by_one_process_at_a_time(path: Path) -> None:
    with open_results(path, SMALL), pytest.raises(BadInput, match="another process is evaluating into it"):
        write(path)


def refuse(task: Task) -> None:
    raise BadInput(f"the policy does not fit '{task.name}'")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"policy": replace(EXPERT, check=refuse)}, "the policy does not fit 'tiny'"),
        ({"objects": (1, 13)}, "takes 1 to 12 objects, not 13"),
        ({"episodes": 0}, "the number of episodes must be at least 1, but is 0"),
        ({"episodes": 10**30}, "the number of episodes must be at most 1000000000, but is 1000"),
        ({"arguments": {"weather": 2}}, "the task 'tiny' takes no argument 'weather'"),
        ({"task": replace(TINY, make_env=lambda objects: 1 / 0)}, r"make_env\(objects=1\) raised ZeroDivisionError"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    evaluation: Evaluation = replace(SMALL, **change)
    with pytest.raises(BadInput, match=reason):
        write(tmp_path / "new.jsonl", evaluation)
    assert not (tmp_path / "new.jsonl").exists()


# What depends on the machine


def test_timings_are_beside_the_results_and_belong_to_them(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for record in (written := write(path)):
        assert set(record.seconds) == {"policy", "physics", "longest"}
        assert record.peak_mebibytes
        assert not {"seconds", "peak_mebibytes"} & set(json.loads(record.line()))
    assert [timing_of(record) for record in read_results(path)] == [timing_of(record) for record in written]
    timings_path(path).unlink()
    assert [record.seconds for record in read_results(path)] == [{}] * 4
    assert list(read_results(path)) == written


@pytest.mark.parametrize("kept", [0, 3])
def test_timings_of_a_killed_evaluation_are_gone_on_with(tmp_path: Path, kept: int) -> None:
    path, beside = tmp_path / "results.jsonl", tmp_path / "results.timings.jsonl"
    write(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    first = timing_of(SMALL_RECORD).line()
    beside.write_bytes(first + beside.read_bytes()[:-20])
    write(path)
    assert beside.read_bytes().startswith(first) == bool(kept)
    assert beside.read_bytes().count(b"\n") == (5 if kept else 4)
    assert all(record.seconds["policy"] < 9 for record in read_results(path))


@pytest.mark.parametrize("content", [b"mine", b"mine\n", b'{"objects":"two"}\n', b'{"task": "'])
def test_a_file_that_holds_no_timings_is_left_alone(path: Path, content: bytes) -> None:
    timings_path(path).write_bytes(content)
    with pytest.raises(BadInput, match=r"results\.timings\.jsonl"):
        write(path)
    path.unlink()
    with pytest.raises(BadInput, match=r"results\.timings\.jsonl"):
        write(path)
    assert timings_path(path).read_bytes() == content


def test_results_with_timings_in_their_lines_can_be_read_and_gone_on_with(path: Path, made: bytes) -> None:
    old = [json.loads(line) | {"seconds": {"policy": 7.0}, "peak_mebibytes": 50.0} for line in made.splitlines()]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in old[:2]), encoding="utf-8")
    assert [record.seconds for record in read_results(path)] == [{"policy": 7.0}] * 2
    assert [record.seconds.get("policy") == 7.0 for record in write(path)] == [True, True, False, False]


def test_results_that_go_nowhere_have_no_timings() -> None:
    assert len(write(Path("/dev/null"))) == 4
    assert not Path("/dev/null.timings").exists()


def test_an_endless_evaluation_begins_at_once() -> None:
    evaluation = replace(SMALL, episodes=10**9)
    assert (evaluation.total, evaluation.job(10**9 + 3)) == (2 * 10**9, (2, 3))
    assert next(evaluation.run()).episode == 0


# Summaries


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
    assert lines[4] == OF_POLICY
    assert lines[5].startswith("100.00% of the changes of the state were the chosen action's own effects: 12,")


@pytest.mark.parametrize(
    ("successes", "episodes", "lower", "upper"),
    [  # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_intervals_are_those_of_the_literature(successes: int, episodes: int, lower: float, upper: float) -> None:
    assert wilson_interval(successes, episodes) == pytest.approx((lower, upper), abs=5e-5)
    mirrored = wilson_interval(episodes - successes, episodes)
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=5e-5)


@pytest.mark.parametrize("episodes", [1, 10, 100])
def test_intervals_hold_the_rates_just_compatible_with_what_was_seen(episodes: int) -> None:
    for successes in range(episodes + 1):
        lower, upper = wilson_interval(successes, episodes)
        assert 0.0 <= lower < upper <= 1.0
        for rate in (lower, upper):
            assert (successes / episodes - rate) ** 2 == pytest.approx(Z**2 * rate * (1 - rate) / episodes, abs=1e-9)
