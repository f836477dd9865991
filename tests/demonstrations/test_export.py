"""Minari and LeRobot give back what was demonstrated, bit for bit; so does the import of what was exported."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstration, Demonstrations, file_name
from bilevel.demonstrations.importing.importer import read_recordings
from bilevel.progress import Progress
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.layout import StateLayout
from bilevel.tasks.registry import find_task
from bilevel.tasks.scene_env import STEP_LIMIT, SceneEnv
from bilevel.tasks.task import Task
from drawn_task import DRAWN
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
    about: dict[str, Any] = {name: getattr(data, name) for name in ("task", "spec", "domain", "controls", "arguments")}
    return Demonstrations(items, **about)


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
        controls = each.executed if form == "minari" else each.controls
        assert np.array_equal(np.array(episode.controls), controls[: len(episode.observations) - 1])


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


def table_of(folder: Path, episode: int = 0) -> Any:
    return pq.read_table(folder / "data" / "chunk-000" / f"file-{episode:03d}.parquet")


def info_of(folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((folder / "meta" / "info.json").read_text())
    return about


def test_every_number_of_a_state_has_a_name_and_places_are_free_where_there_are_fewer_objects(
    data: Demonstrations, tmp_path: Path
) -> None:
    more = collect(TINY, tmp_path / "more", objects=3, episodes=1)
    folder = export_to_lerobot(all_of(data, data[0], more[0]), tmp_path / "there")
    features = info_of(folder)["features"]
    layout = StateLayout.of_names(data.spec, features["observation.state"]["names"])
    assert features["observation.environment_state"]["names"] == layout.places
    numbers = np.stack(table_of(folder)["observation.state"].to_numpy())
    scenes = data[0].scenes(data.spec)[:-1]
    assert numbers.tolist() == [layout.encode(scene)[0].tolist() for scene in scenes]
    column = {name: number for number, name in enumerate(layout.names)}
    assert numbers[-1, column["parcel[1].x"]] == list(scenes[-1].of_type("parcel"))[1].x
    assert not numbers[:, column["parcel[2].x"]].any()
    taken = np.stack(table_of(folder)["observation.environment_state"].to_numpy())
    assert dict(zip(layout.places, taken[0], strict=True))["parcel[2]"] == 0
    with pytest.raises(BadInput, match="places for 2 objects of the type 'parcel', but 3 are there"):
        StateLayout.of_scenes(data.spec, scenes).encode(more[0].scenes(data.spec)[-1])


def test_actions_are_to_be_imitated_and_left_out_where_there_are_none(data: Demonstrations, tmp_path: Path) -> None:
    table = table_of(export_to_lerobot(data, tmp_path / "there"))
    assert np.array_equal(np.stack(table["action"].to_numpy()), data[0].controls)
    assert np.array_equal(np.stack(table["executed_control"].to_numpy()), data[0].executed)
    assert not np.array_equal(data[0].controls, data[0].executed)
    export_to_lerobot(all_of(data, replace(data[0], has_controls=False)), tmp_path / "silent")
    assert "action" not in info_of(tmp_path / "silent")["features"]


def test_the_rate_is_that_of_the_arm_and_the_task_its_sentence(tmp_path: Path) -> None:
    task = find_task("blocks")
    demonstrations = collect(task, tmp_path / "blocks", objects=2, episodes=1)
    folder = export_to_lerobot(demonstrations, tmp_path / "there")
    with closing(SceneEnv(task, 2)) as env:
        assert info_of(folder)["fps"] == env.env.metadata["render_fps"] != 30
    assert table_of(folder)["timestamp"].to_pylist()[1] == pytest.approx(1 / info_of(folder)["fps"])
    sentences = pq.read_table(folder / "meta" / "tasks.parquet")["__index_level_0__"].to_pylist()
    assert sentences == ["Put every block on the spot of its own colour, 2 in all."]
    export_to_lerobot(demonstrations, tmp_path / "slow", rate=12.5)
    assert info_of(tmp_path / "slow")["fps"] == 12.5


def test_what_never_changes_is_not_scaled_up(data: Demonstrations, tmp_path: Path) -> None:
    folder = export_to_lerobot(data, tmp_path / "there")
    spread = json.loads((folder / "meta" / "stats.json").read_text())["observation.state"]["std"]
    assert min(spread) > 1e-3


def test_pictures_are_those_of_the_same_episode(tmp_path: Path) -> None:
    drawn = collect(DRAWN, tmp_path / "drawn", objects=1, episodes=2, noise=0.5)
    folder = export_to_lerobot(drawn, tmp_path / "there", pictures="corner", task=DRAWN)
    features = info_of(folder)["features"]
    assert features["observation.images.corner"]["shape"] == [100, 160, 3]
    assert features["observation.state"]["names"] == [f"agent.{name}" for name in drawn.spec.agent]
    assert info_of(folder)["fps"] == 30
    pictures = table_of(folder, 1)["observation.images.corner"].to_pylist()
    colours = [np.asarray(Image.open(io.BytesIO(picture["bytes"])))[0, 0] for picture in pictures]
    agents = drawn[1].agent[:-1, :2]
    assert np.allclose(colours, [(*(100 + 60 * place), 0) for place in agents], atol=1.01)
    other = replace(drawn[0], seed=drawn[1].seed)
    with pytest.raises(BadInput, match="episode 0 differs from step 0 on; see: bilevel demonstrations replay"):
        export_to_lerobot(all_of(drawn, other), tmp_path / "other", pictures="corner", task=DRAWN)
    with pytest.raises(BadInput, match="pictures need the task's own environment"):
        export_to_lerobot(drawn, tmp_path / "unknown", pictures="corner")


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
