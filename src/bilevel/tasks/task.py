"""A task: a domain, an environment, and the few functions that connect the two. A user makes one in a file:

    task = Task("cubes", domain=read_domain("cubes.pddl"), make_env=make_env, spec=SPEC,
                perceive=perceive, label=label, goal=goal, expert=expert)

Everything else in the package takes tasks as they are, and knows none by name.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from numpy.typing import NDArray

from bilevel.symbolic.axioms import close
from bilevel.symbolic.domain import ROOT_TYPE, Action, Atom, BadInput, Domain, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Spec

STEPS_PER_OBJECT = 2048  # the paper's limit
# Arguments of `make_env`. All but the first are about pictures alone, which decide nothing in an episode.
OBJECTS, RENDER_MODE, QUALITY, PICTURE_SIZE, CAMERA = "objects", "render_mode", "quality", "picture_size", "camera"
# Arguments that we give, so that environments cannot be told them otherwise.
NOT_OF_ENVIRONMENTS = ("task", OBJECTS, "seed", "seeds", "steps", "noise", "perception", RENDER_MODE)

Snapshot = Mapping[str, NDArray[Any]]
Env = Any  # a gymnasium.Env, of whatever observations and actions

Given = ParamSpec("Given")
Result = TypeVar("Result")


def failed(what: str, error: Exception) -> BadInput:
    """What to raise where a user's function raised an error: one line with the place."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return BadInput(f"{what} raised {message} ({place.filename}, line {place.lineno})")


