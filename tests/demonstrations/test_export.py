"""Minari and LeRobot give back what was demonstrated, bit for bit; so does the import of what was exported."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstration, Demonstrations, file_name
from bilevel.demonstrations.importing.importer import read_recordings
from bilevel.progress import Progress
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import STEP_LIMIT
from bilevel.tasks.task import Task
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE

minari = pytest.importorskip("minari", reason="formats of the extra `data`")
pq = pytest.importorskip("pyarrow.parquet", reason="formats of the extra `data`")
from bilevel.demonstrations.export import export_to_lerobot, export_to_minari, minari_episode  # noqa: E402

NAME = "bilevel/tiny-v0"
FORMATS = ("lerobot", "minari")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """Episodes with slips, arrivals and perturbed controls."""
    return collect(TINY, tmp_path_factory.mktemp("data") / "tiny", objects=2, episodes=3, noise=0.7, slip_rate=0.05)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari keeps its data sets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def export(data: Demonstrations, form: str, folder: Path, **further: Any) -> str:
    """The folder or the name of what was exported."""
    if form == "minari":
        export_to_minari(data, NAME, **further)
        return NAME
    return str(export_to_lerobot(data, folder / "there", **further))


def all_of(data: Demonstrations, *items: Demonstration) -> Demonstrations:
    return Demonstrations(items, task=data.task, spec=data.spec, domain=data.domain, controls=data.controls)


def same(one: Any, other: Any) -> bool:
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE, TINY_ACTING], ids=lambda task: task.name)
def test_what_was_exported_comes_back_as_it_was(task: Task, form: str, tmp_path: Path) -> None:
    data = collect(task, tmp_path / "data", objects=2, episodes=2, noise=0.7, slip_rate=0.05)
    seen: list[Progress] = []
    exported = export(data, form, tmp_path, callback=seen.append)
    assert seen == [Progress("exporting", number, 2) for number in (1, 2)]
    episodes = list(read_recordings(exported).episodes)
    steps = [each.steps for each in data]
    assert [len(episode.observations) for episode in episodes] == [n + (form == "minari") for n in steps]
    for episode, each in zip(episodes, data, strict=True):
        assert np.array_equal(np.array(episode.controls), each.executed[: len(episode.observations) - 1])


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_that_fails_leaves_nothing(data: Demonstrations, form: str, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(data.folder or "", tmp_path / "copied"))
    (copied / file_name(1)).write_bytes(b"")
    with pytest.raises(BadInput, match=r"episode-00001.npz: "):
        export(Demonstrations.read(copied), form, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and copied not in path.parents]
    assert export(data, form, tmp_path)
    with pytest.raises(BadInput, match="already"):
        export(data, form, tmp_path)


# LeRobot


def test_frames_are_padded_and_controls_left_out_where_there_are_none(data: Demonstrations, tmp_path: Path) -> None:
    more = collect(TINY, tmp_path / "more", objects=3, episodes=1)
    folder = export_to_lerobot(all_of(data, data[0], more[0]), tmp_path / "there")
    table = pq.read_table(folder / "data" / "chunk-000" / "file-000.parquet")
    rows = np.stack(table["observation.environment_state"].to_numpy())[: data[0].steps].reshape(-1, 6, 4)
    assert rows[:, :4].tobytes() == data[0].features[:-1].tobytes()
    assert not rows[:, 4:].any()
    export_to_lerobot(all_of(data, replace(data[0], has_controls=False)), tmp_path / "silent")
    assert "action" not in json.loads((tmp_path / "silent" / "meta" / "info.json").read_text())["features"]


def test_lerobot_reads_every_frame(data: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    lerobot = pytest.importorskip(
        "lerobot.datasets.lerobot_dataset", reason="lerobot is not installed", exc_type=ImportError
    )
    dataset = lerobot.LeRobotDataset("bilevel/tiny", root=export_to_lerobot(data, tmp_path / "there", rate=20))
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


# Minari


def test_minari_gives_back_every_episode_bit_for_bit(data: Demonstrations, root: Path) -> None:
    assert export_to_minari(data, NAME) == root / "bilevel" / "tiny-v0"
    exported = minari.load_dataset(NAME)
    assert (exported.total_episodes, exported.total_steps) == (3, sum(episode.steps for episode in data))
    for demonstration, episode in zip(data, exported, strict=True):
        assert same(episode.observations["agent"], demonstration.agent)
        assert same(episode.observations["objects"], demonstration.features)
        assert same(episode.observations["visible"], demonstration.visible.astype(np.int8))
        assert same(episode.actions, demonstration.executed)
        assert same(episode.infos["expert_control"][:-1], demonstration.controls)
        texts = {name: [text.decode() for text in episode.infos[name]] for name in ("high_level_action", "events")}
        assert texts["high_level_action"] == [*map(str, demonstration.actions), ""]
        assert [(i, text) for i, text in enumerate(texts["events"]) if text] == list(demonstration.events)
    ((name, about),) = minari.list_local_datasets().items()
    assert (name, about["algorithm_name"]) == (NAME, "expert")
    assert "bilevel collect tiny --objects 2" in str(about["description"])


def test_an_episode_for_minari_is_padded_and_says_how_it_ended(data: Demonstrations) -> None:
    first = replace(data[0], events=((2, "lost x"), (2, "lost y")), outcome=STEP_LIMIT)
    episode = minari_episode(first, 6)
    assert same(episode.observations["objects"][:, :4], first.features)
    assert not episode.observations["objects"][:, 4:].any()
    assert episode.infos["goal"][-1] == b"at(parcel1, spot1) & at(parcel2, spot2)"
    assert episode.infos["events"][1:4].tolist() == [b"", b"lost x; lost y", b""]
    assert np.flatnonzero(episode.truncations).tolist() == [first.steps - 1]


@pytest.mark.parametrize("name", ["tiny", "bilevel/tiny", "../tiny-v0", "bilevel//tiny-v0", "/tiny-v0", ""])
def test_names_that_minari_does_not_take_are_refused(data: Demonstrations, name: str) -> None:
    with pytest.raises(BadInput, match="is no name of a Minari data set; an example of one: mine/cubes-v0"):
        export_to_minari(data, name)
