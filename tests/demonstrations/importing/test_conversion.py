"""What becomes of recorded episodes: scenes, goals, outcomes and controls, whatever was recorded and whatever not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilevel.demonstrations.checking import Contents
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import label
from bilevel.learning.learn import learn
from bilevel.rules.learning import learn_rules
from bilevel.symbolic.domain import Atom, BadInput
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Expert, Task
from recorded_episodes import Raw, from_vector, import_arrays, next_velocity, raw
from tiny_demonstrations import QUICK
from tiny_task import TINY, TINY_DISCRETE, perceive

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


def rules_of(data: Demonstrations) -> list[str]:
    return [str(rule) for rule in learn_rules(Contents.of(data).traces, data.domain)]


# What is seen


def test_scenes_come_back_as_they_were() -> None:
    episode = raw(0)
    (found,) = imported(episode)
    assert found.scenes(TINY.spec) == episode.scenes
    assert (found.outcome, found.steps, found.own_goals) == ("success", len(episode.actions), False)
    assert np.array_equal(found.controls, np.array(episode.actions))
    assert found.executed is found.controls


@pytest.mark.parametrize("form", ["dictionary", "vector", "list"])
def test_observations_are_perceived(form: str) -> None:
    episode = raw(0)
    seen = {"dictionary": episode.arrays, "vector": episode.vectors, "list": episode.observations}[form]
    perceive = from_vector if form == "vector" else None
    data = import_arrays([seen], [episode.actions], task=NO_EXPERT, perceive=perceive)
    assert data[0].scenes(TINY.spec) == episode.scenes


def test_perceive_may_take_the_info() -> None:
    episode = raw(0)

    def from_info(observation: Any, info: dict[str, Any]) -> Scene:
        return perceive(info["seen"], info, None)  # type: ignore[arg-type]

    nothing = np.zeros((len(episode.observations), 1))
    infos = [[{"seen": seen} for seen in episode.observations]]
    data = import_arrays([nothing], [episode.actions], task=TINY, infos=infos, perceive=from_info)
    assert data[0].scenes(TINY.spec) == episode.scenes


def test_what_the_task_cannot_see_without_its_environment_is_said() -> None:
    episode = raw(0)
    with pytest.raises(
        BadInput, match=r"^episode 0, step 0: perceive.* raised IndexError.*give --perceive file.py:fun"
    ):
        import_arrays([episode.vectors], [episode.actions], task=TINY)


def test_the_last_observation_may_be_missing() -> None:
    episode = raw(0)
    data = import_arrays([episode.scenes[:-1]], [episode.actions], task=TINY, successes=[True])
    assert data[0].steps == len(episode.actions) - 1
    with pytest.raises(BadInput, match=r"^episode 0: 3 observations, but \d+ controls; there must be one more, or as"):
        import_arrays([episode.scenes[:3]], [episode.actions], task=TINY)


def test_numbers_that_are_not_finite_are_named_with_their_step() -> None:
    episode = raw(0)
    scenes = episode.scenes
    scenes[4].values[1] = np.nan
    with pytest.raises(BadInput, match=r"step 4, episode 0: the agent's 'y' is not a finite number"):
        import_arrays([scenes], [episode.actions], task=TINY)
    controls = np.array(episode.actions)
    controls[7, 2] = np.inf
    with pytest.raises(BadInput, match=r"^episode 0, step 7: the control is \[.*inf\], which is not finite"):
        import_arrays([episode.scenes], [controls], task=TINY)


def test_names_that_seem_to_change_are_noted() -> None:
    episode = raw(0)
    scenes = episode.scenes
    end = len(scenes) // 2
    swapped = {"parcel1": "parcel2", "parcel2": "parcel1"}
    arrived = next(now for now, scene in enumerate(scenes) if "parcel2" in scene)
    for now in range(max(end, arrived + 1), len(scenes)):
        scene = scenes[now]
        things = {
            kind: {
                swapped.get(thing.name, thing.name): {name: thing[name] for name in TINY.spec.objects[kind]}
                for thing in scene.of_type(kind)
            }
            for kind in TINY.spec.objects
        }
        scenes[now] = Scene(TINY.spec, {name: scene.agent[name] for name in TINY.spec.agent}, things)
    data = import_arrays([scenes], [episode.actions], task=TINY, successes=[True])
    assert data.report is not None
    assert any("a thing must keep its name" in note for note in data.report.notes)


def test_labels_outside_the_domain_are_refused() -> None:
    wrong = replace(TINY, label=lambda scene: [Atom("nowhere")])
    assert refusal(raw(0), task=wrong).startswith(
        "seed 0, step 0, episode 0: label(scene) gave nowhere(), but the domain"
    )


# What was wanted


def test_failed_episodes_are_dropped_and_counted() -> None:
    half = raw(1, give_up_after=40)
    data = imported(raw(0), half)
    assert data.report is not None
    assert (data.report.read, data.report.kept) == (2, 1)
    assert data.report.dropped == {"that failed": 1}
    assert refusal(half).endswith("of 1 episodes none can be used: 1 that failed")


def test_what_was_recorded_of_success_counts_more_than_the_goal() -> None:
    data = import_arrays(
        [raw(0).scenes] * 3,
        [raw(0).actions] * 3,
        task=TINY,
        successes=[True, False, True],
        demonstrators=["a", "b", "c"],
    )
    assert [item.demonstrator for item in data] == ["a", "c"]
    infos = [[{"success": np.False_}] * len(raw(0).scenes)]
    with pytest.raises(BadInput, match="1 that failed"):
        import_arrays([raw(0).scenes], [raw(0).actions], task=TINY, infos=infos)


def test_without_a_goal_hindsight_is_proposed() -> None:
    aimless = replace(TINY, goal=lambda scene: [])
    assert refusal(raw(0), task=aimless).endswith("1 without a goal (see --hindsight)")


# What was done


def test_without_controls_the_expert_is_asked() -> None:
    episode = raw(0)
    data = imported(episode, task=TINY, actions=False)
    assert data.report is not None
    assert data.report.controls == {"asked of the expert": 1}
    known = [step for step, action in enumerate(label_actions(data)) if action is not None]
    assert np.array_equal(data[0].controls[known], np.array(episode.actions)[known])
    assert len(known) > 0.9 * data[0].steps


def label_actions(data: Demonstrations) -> Any:
    from bilevel.demonstrations.traces import explain

    return explain(data[0], data.domain, *label(data[0])).actions


def test_an_expert_that_is_made_for_an_environment_is_not_asked() -> None:
    knowing = replace(TINY, expert=lambda env: Expert(control=lambda scene, action: env.nothing))
    assert not imported(raw(0), task=knowing, actions=False)[0].has_controls
    assert refusal(raw(0), task=knowing, controls_from="expert").startswith(
        "--controls-from expert: the task 'tiny' lacks"
    )


def test_controls_are_made_by_a_function() -> None:
    episode = raw(0)
    (found,) = imported(episode, actions=False, controls_from=next_velocity)
    assert np.allclose(found.controls, np.array(episode.actions), atol=1e-6)

    def halved(scene: Scene, after: Scene, recorded: Any) -> Any:
        return recorded[:3] / 2

    wide = np.pad(np.array(episode.actions), ((0, 0), (0, 4)))
    data = import_arrays([episode.scenes], [wide], task=TINY, controls_from=halved)
    assert np.array_equal(data[0].controls, np.array(episode.actions) / 2)


def test_without_any_controls_there_are_rules_but_no_network(tmp_path: Path) -> None:
    episodes = [raw(seed) for seed in range(3)]
    with_them, without = imported(*episodes), imported(*episodes, actions=False, output=tmp_path / "seen")
    assert without.report is not None
    assert without.report.controls == {"none": 3}
    assert rules_of(without) == rules_of(with_them) != []
    with pytest.raises(
        BadInput, match=r"^no controls were recorded in this data set, so no network can be learned; imp"
    ):
        learn(Demonstrations.read(tmp_path / "seen"), tmp_path / "policy", task=TINY, config=QUICK)
    learn(with_them, tmp_path / "policy", task=NO_EXPERT, config=QUICK)
    assert (tmp_path / "policy" / "policy.json").is_file()


def test_controls_of_another_size_are_refused() -> None:
    episode = raw(0)
    with pytest.raises(
        BadInput, match=r"^episode 0: a control has 2 numbers, but the task takes 3; give --controls-from"
    ):
        import_arrays([episode.scenes], [np.array(episode.actions)[:, :2]], task=TINY)


def test_discrete_controls() -> None:
    discrete = raw(0, discrete=True)
    as_numbers = Raw(discrete.observations, [float(action) for action in discrete.actions])
    for episode in (discrete, as_numbers):
        (found,) = imported(episode, task=TINY_DISCRETE)
        assert found.controls.tolist() == discrete.actions
    wrong = Raw(discrete.observations, [*discrete.actions[:5], 2.5, *discrete.actions[6:]])
    assert refusal(wrong, task=TINY_DISCRETE) == (
        "episode 0, step 5: the control is 2.5, but the task takes whole numbers, 1 to 5"
    )
