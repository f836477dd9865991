"""What becomes of recorded episodes: scenes, goals, controls, and a data set, whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstrations, read_manifest
from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.demonstrations.importing.npz_reader import recordings_in_memory
from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings
from bilevel.demonstrations.traces import Contents
from bilevel.rules.learning import learn_rules
from bilevel.symbolic.domain import Atom, BadInput
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task
from recorded_episodes import Raw, from_vector, import_arrays, raw
from tiny_task import SPEC, TINY, TINY_DISCRETE

NO_EXPERT = replace(TINY, expert=None)


def imported(*episodes: Raw, task: Task = NO_EXPERT, actions: bool = True, **options: Any) -> Demonstrations:
    """Import from scenes in memory."""
    controls = [episode.actions for episode in episodes] if actions else None
    return import_arrays([episode.scenes for episode in episodes], controls, task=task, **options)


def refusal(*episodes: Raw, **options: Any) -> str:
    with pytest.raises(BadInput) as error:
        imported(*episodes, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# What is seen


@pytest.mark.parametrize("form", ["scenes", "dictionary", "vector", "list"])
def test_what_was_seen_comes_back(form: str) -> None:
    episode = raw(0)
    forms = {"dictionary": episode.arrays, "vector": episode.vectors, "list": episode.observations}
    perceive = from_vector if form == "vector" else None
    (found,) = import_arrays([forms.get(form, episode.scenes)], [episode.actions], task=NO_EXPERT, perceive=perceive)
    assert found.scenes(TINY.spec) == episode.scenes
    assert (found.outcome, found.steps) == ("success", len(episode.actions))
    assert np.array_equal(found.controls, np.array(episode.actions))


def test_the_last_observation_may_be_missing() -> None:
    episode = raw(0)
    scenes = [episode.scenes[:-1]]
    data = import_arrays(scenes, [episode.actions], task=TINY, successes=[True], perceive=lambda seen, info: seen)
    assert data[0].steps == len(episode.actions) - 1


def not_finite(scenes: list[Scene]) -> list[Scene]:
    scenes[4].values[1] = np.nan
    return scenes


@pytest.mark.parametrize(
    ("seen", "task", "reason"),
    [
        (raw(0).vectors, TINY, "episode 0, step 0: perceive(observation, info, None) of the task"),
        (raw(0).scenes[:3], TINY, "episode 0: 3 observations, but "),
        (not_finite(raw(0).scenes), TINY, "step 4, episode 0: agent.y is not a finite number"),
        (raw(0).scenes, replace(TINY, label=lambda scene: [Atom("nowhere")]), "label(scene) gave nowhere(), but the "),
        (raw(0).scenes, replace(TINY, goal=lambda scene: []), "1 without a goal (see --hindsight)"),
    ],
)
def test_what_makes_no_scenes_or_goals_is_refused(seen: Any, task: Task, reason: str) -> None:
    with pytest.raises(BadInput, match=re.escape(reason)):
        import_arrays([seen], [raw(0).actions], task=task)


def test_names_of_others_cannot_break_a_message() -> None:
    episodes = [RecordedEpisode("{nope} {0.x}", [1, 2], np.zeros((1, 3)))]
    with pytest.raises(BadInput, match=r"^\{nope\} \{0.x\}, step 0: perceive"):
        import_demonstrations(Recordings("hdf5", "file", episodes), TINY)


def test_failed_episodes_are_dropped_and_counted() -> None:
    half = raw(1, give_up_after=40)
    data = imported(raw(0), half)
    assert (data.report.found, len(data), data.report.dropped) == (2, 1, {"that failed": 1})
    assert refusal(half).endswith("of 1 episodes none can be used: 1 that failed")


def test_what_was_recorded_of_success_counts_more_than_the_goal() -> None:
    scenes, actions = [raw(0).scenes] * 3, [raw(0).actions] * 3
    data = import_arrays(scenes, actions, task=TINY, successes=[True, False, True], demonstrators=["a", "b", "c"])
    assert [item.demonstrator for item in data] == ["a", "c"]
    infos = [[{"success": np.False_}] * len(raw(0).scenes)]
    with pytest.raises(BadInput, match="1 that failed"):
        import_arrays([raw(0).scenes], [raw(0).actions], task=TINY, infos=infos)


# What was done


def test_without_any_controls_there_are_rules_but_no_network(tmp_path: Path) -> None:
    episodes = [raw(seed) for seed in range(3)]
    with_them, without = imported(*episodes), imported(*episodes, actions=False)
    rules, same = (learn_rules(Contents.of(data).traces, data.domain) for data in (with_them, without))
    assert list(map(str, rules)) == list(map(str, same)) != []
    with pytest.raises(BadInput, match=r"^no controls were recorded in this data set, so no network can be learned"):
        without[0].targets(without.controls)


@pytest.mark.parametrize(
    ("task", "change", "reason"),
    [
        (TINY, lambda array: array[:, :2], "episode 0: a control has 2 numbers, but the task takes 3; import arrays"),
        (TINY, lambda array: array * np.inf, "episode 0, step 0: the control is ["),
        (TINY, lambda array: array * 2, " numbers of controls are out of the action space's bounds; --clip moves them"),
        (TINY_DISCRETE, lambda array: array[:, 0] * 0 + 2.5, "step 0: the control is 2.5, but the task takes whole nu"),
    ],
)
def test_controls_that_do_not_fit_are_refused(task: Task, change: Callable[[Any], Any], reason: str) -> None:
    with np.errstate(invalid="ignore"):
        controls = change(np.array(raw(0).actions))
    with pytest.raises(BadInput, match=re.escape(reason)):
        import_arrays([raw(0).scenes], [controls], task=task)
    if "--clip" in reason:
        assert len(import_arrays([raw(0).scenes], [controls], task=task, clip=True)) == 1


def test_discrete_controls() -> None:
    discrete = raw(0, discrete=True)
    as_numbers = Raw(discrete.observations, [float(action) for action in discrete.actions])
    for episode in (discrete, as_numbers):
        (found,) = imported(episode, task=TINY_DISCRETE)
        assert found.controls.tolist() == discrete.actions


# Goals in hindsight


def without_spots(scenes: Sequence[Scene]) -> list[Scene]:
    """What play looks like: nobody sees where a parcel shall go."""
    return [with_spots(scene, {}) for scene in scenes]


def with_spots(scene: Scene, spots: dict[str, dict[str, float]]) -> Scene:
    parcels = {thing.name: {name: thing[name] for name in SPEC.objects["parcel"]} for thing in scene.of_type("parcel")}
    agent = {name: scene.agent[name] for name in SPEC.agent}
    return Scene(SPEC, agent, {"parcel": parcels, "spot": spots})


def resting_places(scenes: Sequence[Scene]) -> Iterator[tuple[int, int, list[Scene]]]:
    """Where a parcel is let go was its spot."""
    start = 0
    for now in range(1, len(scenes)):
        for parcel in scenes[now].of_type("parcel"):
            if parcel.name in scenes[now - 1] and scenes[now - 1][parcel.name].held and not parcel.held:
                spot = {parcel.name.replace("parcel", "spot"): {"x": parcel.x, "y": parcel.y, "radius": 0.08}}
                yield start, now, [with_spots(scene, spot) for scene in scenes[start : now + 1]]
                start = now


def wanted(scene: Scene) -> Iterator[Atom]:
    return (Atom("at", (spot.name.replace("spot", "parcel"), spot.name)) for spot in scene.of_type("spot"))


PLAY = replace(TINY, goal=wanted)


def in_hindsight(hindsight: Any, task: Task = PLAY, play: bool = True) -> Demonstrations:
    scenes = without_spots(raw(0).scenes) if play else raw(0).scenes
    return import_arrays([scenes], [raw(0).actions], task=task, hindsight=hindsight)


def test_a_function_cuts_an_episode_and_adds_what_was_wanted() -> None:
    data = in_hindsight(resting_places)
    assert len(data) == 2
    assert sum(item.steps for item in data) == len(raw(0).actions)
    for item, spot in zip(data, ("spot1", "spot2"), strict=True):
        assert [name for name, kind in item.objects.items() if kind == "spot"] == [spot]
        assert item.goals == ((0, frozenset([Atom("at", (spot.replace("spot", "parcel"), spot))])),)
        assert item.outcome == "success"
    assert (data[1].controls == raw(0).actions[data[0].steps :]).all()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([(0, 5)], "must give start, end and scenes, but gave tuple (0, 5)"),
        ([(5, 5, [])], "gave 0 scenes for timesteps 5 to 5, both included, of 0 to "),
        ([(0, 5, raw(0).scenes[:5])], "gave 5 scenes for timesteps 0 to 5, both included"),
        ([(0, 1, ["at", "at"])], "returned a str, not a bilevel.Scene"),
        ([(0, 5, raw(0).scenes[:6])], "1 that failed"),
        ([(0, 1, raw(0).scenes[-2:]), (0, 1, raw(0).scenes[-1:] * 2)], "perceive gives the same arrays"),
        ([], "1 in which hindsight found nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(given: Any, reason: str) -> None:
    with pytest.raises(BadInput, match=re.escape(reason)):
        in_hindsight(lambda scenes: given, task=TINY, play=False)


# The data set


def recordings(*seeds: int, **further: Any) -> Recordings:
    episodes = [raw(seed) for seed in seeds]
    return recordings_in_memory([one.scenes for one in episodes], [one.actions for one in episodes], **further)


def test_a_folder_is_a_data_set_like_any_other(tmp_path: Path) -> None:
    seen: list[int] = []
    from_file = replace(recordings(0, 1), format="npz", place="my play.npz", rate=20.0)
    options: dict[str, Any] = {"objects": 2, "clip": True, "callback": lambda progress: seen.append(progress.done)}
    data = import_demonstrations(from_file, TINY, tmp_path / "set", **options)
    assert (seen, len(data), data.objects, data.env_arguments) == ([1, 2], 2, 2, {"slip_rate": 0.0})
    assert Contents.of(data).actions == {"pick": 4, "put": 4}
    source = read_manifest(tmp_path / "set").source
    assert source is not None
    assert source.rate == 20
    assert data.command == "bilevel import 'my play.npz' --format npz --task tiny --clip --objects 2"
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


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(BadInput, match=r"^there are observations of 2 episodes, but controls of 1$"):
        import_arrays([[], []], [[]], task=TINY)
    with pytest.raises(BadInput, match=r"^episode 0: the controls are not all of one shape$"):
        import_arrays([raw(0).scenes], [[[1], [1, 2]]], task=TINY)
    with pytest.raises(BadInput, match=r"\(arrays in memory\): there is no episode$"):
        import_arrays([], [], task=TINY)
