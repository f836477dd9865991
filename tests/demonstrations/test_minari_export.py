"""Minari gives back what was demonstrated, bit for bit, and an environment in which it happens again."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import minari
import numpy as np
import pytest

from bilevel import cli
from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.dataset import Dataset, read_dataset
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.episode_file import encode
from bilevel.demonstrations.manifest import file_name, make_entry, write_manifest
from bilevel.demonstrations.minari_export import export_to_minari, minari_episode
from bilevel.demonstrations.recording import make_recipe
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tabletop import STEP_LIMIT

NAME = "bilevel/tiny-v0"
EPISODES = 2


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes with teleports and a jostled hand."""
    folder = tmp_path_factory.mktemp("collected")
    recipe, slots = make_recipe("blocks-noisy", 2, noise=0.7, teleport_rate=0.02)
    with open_collection(folder, recipe, slots, episodes=EPISODES) as collection:
        list(collection.collect())
    return folder


@pytest.fixture
def dataset(collected: Path) -> Dataset:
    return read_dataset(collected)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari keeps its data sets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def same(one: Any, other: Any) -> bool:
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


# What is written


def test_every_episode_comes_back_bit_for_bit(dataset: Dataset, root: Path) -> None:
    assert export_to_minari(dataset, NAME) == root / "bilevel" / "tiny-v0"
    exported = minari.load_dataset(NAME)
    assert (exported.total_episodes, exported.total_steps) == (2, sum(episode.steps for episode in dataset))
    for demonstration, episode in zip(dataset, exported, strict=True):
        for name in ("agent", "objects", "visible"):
            assert same(episode.observations[name], getattr(demonstration, name))
        assert same(episode.actions, demonstration.executed)
        assert same(episode.infos["expert_control"][:-1], demonstration.controls)
        assert not np.array_equal(demonstration.controls, demonstration.executed)


def test_what_was_done_and_what_happened_is_in_the_infos(dataset: Dataset) -> None:
    export_to_minari(dataset, NAME)
    happened: Counter[str] = Counter()
    for demonstration, episode in zip(dataset, minari.load_dataset(NAME), strict=True):
        texts = {name: [text.decode() for text in episode.infos[name]] for name in ("high_level_action", "events")}
        assert texts["high_level_action"] == [*map(str, demonstration.actions), ""]
        assert [(i, text) for i, text in enumerate(texts["events"]) if text] == list(demonstration.events)
        assert set(episode.infos["goal"]) == {b"at(block1, place1) & at(block2, place2)"}
        assert {len(info) for info in episode.infos.values()} == {demonstration.steps + 1}
        happened.update(texts["events"])
    assert happened["teleport block1"] + happened["teleport block2"] > 0


def test_goals_that_change_are_told_from_then_on(dataset: Dataset) -> None:
    first = dataset[0]
    (_, goal), *_ = first.goals
    growing = replace(first, goals=((0, frozenset(sorted(goal)[:1])), (3, goal)), events=((2, "lost x"), (2, "lost y")))
    infos = minari_episode(growing, dataset.task.make(2)).infos
    assert infos["goal"][2:4].tolist() == [b"at(block1, place1)", b"at(block1, place1) & at(block2, place2)"]
    assert infos["events"][1:4].tolist() == [b"", b"lost x; lost y", b""]


def test_the_recovered_environment_lives_through_it_again(dataset: Dataset) -> None:
    export_to_minari(dataset, NAME)
    exported = minari.load_dataset(NAME)
    environment = exported.recover_environment()
    world: Any = environment.unwrapped
    assert (type(world).__name__, world.count, world.teleport_rate) == ("Blocks", 2, 0.02)
    assert exported.observation_space == environment.observation_space
    assert exported.action_space == environment.action_space
    (about,) = exported.storage.get_episode_metadata([1])
    episode = exported[1]
    observation, _ = environment.reset(seed=about["seed"])
    for step, action in enumerate(episode.actions):
        assert all(same(observation[name], seen[step]) for name, seen in episode.observations.items())
        observation, *rest, _ = environment.step(action)
        assert rest == [episode.rewards[step], episode.terminations[step], episode.truncations[step]]
    assert all(same(observation[name], seen[-1]) for name, seen in episode.observations.items())
    assert episode.terminations[-1]


def test_an_episode_that_was_not_solved_is_truncated(dataset: Dataset) -> None:
    episode = minari_episode(replace(dataset[0], outcome=STEP_LIMIT), dataset.task.make(2))
    assert not episode.terminations.any()
    assert np.flatnonzero(episode.truncations).tolist() == [dataset[0].steps - 1]
    assert not episode.rewards.any()


