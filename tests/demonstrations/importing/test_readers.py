"""Each format is read as it was recorded by its own writer; whatever is hostile or damaged is refused in a line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.importing.importer import import_demonstrations, read_recordings
from bilevel.demonstrations.importing.recorded import RecordedEpisode
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene import Scene
from minari_recordings import FORMS, SEEDS, from_tuple
from recorded_episodes import from_vector, raw
from tiny_task import TINY, Delivery, act, perceive

h5py = pytest.importorskip("h5py", reason="formats of the extra `data`")
pytest.importorskip("minari", reason="formats of the extra `data`")

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ("v2.1", "v3.0")
FRAMES = {"v2.1": "data/chunk-000/episode_000001.parquet", "v3.0": "data/chunk-000/file-000.parquet"}


def episodes_in(source: object, mask: str | None = None) -> list[RecordedEpisode]:
    found = read_recordings(str(source), mask=mask)
    episodes = list(found.episodes)
    assert found.total in (None, len(episodes))
    return episodes


def refusal(source: object) -> str:
    with pytest.raises(BadInput) as error:
        episodes_in(source)
    assert "\n" not in str(error.value)
    return str(error.value)


# Arrays in npz files


def write_npz(path: Path, *seeds: int) -> Path:
    """Episodes one after the other; the last observation of each comes with an action that leads nowhere."""
    episodes = [raw(seed) for seed in seeds]
    ends = [np.arange(len(one.observations)) == len(one.actions) for one in episodes]
    np.savez(
        path,
        observations=np.concatenate([one.vectors for one in episodes]),
        actions=np.concatenate([[*one.actions, np.zeros(3)] for one in episodes]),
        terminals=np.concatenate(ends).astype(np.float32),
    )
    return path


def test_episodes_of_an_npz_file_end_where_the_terminals_say(tmp_path: Path) -> None:
    file = write_npz(tmp_path / "play.npz", 0, 1)
    data = import_demonstrations(file, TINY, perceive=from_vector)
    for seed in (0, 1):
        assert data[seed].scenes(TINY.spec) == raw(seed).scenes
        assert np.array_equal(data[seed].controls, np.array(raw(seed).actions))
    np.savez(file, observations=np.zeros((5, 2)), terminals=[0, 1, 0, 0, 0])
    assert [len(episode.observations) for episode in episodes_in(file)] == [2, 3]


def test_next_observations_tell_what_was_seen_at_the_end(tmp_path: Path) -> None:
    episode, file = raw(0), tmp_path / "play.npz"
    rows = len(episode.actions)
    np.savez(
        file,
        observations=episode.vectors[:-1],
        next_observations=episode.vectors[1:],
        actions=np.array(episode.actions),
        timeouts=np.arange(rows) == rows - 1,
        **{"infos/qpos": np.arange(rows)},  # type: ignore[arg-type]
    )
    (found,) = episodes_in(file)
    assert np.array_equal(np.array(found.observations), episode.vectors)
    assert found.infos is not None
    assert (found.infos[3], found.infos[-1]) == ({"qpos": 3}, {})


def test_a_folder_of_npz_files_with_parts_of_a_dictionary(tmp_path: Path) -> None:
    for seed in (0, 1):
        parts = {f"observations/{name}": array for name, array in raw(seed).arrays.items()}
        np.savez(tmp_path / f"{seed}.npz", **parts, success=np.array(raw(seed).successes))
    assert [episode.name for episode in episodes_in(tmp_path)] == ["0.npz, episode 0", "1.npz, episode 0"]
    assert import_demonstrations(tmp_path, TINY)[0].scenes(TINY.spec) == raw(0).scenes


# robomimic

MASKS = {
    "better_operator_1": ["demo_0", "demo_2"],
    "better_operator_1_train": ["demo_0"],
    "okay_operator_2": ["demo_10"],
    "train": ["demo_0", "demo_10"],
}


def write_hdf5(path: Path, env_args: Any = None) -> Path:
    """Episodes as robomimic keeps them: float64 actions, obs and next_obs, a reward at the end, masks."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_kwargs": {"control_freq": 20}} if env_args is None else env_args)
        for name, seed in {"demo_10": 2, "demo_0": 0, "demo_2": 1}.items():
            episode, group = raw(seed), data.create_group(name)
            steps = len(episode.actions)
            group["actions"] = np.array(episode.actions, np.float64)
            group["rewards"] = (np.arange(steps) == steps - 1).astype(np.float64)
            for key, array in episode.arrays.items():
                group[f"obs/{key}"], group[f"next_obs/{key}"] = array[:-1], array[1:]
        for name, members in MASKS.items():
            file[f"mask/{name}"] = np.array(members, "S")
    return path


