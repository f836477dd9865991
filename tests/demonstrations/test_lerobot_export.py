"""LeRobot reads what was exported, and what was exported comes back as it was, bit for bit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bilevel.demonstrations import lerobot_export
from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration, encode_demonstration
from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.demonstrations.importing.lerobot_reader import read_lerobot
from bilevel.demonstrations.lerobot_export import export_to_lerobot
from bilevel.learning.learn import learn
from bilevel.progress import Progress
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.task import Task
from command_line import run
from tiny_demonstrations import QUICK
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """Episodes with slips, arrivals and perturbed controls."""
    return collect(TINY, tmp_path_factory.mktemp("data") / "tiny", objects=2, episodes=3, noise=0.7, slip_rate=0.05)


@pytest.fixture(scope="module")
def exported(data: Demonstrations, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for LeRobot; not to be changed."""
    return export_to_lerobot(data, tmp_path_factory.mktemp("exported") / "tiny", rate=20)


def as_bytes(demonstration: Demonstration) -> bytes:
    return encode_demonstration(replace(demonstration, snapshots={}))


def all_of(data: Demonstrations, items: list[Demonstration]) -> Demonstrations:
    return Demonstrations(items, task=data.task, spec=data.spec, domain=data.domain, controls=data.controls)


# There and back


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE, TINY_ACTING], ids=lambda task: task.name)
def test_demonstrations_come_back_bit_for_bit(task: Task, tmp_path: Path) -> None:
    data = collect(task, tmp_path / "data", objects=2, episodes=2, noise=0.7, slip_rate=0.05)
    export_to_lerobot(data, tmp_path / "there")
    back = read_lerobot(tmp_path / "there")
    assert back.own is not None
    assert data.manifest is not None
    assert (back.own.spec, back.own.controls) == (data.spec, data.controls)
    assert (back.own.settings, back.rate, back.total) == (data.manifest.settings, 10, 2)
    for ours, theirs in zip(data, back.episodes, strict=True):
        assert isinstance(theirs, Demonstration)
        assert as_bytes(ours) == as_bytes(theirs)


def test_the_policy_that_is_learned_from_what_comes_back_is_the_same(
    data: Demonstrations, exported: Path, tmp_path: Path
) -> None:
    back = import_demonstrations(exported, TINY, tmp_path / "back")
    here, there = (
        learn(each, tmp_path / str(number), task=TINY, config=QUICK) for number, each in enumerate((data, back))
    )
    assert here.rules == there.rules
    assert here.rules
    assert here.weights.keys() == there.weights.keys()
    for name, weights in here.weights.items():
        assert weights.tobytes() == there.weights[name].tobytes()


def test_numbers_that_text_may_spoil_come_back(data: Demonstrations, tmp_path: Path) -> None:
    first = data[0]
    agent = first.agent.copy()
    agent[-1] = [-0.0, 1e-45, np.float32(0.1)]
    growing = replace(first, agent=agent, events=((2, "lost “x”\n"), (2, "lost y")), attempt=3, demonstrator="Zoë")
    export_to_lerobot(all_of(data, [growing]), tmp_path / "there")
    (back,) = read_lerobot(tmp_path / "there").episodes
    assert isinstance(back, Demonstration)
    assert as_bytes(back) == as_bytes(growing)


def test_episodes_of_different_sizes_are_padded(data: Demonstrations, tmp_path: Path) -> None:
    more = collect(TINY, tmp_path / "more", objects=3, episodes=1)
    export_to_lerobot(all_of(data, [data[0], more[0]]), tmp_path / "there")
    table = pq.read_table(tmp_path / "there" / "data" / "chunk-000" / "file-000.parquet")
    rows = np.stack(table["observation.environment_state"].to_numpy())[: data[0].steps].reshape(-1, 6, 4)
    assert rows[:, :4].tobytes() == data[0].features[:-1].tobytes()
    assert not rows[:, 4:].any()
    small, large = read_lerobot(tmp_path / "there").episodes
    assert isinstance(small, Demonstration)
    assert isinstance(large, Demonstration)
    assert [as_bytes(small), as_bytes(large)] == [as_bytes(data[0]), as_bytes(more[0])]


