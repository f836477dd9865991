"""Recording an expert: what is kept of an episode, and what happens when it fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import ExpertFailed, Recorder, make_recipe
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import Action, BadInput
from bilevel.tabletop.tabletop import STEP_LIMIT, SUCCESS
from bilevel.tabletop.tasks import find_task


def test_an_episode_is_recorded_from_its_first_moment_to_its_last(eventful: Demonstration) -> None:
    assert eventful.outcome == SUCCESS
    assert len(eventful.agent) == len(eventful.objects) == len(eventful.visible) == eventful.steps + 1
    assert len(eventful.controls) == len(eventful.executed) == len(eventful.actions)
    assert eventful.actions[0].name == "pick"
    assert eventful.types == {
        "block1": "block", "block2": "block", "block3": "block",
        "place1": "place", "place2": "place", "place3": "place",
    }  # fmt: skip
    assert eventful.seed in {training_seed(1, index, eventful.attempt) for index in range(20)}
    assert {event.split()[0] for _, event in eventful.events} >= {"teleport"}


def test_what_the_expert_wanted_is_kept_beside_what_was_done(eventful: Demonstration) -> None:
    disturbed = (eventful.controls != eventful.executed).any(axis=1)
    assert 0 < disturbed.mean() < 0.5
    clean = find_task("blocks").expert(Recorder(eventful.recipe).environment.slots)
    clean.reset(eventful.observation(0))
    wanted = [clean.act(observation) for observation in eventful.observations()[:100]]
    assert np.array_equal(np.array(wanted), eventful.controls[:100])


def test_without_noise_what_is_wanted_is_done() -> None:
    recipe, _ = make_recipe("blocks", 1)
    demonstration = Recorder(recipe).record(0)
    assert np.array_equal(demonstration.controls, demonstration.executed)
    assert recipe.noise is None
    assert make_recipe("blocks", 1, noise=0.0)[0] == make_recipe("blocks", 1)[0]


def test_any_moment_can_be_restored_and_lived_on(eventful: Demonstration) -> None:
    environment = Recorder(eventful.recipe).environment
    for moment in (0, 63, 64, 150):
        when, snapshot = eventful.snapshot_before(moment)
        assert when == moment // 64 * 64
        observation, _ = environment.restore(snapshot)
        for step in range(when, moment + 70):
            expected = eventful.observation(step)
            assert all(np.array_equal(observation[name], expected[name]) for name in ("agent", "objects", "visible"))
            observation = environment.step(eventful.executed[step])[0]
    assert eventful.snapshot_before(eventful.steps)[0] == eventful.steps
    with pytest.raises(ValueError, match="has moments 0 to"):
        eventful.snapshot_before(eventful.steps + 1)


def test_a_goal_that_grows_is_kept_with_its_moments() -> None:
    recipe, _ = make_recipe("factory", 1)
    demonstration = Recorder(recipe).record(0)
    (first, goal), (second, larger) = demonstration.goals
    assert (first, len(goal), len(larger)) == (0, 1, 2)
    assert demonstration.events[0][0] == second > 0
    assert "block2" in demonstration.types
    assert demonstration.visible[second, 1] > demonstration.visible[second - 1, 1]


def failing(recorder: Recorder, failures: int) -> Recorder:
    """The recorder, with an expert whose first attempts fail."""
    attempt = recorder.attempt

    def attempt_badly(index: int, number: int) -> Demonstration:
        return replace(attempt(index, number), outcome=STEP_LIMIT if number < failures else SUCCESS)

    recorder.attempt = attempt_badly  # type: ignore[assignment, method-assign]
    return recorder


def test_a_failed_attempt_is_followed_by_one_with_another_seed() -> None:
    recipe, _ = make_recipe("blocks", 1, seed=5)
    demonstration = failing(Recorder(recipe), 2).record(7)
    assert demonstration.attempt == 2
    assert demonstration.seed == training_seed(5, 7, 2)
    assert demonstration.outcome == SUCCESS


def test_an_expert_that_always_fails_is_given_up() -> None:
    recipe, _ = make_recipe("blocks", 1)
    recorder = Recorder(recipe)
    recorder.expert.high.choose = lambda state, goal: None  # type: ignore[method-assign]
    with pytest.raises(ExpertFailed, match=r"failed 20 times at episode 4 \(no action\)"):
        recorder.record(4)


@pytest.mark.parametrize(
    ("task", "arguments", "spelt_out"),
    [
        ("blocks", {}, {"objects": 3, "teleport_rate": 0.0}),
        ("blocks-noisy", {"objects": 2}, {"objects": 2, "teleport_rate": 1 / 2000}),
        ("colour", {"colours": 2, "draw": None}, {"objects": 3, "teleport_rate": 0.0, "colours": 2}),
        ("gacha", {"teleport_rate": 0.1}, {"objects": 3, "teleport_rate": 0.1, "draw": "empty"}),
        ("gacha", {"draw": "uniform"}, {"objects": 3, "teleport_rate": 0.0, "draw": "uniform"}),
    ],
)
def test_arguments_are_spelt_out(task: str, arguments: dict[str, int], spelt_out: dict[str, object]) -> None:
    recipe, _ = make_recipe(task, **arguments)
    assert recipe.arguments == spelt_out


@pytest.mark.parametrize(
    ("task", "arguments", "reason"),
    [
        ("blocks", {"draw": "uniform"}, "the task 'blocks' takes no --draw"),
        ("gacha", {"colours": 3}, "the task 'gacha' takes no --colours"),
        ("blocks", {"seed": -1}, "the seed must not be negative"),
        ("blocks", {"noise": float("nan")}, "the noise is an amplitude"),
        ("blocks", {"objects": 21}, "takes 1 to 20 objects, not 21"),
        ("block", {}, "unknown task 'block'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(task: str, arguments: dict[str, int], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        make_recipe(task, **arguments)


def test_an_action_is_noted_for_every_step(eventful: Demonstration) -> None:
    assert set(eventful.actions) <= {
        Action("pick", (block,)) for block in eventful.types
    } | {Action("place", (block, place)) for block in eventful.types for place in eventful.types}  # fmt: skip
