"""Files by robomimic's conventions, whole and damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.demonstrations.importing.robomimic_reader import read_robomimic
from bilevel.symbolic.domain import BadInput
from recorded_episodes import raw
from tiny_task import TINY

h5py = pytest.importorskip("h5py", reason="robomimic's files are HDF5")

MASKS = {
    "better_operator_1": ["demo_0", "demo_2"],
    "better_operator_1_train": ["demo_0"],
    "okay_operator_2": ["demo_10"],
    "train": ["demo_0", "demo_10"],
}


def write(path: Path, demos: dict[str, int], env_kwargs: dict[str, Any] | None = None) -> Path:
    """Episodes as robomimic keeps them: float64 actions, obs and next_obs, a reward at the end, masks."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"] = sum(len(raw(seed).actions) for seed in demos.values())
        data.attrs["env_args"] = json.dumps(
            {"env_name": "Delivery", "type": 1, "env_kwargs": {"control_freq": 20, **(env_kwargs or {})}}
        )
        for name, seed in demos.items():
            episode, group = raw(seed), data.create_group(name)
            steps = len(episode.actions)
            group.attrs["num_samples"], group.attrs["model_file"] = steps, "<mujoco/>"
            group["actions"] = np.array(episode.actions, np.float64)
            group["rewards"] = (np.arange(steps) == steps - 1).astype(np.float64)
            group["dones"] = (np.arange(steps) == steps - 1).astype(np.int64)
            group["states"] = np.zeros((steps, 5))
            for key, array in episode.arrays.items():
                group[f"obs/{key}"], group[f"next_obs/{key}"] = array[:-1], array[1:]
        for name, members in MASKS.items():
            file[f"mask/{name}"] = np.array(members, "S")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "low_dim.hdf5", {"demo_10": 2, "demo_0": 0, "demo_2": 1})


def test_episodes_come_in_the_order_of_their_numbers(file: Path) -> None:
    data = import_demonstrations(file, TINY)
    for item, seed in zip(data, (0, 1, 2), strict=True):
        assert item.scenes(TINY.spec) == raw(seed).scenes
        assert np.array_equal(item.controls, np.array(raw(seed).actions))
    assert [item.demonstrator for item in data] == ["better_operator_1", "better_operator_1", "okay_operator_2"]
    assert data.report is not None
    assert data.report.rate == 20


def test_a_mask_names_some(file: Path) -> None:
    data = import_demonstrations(file, TINY, mask="train")
    assert [item.steps for item in data] == [len(raw(seed).actions) for seed in (0, 2)]
    with pytest.raises(
        BadInput, match="there is no mask 'valid'; there are: better_operator_1, better_operator_1_train, "
    ):
        import_demonstrations(file, TINY, mask="valid")
    with h5py.File(file, "a") as changed:
        del changed["data/demo_10"]
    with pytest.raises(BadInput, match="the mask 'train' names 'demo_10', which is not there"):
        import_demonstrations(file, TINY, mask="train")


def test_an_episode_without_a_reward_failed(file: Path, tmp_path: Path) -> None:
    with h5py.File(file, "a") as changed:
        changed["data/demo_2/rewards"][...] = 0
    data = import_demonstrations(file, TINY)
    assert data.report is not None
    assert data.report.dropped == {"that failed (see --keep-failed)": 1}
    shaped = write(tmp_path / "dense.hdf5", {"demo_0": 0}, {"reward_shaping": True})
    (episode,) = read_robomimic(shaped).episodes
    assert episode.success is None  # type: ignore[union-attr]


def test_without_what_followed_the_last_action_is_left_out(file: Path) -> None:
    with h5py.File(file, "a") as changed:
        del changed["data/demo_0/next_obs"]
    data = import_demonstrations(file, TINY, mask="train")
    assert [item.steps for item in data] == [len(raw(0).actions) - 1, len(raw(2).actions)]


def no_data(file: Any) -> None:
    del file["data"]


def no_obs(file: Any) -> None:
    del file["data/demo_2/obs"]


def other_length(file: Any) -> None:
    del file["data/demo_2/obs/agent"]
    file["data/demo_2/obs/agent"] = np.zeros((4, 3))


def other_actions(file: Any) -> None:
    del file["data/demo_2/actions"]
    file["data/demo_2/actions"] = np.zeros((4, 3))


def texts(file: Any) -> None:
    del file["data/demo_2/actions"]
    file["data/demo_2/actions"] = ["left", "right"]


def no_array(file: Any) -> None:
    del file["data/demo_2/actions"]
    file["data/demo_2/actions"] = np.dtype(np.float64)  # a type with a name, which is nothing to read from


def no_json(file: Any) -> None:
    file["data"].attrs["env_args"] = "{"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (no_data, "there is no group 'data', so it is no file of robomimic's"),
        (no_obs, "data/demo_2 has no observations, 'obs'; make them with robomimic's own dataset_states_to_obs"),
        (other_length, "data/demo_2: its observations differ in length: 'agent' 4"),
        (other_actions, "data/demo_2: "),
        (texts, "data/demo_2/actions: holds object of shape (2,), not numbers for each timestep"),
        (no_array, "cannot be read as HDF5; it may be truncated"),
        (no_json, "the attribute 'env_args' is no JSON"),
    ],
)
def test_damaged_files_are_refused_in_a_line(file: Path, damage: Callable[[Any], None], reason: str) -> None:
    with h5py.File(file, "a") as changed:
        damage(changed)
    with pytest.raises(BadInput) as error:
        import_demonstrations(file, TINY)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_truncated_and_missing_files_are_refused(file: Path) -> None:
    data = file.read_bytes()
    for length in (0, 1000, len(data) // 2):
        file.write_bytes(data[:length])
        with pytest.raises(BadInput, match=r"low_dim\.hdf5: cannot be read as HDF5; it may be truncated"):
            import_demonstrations(file, TINY)
    with pytest.raises(BadInput, match="there is no such file"):
        read_robomimic(file.with_name("other.hdf5"))