def test_what_was_done_is_left_out_where_nobody_recorded_it(data: Demonstrations, tmp_path: Path) -> None:
    nothing = np.zeros_like(data[0].controls)
    silent = replace(data[0], controls=nothing, executed=nothing, has_controls=False)
    export_to_lerobot(all_of(data, [silent]), tmp_path / "there")
    assert "action" not in json.loads((tmp_path / "there" / "meta" / "info.json").read_text())["features"]
    (back,) = read_lerobot(tmp_path / "there").episodes
    assert isinstance(back, Demonstration)
    assert as_bytes(back) == as_bytes(silent)


def test_large_data_sets_have_several_files(
    data: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lerobot_export, "FILE_BYTES", 1000)
    export_to_lerobot(data, tmp_path / "there")
    assert len(list((tmp_path / "there" / "data" / "chunk-000").iterdir())) == len(data)
    back = [item for item in read_lerobot(tmp_path / "there").episodes if isinstance(item, Demonstration)]
    assert [*map(as_bytes, back)] == [*map(as_bytes, data)]


# LeRobot itself


def test_lerobot_reads_every_frame(data: Demonstrations, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    lerobot = pytest.importorskip(
        "lerobot.datasets.lerobot_dataset", reason="lerobot is not installed", exc_type=ImportError
    )
    dataset = lerobot.LeRobotDataset("bilevel/tiny", root=exported)
    assert (dataset.fps, dataset.num_episodes, len(dataset)) == (20, 3, sum(each.steps for each in data))
    frames = iter(range(len(dataset)))
    for demonstration in data:
        for step in range(demonstration.steps):
            frame = dataset[next(frames)]
            assert (frame["observation.state"].numpy() == demonstration.agent[step]).all()
            assert (frame["observation.environment_state"].numpy() == demonstration.features[step].ravel()).all()
            assert (frame["observation.visible"].numpy() == demonstration.visible[step]).all()
            assert (frame["action"].numpy() == demonstration.executed[step]).all()
            assert (frame["expert_control"].numpy() == demonstration.controls[step]).all()
            assert frame["subtask"] == str(demonstration.actions[step])
            assert frame["task"] == "at(parcel1, spot1) & at(parcel2, spot2)"
            assert bool(frame["next.success"]) == (step == demonstration.steps - 1)
    controls = np.concatenate([each.executed for each in data])
    assert np.allclose(dataset.meta.stats["action"]["mean"], controls.mean(0), atol=1e-6)
    assert np.allclose(dataset.meta.stats["action"]["std"], controls.std(0), atol=1e-6)


# What is refused


def test_a_folder_that_is_there_is_not_touched(data: Demonstrations, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is there already; choose another folder"):
        export_to_lerobot(data, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_export_leaves_nothing_behind(data: Demonstrations, tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_to_lerobot(data, tmp_path / "there", callback=interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_is_more_than_nothing(data: Demonstrations, tmp_path: Path, rate: float) -> None:
    with pytest.raises(BadInput, match="the rate is how many timesteps there are in a second"):
        export_to_lerobot(data, tmp_path / "there", rate)


def test_the_command_exports_in_one_format(
    data: Demonstrations, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("demonstrations", "export", data.folder)
    code, out, _ = run(capsys, *command, "--lerobot", tmp_path / "there")
    assert code == 0
    assert out.startswith(f"3 episodes written to {tmp_path / 'there'}\nread them with: LeRobotDataset('bilevel/tiny'")
    code, _, err = run(capsys, *command, "--lerobot", tmp_path / "there")
    assert (code, err) == (
        2,
        f"error: {tmp_path / 'there'}: is there already; choose another folder or remove it\n",
    )
    for formats in ((), ("--minari", "a-v0", "--lerobot", tmp_path / "other")):
        code, _, err = run(capsys, *command, *formats)
        assert code == 2
        assert "either --minari NAMESPACE/NAME-vN or --lerobot DIR" in err
