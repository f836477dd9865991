"""SmolVLA as a policy: it looks at a picture and at the hand, is told what to do in a sentence, and moves.

LeRobot runs the model, in a virtual environment of its own; see vla_setup, vla_process and vla_server. The model knows
nothing of symbols. Its policy labels what it sees only so that others can tell what happened.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bilevel.baselines.vla_files import ModelFiles, find_model, published_model
from bilevel.baselines.vla_process import ServerProcess
from bilevel.baselines.vla_protocol import VERSION, Message
from bilevel.baselines.vla_sentences import sentence
from bilevel.baselines.vla_setup import environment_folder, require_environment
from bilevel.policies.policies import Control
from bilevel.symbolic.domain import NO_FACTS, Action, BadInput, Facts
from bilevel.tabletop import opengl
from bilevel.tabletop.labelling import Labels
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.rendering import Image, Picture
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.tasks import Task

SERVER = Path(__file__).with_name("vla_server.py")
DEVICE_VARIABLE = "BILEVEL_VLA_DEVICE"  # auto, cpu, cuda, …
CONTROL_SIZE = 4


@dataclass(frozen=True)
class VlaSettings:
    """All that it takes to run a model; worker processes get a copy, and each starts a process for the model."""

    python: str  # of LeRobot's environment
    model: str  # folders
    backbone: str
    cut_actions: bool = False
    device: str = "auto"
    camera: str = "corner"  # about where LeRobot's MetaWorld has it, which the fine-tuned model was trained with
    side: int = 480  # pixels of the square picture, likewise; SmolVLA itself resizes it to 512
    start_seconds: float = 900.0  # to load the model from a slow disk
    act_seconds: float = 600.0  # a full-size model takes a minute on a CPU
    server: str = str(SERVER)


@dataclass(frozen=True)
class Ready:
    """A model that can be measured."""

    settings: VlaSettings
    files: ModelFiles
    name: str  # on the hub, or its folder

    @property
    def make(self) -> partial[VlaPolicy]:
        """What makes its policy for a task and an environment; it can be sent to other processes."""
        return partial(make_policy, self.settings)


@dataclass(frozen=True)
class NotRun:
    """A model that cannot be measured here, so that no table has a number for it."""

    reason: str


def vla_status(method: str, folder: Path | None = None) -> Ready | NotRun:
    """Whether a method can be measured with its model from the hub's cache, or from a copy in a folder."""
    try:
        return _find_vla(method, folder)
    except BadInput as error:
        return NotRun(str(error))


def require_vla(method: str, folder: Path | None = None) -> Ready:
    """The same; `BadInput` where it cannot."""
    try:
        return _find_vla(method, folder)
    except BadInput as error:
        raise BadInput(f"the method '{method}' cannot be run: {error}") from None


def _find_vla(method: str, folder: Path | None) -> Ready:
    published = published_model(method)
    python, files = _require_all(method, published.hub_name, folder)
    if not files.as_downloaded:
        raise BadInput(
            f"{files.policy}/model.safetensors: not as it was downloaded, so perhaps not the published weights of "
            f"{published.hub_name}; only those are measured"
        )
    opengl.backend()
    settings = make_settings(python, files, cut_actions=published.cut_actions)
    return Ready(settings, files, str(folder or published.hub_name))


def _require_all(method: str, hub_name: str, folder: Path | None) -> tuple[Path, ModelFiles]:
    """The environment's Python, and the model's files; `BadInput` says all that is missing at once."""
    complaints = []
    try:
        python = require_environment(environment_folder())
    except BadInput as error:
        complaints.append(str(error))
    try:
        files = find_model(hub_name, folder)
    except BadInput as error:
        complaints.append(str(error) if folder else f"{error}; or all of them with: bilevel vla fetch {method}")
    if complaints:
        raise BadInput("; ".join(complaints))
    return python, files


def make_settings(python: Path, files: ModelFiles, **others: Any) -> VlaSettings:
    device = os.environ.get(DEVICE_VARIABLE) or "auto"
    return VlaSettings(str(python), str(files.policy), str(files.backbone), device=device, **others)


def make_policy(settings: VlaSettings, task: Task, environment: Tabletop) -> VlaPolicy:
    instruction = sentence(task.name, environment.count)
    return VlaPolicy(settings, environment, task.labels(environment.slots), instruction)