def test_a_file_of_robomimics_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    file = write_hdf5(tmp_path / "low_dim.hdf5")
    data = import_demonstrations(file, TINY)
    for item, seed in zip(data, (0, 1, 2), strict=True):
        assert item.scenes(TINY.spec) == raw(seed).scenes
        assert np.array_equal(item.controls, np.array(raw(seed).actions))
    assert [item.demonstrator for item in data] == ["better_operator_1", "better_operator_1", "okay_operator_2"]
    assert data.report is not None
    assert data.report.rate == 20
    assert [episode.name for episode in episodes_in(file, "train")] == ["data/demo_0", "data/demo_10"]
    with pytest.raises(BadInput, match="there is no mask 'valid'; there are: better_operator_1, "):
        episodes_in(file, "valid")
    with h5py.File(file, "a") as changed:
        changed["data/demo_2/rewards"][...] = 0
        del changed["data/demo_0/next_obs"]
    first, failed, _ = episodes_in(file)
    assert (failed.success, len(first.observations)) == (False, len(raw(0).actions))
    with h5py.File(file, "a") as changed:
        del changed["data/demo_10"]
    with pytest.raises(BadInput, match="the mask 'train' names 'demo_10', which is not there"):
        episodes_in(file, "train")
    shaped = write_hdf5(tmp_path / "dense.hdf5", {"env_kwargs": {"reward_shaping": True}})
    assert {episode.success for episode in episodes_in(shaped)} == {None}


# Minari

PERCEIVED = {"dictionary": None, "vector": from_vector, "tuple": from_tuple}


@pytest.mark.parametrize("form", FORMS)
def test_what_minaris_recorder_wrote_is_read(form: str) -> None:
    data = import_demonstrations(DATA / "minari" / f"{form}-v0", TINY, perceive=PERCEIVED[form], objects=1)
    for item, seed in zip(data, SEEDS, strict=True):
        assert item.scenes(TINY.spec) == raw(seed, objects=1).scenes
        assert np.array_equal(item.controls, np.array(raw(seed, objects=1).actions))
        assert (item.seed, item.demonstrator) == (seed, "someone")


# LeRobot