def test_minari_knows_what_it_is(dataset: Dataset) -> None:
    export_to_minari(dataset, NAME)
    ((name, about),) = minari.list_local_datasets().items()
    assert (name, about["algorithm_name"]) == (NAME, "expert")
    assert "bilevel collect blocks-noisy --objects 2" in str(about["description"])
    own: Any = about["bilevel"]
    assert own["arguments"] == {"objects": 2, "teleport_rate": 0.02}
    assert own["slots"] == [["block1", "block"], ["block2", "block"], ["place1", "place"], ["place2", "place"]]
    assert own["versions"] == dict(dataset.manifest.versions)


# What goes wrong


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: replace(d, executed=d.executed[:-1]), r"'executed' of shape .* is not \d+ rows in Box"),
        (lambda d: replace(d, agent=d.agent[1:]), r"'agent' of shape"),
        (lambda d: replace(d, visible=d.visible + np.int8(1)), r"'visible' of shape"),
        (lambda d: replace(d, objects=d.objects[:, :-1]), r"'objects' of shape \(\d+, 3, 11\)"),
        (lambda d: replace(d, controls=2 * d.controls), r"'controls' of shape"),
        (lambda d: replace(d, actions=d.actions[1:]), "high-level actions"),
        (lambda d: replace(d, controls=d.controls[:0]), "without a single step"),
    ],
)
def test_what_does_not_fit_is_refused(
    dataset: Dataset, change: Callable[[Demonstration], Demonstration], reason: str
) -> None:
    with pytest.raises(BadInput, match=reason):
        minari_episode(change(dataset[0]), dataset.task.make(2))


def nothing_in(root: Path) -> bool:
    return minari.list_local_datasets() == {} and list(root.iterdir()) == []


def test_a_broken_second_episode_is_named_and_nothing_is_written(collected: Path, tmp_path: Path, root: Path) -> None:
    folder = Path(shutil.copytree(collected, tmp_path / "copied"))
    dataset = read_dataset(folder)
    ragged = replace(dataset[1], controls=dataset[1].controls * 2)
    (folder / file_name(1)).write_bytes(encode(ragged))
    entries = (dataset.manifest.entries[0], make_entry(1, ragged, encode(ragged)))
    write_manifest(folder, replace(dataset.manifest, entries=entries))
    with pytest.raises(BadInput, match=r"episode-00001.npz: 'controls' of shape"):
        export_to_minari(read_dataset(folder), NAME)
    (folder / file_name(1)).write_bytes(b"")
    with pytest.raises(BadInput, match=r"episode-00001.npz: "):
        export_to_minari(read_dataset(folder), NAME)
    assert nothing_in(root)


def test_an_interruption_leaves_nothing(dataset: Dataset, root: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_to_minari(dataset, NAME, interrupt)
    assert nothing_in(root)


def test_a_full_disk_is_noticed_before_anything_is_written(
    dataset: Dataset, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(BadInput, match=r"minari: no room: about \d.\d MB are needed, 0.0 MB are free"):
        export_to_minari(dataset, NAME)
    assert nothing_in(root)


def test_two_exports_at_the_same_time_do_not_mix(dataset: Dataset, root: Path) -> None:
    def meddle(done: int, total: int) -> None:
        with pytest.raises(BadInput, match=r"\.bilevel--tiny-v0: an export is under way, or was killed"):
            export_to_minari(dataset, NAME)

    export_to_minari(dataset, NAME, meddle)
    assert minari.load_dataset(NAME).total_episodes == 2


@pytest.mark.parametrize("name", ["tiny", "bilevel/tiny", "../tiny-v0", "bilevel//tiny-v0", "/tiny-v0", ""])
def test_names_that_minari_does_not_take_are_refused(dataset: Dataset, name: str) -> None:
    with pytest.raises(BadInput, match="is no name of a Minari data set; an example of one: bilevel/blocks-v0"):
        export_to_minari(dataset, name)


def test_a_place_that_cannot_be_written_to_is_named(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "file" / "minari"))
    with pytest.raises(BadInput, match=f"{tmp_path}/file.*cannot be written there: Not a directory"):
        export_to_minari(dataset, NAME)


# The command


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        cli.main(["demonstrations", "export", *map(str, arguments)])
    captured = capsys.readouterr()
    return int(stopped.value.code or 0), captured.out, captured.err


def test_the_command_exports_once(collected: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, collected, "--minari", NAME)
    assert code == 0
    assert out.startswith(f"2 episodes written to {root / NAME}\n")
    code, out, err = run(capsys, collected, "--minari", NAME)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"already; choose another name or version, or remove it with: minari delete {NAME}" in err
    assert run(capsys, collected, "--minari", "other-v1", "--json")[0] == 0
    assert minari.load_dataset("other-v1").total_episodes == 2


@pytest.mark.parametrize("missing", ["minari", "h5py", "PIL"])
def test_a_missing_package_is_one_line(
    collected: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for module in list(sys.modules):
        if module.startswith(("minari", "bilevel.demonstrations.minari_export")):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    code, out, err = run(capsys, collected, "--minari", NAME)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "pip install 'bilevel[minari]'" in err
