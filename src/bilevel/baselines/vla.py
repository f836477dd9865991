"""SmolVLA as a policy: it looks at a picture and at the agent, is told what to do in a sentence, and moves.

LeRobot runs the model, in a virtual environment of its own; see vla_files and vla_server. The model knows
nothing of symbols. Its policy labels what it sees only so that others can tell what happened.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bilevel.baselines.vla_files import ModelFiles, environment_folder, find_model, published_model, require_environment
from bilevel.policies.policy import LabellingPolicy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

SERVER = Path(__file__).with_name("vla_server.py")
DEVICE_VARIABLE = "BILEVEL_VLA_DEVICE"  # auto, cpu, cuda, …


@dataclass(frozen=True)
class VlaSettings:
    """All that it takes to run a model; worker processes get a copy, and each starts a process for the model."""

    python: str  # of LeRobot's environment
    model: str  # folders
    backbone: str
    cut_actions: bool = False
    device: str = "auto"
    side: int = 480  # pixels of the square picture, at most, as LeRobot's MetaWorld has it; SmolVLA resizes it to 512
    start_seconds: float = 900.0  # to load the model from a slow disk
    act_seconds: float = 600.0  # a full-size model takes a minute on a CPU
    server: str = str(SERVER)


@dataclass(frozen=True)
class Ready:
    """A model that can be measured."""

    settings: VlaSettings
    files: ModelFiles
    name: str  # on the hub, or its folder


def require_vla(method: str, folder: Path | None = None) -> Ready:
    """A method's model from the hub's cache, or from a copy in a folder; `BadInput` where it cannot be measured."""
    try:
        return find_vla(method, folder)
    except BadInput as error:
        raise BadInput(f"the method '{method}' cannot be run: {error}") from None


def find_vla(method: str, folder: Path | None = None) -> Ready:
    """The same, with an error that says all that is missing at once, and nothing else."""
    published = published_model(method)
    complaints = []
    try:
        python = require_environment(environment_folder())
    except BadInput as error:
        complaints.append(str(error))
    try:
        files = find_model(published.hub_name, folder)
    except BadInput as error:
        complaints.append(str(error) if folder else f"{error}; or all of them with: bilevel vla fetch {method}")
    if complaints:
        raise BadInput("; ".join(complaints))
    if not files.as_downloaded:
        raise BadInput(
            f"{files.policy}/model.safetensors: not as it was downloaded, so perhaps not the published weights of "
            f"{published.hub_name}; only those are measured"
        )
    settings = make_settings(python, files, cut_actions=published.cut_actions)
    return Ready(settings, files, str(folder or published.hub_name))


def make_settings(python: Path, files: ModelFiles, **others: Any) -> VlaSettings:
    """Return how to run a model that is in these files; the device comes from the environment's variables."""
    device = os.environ.get(DEVICE_VARIABLE) or "auto"
    return VlaSettings(str(python), str(files.policy), str(files.backbone), device=device, **others)


class VlaPolicy(LabellingPolicy):
    """A policy for one environment, which draws what the model sees: it has the render mode `rgb_array`."""

    acts_elsewhere = True  # in the process of the model

    def __init__(self, settings: VlaSettings, env: SceneEnv, instruction: str) -> None:
        if not isinstance(env.controls, BoxControls):
            raise BadInput(f"SmolVLA puts out numbers, but the controls of the task '{env.task.name}' are a choice")
        super().__init__(env.labels)
        self.instruction = instruction
        self._settings, self._env, self._controls = settings, env, env.controls
        self._server: ModelServer | None = None
        self._wants_image = True

    def reset(self, scene: Scene) -> None:
        """Begin an episode; what is random in it follows from what is seen first."""
        super().reset(scene)
        self._server = loaded_server(self._settings)
        self._server.user = self
        self._check_size(self._server.action_size)
        seen = hashlib.sha256(scene.values.tobytes() + scene.features.tobytes())
        question = {"ask": "reset", "seed": int.from_bytes(seen.digest()[:4], "big")}
        self._server.ask(question, self._settings.act_seconds)
        self._wants_image = True

    def act(self, scene: Scene) -> Control:
        """Return the model's control for a picture of what is there now."""
        if self._server is None:
            self.reset(scene)
        assert self._server is not None
        if self._server.user is not self:
            raise BadInput("a process runs one episode of a SmolVLA at a time; reset() the policy first")
        super().reset(scene)
        question = {"ask": "act", "sentence": self.instruction, "state": scene.values.tolist()}
        if self._wants_image:
            image = _middle(np.asarray(self._env.render(), np.uint8), self._settings.side)
            question |= {"image": image.shape[:2], "pixels": image.tobytes()}
        answer = self._server.ask(question, self._settings.act_seconds)
        self._wants_image = bool(answer["wants_image"])
        return self._control(answer["values"])

    def _check_size(self, size: int) -> None:
        wanted = self._controls.size
        if size != wanted and not (self._settings.cut_actions and size > wanted):
            raise BadInput(
                f"{self._settings.model}: its actions are {size} numbers, but a control of the task "
                f"'{self._env.task.name}' is {wanted}; fine-tune the model on such controls"
            )

    def _control(self, values: list[float]) -> Control:
        """The control nearest to an action, which is in the environment's own units."""
        numbers = np.asarray(values, np.float32)[: self._controls.size]
        if not np.isfinite(numbers).all():
            raise BadInput(f"{self._settings.model}: the model's action is not finite: {numbers.tolist()}")
        return self._controls.decode(self._controls.encode(numbers)[0])


