"""A rollout runs one episode to its end, measures it, and gives up where nothing will happen any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from bilevel.policies.episode import NO_ACTION, OWN, SETTLED, STOPPED, Episode
from bilevel.policies.policy import BilevelPolicy, HighLevelPolicy, LabellingPolicy, Policy, expert_policy
from bilevel.policies.rollout import LONG, Perturb, Perturbation, Transition, rollout
from bilevel.symbolic.domain import Action, Atom, BadInput, Facts
from bilevel.tasks.controls import BoxControls, Control, DiscreteControls
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, SceneEnv
from bilevel.tasks.task import Labels, Task
from tiny_task import TINY, Delivery

RIGHT = np.array([0.1, 0, 0], np.float32)
PICK = Action("pick", ("parcel1",))


class Walker(Policy):
    """Goes to the right for so many steps, then knows no more; it does not say what it sees."""

    def __init__(self, steps: int) -> None:
        self._steps = self._left = steps

    def reset(self, scene: Scene) -> None:
        self._left = self._steps

    def act(self, scene: Scene) -> Control | None:
        self._left -= 1
        return RIGHT if self._left >= 0 else None


class OneIdea(HighLevelPolicy):
    """Knows what to do in the first state only, if at all."""

    def __init__(self, idea: Action | None, why: tuple[str, str] | None = None) -> None:
        self._idea, self.failure = idea, why

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        return self._idea if Atom("lying", ("parcel1",)) in state else None


@pytest.fixture(scope="module")
def env() -> SceneEnv:
    return SceneEnv(TINY, 1)


def run(task: Task = TINY, high: HighLevelPolicy | None = None, objects: int = 1, seed: int = 1, **how: Any) -> Episode:
    """An episode of the expert, or of its hand under somebody else's head."""
    env = SceneEnv(task, objects)
    policy = expert_policy(env)
    if high:
        assert isinstance(policy, BilevelPolicy)
        policy = BilevelPolicy(policy.labels, high, policy.low)
    return rollout(env, policy, seed, **how)


def test_an_expert_succeeds_and_every_step_is_seen(env: SceneEnv) -> None:
    steps: list[tuple[int, Transition]] = []
    episode = rollout(env, expert_policy(env), 3, callback=lambda step: steps.append((step.episode.steps, step)))
    assert (episode.success, episode.outcome, episode.reason, episode.detail) == (True, SUCCESS, None, None)
    assert [number for number, _ in steps] == list(range(episode.steps))
    assert all(step.control is step.executed for _, step in steps)
    assert episode.scene is env.scene
    assert steps[0][1].scene == env.reset(3)
    assert [change.kind for change in episode.changes] == [OWN, OWN]


def test_the_end_of_an_episode_has_an_outcome_and_a_reason(env: SceneEnv) -> None:
    for steps in (5, 0):
        episode = rollout(env, Walker(steps), 0)
        assert (episode.outcome, episode.reason, episode.steps) == (NO_ACTION, "no rule", steps)
        assert episode.entries == []
    limited = rollout(SceneEnv(replace(TINY, steps_per_object=7), 1), Walker(100), 0)
    assert (limited.outcome, limited.reason, limited.steps) == (STEP_LIMIT, "stall", 7)
    stopped = rollout(env, Walker(100), 0, stop=lambda: env.steps == 4)
    assert (stopped.outcome, stopped.reason, stopped.steps) == (STOPPED, "stopped", 4)
    gave_up = run(high=OneIdea(PICK))
    assert (gave_up.outcome, gave_up.reason) == (NO_ACTION, "no rule")
    assert [entry.action for entry in gave_up.decisions()] == [PICK]
    quoted = run(high=OneIdea(None, ("no plan", "no plan within 2 s")))
    assert (quoted.outcome, quoted.reason, quoted.detail) == (NO_ACTION, "no plan", "no plan within 2 s")


def test_the_same_seed_gives_the_same_episode_and_another_or_noise_another() -> None:
    assert run() == run()
    assert run().scene != run(seed=2).scene
    assert run(noise=0.7) == run(noise=0.7)
    assert run(noise=0.7).steps != run().steps


