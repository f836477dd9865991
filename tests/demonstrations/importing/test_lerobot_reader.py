"""What LeRobot's own writer made (lerobot_recordings.py) is read; what is damaged is refused in a line."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.demonstrations.importing.lerobot_reader import read_lerobot
from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings
from bilevel.demonstrations.lerobot_export import export_to_lerobot
from bilevel.learning.learn import learn
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene import Scene
from command_line import run
from tiny_demonstrations import QUICK, shown
from tiny_task import TINY, Delivery, act, perceive

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ("v2.1", "v3.0")
EPISODES = {"v2.1": "meta/episodes.jsonl", "v3.0": "meta/episodes/chunk-000/file-000.parquet"}
FRAMES = {"v2.1": "data/chunk-000/episode_000001.parquet", "v3.0": "data/chunk-000/file-000.parquet"}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(version: str, tmp_path: Path) -> Path:
    """A data set that LeRobot wrote, to be changed."""
    return Path(shutil.copytree(DATA / f"lerobot-{version}", tmp_path / version))


def all_of(recordings: Recordings) -> list[RecordedEpisode]:
    return [episode for episode in recordings.episodes if isinstance(episode, RecordedEpisode)]


def test_what_lerobot_wrote_is_what_was_lived_through(version: str) -> None:
    found = read_lerobot(DATA / f"lerobot-{version}")
    assert (found.format, found.total, found.rate, found.own) == ("lerobot", 2, 20, None)
    assert found.notes == ("left out, as pictures are not read: observation.image",)
    for seed, episode in enumerate(all_of(found)):
        env = Delivery(2, slip_rate=0.0, discrete=False)
        seen, info = env.reset(seed=seed)
        assert episode.controls is not None
        assert episode.infos is not None
        assert (episode.name, episode.success) == (f"episode {seed}", True)
        for step, observation in enumerate(episode.observations):
            assert set(observation) == {"observation.state", "observation.environment_state", "observation.arrived"}
            assert observation["observation.state"].tobytes() == seen["agent"].tobytes()
            expected = np.concatenate([seen["parcels"].ravel(), seen["spots"].ravel()])
            assert observation["observation.environment_state"].tobytes() == expected.tobytes()
            assert int(observation["observation.arrived"]) == seen["arrived"]
            assert episode.infos[step]["task"] == "Bring each parcel to its spot"
            if not info["success"]:
                assert episode.controls[step].tobytes() == act(perceive(seen, info, env)).tobytes()
            seen, _, _, _, info = env.step(episode.controls[step])
            assert bool(episode.infos[step]["next.success"]) == info["success"]
        assert len(episode.controls) == len(episode.observations) == len(episode.infos)


def test_both_versions_hold_the_same() -> None:
    old, new = (all_of(read_lerobot(DATA / f"lerobot-{version}")) for version in VERSIONS)
    for one, other in zip(old, new, strict=True):
        for part in ("observations", "infos", "controls"):
            assert str(list(getattr(one, part))) == str(list(getattr(other, part)))


def perceive_frame(frame: dict[str, Any]) -> Scene:
    """The scene in a frame, as a user writes such a function."""
    objects = frame["observation.environment_state"]
    observation = {
        "agent": frame["observation.state"],
        "arrived": int(frame["observation.arrived"]),
        "parcels": objects[:6].reshape(2, 3),
        "spots": objects[6:].reshape(2, 2),
    }
    return perceive(observation, {}, None)  # type: ignore[arg-type]


def test_a_policy_is_learned_from_what_lerobot_wrote(version: str, tmp_path: Path) -> None:
    task = replace(TINY, expert=None)
    data = import_demonstrations(DATA / f"lerobot-{version}", task, tmp_path / "data", perceive=perceive_frame)
    assert data.report is not None
    assert (data.report.kept, data.report.rate) == (2, 20)
    assert data.report.notes[0] == "left out, as pictures are not read: observation.image"
    policy = learn(data, tmp_path / "policy", task=task, config=QUICK)
    assert policy.rules == learn(shown(), tmp_path / "other", config=QUICK).rules


def test_the_command_sees_that_it_is_lerobots(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = DATA / f"lerobot-{version}", tmp_path / "data"
    perceiving = ("--perceive", f"{__file__}:perceive_frame")
    code, out, _ = run(capsys, "import", source, "--task", "tiny_task:TINY", *perceiving, "--output", output)
    assert code == 0
    assert "2 episodes read, 2 demonstrations kept, 121 steps at 20 Hz" in out
    code, out, _ = run(capsys, "demonstrations", "check", output)
    assert code == 0
    assert ", 20 Hz, " in out
    assert "\nrules: yes: 2 rules" in out


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def edit_table(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def refusal(folder: Path) -> str:
    with pytest.raises(BadInput) as caught:
        list(read_lerobot(folder).episodes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_where_there_is_none(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere").endswith("nowhere: no LeRobot data set: there is no meta/info.json in it")


@pytest.mark.parametrize(
    ("other", "advice"),
    [("v1.6", "convert it"), ("v2.0", "convert it"), (None, "convert it"), ("v3.1", "upgrade"), ("v4.0", "upgrade")],
)
def test_other_versions(folder: Path, other: str | None, advice: str) -> None:
    edit_json(folder / "meta/info.json", lambda info: info.update(codebase_version=other))
    assert f"of LeRobot's version {other}, but only v2.1 and v3.0 are read; {advice}" in refusal(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda info: info.pop("features"), "missing required field `features`"),
        (lambda info: info.update(fps=0), "Expected `float` > 0.0 - at `$.fps`"),
        (lambda info: info.update(fps="20"), "Expected `float`, got `str` - at `$.fps`"),
        (lambda info: info["features"].update(mood={}), "missing required field `dtype`"),
        (lambda info: info.update(data_path="{mood}.parquet"), "'data_path' is no pattern of files: {mood}.parquet"),
        (lambda info: info["features"]["action"].update(shape=[4]), "'action' does not have the shape [4] in each row"),
        (lambda info: info["features"]["next.reward"].update(shape=[2]), "'next.reward' does not have the shape [2]"),
        (lambda info: info["features"]["action"].update(shape=[2**63]), "`int` <= 9223372036854775807"),
        (lambda info: info["features"].update(mood={"dtype": "int64", "shape": [1]}), "the column 'mood' is missing"),
        (lambda info: info.update(total_episodes=3), "lists 2 episodes, but they must be 0 to 2"),
    ],
)
def test_an_info_that_does_not_fit(folder: Path, change: Callable[[dict[str, Any]], object], reason: str) -> None:
    edit_json(folder / "meta/info.json", change)
    assert reason in refusal(folder)


def test_files_that_are_missing(folder: Path, version: str) -> None:
    (folder / FRAMES[version]).unlink()
    assert refusal(folder) == f"{folder / FRAMES[version]}: missing"
    (folder / EPISODES[version]).unlink()
    assert "episodes" in refusal(folder)


def test_files_that_are_truncated(folder: Path, version: str) -> None:
    for file in (FRAMES[version], "meta/info.json"):
        path = folder / file
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert refusal(folder).startswith(f"{path}: ")


def test_whatever_is_damaged_is_refused_in_a_line_or_does_no_harm(folder: Path) -> None:
    rng, reasons = random.Random(0), []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()) * 10:
        whole = path.read_bytes()
        spoilt = bytearray(whole)
        for _ in range(rng.choice((1, 20))):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        path.write_bytes(spoilt)
        try:
            list(read_lerobot(folder).episodes)
        except BadInput as error:
            reasons.append(str(error))
        path.write_bytes(whole)
    assert len(reasons) > 10
    assert not any("\n" in reason for reason in reasons)


def test_an_index_that_does_not_fit_the_frames(folder: Path, version: str) -> None:
    if version == "v2.1":
        path = folder / EPISODES[version]
        path.write_text(path.read_text().replace("52", "53"))
    else:
        edit_table(folder / EPISODES[version], lambda table: table.set_column(2, "length", pa.array([71, 53])))
    assert "episode 1 has 52 frames there, but 53 in the index of episodes" in refusal(folder)


def test_an_index_that_names_the_wrong_episode(folder: Path, version: str) -> None:
    def renumber(table: pa.Table) -> pa.Table:
        place = table.column_names.index("episode_index")
        return table.set_column(place, "episode_index", pa.array([7] * len(table)))

    edit_table(folder / FRAMES[version], renumber)
    assert "has 0 frames there, but" in refusal(folder)


def test_rows_that_are_missing_or_in_disorder(folder: Path, version: str) -> None:
    edit_table(folder / FRAMES[version], lambda table: table.take(list(range(len(table)))[::-1]))
    assert "are not in order: 'frame_index' must count from 0" in refusal(folder)
    edit_table(folder / FRAMES[version], lambda table: table.slice(1))
    assert "episode" in refusal(folder)


def test_values_that_are_missing(folder: Path, version: str) -> None:
    def spoil(table: pa.Table) -> pa.Table:
        place = table.column_names.index("next.reward")
        return table.set_column(place, "next.reward", pa.array([None] * len(table), pa.float32()))

    edit_table(folder / FRAMES[version], spoil)
    assert refusal(folder) == f"{folder / FRAMES[version]}: 'next.reward' has rows without values"


def test_features_with_several_axes_and_texts_are_read(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "lerobot-v3.0", tmp_path / "wide"))

    def widen(table: pa.Table) -> pa.Table:
        grids = pa.array([[[row, 1], [2, 3]] for row in range(len(table))], pa.list_(pa.list_(pa.int64())))
        return table.append_column("observation.grid", grids).append_column("mood", pa.array(["good"] * len(table)))

    edit_table(folder / FRAMES["v3.0"], widen)
    features = {"observation.grid": {"dtype": "int64", "shape": [2, 2]}, "mood": {"dtype": "string", "shape": [1]}}
    edit_json(folder / "meta/info.json", lambda info: info["features"].update(features))
    first, *_ = all_of(read_lerobot(folder))
    assert first.observations[5]["observation.grid"].tolist() == [[5, 1], [2, 3]]
    assert first.infos
    assert first.infos[5]["mood"] == "good"


def test_data_without_controls_has_none(folder: Path) -> None:
    edit_json(folder / "meta/info.json", lambda info: info["features"].pop("action"))
    assert {episode.controls is None for episode in all_of(read_lerobot(folder))} == {True}


def test_data_with_nothing_but_pictures_is_refused(folder: Path) -> None:
    def blind(info: dict[str, Any]) -> None:
        info["features"] = {name: info["features"][name] for name in ("observation.image", "action")}

    edit_json(folder / "meta/info.json", blind)
    assert "nothing is seen in it but pictures" in refusal(folder)


def test_an_export_of_ours_that_was_changed_since_is_refused_with_advice(tmp_path: Path) -> None:
    folder = export_to_lerobot(shown(), tmp_path / "there")
    edit_json(folder / "meta/bilevel.json", lambda ours: ours["episodes"].pop())
    assert "meta/bilevel.json: does not fit the frames any more" in refusal(folder)
    (folder / "meta/bilevel.json").unlink()
    found = all_of(read_lerobot(folder))
    assert [len(episode.observations) for episode in found] == [each.steps for each in shown()]


def test_an_export_of_ours_with_a_number_beyond_all_others_says_nothing_else(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    folder = export_to_lerobot(shown(), tmp_path / "there")
    edit_json(folder / "meta/bilevel.json", lambda ours: ours["episodes"][0].update(agent=[1e300, 0.0]))
    with suppress(BadInput):
        list(read_lerobot(folder).episodes)
    assert not recwarn.list