def _middle(image: NDArray[np.uint8], most: int) -> NDArray[np.uint8]:
    """(side, side, 3): the middle of a picture, as large a square as there is, up to a size."""
    height, width, _ = image.shape
    side = min(height, width, most)
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(image[top : top + side, left : left + side])


# The process that runs the model


class ServerProcess:
    """A process that answers questions. It is of no use any more once it has not answered one.

    Questions and answers go through a pipe; see `vla_server.py`. The process ends when we do, however that happens: its
    input closes then. We do not wait for that, though: it is a group of its own, killed by `close()`, at exit, after a
    time-out and after Ctrl-C.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._connection, theirs = Pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=dict(environment),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            raise BadInput(f"{command[0]}: cannot be run: {error.strerror}") from None
        finally:
            theirs.close()  # so that ours breaks when the process dies
        self._log: IO[bytes] = log
        self.close = weakref.finalize(self, _end, self._process, self._connection, log)  # at exit too

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return bool(self.close.alive) and self._process.poll() is None

    def ask(self, question: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """The answer; `BadInput` where there is none in time, or the process has died, or says that it cannot."""
        try:
            with suppress(BrokenPipeError):  # it died; what it wrote before says why
                self._connection.send(dict(question))
            if not self._connection.poll(seconds):
                raise BadInput(f"the process that runs the model has not answered within {seconds:g} s")
            answer: Mapping[str, Any] = self._connection.recv()
        except (EOFError, ConnectionError):
            raise BadInput(f"the process that runs the model ended: {self._last_words()}") from None
        except BaseException:  # Ctrl-C too: its answer would pass for that to the next question
            self.close()
            raise
        if "error" in answer:
            raise BadInput(f"the model cannot be run: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        """End it, and return what it said last, for a message on one line."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        self.close()
        return f"exit code {self._process.returncode}: {said}"


def _end(process: subprocess.Popen[bytes], connection: Connection, log: IO[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        os.killpg(process.pid, signal.SIGKILL)  # a new session's group has its leader's number
    process.wait()
    assert process.stdin is not None
    for stream in (process.stdin, connection, log):
        stream.close()


class ModelServer(ServerProcess):
    """A process that has loaded a model, and the policy that uses it at the moment."""

    def __init__(self, settings: VlaSettings) -> None:
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        super().__init__([settings.python, settings.server], environment)
        self.user: VlaPolicy | None = None
        folders = {"model": settings.model, "backbone": settings.backbone}
        loaded = self.ask({"ask": "load", **folders, "device": settings.device}, settings.start_seconds)
        self.action_size = int(loaded["action_size"])


# A model takes a minute to load, and policies for many environments follow each other: they share its process.
_LOADED: dict[VlaSettings, ModelServer] = {}


def loaded_server(settings: VlaSettings) -> ModelServer:
    """The process of this model, started if there is none. Other models are ended first: two may not fit a GPU."""
    server = _LOADED.get(settings)
    if server is None or not server.alive:
        end_servers()
        server = _LOADED[settings] = ModelServer(settings)
    return server


def end_servers() -> None:
    """End all processes that hold a model."""
    for server in _LOADED.values():
        server.close()
    _LOADED.clear()
