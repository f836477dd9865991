"""A unit is done when what it makes is there, whole, and made of what is there now; else it does the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bilevel.experiments.evaluation import EpisodeRunner, read_results
from bilevel.experiments.records import Record, timing_line, timings_path
from bilevel.experiments.reproduction import measurements as module
from bilevel.experiments.reproduction.conditions import Condition
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder
from bilevel.experiments.reproduction.large_problems import Scale
from bilevel.experiments.reproduction.measurements import Evaluate, MeasureMemory
from bilevel.experiments.reproduction.recipes import PAPERS_RECIPE, World
from bilevel.experiments.reproduction.summary import summarise
from bilevel.experiments.reproduction.units import Collect, Train, TrainingCost
from bilevel.experiments.reproduction.variants import VARIANTS, Variant
from bilevel.files import write_atomically
from bilevel.learning.networks import LearningOptions, Progress
from bilevel.policies.changes import ChangeCounts
from bilevel.policies.episode import Episode
from bilevel.policies.recovery import Recovery
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tasks.perception import read_perception
from bilevel.versions import versions
from blocks_policies import idle_policy

EXPERT, BISON = VARIANTS["expert"], VARIANTS["bison-paper"]
ONE = Evaluate("blocks", EXPERT, 0, 1, 1)
POLICY = "policies/blocks/bison-paper-0"
VERSIONS = versions(TASKS["blocks"].packages)


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    return ExperimentFolder(tmp_path, Experiment(demonstrations=2, epochs=1))


def record(episode: int, digest: str | None = None) -> Record:
    return Record(
        task="blocks",
        method="expert",
        policy=None,
        policy_digest=digest,
        policy_seed=None,
        settings={},
        objects=1,
        episode=episode,
        seed=evaluation_seed(0, 1, episode),
        noise=0.0,
        arguments={},
        outcome="success",
        reason=None,
        detail=None,
        steps=80,
        changes=ChangeCounts(),
        versions=VERSIONS,
        seconds={"policy": 0.1, "physics": 0.2},
    )


def write_records(folder: ExperimentFolder, *records: Record, variant: Variant = EXPERT) -> Path:
    path = folder.path / Evaluate("blocks", variant, 0, 1, 1).outputs[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(record.line() for record in records).encode())
    timings_path(path).write_bytes(b"".join(timing_line(record) for record in records))
    return path


def numbers(folder: ExperimentFolder, **options: bool) -> list[int]:
    return [record.episode for record in ONE.records(folder, **options)]


# Episodes that are folder


def test_episodes_are_kept_but_for_a_torn_last_line(folder: ExperimentFolder) -> None:
    assert numbers(folder) == []
    path = write_records(folder, record(0), record(1))
    assert numbers(folder) == [0, 1]
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) - 200, whole.index(b"\n") + 2, whole.index(b"\n") + 1):
        path.write_bytes(whole[:length])
        assert numbers(folder) == [0]
    path.write_bytes(whole[: whole.index(b"\n")])
    assert numbers(folder) == []
    path.write_bytes(whole + b'{"task": "blo')
    assert numbers(folder) == [0, 1]


@pytest.mark.parametrize("garbage", [b"\n", b"{}\n", b"\xff\xff\n", b"null\n"])
def test_a_file_with_a_line_that_is_none_counts_for_nothing(folder: ExperimentFolder, garbage: bytes) -> None:
    path = write_records(folder, record(0))
    path.write_bytes(garbage + path.read_bytes())
    assert numbers(folder) == []


def test_episodes_are_those_that_are_first_each_once(folder: ExperimentFolder) -> None:
    write_records(folder, record(0), record(0))
    assert numbers(folder) == []
    write_records(folder, record(1), record(2))
    assert numbers(folder) == []


def test_a_folder_in_the_place_of_a_file_counts_for_nothing(folder: ExperimentFolder) -> None:
    (folder.path / ONE.outputs[1]).mkdir(parents=True)
    assert numbers(folder) == []


def test_episodes_of_other_versions_count_but_are_not_gone_on_with(folder: ExperimentFolder) -> None:
    write_records(folder, record(0), replace(record(1), versions={**VERSIONS, "mujoco": "1.2"}))
    assert numbers(folder) == [0, 1]
    assert numbers(folder, to_resume=True) == []
    write_records(folder, record(0), record(1))
    assert numbers(folder, to_resume=True) == [0, 1]


def test_episodes_of_another_policy_than_is_there_count_for_nothing(folder: ExperimentFolder) -> None:
    def found() -> int:
        return len(Evaluate("blocks", BISON, 0, 1, 1).records(folder))

    place, policy = folder.path / POLICY, idle_policy()
    write_records(folder, record(0, policy.digest), variant=BISON)
    assert found() == 0  # there is none at all
    policy.write(place)
    assert found() == 1
    other = replace(policy, rules=policy.rules[:1])
    other.write(place)
    os.utime(place / "policy.json", (1, 1))
    assert found() == 0
    write_records(folder, record(0, other.digest), record(1, policy.digest), variant=BISON)
    assert found() == 0
    write_records(folder, record(0, other.digest), record(1, other.digest), variant=BISON)
    assert found() == 2
    (place / "policy.json").write_text("{")
    assert found() == 0  # and the unit that needs it says what is wrong


# Evaluating


def test_the_episodes_that_are_missing_are_run_and_no_others(
    folder: ExperimentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAVED_EVERY", -1.0)
    ran: list[int] = []
    run_one, seeds = EpisodeRunner.run, [evaluation_seed(0, 1, episode) for episode in range(3)]

    def counted(runner: EpisodeRunner, objects: int, seed: int, noise: float = 0.0) -> Episode:
        ran.append(seeds.index(seed))
        return run_one(runner, objects, seed, noise)

    monkeypatch.setattr(EpisodeRunner, "run", counted)
    two, three = (Evaluate("blocks", EXPERT, 0, 1, episodes) for episodes in (2, 3))
    path = folder.path / ONE.outputs[1]
    told: list[tuple[str, int]] = []
    assert not two.is_done(folder)

    def callback(note: str) -> None:
        told.append((note, len(path.read_text().splitlines())))

    two.perform(folder, callback)
    assert told == [("episode 1 of 2", 1), ("episode 2 of 2", 2)]  # told once it is in the file
    assert (two.is_done(folder), three.is_done(folder), ran) == (True, False, [0, 1])
    first = list(read_results(path))
    three.perform(folder, callback)
    assert (three.is_done(folder), two.is_done(folder), ran) == (True, True, [0, 1, 2])
    records = list(read_results(path))
    assert records[:2] == first
    path.write_bytes(path.read_bytes()[:-20])
    assert not three.is_done(folder)
    three.perform(folder, callback)
    assert list(read_results(path)) == records
    assert all(record.seconds and record.peak_mebibytes for record in read_results(path))
    assert ran == [0, 1, 2, 2]


def test_a_policy_that_cannot_be_read_is_told_when_it_is_to_be_run(folder: ExperimentFolder) -> None:
    idle_policy().write(folder.path / POLICY)
    unit = Evaluate("blocks", BISON, 0, 1, 1)
    weights = folder.path / POLICY / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert not unit.is_done(folder)
    with pytest.raises(BadInput, match=r"weights\.safetensors"):
        unit.perform(folder, lambda note: None)


# Names, needs, files


def test_what_units_are_called_and_need() -> None:
    train = Train("blocks", "bison", PAPERS_RECIPE, 1)
    evaluate = Evaluate("blocks", VARIANTS["det-plan"], 1, 10, 3)  # on the network of BISON
    scale = Scale("blocks", "rules", 100, train)
    assert [unit.name for unit in (Collect("blocks"), train, evaluate, scale)] == [
        "collect blocks",
        "train blocks/bison-paper-1",
        "evaluate blocks/det-plan-1/10",
        "scale blocks-rules-100",
    ]
    assert train.outputs == ("costs/blocks/bison-paper-1.json", "policies/blocks/bison-paper-1")
    assert train.inputs == Collect("blocks").outputs
    assert evaluate.inputs == scale.inputs == train.outputs[1:]
    assert ONE.inputs == ()
    assert Evaluate("blocks", VARIANTS["bison"], 2, 1, 1).inputs == ("policies/blocks/bison-best-2",)


def test_other_recipes_and_conditions_have_files_of_their_own() -> None:
    train = Train("blocks", "bison", PAPERS_RECIPE.with_demonstrations(20).with_shown(1), 0)
    assert (train.policy, train.inputs) == (
        "policies/blocks/bison-paper-20-shown1-0",
        ("demonstrations/blocks-shown1",),
    )
    noisy = Evaluate("blocks", EXPERT, 0, 5, 1, Condition("noise-0.5", noise=0.5))
    assert noisy.outputs[1] == "episodes/blocks/expert-0/05-noise-0.5.jsonl"


def test_episodes_are_run_under_their_condition(folder: ExperimentFolder) -> None:
    condition = Condition("late", 0.5, (("start", "circle"),), read_perception("delay=2"))
    unit = Evaluate("blocks", EXPERT, 0, 1, 1, condition)
    unit.perform(folder, lambda note: None)
    (record,) = unit.records(folder)
    assert (record.noise, record.arguments, record.perception) == (0.5, {"start": "circle"}, "delay=2")
    assert not ONE.is_done(folder)


def test_a_row_in_a_changed_world_is_run_in_it(folder: ExperimentFolder) -> None:
    circle = VARIANTS["expert"].in_world(World("circle", (("start", "circle"),)), ", in a circle")
    unit = Evaluate("blocks", circle, 0, 2, 1)
    unit.perform(folder, lambda note: None)
    (record,) = unit.records(folder)
    assert (record.arguments, unit.outputs[1]) == ({"start": "circle"}, "episodes/blocks/expert-circle-0/02.jsonl")
    learned = VARIANTS["bison-printed"].in_world(circle.world, "").training("blocks", 1)
    assert learned is not None
    assert learned.network.policy == "policies/blocks/bison-paper-circle-1"
    assert learned.inputs == ("demonstrations/blocks-circle", learned.network.policy)
    assert learned.outputs == ("policies/blocks/bison-printed-circle-1",)


def test_a_policy_is_run_as_its_row_says(folder: ExperimentFolder) -> None:
    for name, place, settings in (
        ("bison-paper", POLICY, {"recovery": "off", "estimation": "off"}),
        ("bison", "policies/blocks/bison-best-0", {"recovery": str(Recovery())}),
        ("ndt-plan", POLICY, {"planner": "fond", "planning_seconds": 100.0, "estimation": "off"}),
    ):
        idle_policy().write(folder.path / place)
        assert Evaluate("blocks", VARIANTS[name], 0, 1, 1).load_policy(folder).settings == settings


def test_demonstrations_are_there_once_they_are_complete(folder: ExperimentFolder) -> None:
    manifest = folder.path / "demonstrations/blocks/manifest.json"
    manifest.parent.mkdir(parents=True)
    for content, there in [
        ('{"complete": false, "episodes": 2}', False),
        ('{"complete": true, "episodes": 1}', False),
        ('{"complete": true, "episodes": 2}', True),
        ('{"complete": true}', False),
        ("[]", False),
        ('{"complete": true, "epi', False),
    ]:
        manifest.write_text(content)
        assert Collect("blocks").is_done(folder) is there


def test_memory_is_measured_again_only_with_more_objects(folder: ExperimentFolder) -> None:
    unit = MeasureMemory("blocks", EXPERT, 0, 1)
    assert not unit.is_done(folder)
    unit.perform(folder, lambda note: None)
    assert unit.is_done(folder)
    assert not replace(unit, objects=2).is_done(folder)
    write_records(folder, record(0))
    (row,) = summarise(folder, "bilevel reproduce").rows
    (size,) = row.sizes
    assert size.peak_mebibytes is not None
    assert size.peak_mebibytes > 10


def test_a_network_that_is_there_is_not_trained_again(folder: ExperimentFolder) -> None:
    unit = Train("blocks", "bison", PAPERS_RECIPE, 0)
    assert not unit.is_done(folder)
    idle_policy().write(folder.path / POLICY)
    assert unit.is_done(folder)
    unit.perform(folder, lambda note: pytest.fail(note))


# What training takes


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def test_the_time_of_all_beginnings_is_added_up(tmp_path: Path, wait: Callable[[float], None]) -> None:
    path = tmp_path / "costs" / "0.json"
    for _ in range(2):
        cost = TrainingCost(path)
        wait(10)
        cost.note()
        wait(1)
        cost.note()  # so soon that it is not worth writing
    known = json.loads(path.read_text())
    assert (known["seconds"], known["networks"]) == (20.0, 1)
    assert known["peak_mebibytes"] > 1
    cost.note(is_last=True)
    assert json.loads(path.read_text())["seconds"] == 21.0


def test_what_a_network_took_that_is_there_no_more_is_forgotten(
    folder: ExperimentFolder, wait: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = folder.path / "costs/blocks/bison-paper-0.json"
    write_atomically(cost, json.dumps({"seconds": 100.0, "peak_mebibytes": 1.0}))
    seconds: list[float] = []

    def train_for_a_while(_: object, __: object, method: str, options: LearningOptions) -> None:
        wait(10)
        options.callback(Progress("training", 1, 9))
        seconds.append(json.loads(cost.read_text())["seconds"])
        raise InterruptedError

    monkeypatch.setattr("bilevel.demonstrations.dataset.Demonstrations.read", lambda folder: None)
    monkeypatch.setattr("bilevel.methods.methods.train", train_for_a_while)
    for _ in range(2):
        with pytest.raises(InterruptedError):
            Train("blocks", "bison", PAPERS_RECIPE, 0).perform(folder, lambda note: None)
    assert seconds == [10.0, 20.0]
