"""Minari gives back what was demonstrated, bit for bit, and an environment in which it happens again."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstrations, file_name
from bilevel.demonstrations.minari_export import export_to_minari, minari_episode
from bilevel.progress import Progress
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.registry import find_task
from bilevel.tasks.scene_env import STEP_LIMIT
from bilevel.tasks.task import Task
from command_line import run
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE

NAME = "bilevel/tiny-v0"
EPISODES = 3


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes with slips, arrivals and perturbed controls."""
    folder = tmp_path_factory.mktemp("collected")
    collect(TINY, folder, objects=2, episodes=EPISODES, noise=0.7, slip_rate=0.05)
    return folder


@pytest.fixture
def data(collected: Path) -> Demonstrations:
    return Demonstrations.read(collected)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari keeps its data sets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def same(one: Any, other: Any) -> bool:
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


# What is written


def test_every_episode_comes_back_bit_for_bit(data: Demonstrations, root: Path) -> None:
    assert export_to_minari(data, NAME) == root / "bilevel" / "tiny-v0"
    exported = minari.load_dataset(NAME)
    assert (exported.total_episodes, exported.total_steps) == (3, sum(episode.steps for episode in data))
    happened = set()
    for demonstration, episode in zip(data, exported, strict=True):
        assert same(episode.observations["agent"], demonstration.agent)
        assert same(episode.observations["objects"], demonstration.features)
        assert same(episode.observations["visible"], demonstration.visible.astype(np.int8))
        assert same(episode.actions, demonstration.executed)
        assert same(episode.infos["expert_control"][:-1], demonstration.controls)
        texts = {name: [text.decode() for text in episode.infos[name]] for name in ("high_level_action", "events")}
        assert texts["high_level_action"] == [*map(str, demonstration.actions), ""]
        assert [(i, text) for i, text in enumerate(texts["events"]) if text] == list(demonstration.events)
        assert {len(info) for info in episode.infos.values()} == {demonstration.steps + 1}
        happened |= {text.split()[0] for text in texts["events"] if text}
    assert happened == {"slip", "arrival"}
    assert any((demonstration.controls != demonstration.executed).any() for demonstration in data)


def test_episodes_of_different_sizes_are_padded(data: Demonstrations, tmp_path: Path) -> None:
    more = collect(TINY, tmp_path / "more", objects=3, episodes=1)
    mixed = Demonstrations([data[0], more[0]], task="tiny", spec=data.spec, domain=data.domain, controls=data.controls)
    export_to_minari(mixed, NAME)
    exported = minari.load_dataset(NAME)
    small, large = (episode.observations for episode in exported)
    assert small["objects"].shape[1:] == large["objects"].shape[1:] == (6, 4)
    assert same(small["objects"][:, :4], data[0].features)
    assert not small["objects"][:, 4:].any()
    assert not small["visible"][:, 4:].any()
    names = [json.loads(about["objects"]) for about in exported.storage.get_episode_metadata([0, 1])]
    assert names == [[list(pair) for pair in item.objects.items()] for item in mixed]


def test_discrete_actions_and_experts_that_only_act_are_exported(tmp_path: Path) -> None:
    for task in (TINY_DISCRETE, TINY_ACTING):
        data = collect(task, tmp_path / task.name, objects=1, episodes=1)
        export_to_minari(data, f"{task.name}-v0")
        (episode,) = minari.load_dataset(f"{task.name}-v0")
        assert same(episode.actions, data[0].executed)
        assert set(episode.infos["high_level_action"]) == {str(action or "").encode() for action in data[0].actions} | {
            b""
        }


def test_goals_that_change_are_told_from_then_on(data: Demonstrations) -> None:
    first = data[0]
    *_, (_, goal) = first.goals
    growing = replace(first, goals=((0, frozenset(sorted(goal)[:1])), (3, goal)), events=((2, "lost x"), (2, "lost y")))
    infos = minari_episode(growing, 4).infos
    assert infos["goal"][2:4].tolist() == [b"at(parcel1, spot1)", b"at(parcel1, spot1) & at(parcel2, spot2)"]
    assert infos["events"][1:4].tolist() == [b"", b"lost x; lost y", b""]


def make_registered(objects: int, slip_rate: float) -> Any:
    return gymnasium.make("Tiny-v0", disable_env_checker=True, objects=objects, slip_rate=slip_rate)


