"""npz files of flat arrays, whole and damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilevel.demonstrations.importing.array_reader import read_npz
from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.demonstrations.importing.recorded import RecordedEpisode
from bilevel.symbolic.domain import BadInput
from recorded_episodes import from_vector, raw
from tiny_task import TINY


def flat_arrays(*seeds: int) -> dict[str, Any]:
    """Episodes one after the other; the last observation of each comes with an action that leads nowhere."""
    episodes = [raw(seed) for seed in seeds]
    ends = [np.arange(len(one.observations)) == len(one.actions) for one in episodes]
    return {
        "observations": np.concatenate([one.vectors for one in episodes]),
        "actions": np.concatenate([[*one.actions, np.zeros(3)] for one in episodes]),
        "terminals": np.concatenate(ends).astype(np.float32),
    }


def episodes_in(path: Path) -> list[RecordedEpisode]:
    found = read_npz(path)
    episodes = list(found.episodes)
    assert len(episodes) == found.total
    assert all(isinstance(episode, RecordedEpisode) for episode in episodes)
    return [episode for episode in episodes if isinstance(episode, RecordedEpisode)]


def test_episodes_end_where_the_terminals_say(tmp_path: Path) -> None:
    np.savez(tmp_path / "play.npz", **flat_arrays(0, 1))
    data = import_demonstrations(tmp_path / "play.npz", TINY, perceive=from_vector)
    assert [item.steps for item in data] == [len(raw(seed).actions) for seed in (0, 1)]
    assert data[1].scenes(TINY.spec) == raw(1).scenes
    assert np.array_equal(data[1].controls, np.array(raw(1).actions))


def test_next_observations_tell_what_was_seen_at_the_end(tmp_path: Path) -> None:
    episode = raw(0)
    rows = len(episode.actions)
    np.savez(
        tmp_path / "play.npz",
        observations=episode.vectors[:-1],
        next_observations=episode.vectors[1:],
        actions=np.array(episode.actions),
        timeouts=np.arange(rows) == rows - 1,
        **{"infos/qpos": np.arange(rows)},  # type: ignore[arg-type]
    )
    (found,) = episodes_in(tmp_path / "play.npz")
    assert np.array_equal(np.array(found.observations), episode.vectors)
    assert found.infos is not None
    assert (found.infos[3], found.infos[-1]) == ({"qpos": 3}, {})


def test_parts_of_a_dictionary_and_files_of_one_episode_each(tmp_path: Path) -> None:
    for seed in (0, 1):
        parts = {f"observations/{name}": array for name, array in raw(seed).arrays.items()}
        np.savez(tmp_path / f"{seed}.npz", **parts, success=np.array(raw(seed).successes))
    found = episodes_in(tmp_path)
    assert [episode.name for episode in found] == ["0.npz, episode 0", "1.npz, episode 0"]
    assert found[0].controls is None
    data = import_demonstrations(tmp_path, TINY)
    assert data[0].scenes(TINY.spec) == raw(0).scenes


def test_what_follows_the_last_terminal_is_an_episode_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "play.npz", observations=np.zeros((5, 2)), terminals=[0, 1, 0, 0, 0])
    assert [len(episode.observations) for episode in episodes_in(tmp_path / "play.npz")] == [2, 3]


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"actions": np.zeros((3, 3))}, "there is no array 'observations'; there are: actions"),
        ({"observations": np.zeros((3, 2)), "actions": np.zeros((4, 3))}, "3 observations, but 'actions' has 4 rows"),
        ({"observations": np.zeros((3, 2)), "terminals": np.zeros(2)}, "3 observations, but 'terminals' has 2 rows"),
        ({"observations": np.zeros((3, 2)), "terminals": np.zeros((3, 1))}, "must have one number for each timestep"),
        ({"observations": np.zeros((3, 2)), "next_observations": np.zeros((2, 2))}, "'next_observations' has 2 rows"),
        ({"observations/a": np.zeros(3), "observations/b": np.zeros(4)}, "differ in length: 'a' 3, 'b' 4"),
        ({"observations": np.array([{"a": 1}], object)}, "no whole npz archive of plain arrays: it holds Python objec"),
    ],
)
def test_files_that_make_no_sense_are_refused(tmp_path: Path, arrays: dict[str, Any], reason: str) -> None:
    np.savez(tmp_path / "play.npz", **arrays)
    with pytest.raises(BadInput) as error:
        episodes_in(tmp_path / "play.npz")
    assert str(error.value).startswith(f"{tmp_path / 'play.npz'}: ")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_truncated_and_missing_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "play.npz", **flat_arrays(0))
    data = (tmp_path / "play.npz").read_bytes()
    for length in (0, 100, len(data) // 2, len(data) - 10):
        (tmp_path / "play.npz").write_bytes(data[:length])
        with pytest.raises(BadInput, match=r"no whole npz archive of plain arrays: it may be truncated$"):
            read_npz(tmp_path / "play.npz")
    with pytest.raises(BadInput, match="there is no such file"):
        read_npz(tmp_path / "nothing.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="there are no npz files in it"):
        read_npz(tmp_path / "empty")
