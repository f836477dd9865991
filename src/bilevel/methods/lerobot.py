"""Policies that LeRobot saved, its published models among them: each runs in LeRobot's own virtual environment.

LeRobot wants other versions of packages than we do; see `lerobot_server.py`. Such a policy is told the agent and the
objects as the numbers of its training data, or looks at a picture, or both, and may be told what to do in a sentence.
It knows nothing of symbols: it labels what it sees only so that others can tell what happened.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bilevel.files import read_bytes
from bilevel.json_files import decode
from bilevel.policies.policy import LabellingPolicy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, Control
from bilevel.tasks.layout import StateLayout
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

SERVER = Path(__file__).with_name("lerobot_server.py")
ENVIRONMENT_VARIABLE = "BILEVEL_LEROBOT"  # names the folder of LeRobot's environment
DEVICE_VARIABLE = "BILEVEL_LEROBOT_DEVICE"  # cpu, cuda, cuda:1, …
VERSION = "0.4.4"
STATE, PLACES, CAMERAS = "observation.state", "observation.environment_state", "observation.images."
CAMERA = "corner"  # about that of LeRobot's MetaWorld

PUBLISHED: Mapping[str, tuple[str, str]] = {  # names on the hub and revisions, by their methods
    "smolvla": ("lerobot/smolvla_base", "main"),
    "smolvla-metaworld": ("jadechoghari/smolvla_metaworld", "ef3089ecb84eeeb7d33fedab24f6c76180a68900"),
}
CONFIG, WEIGHTS = "config.json", "model.safetensors"


class PolicyFeature(msgspec.Struct, frozen=True):
    """What a policy is told, or puts out, under one name."""

    type: str  # STATE, ENV, VISUAL or ACTION
    shape: tuple[int, ...]


class Config(msgspec.Struct, frozen=True):
    """What config.json says of a policy, as far as that matters here."""

    type: str  # act, diffusion, smolvla, …
    input_features: dict[str, PolicyFeature]
    output_features: dict[str, PolicyFeature]
    vlm_model_name: str | None = None  # of a backbone, on the hub or a folder; such a policy reads a sentence
    n_obs_steps: int = 1
    n_action_steps: int = 1

    @property
    def camera(self) -> str | None:
        """The name of the first picture that the policy looks at, if it looks at any."""
        return next((name for name, feature in self.input_features.items() if feature.type == "VISUAL"), None)


class LeRobotModel(NamedTuple):
    """All that it takes to run a policy; worker processes get a copy, and each starts a process for it."""

    python: str  # of LeRobot's environment
    folder: str
    config: Config
    device: str = "cpu"
    names: Sequence[str] = ()  # of the numbers of the state, if they are known
    is_published: bool = False
    server: str = str(SERVER)

    @property
    def digest(self) -> str:
        """The digest of the weights."""
        return hashlib.sha256(np.memmap(Path(self.folder) / WEIGHTS, np.uint8, "r").data).hexdigest()

    @property
    def settings(self) -> dict[str, str]:
        """What its results depend on besides its weights: what it is, what runs it, and where."""
        return {"type": self.config.type, "device": self.device, **lerobot_versions()}

    @property
    def pictures(self) -> dict[str, Any]:
        """How the environment draws what the policy looks at, as arguments of `SceneEnv`; nothing, if it does not.

        Published models see the arm in MetaWorld's colours; others what our exports show, from the camera that the name
        of their picture ends with, if it names one.
        """
        name = self.config.camera
        if name is None:
            return {}
        _, height, width = self.config.input_features[name].shape
        camera = name.removeprefix(CAMERAS) if name.startswith(CAMERAS) and not self.is_published else CAMERA
        look = {"quality": "metaworld"} if self.is_published else {}
        return {"render_mode": "rgb_array", "camera": camera, "picture_size": (width, height), **look}


# What is needed


def environment_folder() -> Path:
    """Return the folder of LeRobot's environment that the variable names, or else one in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get(ENVIRONMENT_VARIABLE) or f"{cache}/bilevel/lerobot").expanduser()


def install(method: str = "") -> None:
    """Make LeRobot's environment with pip, unless it is there, and download a published model with its backbone."""
    if method and method not in PUBLISHED:
        raise BadInput(f"unknown model '{method}'; known models: {', '.join(PUBLISHED)}")
    script, model = SERVER.with_name("lerobot_install.sh"), (method, *PUBLISHED[method]) if method else ()
    command = ["sh", str(script), sys.executable, str(environment_folder()), VERSION, *model]
    code = subprocess.run(command, stdin=subprocess.DEVNULL).returncode
    if code != 0:
        raise BadInput(f"exit code {code} of: {' '.join(command)}")


def find_model(method: str, folder: Path | None = None) -> LeRobotModel:
    """Return how to run the policy in a folder, or else a published one; `BadInput` where something is missing."""
    versions, environment = lerobot_versions(), environment_folder()
    place = folder or environment / "models" / method
    if not (place / WEIGHTS).is_file():
        advice = "LeRobot's save_pretrained writes it" if folder else f"get it with: bilevel lerobot fetch {method}"
        raise BadInput(f"{place}: {WEIGHTS} is missing; {advice}")
    on_gpu = Path("/dev/nvidiactl").exists() and not versions["torch"].endswith("+cpu")
    device = os.environ.get(DEVICE_VARIABLE) or ("cuda" if on_gpu else "cpu")
    config = decode(read_bytes(place / CONFIG), Config, place / CONFIG)
    names, python = _state_names(place), str(environment / "bin" / "python")
    if PLACES in config.input_features and not names:
        raise BadInput(f"{place}: no names of its numbers: put info.json of its training data beside it")
    return LeRobotModel(python, str(place.absolute()), config, device, names, is_published=folder is None)