def call(what: str, function: Callable[Given, Result], *arguments: Given.args, **named: Given.kwargs) -> Result:
    """Call a user's function; a `BadInput` says `what` it is, with its arguments filled in, where it raises an error.

    This is done at every step, so the text is made only where it is needed.
    """
    try:
        return function(*arguments, **named)
    except BadInput:
        raise
    except Exception as error:
        raise failed(what.format(*arguments, **named), error) from error


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Return whether a function can be called with an argument of this name."""
    parameters = inspect.signature(function).parameters
    return argument in parameters or any(part.kind is part.VAR_KEYWORD for part in parameters.values())


@dataclass(frozen=True)
class Expert:
    """Who can show a task, as people have it.

    - `choose`, from state and goal to the next action, and `control`, from a scene and an action to a control: an
      expert that also answers for what a learner runs into (DAgger).
    - `control` alone: it cannot show, but it can answer.
    - `act`, from a scene to a control: a whole policy that only shows.
    """

    choose: Callable[[Facts, Facts], Action | None] | None = None
    control: Callable[[Scene, Action], Control] | None = None
    act: Callable[[Scene], Control] | None = None

    def __post_init__(self) -> None:
        if self.act is None and self.control is None:
            raise BadInput("an Expert needs `control`, best together with `choose`, or else `act`")

    @property
    def can_show(self) -> bool:
        """Whether it can carry out the task by itself."""
        return self.act is not None or self.choose is not None


class Labels:
    """A labelling function and the goal. Several ask about the same scene, so the last answers are remembered."""

    def __init__(self, label: Callable[[Scene], Iterable[Atom]], goal: Callable[[Scene], Iterable[Atom]]) -> None:
        self._label, self._goal = label, goal
        self._state_of: tuple[Scene | None, Facts] = None, frozenset()
        self._goal_of: tuple[Scene | None, Facts] = None, frozenset()

    def state(self, scene: Scene) -> Facts:
        """All facts that hold."""
        if self._state_of[0] is not scene:
            self._state_of = scene, call("label(scene)", lambda: frozenset(self._label(scene)))
        return self._state_of[1]

    def goal(self, scene: Scene) -> Facts:
        """All facts that are wanted, achieved or not."""
        if self._goal_of[0] is not scene:
            self._goal_of = scene, call("goal(scene)", lambda: frozenset(self._goal(scene)))
        return self._goal_of[1]


@dataclass(frozen=True, repr=False)
class Task:
    """All that the package knows of a task.

    `make_env(objects=n, **arguments)` makes a Gymnasium environment with n objects; it may take further arguments, a
    `render_mode`, and a `quality`, a `camera` and a `picture_size` (width, height) of pictures. `perceive(observation,
    info, env)` gives the scene, `label(scene)` the facts that hold in it, `goal(scene)` those that are wanted. Where
    actions are yet to be learned from demonstrations, the `domain` has none, or is `None`. The rest is optional.
    """

    name: str
    domain: Domain
    make_env: Callable[..., Env]
    spec: Spec
    perceive: Callable[[Any, dict[str, Any], Env], Scene]
    label: Callable[[Scene], Iterable[Atom]]
    goal: Callable[[Scene], Iterable[Atom]]
    expert: Expert | Callable[[Env], Expert | None] | None = None  # or a function from an environment to one
    # (scene, info): whether it is done; else `info["success"]` or `info["is_success"]` says it, else the goal.
    success: Callable[[Scene, dict[str, Any]], bool] | None = None
    steps_per_object: int = STEPS_PER_OBJECT  # after so many an episode ends, if the environment does not end it
    max_objects: int | None = None  # that `make_env` takes
    switches: Sequence[int] = ()  # numbers of a control that open or close something: noise flips these
    still: Control | None = None  # a control that does nothing; else the middle of a Box is taken for one
    # The whole simulator as arrays, and back to an observation and its `info`: to enter demonstrations at any timestep.
    save: Callable[[Env], Snapshot] | None = None
    restore: Callable[[Env, Snapshot], tuple[Any, dict[str, Any]]] | None = None
    # Where things are in the picture drawn last, by their names, as parts of its width and height from the top left.
    locate: Callable[[Scene, Env], Mapping[str, tuple[float, float]]] | None = None
    packages: Sequence[str] = ()  # whose versions decide how an episode goes, beside numpy and gymnasium
    pretrained: Path | str | None = None  # the folder of a policy for it, which runs without anybody learning one
    instruction: str = ""  # for a vision-language-action model, with {n} in place of the number of objects
    # Where `find_task` found it: a name, or file.py:task. One that `replace` has changed is another, found nowhere.
    source: str | None = field(init=False, default=None, compare=False)

    def __post_init__(self) -> None:
        if self.domain is None:
            name = re.sub(r"[^a-z0-9_-]+", "-", self.name.lower())
            unknown = Domain(name, {}, {}, dict.fromkeys(self.spec.objects, ROOT_TYPE))
            object.__setattr__(self, "domain", unknown)

    def __repr__(self) -> str:
        actions = ", ".join(self.domain.schemas) or "none yet"
        return f"Task({self.name}: actions {actions}; {'an expert' if self.expert else 'no expert'})"

    @property
    def labels(self) -> Labels:
        """The labelling function, with what follows from the facts it gives, and the goal."""
        if not self.domain.axioms:
            return Labels(self.label, self.goal)
        constants = self.domain.constants
        return Labels(lambda s: close(frozenset(self.label(s)), self.domain, {**constants, **s.objects}), self.goal)

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """What `make_env` takes besides the number of objects and pictures, with the defaults."""
        return {
            name: parameter.default
            for name, parameter in inspect.signature(self.make_env).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            and name not in (OBJECTS, RENDER_MODE, QUALITY, CAMERA, PICTURE_SIZE)
        }

    @property
    def takes_render_mode(self) -> bool:
        """Whether `make_env` can be asked for pictures."""
        return takes(self.make_env, RENDER_MODE)

    def takes(self, argument: str) -> bool:
        """Whether `make_env` knows this argument, and does not just hand on what it is given."""
        return argument in inspect.signature(self.make_env).parameters

    def check_objects(self, objects: int) -> None:
        """`BadInput` for a number of objects that the task does not take."""
        if objects < 1 or (self.max_objects is not None and objects > self.max_objects):
            wanted = f"1 to {self.max_objects} objects" if self.max_objects else "at least 1 object"
            raise BadInput(f"the task '{self.name}' takes {wanted}, not {objects}")

    def check_arguments(self, arguments: Mapping[str, Any]) -> None:
        """`BadInput` for an argument that `make_env` does not take."""
        for name in arguments:
            if not takes(self.make_env, name):
                known = ", ".join(self.arguments) or "none besides the number of objects"
                raise BadInput(f"the task '{self.name}' takes no argument '{name}'; it takes: {known}")

    def expert_for(self, env: Env) -> Expert | None:
        """The expert for one environment, if there is one."""
        if self.expert is None or isinstance(self.expert, Expert):
            return self.expert
        return call("expert(env)", self.expert, env)


def found_at(task: Task, source: str) -> Task:
    """The task with the name or the place under which it can be found again, in other processes too."""
    found = replace(task)
    object.__setattr__(found, "source", source)
    return found
