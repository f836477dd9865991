"""Every finding, by breaking the tiny task in one way each."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from bilevel.learning.task_checking import check_task
from bilevel.symbolic.domain import Action, Atom
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Spec
from bilevel.tasks.task import Expert, Task
from command_line import run
from tiny_task import SPEC, TINY, TINY_ACTING, TINY_DISCRETE, choose, control, label, make_env, perceive

TINY_FILE = Path(__file__).parents[1] / "tiny_task.py"


# Broken environments


class Wrapped(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The tiny environment, to be broken."""

    def __init__(self, objects: int) -> None:
        super().__init__(make_env(objects))


class Seedless(Wrapped):
    def reset(self) -> Any:  # type: ignore[override]
        return self.env.reset()


class Unbounded(Wrapped):
    action_space: Any = spaces.Box(-np.inf, np.inf, (3,))


class Unseeded(Wrapped):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.env.reset(seed=random.randrange(1000))


def no_objects(slip_rate: float = 0.0) -> Any:
    return make_env(3)


def env(make: Callable[..., Any]) -> Task:
    return replace(TINY, make_env=make, save=None, restore=None)


# Broken functions of a task


def seen(change: Callable[[Scene], Any]) -> Task:
    """The tiny task with scenes that are changed."""
    return replace(TINY, perceive=lambda observation, info, env: change(perceive(observation, info, env)))


def labelled(*predicates: str) -> Task:
    """The tiny task with labels of these predicates alone."""
    return replace(TINY, label=lambda scene: [fact for fact in label(scene) if fact.predicate in predicates])


def flickering(scene: Scene) -> Iterator[Atom]:
    """Where the agent is, as good as a random number, decides whether it is free."""
    yield from (fact for fact in label(scene) if fact.predicate != "free" or int(scene.agent.x * 1e5) % 3 != 1)


def without_effects(scene: Scene) -> Iterator[Atom]:
    """A picked parcel is still lying."""
    yield from label(scene)
    yield from (Atom("lying", (parcel.name,)) for parcel in scene.of_type("parcel") if parcel.held)


def never(scene: Scene, action: Action) -> Any:
    return np.zeros(3, np.float32)


def noisy(scene: Scene, action: Action) -> Any:
    return control(scene, action) * np.float32(random.uniform(0.9, 1))


def choose_what(action: Action) -> Expert:
    return Expert(lambda state, goal: action, control)


ERRORS = {
    "type": (
        replace(TINY, spec=Spec(SPEC.agent, {**SPEC.objects, "crate": {}})),
        r"the type 'crate', which the domain",
    ),
    "make_env": (env(no_objects), r"make_env\(slip_rate\) does not take `objects`"),
    "make_env fails": (env(lambda objects: 1 / 0), r"ZeroDivisionError.*test_task_checking.py, line \d+"),
    "unbounded": (env(Unbounded), "no finite bounds"),
    "seed": (env(Seedless), r"takes no `seed`"),
    "no goal": (replace(TINY, goal=lambda scene: [], success=lambda scene, info: False), "gave no facts"),
    "goal": (replace(labelled("free", "lying", "carrying", "empty"), expert=TINY_ACTING.expert), "the goal wants 'at'"),
    "precondition": (labelled("at", "carrying", "empty", "lying"), r"'pick' never has the effects .* free\(\) did not"),
    "success without goal": (
        replace(TINY, success=lambda scene, info: bool(scene.agent.closed)),
        "a success, but",
    ),
    "goal without success": (
        replace(TINY, success=lambda scene, info: False),
        "the goal holds, but",
    ),
    "expert fails": (replace(TINY, expert=Expert(choose, never), steps_per_object=50), "fails in 3 of 3 episodes"),
    "step limit": (replace(TINY, steps_per_object=15), r"ends after 30: set steps_per_object to \d+"),
    "action": (
        replace(TINY, expert=choose_what(Action("fly", ("spot1",))), steps_per_object=9),
        r"gave fly\(spot1\): an unknown action",
    ),
    "effects": (
        replace(TINY, label=without_effects),
        "'pick' never has the effects of the domain",
    ),
    "save": (replace(TINY, restore=lambda env, snapshot: env.reset(seed=9)), "the scene is another"),
}
ADVICE = {
    "no expert": (replace(TINY, expert=None), "demonstrations must be imported"),
    "an expert that only answers": (replace(TINY, expert=Expert(control=control)), "no expert that can show it"),
    "unseeded": (env(Unseeded), r"the same seed led to another scene \(.* differs by [\d.]+\).*anew at each reset"),
    "unseeded expert": (replace(TINY, expert=Expert(choose, noisy)), "another control for the same scene"),
    "flicker": (replace(TINY, label=flickering), "^labels with 'free' flicker"),
    "step limit": (replace(TINY, steps_per_object=35), "so that a learner has time for mistakes"),
}


@pytest.mark.parametrize(("task", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(task: Task, message: str) -> None:
    found = check_task(task, objects=2)
    assert any(finding.is_error and re.search(message, finding.message) for finding in found), found
    assert found == sorted(found, key=lambda finding: not finding.is_error)
    assert not any("\n" in finding.message for finding in found)


@pytest.mark.parametrize(("task", "message"), ADVICE.values(), ids=ADVICE)
def test_advice(task: Task, message: str) -> None:
    found = check_task(task, objects=2)
    assert not any(finding.is_error for finding in found), found
    assert any(re.search(message, finding.message) for finding in found), found


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE, TINY_ACTING], ids=lambda task: task.name)
def test_there_is_nothing_to_find_in_a_task_that_is_right(task: Task) -> None:
    assert check_task(task) == []


def test_the_command_says_what_is_wrong_and_exits_with_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    well = "tiny: no errors: a policy can be learned\n"
    assert run(capsys, "check", f"{TINY_FILE}:TINY", "--seeds", 1) == (0, well, "")
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import dataclasses, tiny_task\ntask = dataclasses.replace(tiny_task.TINY, goal=lambda scene: 1)\n"
    )
    code, printed, _ = run(capsys, "check", f"{broken}:task", "--seeds", 1)
    assert code == 1
    assert printed.startswith("error: seed 0, step 0, random controls: goal(scene) raised TypeError")
    assert printed.endswith("tiny: 1 error\n")