def lerobot_versions() -> dict[str, str]:
    """Return the versions in LeRobot's environment, as pip noted them; `BadInput` where LeRobot is not there."""
    environment = environment_folder()
    places = [str(place) for place in environment.glob("lib/python*/site-packages")]
    names = ("lerobot", "torch", "transformers")
    found = {name: each.version for name in names for each in metadata.distributions(name=name, path=places)}
    if found.get("lerobot") != VERSION:
        there = f"{environment}: {found.get('lerobot', 'no LeRobot')}, not {VERSION}"
        raise BadInput(f"{there}; make the environment with: bilevel lerobot install")
    return found


def _state_names(folder: Path) -> list[str]:
    """Return the names of the numbers of a policy's state; none, if the data set that it was trained on has none.

    LeRobot notes the folder of the data set beside the policy; a copy of its info.json may lie there, too.
    """
    path, note = folder / "info.json", folder / "train_config.json"
    if not path.is_file() and note.is_file():
        root = (decode(read_bytes(note), dict[str, Any], note).get("dataset") or {}).get("root")
        path = Path(str(root)) / "meta" / "info.json"
    about = decode(read_bytes(path), dict[str, Any], path) if path.is_file() else {}
    return [str(name) for name in about.get("features", {}).get(STATE, {}).get("names") or ()]


# The policy


class LeRobotPolicy(LabellingPolicy):
    """One episode after the other with one model, which is told the same sentence in all of them."""

    acts_elsewhere = True  # in a process of its own

    def __init__(self, model: LeRobotModel, env: SceneEnv) -> None:
        super().__init__(env.labels)
        self.sentence = env.task.instruction.format(n=env.objects)
        self._model, self._env, controls = model, env, env.controls
        spec = env.task.spec
        self._layout = StateLayout.of_names(spec, model.names) if model.names else StateLayout(spec, {})
        task = f"the task '{env.task.name}'"
        if not isinstance(controls, BoxControls):
            raise BadInput(f"LeRobot's policies put out numbers, but the controls of {task} are a choice")
        self._controls, size = controls, model.config.output_features["action"].shape[0]
        if size < controls.size or (size > controls.size and not model.is_published):  # those may be of a longer arm
            what = f"its actions are {size} numbers, but a control of {task} is {controls.size}"
            raise BadInput(f"{model.folder}: {what}; fine-tune the model on such controls")
        if model.config.vlm_model_name and not self.sentence:
            raise BadInput(f"{task} has no `instruction`, so nothing tells the policy what to do")

    def reset(self, scene: Scene) -> None:
        """Begin an episode; what is random in it follows from what is seen first."""
        super().reset(scene)
        self._server, self._steps = loaded_server(self._model), 0
        seen = hashlib.sha256(scene.values.tobytes() + scene.features.tobytes())
        self._server.ask({"seed": int.from_bytes(seen.digest()[:4], "big")})

    def act(self, scene: Scene) -> Control:
        """Return the model's control for what is there now."""
        super().reset(scene)
        config = self._model.config
        question: dict[str, Any] = {"sentence": self.sentence}
        for name, numbers in zip((STATE, PLACES), self._layout.encode(scene), strict=True):
            if feature := config.input_features.get(name):  # without names, a state is the agent and zeros after it
                question[name] = [*numbers.tolist(), *[0.0] * (feature.shape[0] - len(numbers))]
        planned = config.n_action_steps if config.n_obs_steps == 1 else 1  # from one observation
        if config.camera and self._steps % planned == 0:
            image = np.ascontiguousarray(self._env.render(), np.uint8)
            question |= {"size": image.shape[:2], "pixels": image.tobytes()}
        self._steps += 1
        action = np.asarray(self._server.ask(question)["values"], np.float32)[: self._controls.size]
        if not np.isfinite(action).all():
            raise BadInput(f"{self._model.folder}: the model's action is not finite: {action.tolist()}")
        return self._controls.decode(self._controls.encode(action)[0])  # the nearest one within the bounds


# The process that runs the model


class ModelServer:
    """A process that has loaded a model and answers questions through a pipe; see `lerobot_server.py`.

    It ends when the pipe is closed, so also with us. Nothing of our own environment's Python is told it.
    """

    def __init__(self, model: LeRobotModel) -> None:
        self._connection, theirs = Pipe()
        with theirs:  # which is closed here, so that ours breaks when the process dies
            self._process = subprocess.Popen(
                (model.python, "-I", model.server, str(theirs.fileno()), model.folder, model.device),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
                pass_fds=[theirs.fileno()],
            )

    def close(self) -> None:
        """Let the process end."""
        self._connection.close()
        self._process.wait()

    def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer; `BadInput` where the process has died or cannot give one."""
        try:
            self._connection.send(dict(question))
            answer: Mapping[str, Any] = self._connection.recv()
        except (EOFError, ConnectionError):
            code = self._process.wait()
            raise BadInput(f"the process that runs the model ended: exit code {code}; it may lack memory") from None
        if "error" in answer:
            raise BadInput(f"the model cannot be run: {answer['error']}")
        return answer


# A model takes a minute to load, and policies for many environments follow each other: they share its process.
_LOADED: dict[str, ModelServer] = {}


def loaded_server(model: LeRobotModel) -> ModelServer:
    """Return the process of this model, started if there is none. Others are ended first: two may not fit a GPU."""
    if model.folder not in _LOADED:
        while _LOADED:
            _LOADED.popitem()[1].close()
        _LOADED[model.folder] = ModelServer(model)
    return _LOADED[model.folder]