@pytest.mark.parametrize("task", [find_task("tiny_task:TINY"), replace(TINY, make_env=make_registered)])
def test_the_recovered_environment_lives_through_it_again(
    data: Demonstrations, monkeypatch: pytest.MonkeyPatch, task: Task
) -> None:
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    gymnasium.register("Tiny-v0", entry_point="tiny_task:make_env")
    export_to_minari(data, NAME, task)
    exported = minari.load_dataset(NAME)
    environment = exported.recover_environment()
    (about,) = exported.storage.get_episode_metadata([1])
    observation, _ = environment.reset(seed=about["seed"])
    for step, action in enumerate(exported[1].actions):
        assert same(observation["agent"], exported[1].observations["agent"][step])
        observation, *_ = environment.step(action)
    assert exported[1].terminations[-1]


def test_an_episode_that_was_not_solved_is_truncated(data: Demonstrations) -> None:
    episode = minari_episode(replace(data[0], outcome=STEP_LIMIT), 4)
    assert not episode.terminations.any()
    assert np.flatnonzero(episode.truncations).tolist() == [data[0].steps - 1]
    assert not episode.rewards.any()


def test_minari_knows_what_it_is(data: Demonstrations) -> None:
    export_to_minari(data, NAME)
    ((name, about),) = minari.list_local_datasets().items()
    assert (name, about["algorithm_name"]) == (NAME, "expert")
    assert "bilevel collect tiny --objects 2" in str(about["description"])
    own: Any = about["bilevel"]
    assert own["settings"]["arguments"] == {"objects": 2, "slip_rate": 0.05}
    assert own["features"] == {"agent": ["x", "y", "closed"], "objects": ["x", "y", "held", "radius"]}
    assert data.manifest
    assert own["versions"] == data.manifest.versions


# What goes wrong


def nothing_in(root: Path) -> bool:
    return minari.list_local_datasets() == {} and list(root.iterdir()) == []


def test_a_broken_second_episode_is_named_and_nothing_is_written(collected: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(collected, tmp_path / "copied"))
    (folder / file_name(1)).write_bytes(b"")
    with pytest.raises(BadInput, match=r"episode-00001.npz: "):
        export_to_minari(Demonstrations.read(folder), NAME)
    assert minari.list_local_datasets() == {}


def test_an_interruption_leaves_nothing(data: Demonstrations, root: Path) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_to_minari(data, NAME, callback=interrupt)
    assert nothing_in(root)


def test_a_full_disk_is_noticed_before_anything_is_written(
    data: Demonstrations, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(BadInput, match=r"minari: no room: about \d.\d MB are needed, 0.0 MB are free"):
        export_to_minari(data, NAME)
    assert nothing_in(root)


def test_two_exports_at_the_same_time_do_not_mix(data: Demonstrations, root: Path) -> None:
    def meddle(progress: Progress) -> None:
        with pytest.raises(BadInput, match=r"\.bilevel--tiny-v0: an export is under way, or was killed"):
            export_to_minari(data, NAME)

    export_to_minari(data, NAME, callback=meddle)
    assert minari.load_dataset(NAME).total_episodes == 3


@pytest.mark.parametrize("name", ["tiny", "bilevel/tiny", "../tiny-v0", "bilevel//tiny-v0", "/tiny-v0", ""])
def test_names_that_minari_does_not_take_are_refused(data: Demonstrations, name: str) -> None:
    with pytest.raises(BadInput, match="is no name of a Minari data set; an example of one: mine/cubes-v0"):
        export_to_minari(data, name)


def test_a_place_that_cannot_be_written_to_is_named(
    data: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "file" / "minari"))
    with pytest.raises(BadInput, match=f"{tmp_path}/file.*cannot be written there: Not a directory"):
        export_to_minari(data, NAME)


# The command


def test_the_command_exports_once(collected: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "demonstrations", "export", collected, "--minari", NAME)
    assert code == 0
    assert out.startswith(f"3 episodes written to {root / NAME}\n")
    code, out, err = run(capsys, "demonstrations", "export", collected, "--minari", NAME)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"already; choose another name or version, or remove it with: minari delete {NAME}" in err
    assert run(capsys, "demonstrations", "export", collected, "--minari", "other-v1", "--json")[0] == 0
    assert minari.load_dataset("other-v1").total_episodes == 3


@pytest.mark.parametrize("missing", ["minari", "h5py", "PIL"])
def test_a_missing_package_is_one_line(
    collected: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for module in list(sys.modules):
        if module.startswith(("minari", "bilevel.demonstrations.minari_export")):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    code, out, err = run(capsys, "demonstrations", "export", collected, "--minari", NAME)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"{missing} is missing; install it with: pip install 'bilevel[" in err
