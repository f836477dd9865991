"""Each format is read as it was recorded by its own writer; whatever is hostile or damaged is refused in a line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


def episodes_in(source: object) -> list[RecordedEpisode]:
    found = read_recordings(str(source))
    episodes = list(found.episodes)
    assert found.total in (None, len(episodes))
    return episodes


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def with_column(name: str, values: Callable[[int], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    """A column in the place of the one of this name."""
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values(len(table))))


def edit_table(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


# As their writers wrote them


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
    data = import_demonstrations(write_npz(tmp_path / "play.npz", 0, 1), TINY, perceive=from_vector)
    for item, seed in zip(data, (0, 1), strict=True):
        assert item.scenes(TINY.spec) == raw(seed).scenes
        assert np.array_equal(item.controls, np.array(raw(seed).actions))


def test_next_observations_tell_what_was_seen_at_the_end(tmp_path: Path) -> None:
    seen = raw(0).vectors
    np.savez(tmp_path / "play.npz", observations=seen[:-1], next_observations=seen[1:], x=np.arange(len(seen) - 1))
    (found,) = episodes_in(tmp_path / "play.npz")
    assert np.array_equal(np.array(found.observations), seen)
    assert found.infos
    assert (found.infos[3], found.infos[-1]) == ({"x": 3}, {})


def test_a_folder_of_npz_files_with_parts_of_a_dictionary(tmp_path: Path) -> None:
    for seed in (0, 1):
        np.savez(tmp_path / f"{seed}.npz", **{f"observations/{name}": part for name, part in raw(seed).arrays.items()})
    for item, seed in zip(import_demonstrations(tmp_path, TINY), (0, 1), strict=True):
        assert item.scenes(TINY.spec) == raw(seed).scenes


def write_hdf5(path: Path, env_args: Any = None) -> Path:
    """Episodes as robomimic keeps them: float64 actions, obs and next_obs, a reward at the end."""
    with h5py.File(path, "w") as file:
        file.create_group("data").attrs["env_args"] = json.dumps(env_args or {"env_kwargs": {"control_freq": 20}})
        for name, seed in {"demo_10": 2, "demo_0": 0, "demo_2": 1}.items():
            episode, steps = raw(seed), len(raw(seed).actions)
            file[f"data/{name}/actions"] = np.array(episode.actions, np.float64)
            file[f"data/{name}/rewards"] = (np.arange(steps) == steps - 1).astype(np.float64)
            for key, array in episode.arrays.items():
                file[f"data/{name}/obs/{key}"], file[f"data/{name}/next_obs/{key}"] = array[:-1], array[1:]
    return path


def test_a_file_of_robomimics_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    file = write_hdf5(tmp_path / "low_dim.hdf5")
    data = import_demonstrations(file, TINY)
    for item, seed in zip(data, (0, 1, 2), strict=True):
        assert item.scenes(TINY.spec) == raw(seed).scenes
        assert np.array_equal(item.controls, np.array(raw(seed).actions))
    assert read_recordings(str(file)).rate == 20
    with h5py.File(file, "a") as changed:
        changed["data/demo_2/rewards"][...] = 0
        del changed["data/demo_0/next_obs"], changed["data/demo_10"]
    first, failed = episodes_in(file)
    assert (failed.success, len(first.observations)) == (False, len(raw(0).actions))
    shaped = write_hdf5(tmp_path / "dense.hdf5", {"env_kwargs": {"reward_shaping": True}})
    assert {episode.success for episode in episodes_in(shaped)} == {None}


PERCEIVED = {"dictionary": None, "vector": from_vector, "tuple": from_tuple}


@pytest.mark.parametrize("form", FORMS)
def test_what_minaris_recorder_wrote_is_read(form: str) -> None:
    data = import_demonstrations(DATA / "minari" / f"{form}-v0", TINY, perceive=PERCEIVED[form], objects=1)
    for item, seed in zip(data, SEEDS, strict=True):
        assert item.scenes(TINY.spec) == raw(seed, objects=1).scenes
        assert np.array_equal(item.controls, np.array(raw(seed, objects=1).actions))
        assert (item.seed, item.demonstrator) == (seed, "someone")


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
        assert (episode.name.rpartition(", ")[2], episode.success) == (f"episode {seed}", True)
        for step, control in enumerate(episode.controls):
            assert perceive_frame(episode.observations[step]) == perceive(seen, info, env)
            assert episode.infos[step]["task"] == "Bring each parcel to its spot"
            if not info["success"]:
                assert control.tobytes() == act(perceive(seen, info, env)).tobytes()
            seen, _, _, _, info = env.step(control)
            assert bool(episode.infos[step]["next.success"]) == info["success"]
        assert len(episode.controls) == len(episode.observations) - 1
    assert len(import_demonstrations(folder, TINY, perceive=perceive_frame)) == 2


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
    assert (first.observations[5]["observation.height"], (first.infos or [])[5]["mood"]) == (5, "good")


# Of strangers: success, or `BadInput`, and nothing else


def is_imported_or_refused(source: Path) -> None:
    """With a task whose scenes do not depend on what is read, so that all else of it is looked at."""
    with suppress(BadInput):
        import_demonstrations(source, TINY, perceive=lambda seen, info: raw(0).scenes[0], clip=True)


@pytest.mark.parametrize(
    ("file", "change", "reason"),
    [
        ("info", lambda info: info.update(codebase_version="v4.0"), "of LeRobot's version v4.0, but only v2.1 and v3"),
        ("info", lambda info: info.update(fps="20"), "Expected `float`, got `str` - at `$.fps`"),
        ("info", lambda info: info["features"]["action"].update(shape=[4]), "'action' does not have the shape [4]"),
        ("info", lambda info: info.update(features={"action": info["features"]["action"]}), "nothing is seen in it"),
        ("info", lambda info: info.update(total_episodes=3), "there are 2 episodes with "),
        ("frames", with_column("episode_index", lambda n: [7] * n), "are not all there, in their order"),
        ("frames", with_column("episode_index", lambda n: [date(2020, 1, 1)] * n), "'episode_index' holds "),
        ("frames", with_column("task_index", lambda n: [[0, 1]] * n), "'task_index' does not have the shape [1]"),
        ("frames", with_column("next.reward", lambda n: [None, *[1.0] * (n - 1)]), "'next.reward' holds double, or ro"),
        ("frames", lambda table: table.append_column("action", table["action"]), '\'Field "action" exists 2 times'),
        ("frames", lambda table: table.slice(1), "are not all there, in their order"),
    ],
)
def test_what_does_not_fit_is_refused(folder: Path, file: str, change: Callable[[Any], Any], reason: str) -> None:
    if file == "info":
        edit_json(folder / "meta/info.json", change)
    else:
        edit_table(folder / FRAMES[folder.name], change)
    with pytest.raises(BadInput) as error:
        episodes_in(folder)
    assert reason in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
    max_leaves=5,
) | st.sampled_from(["{chunk_index.nope}", "/a", "../{file_index}", "\0", 10**18, 1e-320, "{chunk_index:9999d}"])
ARRAYS = st.sampled_from(
    [
        np.zeros(()), np.zeros((0, 3)), np.zeros((3, 3)), np.zeros((7, 2, 2)), np.array(["a", "b"]), np.full(3, np.nan),
        np.array(["2020-01-01"], "M8[D]"), np.zeros((3, 3), complex), np.array([2**62, 1]), np.zeros((3, 0)),
        np.full((3, 3), np.inf), np.zeros(3, [("a", "f4")]), np.ones((2, 3), bool), np.zeros((2, 1, 3)),
    ]
)  # fmt: skip
COLUMNS = [[0, 1], None, "a", 1.5, date(2020, 1, 1), b"\xff", [[1], [2]], True, {"a": 1}, Decimal(1), [], 2**40]
MANY = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


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


def mutate_json(path: Path, data: st.DataObject) -> None:
    value = json.loads(path.read_text())
    path.write_text(json.dumps(mutated(value, data.draw(st.sampled_from(places(value))), data.draw(JSON))))


def mutate_hdf5(path: Path, names: list[str], data: st.DataObject) -> None:
    """Replace some arrays, or take them away."""
    with h5py.File(path, "a") as file:
        for name in data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True)):
            array = data.draw(ARRAYS | st.none())
            with suppress(KeyError, OSError, ValueError):  # what is above it has been replaced
                del file[name]
            if array is not None:
                with suppress(OSError, ValueError):
                    file[name] = array.astype("S") if array.dtype.kind in "UM" else array


@MANY
@given(st.data())
def test_any_npz_file(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    parts = ["observations", "observations/a", "next_observations", "actions", "terminals", "timeouts", "x", "rewards"]
    arrays: dict[str, Any] = data.draw(st.dictionaries(st.sampled_from(parts), ARRAYS, min_size=1))
    file = tmp_path_factory.mktemp("npz") / "play.npz"
    np.savez(file, **arrays)
    is_imported_or_refused(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    is_imported_or_refused(file)


@MANY
@given(st.data())
def test_any_file_of_robomimics(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    env_args = {"env_kwargs": {"control_freq": 20, "reward_shaping": False}}
    file = tmp_path_factory.mktemp("hdf5") / "play.hdf5"
    write_hdf5(file, mutated(env_args, data.draw(st.sampled_from(places(env_args))), data.draw(JSON)))
    inside = ["actions", "obs/agent", "rewards", "obs", "next_obs"]
    names = [f"data/{demo}/{part}" for demo in ("demo_2", "{nope} {0.x}") for part in inside]
    mutate_hdf5(file, names, data)
    is_imported_or_refused(file)


@MANY
@given(st.data())
def test_any_data_set_of_minaris(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(FORMS))
    folder = Path(shutil.copytree(DATA / "minari" / f"{form}-v0", tmp_path_factory.mktemp("minari") / "a-v0"))
    mutate_json(folder / "data" / "metadata.json", data)
    names = [f"episode_0/{part}" for part in ("actions", "infos", "infos/success", "rewards", "observations")]
    mutate_hdf5(folder / "data" / "main_data.hdf5", names, data)
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        for name in ("demonstrator", "seed", "id", "total_steps"):
            values = ["ann", np.zeros(3), 7, -1, np.nan, 2.5, np.uint64(2**64 - 1), b"\xff"]
            file["episode_0"].attrs[name] = data.draw(st.sampled_from(values))
    is_imported_or_refused(folder)


@MANY
@given(st.data())
def test_any_data_set_of_lerobots(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(VERSIONS))
    folder = Path(shutil.copytree(DATA / f"lerobot-{version}", tmp_path_factory.mktemp("lerobot") / version))
    mutate_json(folder / "meta/info.json", data)
    path = data.draw(st.sampled_from(sorted(folder.rglob("*.parquet"))))
    table = pq.read_table(path)
    name = data.draw(st.sampled_from(table.column_names))
    value = data.draw(st.sampled_from(COLUMNS))
    kinds = [with_column(name, lambda n: [value] * n), lambda table: table.append_column(name, table[name])]
    pq.write_table(data.draw(st.sampled_from([lambda table: table, *kinds]))(table), path)
    if data.draw(st.booleans()):
        whole = bytearray(path.read_bytes())
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 0xFF
        path.write_bytes(whole)
    is_imported_or_refused(folder)