# Control noise

BOXES = st.lists(st.tuples(st.floats(-5, 0, width=32), st.floats(1, 5, width=32)), min_size=1, max_size=4)
SPACES = st.one_of(
    BOXES.map(lambda bounds: BoxControls([low for low, _ in bounds], [high for _, high in bounds], [len(bounds)])),
    st.integers(2, 5).map(DiscreteControls),
)


@for_all(SPACES, st.floats(0, 5), st.floats(0, 1), st.integers(0, 2**63))
def test_perturbed_controls_are_in_the_space_and_depend_on_the_seed_alone(
    controls: BoxControls | DiscreteControls, amplitude: float, flips: float, seed: int
) -> None:
    wanted = controls.decode(np.zeros(controls.size, np.float32))
    settings = Perturbation(amplitude=amplitude, rate=0.3, flips=flips)
    first, second = (Perturb(settings, controls, [0], seed) for _ in range(2))
    for _ in range(50):
        given = first(wanted)
        assert np.array_equal(given, second(wanted))
        if isinstance(controls, BoxControls):
            assert np.all((controls.low <= given) & (given <= controls.high))
        else:
            assert 0 <= given < controls.n


def test_noise_comes_in_bursts_of_bounded_length_and_strength() -> None:
    settings, control = Perturbation(amplitude=0.3, flips=0.0), np.array([0.5, -0.5, 0.1, 1.0], np.float32)
    perturb = Perturb(settings, BoxControls([-1.0] * 4, [1.0] * 4, [4]), [3], 0)
    pushes = np.stack([perturb(control) for _ in range(4000)]) - control
    pushed = pushes.any(axis=1)
    edges = np.flatnonzero(np.diff(pushed.astype(int), prepend=0, append=0))
    assert (edges[1::2] - edges[::2]).min() >= settings.shortest
    assert 0.1 < pushed.mean() < 0.35
    assert np.abs(pushes).max() <= 0.3 + 1e-6
    assert not pushes[:, 3].any()  # the switch


@pytest.mark.parametrize("amplitude", [-0.1, 1e7, float("nan"), float("inf")])
def test_noise_has_an_amplitude_that_can_be_computed_with(amplitude: float) -> None:
    with pytest.raises(BadInput, match="the noise is an amplitude of controls, 0 to 1e"):
        Perturbation(amplitude=amplitude)


# Rest

LIMIT = LONG + 50


class Still(LabellingPolicy):
    """Does nothing, or trembles at every other step, and remembers nothing."""

    def __init__(self, labels: Labels, trembling: float = 0.0, is_memoryless: bool = True) -> None:
        super().__init__(labels)
        self.is_memoryless, self._trembling, self._steps = is_memoryless, trembling, 0

    def act(self, scene: Scene) -> Control:
        self._steps += 1
        return np.array([self._trembling * (-1) ** self._steps, 0, 0], np.float32)


class Calm(Delivery):
    is_restless = False  # nothing happens by itself while one parcel lies there


def rest(make_env: Any = None, noise: float = 0.0, **how: Any) -> tuple[str, str | None, int]:
    make_env = make_env or (lambda objects: Calm(objects, slip_rate=0.0, discrete=False))
    env = SceneEnv(replace(TINY, make_env=make_env, steps_per_object=LIMIT), 1)
    episode = rollout(env, Still(env.labels, **how), 1, noise=noise)
    return episode.outcome, episode.reason, episode.steps


def test_rest_ends_an_episode_only_where_nothing_will_happen_any_more() -> None:
    assert rest() == (SETTLED, "stall", LONG + 1)
    to_the_end = STEP_LIMIT, "stall", LIMIT
    assert rest(trembling=0.01) == to_the_end
    assert rest(is_memoryless=False) == to_the_end
    assert rest(noise=0.7) == to_the_end
    assert rest(make_env=TINY.make_env) == to_the_end  # it does not say that it is calm