class VlaPolicy:
    """A policy for one environment, which it looks at through a camera of its own."""

    def __init__(self, settings: VlaSettings, environment: Tabletop, labels: Labels, instruction: str) -> None:
        self.labels, self.instruction = labels, instruction
        self.state: Facts = NO_FACTS
        self.goal: Facts = NO_FACTS
        self.action: Action | None = None  # it never has a symbolic one
        self._settings = settings
        self._environment = environment
        self._picture = Picture(environment.simulation.model, "rgb_array", "fast", settings.camera)
        self._server: LoadedServer | None = None
        self._wants_image = True

    def reset(self, observation: Observation) -> None:
        """Begin an episode; what is random in it follows from what is seen first."""
        self._look(observation)
        self._server = loaded_server(self._settings)
        self._server.user = self
        seen = hashlib.sha256(observation["agent"].tobytes() + observation["objects"].tobytes())
        self._server.ask({"ask": "reset", "seed": int.from_bytes(seen.digest()[:4], "big")})
        self._wants_image = True

    def act(self, observation: Observation) -> Control:
        if self._server is None:
            self.reset(observation)
        assert self._server is not None
        if self._server.user is not self:
            raise BadInput("a process runs one episode of a SmolVLA at a time; reset() the policy first")
        self._look(observation)
        ask = {"ask": "act", "sentence": self.instruction, "state": observation["agent"].tolist()}
        if self._wants_image:
            image = self.draw()
            answer = self._server.ask({**ask, "image": image.shape[:2]}, image.tobytes())
        else:
            answer = self._server.ask(ask)
        self._wants_image = bool(answer["wants_image"])
        return self._control(answer["values"])

    def draw(self) -> Image:
        """What the model sees: the middle of what the camera sees, (side, side, 3)."""
        image = self._picture.draw(self._environment.simulation.data)
        assert image is not None
        return _middle(image, self._settings.side)

    def close(self) -> None:
        """The model's process stays for other policies of this process; it ends with this process."""
        self._picture.close()

    def _look(self, observation: Observation) -> None:
        self.state, self.goal = self.labels.state(observation), self.labels.goal(observation)

    def _control(self, values: list[float]) -> Control:
        numbers = np.asarray(values, np.float32)[:CONTROL_SIZE]
        if not np.isfinite(numbers).all():
            raise BadInput(f"{self._settings.model}: the model's action is not finite: {numbers.tolist()}")
        return np.clip(numbers, -1.0, 1.0)


def _middle(image: Image, side: int) -> Image:
    height, width, _ = image.shape
    if not 1 <= side <= min(height, width):
        raise BadInput(f"the picture for a SmolVLA can have 1 to {min(height, width)} pixels along a side, not {side}")
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(image[top : top + side, left : left + side])


class LoadedServer:
    """A process that has loaded a model, and the policy that uses it at the moment."""

    def __init__(self, settings: VlaSettings) -> None:
        self._settings = settings
        self.user: VlaPolicy | None = None
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        self.process = ServerProcess([settings.python, settings.server], environment)
        try:
            self._load()
        except BaseException:
            self.process.close()
            raise

    def ask(self, fields: Mapping[str, Any], data: bytes = b"") -> Mapping[str, Any]:
        return self.process.ask(Message(fields, data), self._settings.act_seconds)

    def _load(self) -> None:
        settings = self._settings
        folders = {"model": settings.model, "backbone": settings.backbone}
        question = {"ask": "load", "version": VERSION, **folders, "device": settings.device}
        answer = self.process.ask(Message(question), settings.start_seconds)
        if answer.get("version") != VERSION:
            raise BadInput(f"{settings.server}: speaks version {answer.get('version')} of the protocol, not {VERSION}")
        size = answer["action_size"]
        if size != CONTROL_SIZE and not (settings.cut_actions and size > CONTROL_SIZE):
            raise BadInput(
                f"{settings.model}: its actions are {size} numbers, but a control is {CONTROL_SIZE}: x, y, z, fingers; "
                "fine-tune the model on such controls"
            )


# A model takes a minute to load, and policies for many environments follow each other: they share its process.
_LOADED: dict[VlaSettings, LoadedServer] = {}


def loaded_server(settings: VlaSettings) -> LoadedServer:
    """The process of this model, started if there is none. Other models are ended first: two may not fit a GPU."""
    server = _LOADED.get(settings)
    if server is None or not server.process.alive:
        end_servers()
        server = _LOADED[settings] = LoadedServer(settings)
    return server


def end_servers() -> None:
    for server in _LOADED.values():
        server.process.close()
    _LOADED.clear()
