"""Evaluations: the same records for any number of workers, in their order, and taken up where they were left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import tiny_task
from bilevel.experiments.evaluate import evaluate
from bilevel.experiments.records import Record, read_records, timings_path
from bilevel.experiments.statistics import Z, summarise, summarise_by_objects, summary_lines, wilson_interval
from bilevel.methods.methods import find_policy
from bilevel.policies.folder import read_policy
from bilevel.progress import Progress
from bilevel.seeds import evaluation_seed, training_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_policies import learned_folder, moving_as_the_expert, still_folder
from tiny_task import TINY

EXPERT = find_policy("expert")
SMALL: dict[str, Any] = {"policy": EXPERT, "task": TINY, "objects": (1, 2), "episodes": 2}


def run(path: Path | None, **changes: Any) -> list[Record]:
    return evaluate(**{**SMALL, "output": path, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("made") / "results.jsonl"
    run(path)
    return path.read_bytes()


@pytest.fixture
def path(made: bytes, tmp_path: Path) -> Path:
    (tmp_path / "results.jsonl").write_bytes(made)
    return tmp_path / "results.jsonl"


def test_the_records_say_what_was_evaluated_in_order(path: Path) -> None:
    records = read_records(path)
    places = [(objects, episode) for objects in (1, 2) for episode in (0, 1)]
    assert [(record.objects, record.episode) for record in records] == places
    assert [record.seed for record in records] == [evaluation_seed(0, *place) for place in places]
    assert all(record.success and record.reason is None for record in records)
    assert [record.changes["own"] for record in records] == [2, 2, 4, 4]
    assert records == run(None)


def test_two_workers_write_the_same_and_tell_how_far_they_are(path: Path, tmp_path: Path) -> None:
    told: list[Progress] = []
    run(tmp_path / "two.jsonl", workers=2, callback=told.append)
    assert (tmp_path / "two.jsonl").read_bytes() == path.read_bytes()
    run(None, callback=told.append)
    assert [(progress.done, progress.total) for progress in told] == [(done, 4) for done in range(5)] * 2
    assert not list(tmp_path.glob(".*"))


def test_an_episode_does_not_depend_on_those_before_it(tmp_path: Path) -> None:
    noisy = {"noise": 0.7, "slip_rate": 0.05}
    whole = run(tmp_path / "noisy.jsonl", **noisy)
    lines = (tmp_path / "noisy.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "noisy.jsonl").write_text("".join(lines[:2]))
    assert run(tmp_path / "noisy.jsonl", **noisy) == whole
    assert [record.steps for record in whole] != [record.steps for record in run(None)]


def test_no_demonstration_has_a_seed_of_an_evaluation() -> None:
    training = {training_seed(0, episode, attempt) for episode in range(30) for attempt in range(9)}
    assert not training & {evaluation_seed(0, objects, episode) for objects in range(11) for episode in range(300)}


def test_episodes_with_different_numbers_of_objects_have_nothing_in_common() -> None:
    """Worlds place one object after another: from one seed, the first would stand in the same place in every size."""
    first = [SceneEnv(TASKS["blocks"], size).reset(evaluation_seed(0, size, 0))["block1"] for size in (1, 2, 3)]
    assert len({(block.x, block.y) for block in first}) == len(first)


def test_a_policy_is_named_by_its_folder_or_as_the_expert() -> None:
    with moving_as_the_expert():
        records = evaluate(still_folder(), TINY, objects=[3], episodes=2)
    assert [(record.success, record.method, record.policy, record.policy_seed) for record in records] == [
        (True, "bison", str(still_folder()), 7)
    ] * 2
    assert records[0].policy_digest == read_policy(still_folder()).digest
    (failed,) = evaluate(learned_folder(), TINY, objects=[1], episodes=1)
    assert (failed.outcome, failed.reason) == ("step limit", "stall")
    (shown,) = evaluate("expert", f"{tiny_task.__file__}:TINY", objects=[2], episodes=1, slip_rate=0.0)
    assert (shown.success, shown.method, shown.arguments) == (True, "expert", {"slip_rate": 0.0})
    with pytest.raises(BadInput, match="the method 'expert' needs a task"):
        evaluate("expert")


# Going on


@pytest.mark.parametrize("cut", [0, 1, 10, 15, -1, -20])
def test_a_torn_line_is_run_again_and_whole_ones_are_kept(path: Path, made: bytes, cut: int) -> None:
    lines = made.splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:cut])
    assert len(run(path)) == 4
    assert path.read_bytes() == made


def test_nothing_is_run_when_all_is_there_and_more_objects_are_added(path: Path, made: bytes) -> None:
    told: list[Progress] = []
    run(path, callback=told.append)
    assert ([progress.done for progress in told], path.read_bytes()) == ([4], made)
    assert [record.objects for record in run(path, objects=(1, 2, 3))] == [1, 1, 2, 2, 3, 3]
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
        ({"perception": "noise=0.01"}, "made with another --perception"),
        ({"slip_rate": 0.1}, "made with other --env-args"),
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
        run(path, **change)
    assert path.read_bytes() == torn


@pytest.mark.parametrize("end", [b"mine", b"{}", b'{"task": 3', b"{}\n", b"no JSON\n", b"\xff\n", b"[" * 9999 + b"\n"])
def test_a_file_that_holds_something_else_is_left_alone(path: Path, made: bytes, end: bytes) -> None:
    path.write_bytes(made + end)
    with pytest.raises(BadInput, match=r"results\.jsonl(: holds something else|, line 5: not the record)"):
        run(path)
    assert path.read_bytes() == made + end
    path.write_bytes(made)
    timings_path(path).write_bytes(end)
    with pytest.raises(BadInput, match=r"results\.timings\.jsonl"):
        run(path)
    assert timings_path(path).read_bytes() == end


def test_only_a_plain_file_is_taken_up_and_by_one_process_at_a_time(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for output in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(BadInput, match="is no plain file"):
            run(output)
    with (
        FileLock(path.with_name(".results.jsonl.lock")),
        pytest.raises(BadInput, match="another process is evaluating into it"),
    ):
        run(path)


def refuse(task: Task) -> None:
    raise BadInput(f"the policy does not fit '{task.name}'")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"policy": replace(EXPERT, check=refuse)}, "the policy does not fit 'tiny'"),
        ({"objects": (1, 13)}, "takes 1 to 12 objects, not 13"),
        ({"episodes": 0}, "the number of episodes must be 1 to"),
        ({"episodes": 10**30}, "the number of episodes must be 1 to"),
        ({"weather": 2}, "the task 'tiny' takes no argument 'weather'"),
        ({"task": replace(TINY, make_env=lambda objects: 1 / 0)}, r"make_env\(objects=1\) raised ZeroDivisionError"),
        ({"log": "foo=bar"}, "--log takes tensorboard=DIR"),
        ({"method": "magic", "policy": None}, "unknown method 'magic'"),
        ({"policy": "nowhere"}, "nowhere"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadInput, match=reason):
        run(tmp_path / "new.jsonl", **change)
    assert not list(tmp_path.iterdir())


def test_a_killed_evaluation_goes_on(tmp_path: Path) -> None:
    """It is killed, with all its processes at once, as soon as two lines are there."""
    output, alone = tmp_path / "results.jsonl", tmp_path / "alone.jsonl"
    task = f"{tiny_task.__file__}:TINY"
    words = ["evaluate", task, "--policy", "expert", "--objects", "1", "--episodes", "5000", "--workers", "2"]
    command = [sys.executable, "-m", "bilevel", *words, "--output", str(output)]
    process = subprocess.Popen(command, start_new_session=True)
    while process.poll() is None and not (output.exists() and output.read_bytes().count(b"\n") >= 2):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    there = output.read_bytes().count(b"\n")
    records = evaluate("expert", task, objects=[1], episodes=there + 2, output=output)
    assert records == evaluate("expert", task, objects=[1], episodes=there + 2, output=alone)
    assert output.read_bytes() == alone.read_bytes()


# What depends on the machine


def test_timings_are_beside_the_records_and_belong_to_them(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    written = run(path)
    for record in written:
        assert {"policy", "physics", "longest"} <= set(record.seconds)
        assert "seconds" not in json.loads(record.line())
    assert [record.seconds for record in read_records(path)] == [record.seconds for record in written]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    with open(timings_path(path), "r+b") as timings:
        timings.truncate(timings_path(path).stat().st_size - 20)
    run(path)
    assert all(record.seconds for record in read_records(path))
    timings_path(path).unlink()
    assert [record.seconds for record in read_records(path)] == [{}] * 4
    assert read_records(path) == written


def test_records_with_timings_in_their_lines_can_be_read_and_gone_on_with(path: Path, made: bytes) -> None:
    old = [json.loads(line) | {"seconds": {"policy": 7.0}} for line in made.splitlines()]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in old[:2]), encoding="utf-8")
    assert [record.seconds for record in read_records(path)] == [{"policy": 7.0}] * 2
    assert [record.seconds.get("policy") == 7.0 for record in run(path)] == [True, True, False, False]


# Statistics


def test_a_table_has_a_line_for_each_number_of_objects(path: Path) -> None:
    records = read_records(path)
    records[3] = replace(records[3], outcome="step limit", reason="stall", steps=4096)
    rows = summarise_by_objects(records)
    assert [(size, row["successes"], row["episodes"]) for size, row in rows.items()] == [("1", 2, 2), ("2", 1, 2)]
    assert rows["2"]["mean_steps"] == records[2].steps
    total = summarise(records)
    assert (total["reasons"], total["changes"]["own"]) == ({"stall": 1}, 12)
    lines = summary_lines(records)
    assert [line.split()[1] for line in lines[1:4]] == ["2/2", "1/2", "3/4"]
    assert lines[2].endswith("stall 1")


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
    for rate in wilson_interval(successes, episodes):
        assert (successes / episodes - rate) ** 2 == pytest.approx(Z**2 * rate * (1 - rate) / episodes, abs=1e-9)
