"""A data set from recordings: whole or not at all, with its source in its manifest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bilevel.demonstrations.checking import check
from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import MANIFEST, Demonstrations, read_manifest
from bilevel.demonstrations.importing.array_reader import recordings_in_memory
from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.demonstrations.importing.recorded import Recordings
from bilevel.symbolic.domain import BadInput
from recorded_episodes import import_arrays, raw
from tiny_task import TINY


def recordings(*seeds: int, **further: Any) -> Recordings:
    episodes = [raw(seed) for seed in seeds]
    return recordings_in_memory([one.scenes for one in episodes], [one.actions for one in episodes], **further)


def test_a_folder_is_a_data_set_like_any_other(tmp_path: Path) -> None:
    folder = tmp_path / "imported"
    seen: list[int] = []
    data = import_demonstrations(
        recordings(0, 1), TINY, folder, callback=lambda progress: seen.append(progress.done), objects=2
    )
    assert seen == [1, 2]
    assert len(data) == 2
    assert data.env_arguments == {"slip_rate": 0.0}
    assert data.objects == 2
    report = check(folder, TINY)
    assert not report.problems
    assert report.contents
    assert report.contents.actions == {"pick": 4, "put": 4}
    assert data[0].scenes(TINY.spec) == raw(0).scenes


def test_the_same_recordings_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        import_demonstrations(recordings(0), TINY, tmp_path / name)
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "other"))
    assert one == other
    assert set(one) == {MANIFEST, "domain.pddl", "episode-00000.npz"}


def test_the_manifest_says_where_it_comes_from(tmp_path: Path) -> None:
    from_file = replace(recordings(0), format="npz", place="my play.npz", rate=20.0)
    data = import_demonstrations(from_file, TINY, tmp_path / "set", rate=10)
    source = read_manifest(tmp_path / "set").source
    assert source is not None
    assert (source.rate, source.read, source.dropped) == (10, 1, {})
    assert data.command == "bilevel import 'my play.npz' --format npz --task tiny --rate 10"
    assert data[0].steps == -(-len(raw(0).actions) // 2)


def test_nothing_is_collected_into_it(tmp_path: Path) -> None:
    import_demonstrations(recordings(0), TINY, tmp_path / "set")
    with pytest.raises(BadInput, match="holds imported demonstrations, to which none can be added; choose another"):
        collect(TINY, tmp_path / "set", objects=3, episodes=2)


def test_an_import_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def breaking() -> Any:
        yield from recordings(0).episodes
        raise BadInput("the disk is gone")

    broken = replace(recordings(0), episodes=breaking())
    with pytest.raises(BadInput, match="the disk is gone"):
        import_demonstrations(broken, TINY, tmp_path / "set")
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="there is something already; choose another --output or remove it"):
        import_demonstrations(recordings(0), TINY, tmp_path / "mine")
    (tmp_path / "mine" / "notes.txt").unlink()
    assert len(import_demonstrations(recordings(0), TINY, tmp_path / "mine")) == 1


def test_demonstrators_are_told_apart(tmp_path: Path) -> None:
    by_three = recordings(0, 1, 2, demonstrators=["ann", "ben", "ann"])
    data = import_demonstrations(by_three, TINY, tmp_path / "set")
    assert [item.demonstrator for item in Demonstrations.read(tmp_path / "set")] == ["ann", "ben", "ann"]
    assert data.report is not None
    assert data.report.demonstrators == {"ann": 2, "ben": 1}


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(BadInput, match=r"^there are observations of 2 episodes, but controls of 1$"):
        import_arrays([[], []], [[]], task=TINY)
    with pytest.raises(BadInput, match=r"\(arrays in memory\): there is no episode$"):
        import_arrays([], [], task=TINY)


def test_controls_out_of_bounds_are_refused_once_all_are_counted() -> None:
    wild = [[action * 2 for action in raw(seed).actions] for seed in (0, 1)]
    scenes = [raw(seed).scenes for seed in (0, 1)]
    with pytest.raises(BadInput, match=r"\d+ of \d+ numbers of controls are out of the action space's bounds"):
        import_arrays(scenes, wild, task=TINY)
    data = import_arrays(scenes, wild, task=TINY, clip=True)
    assert data.report is not None
    assert "numbers of controls were clipped" in data.report.notes[0]
