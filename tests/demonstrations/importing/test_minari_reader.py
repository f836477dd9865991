"""Minari's data sets: one by another project, made with Minari's own recorder, and exports of ours, which come back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import encode_demonstration
from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.learning.learn import learn
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.task import Task
from minari_recordings import FORMS, SEEDS, from_tuple, record
from recorded_episodes import from_vector, import_arrays, raw
from tiny_demonstrations import QUICK
from tiny_task import TINY, TINY_DISCRETE

pytest.importorskip("minari", reason="these are Minari's data sets")

OWN = "bilevel/tiny-v0"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari keeps its data sets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


# Of another project


PERCEIVED = {"dictionary": None, "vector": from_vector, "tuple": from_tuple}


@pytest.mark.parametrize("form", FORMS)
def test_the_data_set_of_another_project_is_imported(form: str) -> None:
    folder = Path(__file__).parents[1] / "data" / "minari" / f"{form}-v0"
    data = import_demonstrations(str(folder), TINY, perceive=PERCEIVED[form], objects=1)
    for item, seed in zip(data, SEEDS, strict=True):
        assert item.scenes(TINY.spec) == raw(seed, objects=1).scenes
        assert np.array_equal(item.controls, np.array(raw(seed, objects=1).actions))
        assert (item.seed, item.demonstrator) == (seed, "someone")


@pytest.mark.filterwarnings("ignore::UserWarning")  # Minari's, about what a data set should say of itself
@pytest.mark.parametrize("form", FORMS)
def test_so_is_one_that_has_just_been_recorded(form: str) -> None:
    pytest.importorskip("jax", reason="Minari's recorder needs jax, of the extra minari[create]")
    record("elsewhere/delivery-v0", form)
    data = import_demonstrations("elsewhere/delivery-v0", TINY, perceive=PERCEIVED[form])
    assert [item.steps for item in data] == [len(raw(seed, objects=1).actions) for seed in SEEDS]


# Of ours


@pytest.fixture
def exported(tmp_path: Path) -> Demonstrations:
    """Episodes with slips, arrivals and perturbed controls."""
    return export(collect(TINY, tmp_path / "collected", objects=2, episodes=3, noise=0.7, slip_rate=0.05))


def export(data: Demonstrations) -> Demonstrations:
    from bilevel.demonstrations.minari_export import export_to_minari

    export_to_minari(data, OWN)
    return data


def the_same(data: Demonstrations, back: Demonstrations) -> bool:
    """Whether all is the same, but for snapshots, which stay behind."""
    pairs = zip(data, back, strict=True)
    return all(encode_demonstration(replace(one, snapshots={})) == encode_demonstration(two) for one, two in pairs)


def test_an_export_of_ours_comes_back_as_it_was(exported: Demonstrations, tmp_path: Path) -> None:
    back = import_demonstrations(OWN, TINY, tmp_path / "back")
    assert the_same(exported, back)
    assert exported.manifest is not None
    assert back.manifest is not None
    assert back.manifest.settings == exported.manifest.settings
    assert (back.controls, back.spec, back.arguments) == (exported.controls, exported.spec, exported.arguments)


def test_equal_rules_and_weights_are_learned_from_it(exported: Demonstrations, tmp_path: Path) -> None:
    back = import_demonstrations(OWN, TINY, tmp_path / "back")
    one, other = (learn(data, tmp_path / "policy", task=TINY, config=QUICK) for data in (exported, back))
    assert one.rules == other.rules
    assert {name: array.tobytes() for name, array in one.weights.items()} == {
        name: array.tobytes() for name, array in other.weights.items()
    }


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE])
def test_so_do_other_tasks(tmp_path: Path, task: Task) -> None:
    data = export(collect(task, tmp_path / "collected", objects=2, episodes=2))
    assert the_same(data, import_demonstrations(OWN, task))


def test_imported_demonstrations_survive_another_round(tmp_path: Path) -> None:
    """With a demonstrator, own goals, and no controls."""
    scenes = [raw(seed).scenes for seed in (0, 1)]
    data = import_arrays(scenes, task=replace(TINY, expert=None), demonstrators=["ann", "ben"], hindsight="each")
    assert [item.demonstrator for item in data] == ["ann", "ann", "ben", "ben"]
    back = import_demonstrations(OWN, TINY) if export(data) else data
    assert the_same(data, back)
    assert all(item.own_goals and not item.has_controls for item in back)


def test_an_export_of_another_task_is_refused(exported: Demonstrations) -> None:
    with pytest.raises(BadInput, match="demonstrations with another action space than the task 'tiny-discrete'"):
        import_demonstrations(OWN, TINY_DISCRETE)
    with pytest.raises(BadInput, match=r"to be taken as they are: no --controls-from$"):
        import_demonstrations(OWN, TINY, controls_from="expert")


# Damaged


def metadata(root: Path) -> Path:
    return root / OWN / "data" / "metadata.json"


def change_metadata(root: Path, **values: Any) -> None:
    known = json.loads(metadata(root).read_text())
    metadata(root).write_text(json.dumps({key: value for key, value in {**known, **values}.items() if value}))


def test_damaged_data_sets_are_refused_in_a_line(exported: Demonstrations, root: Path) -> None:
    file = root / OWN / "data" / "main_data.hdf5"
    whole, about = file.read_bytes(), metadata(root).read_text()
    for damage, reason in (
        (lambda: file.write_bytes(whole[: len(whole) // 2]), f"{OWN}, episode 0: damaged, or no Minari data set: "),
        (lambda: metadata(root).write_text(about[:100]), f"{OWN}: damaged, or no Minari data set: "),
        (lambda: change_metadata(root, action_space=None), f"{OWN}: its metadata do not say what the observation and"),
        (lambda: change_metadata(root, bilevel={"features": {}}), f"{OWN}: exported by another version of bilevel; "),
    ):
        file.write_bytes(whole)
        metadata(root).write_text(about)
        damage()
        with pytest.raises(BadInput) as error:
            import_demonstrations(OWN, TINY)
        assert str(error.value).startswith(reason)
        assert "\n" not in str(error.value)


def test_an_episode_that_lost_a_part_is_refused(exported: Demonstrations, root: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(root / OWN / "data" / "main_data.hdf5", "a") as file:
        file["episode_1/observations/agent"][3, 0] = np.nan
    with pytest.raises(BadInput, match=r"^bilevel/tiny-v0, episode 1: 'agent' holds numbers that are not finite$"):
        import_demonstrations(OWN, TINY)


def test_a_name_that_minari_does_not_know_is_refused(root: Path) -> None:
    with pytest.raises(
        BadInput, match=r"^bilevel/nothing-v0: there is no Minari data set here, nor in .*minari list loc"
    ):
        import_demonstrations("bilevel/nothing-v0", TINY)
