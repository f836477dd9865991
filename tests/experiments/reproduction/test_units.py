"""A unit is done when what it makes is there, whole, and made of what is there now; else it does the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bilevel.experiments.records import EpisodeRecord, versions
from bilevel.experiments.reproduction import units as module
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.measurements import kept_records
from bilevel.experiments.reproduction.settings import ENTRANTS, Experiment
from bilevel.experiments.reproduction.summary import summarise
from bilevel.experiments.reproduction.training_cost import Cost
from bilevel.experiments.reproduction.units import Collect, Evaluate, Scale, Train, Weigh
from bilevel.experiments.sweep import Evaluation, read_results
from bilevel.files import write_atomically
from bilevel.learning.bilevel import Progress
from bilevel.policies.changes import Changes
from bilevel.policies.policy_folder import write_policy
from bilevel.symbolic.domain import BadInput
from idle_policy import idle_policy

EXPERT, BISON = ENTRANTS["expert"], ENTRANTS["bison-paper"]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path, Experiment(demonstrations=2, epochs=1))


def record(episode: int, digest: str | None = None) -> EpisodeRecord:
    return EpisodeRecord(
        task="blocks",
        method="expert",
        policy=None,
        policy_digest=digest,
        policy_seed=None,
        settings={},
        objects=1,
        episode=episode,
        seed=1,
        noise=0.0,
        arguments={},
        outcome="success",
        reason=None,
        detail=None,
        steps=80,
        changes=Changes(),
        versions=versions(),
        seconds={"policy": 0.1, "physics": 0.2},
    )


def write_records(kept: Kept, *records: EpisodeRecord, entrant: str = "expert", torn: bytes = b"") -> Path:
    path = kept.episodes("blocks", entrant, 0, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(record.line() for record in records).encode() + torn)
    return path


def numbers(kept: Kept, **options: bool) -> list[int]:
    return [record.episode for record in kept_records(kept, "blocks", EXPERT, 0, 1, **options)]


# Episodes that are kept


def test_episodes_are_kept_but_for_a_torn_last_line(kept: Kept) -> None:
    assert numbers(kept) == []
    path = write_records(kept, record(0), record(1))
    assert numbers(kept) == [0, 1]
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) - 200, whole.index(b"\n") + 2, whole.index(b"\n") + 1):
        path.write_bytes(whole[:length])
        assert numbers(kept) == [0]
    path.write_bytes(whole[: whole.index(b"\n")])
    assert numbers(kept) == []
    path.write_bytes(whole + b'{"task": "blo')
    assert numbers(kept) == [0, 1]


@pytest.mark.parametrize("garbage", [b"\n", b"{}\n", b"\xff\xff\n", b"null\n"])
def test_a_file_with_a_line_that_is_none_counts_for_nothing(kept: Kept, garbage: bytes) -> None:
    path = write_records(kept, record(0))
    path.write_bytes(garbage + path.read_bytes())
    assert numbers(kept) == []


def test_episodes_are_those_that_are_first_each_once(kept: Kept) -> None:
    write_records(kept, record(0), record(0))
    assert numbers(kept) == []
    write_records(kept, record(1), record(2))
    assert numbers(kept) == []


def test_a_folder_in_the_place_of_a_file_counts_for_nothing(kept: Kept) -> None:
    kept.episodes("blocks", "expert", 0, 1).mkdir(parents=True)
    assert numbers(kept) == []


def test_episodes_of_other_versions_count_but_are_not_gone_on_with(kept: Kept) -> None:
    write_records(kept, record(0), replace(record(1), versions={**versions(), "mujoco": "1.2"}))
    assert numbers(kept) == [0, 1]
    assert numbers(kept, to_go_on=True) == []
    write_records(kept, record(0), record(1))
    assert numbers(kept, to_go_on=True) == [0, 1]


def test_episodes_of_another_policy_than_is_there_count_for_nothing(kept: Kept) -> None:
    def found() -> int:
        return len(kept_records(kept, "blocks", BISON, 0, 1))

    folder, policy = kept.policy("blocks", "bison", "paper", 0), idle_policy()
    write_records(kept, record(0, policy.digest), entrant="bison-paper")
    assert found() == 0  # there is none at all
    write_policy(folder, policy)
    assert found() == 1
    other = replace(policy, rules=policy.rules[:1])
    write_policy(folder, other)
    os.utime(folder / "policy.json", (1, 1))
    assert found() == 0
    write_records(kept, record(0, other.digest), record(1, policy.digest), entrant="bison-paper")
    assert found() == 0
    write_records(kept, record(0, other.digest), record(1, other.digest), entrant="bison-paper")
    assert found() == 2
    (folder / "policy.json").write_text("{")
    assert found() == 0  # and the unit that needs it says what is wrong


# Evaluating


def test_the_episodes_that_are_missing_are_run_and_no_others(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAVED_EVERY", -1.0)
    ran: list[int] = []
    run_one = Evaluation.record

    def counted(evaluation: Evaluation, index: int) -> EpisodeRecord:
        ran.append(index)
        return run_one(evaluation, index)

    monkeypatch.setattr(Evaluation, "record", counted)
    two, three = (Evaluate("blocks", EXPERT, 0, 1, episodes) for episodes in (2, 3))
    path = kept.episodes("blocks", "expert", 0, 1)
    told: list[tuple[str, int]] = []
    assert not two.is_done(kept)

    def tick(note: str) -> None:
        told.append((note, len(path.read_text().splitlines())))

    two.perform(kept, tick)
    assert told == [("episode 1 of 2", 1), ("episode 2 of 2", 2)]  # told once it is in the file
    assert (two.is_done(kept), three.is_done(kept), ran) == (True, False, [0, 1])
    first = list(read_results(path))
    three.perform(kept, tick)
    assert (three.is_done(kept), two.is_done(kept), ran) == (True, True, [0, 1, 2])
    records = list(read_results(path))
    assert records[:2] == first
    path.write_bytes(path.read_bytes()[:-20])
    assert not three.is_done(kept)
    three.perform(kept, tick)
    assert list(read_results(path)) == records
    assert ran == [0, 1, 2, 2]


def test_a_policy_that_cannot_be_read_is_told_when_it_is_to_be_run(kept: Kept) -> None:
    write_policy(kept.policy("blocks", "bison", "paper", 0), idle_policy())
    unit = Evaluate("blocks", BISON, 0, 1, 1)
    weights = kept.policy("blocks", "bison", "paper", 0) / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert not unit.is_done(kept)
    with pytest.raises(BadInput, match=r"weights\.safetensors"):
        unit.perform(kept, lambda note: None)


# Names, needs, files


def test_what_units_are_called_and_need(kept: Kept) -> None:
    train = Train("blocks", "bison", "paper", (0, 1))
    evaluate = Evaluate("blocks", ENTRANTS["det-plan"], 1, 10, 3)
    scale = Scale("blocks", "rules", 100, train)
    assert [unit.name for unit in (Collect("blocks"), train, evaluate, scale)] == [
        "collect blocks",
        "train blocks/bison-paper-0",
        "evaluate blocks/det-plan-1/10",
        "scale blocks/rules-100",
    ]
    assert train.gives == ("policies/blocks/bison-paper-0", "policies/blocks/bison-paper-1")
    assert train.needs == Collect("blocks").gives
    assert evaluate.needs == train.gives[1:]
    assert scale.needs == train.gives[:1]
    assert Evaluate("blocks", EXPERT, 0, 1, 1).needs == ()
    assert {kept.relative(path) for path in evaluate.sources(kept)} == {
        "policies/blocks/bison-paper-1",
        "episodes/blocks/det-plan-1/10.jsonl",
    }


def test_memory_is_measured_again_only_with_more_objects(kept: Kept) -> None:
    unit = Weigh("blocks", EXPERT, 0, 1)
    assert not unit.is_done(kept)
    unit.perform(kept, lambda note: None)
    assert unit.is_done(kept)
    assert not replace(unit, objects=2).is_done(kept)
    write_records(kept, record(0))
    (row,) = summarise(kept, "bilevel reproduce").rows
    (size,) = row.sizes
    assert size.peak_mebibytes is not None
    assert size.peak_mebibytes > 10


def test_networks_that_are_there_are_not_trained_again(kept: Kept) -> None:
    unit = Train("blocks", "bison", "paper", (0, 1))
    assert unit.missing(kept) == [0, 1]
    write_policy(kept.policy("blocks", "bison", "paper", 0), idle_policy())
    assert (unit.missing(kept), unit.is_done(kept)) == ([1], False)
    write_policy(kept.policy("blocks", "bison", "paper", 1), idle_policy())
    assert unit.is_done(kept)
    unit.perform(kept, lambda note: pytest.fail(note))


# What training takes


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def test_the_time_of_all_beginnings_is_added_up(tmp_path: Path, wait: Callable[[float], None]) -> None:
    paths = [tmp_path / "costs" / "0.json", tmp_path / "costs" / "1.json"]
    for _ in range(2):
        cost = Cost(paths)
        wait(10)
        cost.note(Progress("training", 1, 9))
        wait(1)
        cost.note(Progress("training", 2, 9))  # so soon that it is not worth writing
    known = [json.loads(path.read_text()) for path in paths]
    assert [one["seconds"] for one in known] == [20.0, 20.0]
    assert known[0]["networks"] == 2
    assert known[0]["peak_mebibytes"] > 1
    cost.note(Progress("training", 9, 9))
    assert json.loads(paths[0].read_text())["seconds"] == 21.0


def test_what_a_network_took_that_is_there_no_more_is_forgotten(
    kept: Kept, wait: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = kept.cost("blocks", "bison", "paper", 0)
    write_atomically(cost, json.dumps({"seconds": 100.0, "peak_mebibytes": 1.0}))
    seconds: list[float] = []

    def train_for_a_while(*_: object, tell: Callable[[Progress], None], **__: object) -> None:
        wait(10)
        tell(Progress("training", 1, 9))
        seconds.append(json.loads(cost.read_text())["seconds"])
        raise InterruptedError

    monkeypatch.setattr("bilevel.demonstrations.dataset.read_dataset", lambda folder: None)
    monkeypatch.setattr("bilevel.experiments.training.train_together", train_for_a_while)
    for _ in range(2):
        with pytest.raises(InterruptedError):
            Train("blocks", "bison", "paper", (0,)).perform(kept, lambda note: None)
    assert seconds == [10.0, 20.0]