@pytest.fixture(params=VERSIONS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A data set that LeRobot wrote, to be changed."""
    return Path(shutil.copytree(DATA / f"lerobot-{request.param}", tmp_path / request.param))


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


def test_what_lerobot_wrote_is_what_was_lived_through(folder: Path) -> None:
    found = read_recordings(str(folder))
    assert (found.format, found.total, found.rate) == ("lerobot", 2, 20)
    assert found.notes == ("left out, as pictures are not read: observation.image",)
    for seed, episode in enumerate(found.episodes):
        env = Delivery(2, slip_rate=0.0, discrete=False)
        seen, info = env.reset(seed=seed)
        assert episode.controls is not None
        assert episode.infos is not None
        assert (episode.name, episode.success) == (f"episode {seed}", True)
        for step, control in enumerate(episode.controls):
            frame = episode.observations[step]
            assert set(frame) == {"observation.state", "observation.environment_state", "observation.arrived"}
            assert perceive_frame(frame) == perceive(seen, info, env)
            assert episode.infos[step]["task"] == "Bring each parcel to its spot"
            if not info["success"]:
                assert control.tobytes() == act(perceive(seen, info, env)).tobytes()
            seen, _, _, _, info = env.step(control)
            assert bool(episode.infos[step]["next.success"]) == info["success"]
        assert len(episode.controls) == len(episode.observations) - 1
    data = import_demonstrations(folder, TINY, perceive=perceive_frame)
    assert isinstance(data, Demonstrations)
    assert len(data) == 2


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def edit_table(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def test_features_with_several_axes_texts_and_lists_of_one_number_are_read(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "lerobot-v3.0", tmp_path / "wide"))

    def widen(table: pa.Table) -> pa.Table:
        rows = range(len(table))
        grids = pa.array([[[row, 1], [2, 3]] for row in rows], pa.list_(pa.list_(pa.int64())))
        lists = pa.array([[row] for row in rows], pa.list_(pa.float32()))
        table = table.append_column("observation.grid", grids).append_column("observation.height", lists)
        return table.append_column("mood", pa.array(["good"] * len(table)))

    edit_table(folder / FRAMES["v3.0"], widen)
    shapes = {"observation.grid": ("int64", [2, 2]), "observation.height": ("float32", [1]), "mood": ("string", [1])}
    features = {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in shapes.items()}
    edit_json(folder / "meta/info.json", lambda info: info["features"].update(features))
    first, *_ = episodes_in(folder)
    assert first.observations[5]["observation.grid"].tolist() == [[5, 1], [2, 3]]
    assert first.observations[5]["observation.height"] == 5
    assert first.infos
    assert first.infos[5]["mood"] == "good"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda info: info.update(codebase_version="v4.0"),
            "of LeRobot's version v4.0, but only v2.1 and v3.0 are read",
        ),
        (lambda info: info.update(fps="20"), "Expected `float`, got `str` - at `$.fps`"),
        (lambda info: info["features"]["action"].update(shape=[4]), "'action' does not have the shape [4] in each row"),
        (lambda info: info["features"].update(mood={"dtype": "int64", "shape": [1]}), '\'Field "mood" does not exist'),
        (lambda info: info.update(total_episodes=3), "there are 2 episodes with "),
        (lambda info: info.update(features={"action": info["features"]["action"]}), "nothing is seen in it but pictur"),
    ],
)
def test_an_info_that_does_not_fit(folder: Path, change: Callable[[dict[str, Any]], object], reason: str) -> None:
    edit_json(folder / "meta/info.json", change)
    assert reason in refusal(folder)


def test_no_path_of_a_stranger_is_followed(folder: Path) -> None:
    for path in ("{chunk_index.nope}.parquet", "../{chunk_index}.parquet", "/data/{chunk_index}.parquet"):
        edit_json(folder / "meta/info.json", lambda info, path=path: info.update(data_path=path))  # type: ignore[misc]
        assert len(episodes_in(folder)) == 2


def with_column(name: str, values: Callable[[int], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    """A column in the place of the one of this name."""
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values(len(table))))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_column("episode_index", lambda n: [7] * n), "are not all there, in their order"),
        (with_column("episode_index", lambda n: [date(2020, 1, 1)] * n), "'episode_index' holds "),
        (with_column("task_index", lambda n: [[0, 1]] * n), "'task_index' does not have the shape [1]"),
        (with_column("next.reward", lambda n: [None, *[1.0] * (n - 1)]), "'next.reward' holds double, or rows without"),
        (lambda table: table.append_column("action", table["action"]), '\'Field "action" exists 2 times'),
        (lambda table: table.take(list(range(len(table)))[::-1]), "are not all there, in their order"),
        (lambda table: table.slice(1), "are not all there, in their order"),
    ],
)
def test_frames_that_do_not_fit(folder: Path, change: Callable[[pa.Table], pa.Table], reason: str) -> None:
    edit_table(folder / FRAMES[folder.name], change)
    assert reason in refusal(folder)


# Of strangers: success, or `BadInput`, and nothing else

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
    max_leaves=5,
)
ARRAYS = st.sampled_from(
    [
        np.zeros(()), np.zeros((0, 3)), np.zeros((3, 3)), np.zeros((7, 2, 2)), np.array(["a", "b"]), np.full(3, np.nan),
        np.array(["2020-01-01"], "M8[D]"), np.zeros((3, 3), complex), np.array([2**62, 1]), np.zeros((3, 0)),
    ]
)  # fmt: skip
MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def is_read_or_refused(source: Path) -> None:
    with suppress(BadInput):
        assert all(isinstance(episode, RecordedEpisode) for episode in read_recordings(str(source)).episodes)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values within a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in items for place in places(part, (*path, key)))][:200]


def mutated(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """The same value, with another one in this place."""
    if not place:
        return new
    changed = value.copy()
    changed[place[0]] = mutated(value[place[0]], place[1:], new)
    return changed


@MANY
@given(st.data())
def test_any_npz_file(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    names = st.sampled_from(
        [
            "observations",
            "observations/a",
            "next_observations",
            "actions",
            "terminals",
            "timeouts",
            "infos/x",
            "rewards",
        ]
    )
    arrays: dict[str, Any] = data.draw(st.dictionaries(names, ARRAYS, min_size=1))
    file = tmp_path_factory.mktemp("npz") / "play.npz"
    np.savez(file, **arrays)
    is_read_or_refused(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    is_read_or_refused(file)


@MANY
@given(st.data())
def test_any_file_of_robomimics(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    env_args = {"env_kwargs": {"control_freq": 20, "reward_shaping": False}}
    file = tmp_path_factory.mktemp("hdf5") / "play.hdf5"
    write_hdf5(file, mutated(env_args, data.draw(st.sampled_from(places(env_args))), data.draw(JSON)))
    place = [
        "data/demo_2/actions",
        "data/demo_2/obs/agent",
        "data/demo_0/rewards",
        "data/demo_0/obs",
        "mask/a\nb",
        "mask",
    ]
    with h5py.File(file, "a") as changed:
        for name in data.draw(st.lists(st.sampled_from(place), max_size=2, unique=True)):
            if name in changed:
                del changed[name]
            array = data.draw(ARRAYS | st.none())
            if array is not None:
                changed[name] = array.astype("S") if array.dtype.kind in "UM" else array
    is_read_or_refused(file)


@MANY
@given(st.data())
def test_any_data_set_of_minaris(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(FORMS))
    folder = Path(shutil.copytree(DATA / "minari" / f"{form}-v0", tmp_path_factory.mktemp("minari") / "a-v0"))
    metadata = folder / "data" / "metadata.json"
    about = json.loads(metadata.read_text())
    about = mutated(about, data.draw(st.sampled_from(places(about))), data.draw(JSON))
    metadata.write_text(json.dumps(about))
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        for name in data.draw(st.lists(st.sampled_from(["actions", "infos", "rewards", "observations"]), max_size=1)):
            del file[f"episode_0/{name}"]
            array = data.draw(ARRAYS.filter(lambda array: array.dtype.kind not in "UM") | st.none())
            if array is not None:
                file[f"episode_0/{name}"] = array
        file["episode_0"].attrs["demonstrator"] = data.draw(st.sampled_from(["ann", np.zeros(3), 7]))
    is_read_or_refused(folder)


@MANY
@given(st.data())
def test_any_data_set_of_lerobots(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(VERSIONS))
    folder = Path(shutil.copytree(DATA / f"lerobot-{version}", tmp_path_factory.mktemp("lerobot") / version))
    info = json.loads((folder / "meta/info.json").read_text())
    paths = st.sampled_from(["{chunk_index.nope}", "{0}", "/a", "../{file_index}", "{", "\0", "{chunk_index:9999d}"])
    changed = mutated(info, data.draw(st.sampled_from(places(info))), data.draw(JSON | paths))
    (folder / "meta/info.json").write_text(json.dumps(changed))
    path = data.draw(st.sampled_from(sorted(folder.rglob("*.parquet"))))
    table = pq.read_table(path)
    name = data.draw(st.sampled_from(table.column_names))
    values = data.draw(st.sampled_from([[0, 1], None, "a", 1.5, date(2020, 1, 1), b"\xff", [[1], [2]], True]))
    kinds = [with_column(name, lambda n: [values] * n), lambda table: table.append_column(name, table[name])]
    pq.write_table(data.draw(st.sampled_from([lambda table: table, *kinds]))(table), path)
    if data.draw(st.booleans()):
        whole = bytearray(path.read_bytes())
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 0xFF
        path.write_bytes(whole)
    is_read_or_refused(folder)
