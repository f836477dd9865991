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

from bilevel.json_files import decode, read_bytes
from bilevel.policies.policy import LabellingPolicy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, Control
from bilevel.tasks.layout import StateLayout
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.spec import Spec

SERVER = Path(__file__).with_name("lerobot_server.py")
ENVIRONMENT_VARIABLE = "BILEVEL_LEROBOT"  # names the folder of LeRobot's environment
DEVICE_VARIABLE = "BILEVEL_LEROBOT_DEVICE"  # cpu, cuda, cuda:1, …
VERSION = "0.4.4"
STATE, PLACES = "observation.state", "observation.environment_state"
SIDE = 480  # pixels of the pictures in LeRobot's MetaWorld


class Published(NamedTuple):
    """A model on the hub."""

    name: str
    revision: str = "main"
    has_longer_actions: bool = False  # those of another arm, of which the first numbers are used


PUBLISHED: Mapping[str, Published] = {  # by their methods
    "smolvla": Published("lerobot/smolvla_base", has_longer_actions=True),
    "smolvla-metaworld": Published("jadechoghari/smolvla_metaworld", "ef3089ecb84eeeb7d33fedab24f6c76180a68900"),
}
CONFIG, WEIGHTS = "config.json", "model.safetensors"
POLICY_FILES = (CONFIG, WEIGHTS, "policy_preprocessor.json", "policy_postprocessor.json")
BACKBONE_FILES = (
    CONFIG,
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


class PolicyInput(msgspec.Struct, frozen=True):
    """What a policy is told under one name."""

    type: str  # STATE, ENV or VISUAL
    shape: tuple[int, ...]


class Config(msgspec.Struct, frozen=True):
    """What config.json says of a policy, as far as that matters here."""

    type: str  # act, diffusion, smolvla, …
    input_features: dict[str, PolicyInput]
    vlm_model_name: str | None = None  # of a backbone whose weights are in the policy's own file

    @property
    def camera(self) -> str | None:
        """The name of the first picture that the policy looks at, if it looks at any."""
        return next((name for name, feature in self.input_features.items() if feature.type == "VISUAL"), None)


class LeRobotModel(NamedTuple):
    """All that it takes to run a policy; worker processes get a copy, and each starts a process for it."""

    python: str  # of LeRobot's environment
    folder: str
    config: Config
    backbone: str = ""  # a folder
    device: str = "cpu"
    published: Published | None = None
    server: str = str(SERVER)

    @property
    def digest(self) -> str:
        """The digest of the weights."""
        return hashlib.sha256(np.memmap(Path(self.folder) / WEIGHTS, np.uint8, "r").data).hexdigest()

    @property
    def settings(self) -> dict[str, str]:
        """What its results depend on besides its weights: what it is, what runs it, and where."""
        versions = installed_versions(Path(self.python).parents[1])
        return {"type": self.config.type, "device": self.device, **versions}

    @property
    def pictures(self) -> dict[str, Any]:
        """How the environment draws what the policy looks at, as arguments of `SceneEnv`; nothing, if it does not.

        Published models see the arm in MetaWorld's colours; others what our exports show.
        """
        if self.config.camera is None:
            return {}
        _, height, width = self.config.input_features[self.config.camera].shape
        own = {"camera": self.config.camera.rpartition(".")[2], "picture_size": (width, height)}
        theirs = {"camera": "corner", "picture_size": (SIDE, SIDE), "quality": "metaworld"}
        return {"render_mode": "rgb_array", **(theirs if self.published else own)}


# What is needed


def install() -> None:
    """Make LeRobot's environment with pip: gigabytes."""
    _run("sh", SERVER.with_name("lerobot_install.sh"), sys.executable, environment_folder(), VERSION)


def fetch(method: str) -> None:
    """Download a published model into the hub's cache, with the settings and the tokenizer of its backbone."""
    if method not in PUBLISHED:
        raise BadInput(f"unknown model '{method}'; known models: {', '.join(PUBLISHED)}")
    program, model = environment_folder() / "bin" / "hf", PUBLISHED[method]
    if not program.is_file():
        raise BadInput(f"{program}: there is no such program; make it with: bilevel lerobot install")
    _run(program, "download", model.name, "--revision", model.revision)
    _run(program, "download", _config(hub_folder(model)).vlm_model_name, *BACKBONE_FILES)


def _run(*words: object) -> None:
    """Run a program that may download; `BadInput` where it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("HF_HUB_OFFLINE", "PYTHONPATH")}
    command = [str(word) for word in words]
    code = subprocess.run(command, stdin=subprocess.DEVNULL, env=environment).returncode
    if code != 0:
        raise BadInput(f"exit code {code} of: {' '.join(command)}")


def find_model(method: str, folder: Path | None = None) -> LeRobotModel:
    """Return how to run the policy in a folder, or a published one in the hub's cache; `BadInput` where it lacks."""
    environment, published = environment_folder(), PUBLISHED.get(method)
    versions = installed_versions(environment)
    if versions.get("lerobot") != VERSION:
        there = versions.get("lerobot", "no LeRobot")
        raise BadInput(f"{environment}: {there}, not {VERSION}; make the environment with: bilevel lerobot install")
    advice = f"get it with: bilevel lerobot fetch {method}"
    if folder is None and published:
        folder = _complete(hub_folder(published), POLICY_FILES, published.name, advice)
    folder = _complete(folder or Path(), POLICY_FILES, str(folder), "write it with LeRobot's save_pretrained")
    config, backbone = _config(folder), ""
    if config.vlm_model_name:
        own = Path(config.vlm_model_name)
        place = own if own.is_dir() else hub_folder(Published(config.vlm_model_name))
        backbone = str(_complete(place, BACKBONE_FILES, config.vlm_model_name, advice).absolute())
    on_gpu = Path("/dev/nvidiactl").exists() and not versions["torch"].endswith("+cpu")
    device = os.environ.get(DEVICE_VARIABLE) or ("cuda" if on_gpu else "cpu")
    python = str(environment / "bin" / "python")
    return LeRobotModel(python, str(folder.absolute()), config, backbone, device, published)


def _config(folder: Path) -> Config:
    """Return what the config.json of a policy says."""
    return decode(read_bytes(folder / CONFIG), Config, folder / CONFIG)


def _complete(folder: Path, files: Sequence[str], name: str, advice: str) -> Path:
    """Return a folder that has all of these files; `BadInput` for any other."""
    lacking = [file for file in files if not (folder / file).is_file()]
    if lacking:
        raise BadInput(f"{name}: missing {', '.join(lacking)}; {advice}")
    return folder


def hub_folder(model: Published) -> Path:
    """Return the folder in the hub's cache with the files of a model, whether or not they are there."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    folder = cache / f"models--{model.name.replace('/', '--')}"
    reference = folder / "refs" / model.revision
    return folder / "snapshots" / (reference.read_text("utf-8").strip() if reference.is_file() else model.revision)


def environment_folder() -> Path:
    """Return the folder of LeRobot's environment that the variable names, or else one in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get(ENVIRONMENT_VARIABLE) or f"{cache}/bilevel/lerobot").expanduser()


def installed_versions(folder: Path) -> dict[str, str]:
    """Return the versions in LeRobot's environment as pip noted them, which are sooner read than asked for."""
    places = [str(place) for place in folder.glob("lib/python*/site-packages")]
    names = ("lerobot", "torch", "transformers")
    return {name: found.version for name in names for found in metadata.distributions(name=name, path=places)}


def state_layout(folder: Path, spec: Spec) -> StateLayout | None:
    """Return what the numbers of a policy's state are, by the data set that it was trained on, if that says it.

    LeRobot notes the folder of the data set beside the policy; a copy of its info.json may lie there, too.
    """
    path = folder / "info.json"
    if not path.is_file() and (folder / "train_config.json").is_file():
        note = folder / "train_config.json"
        root = (decode(read_bytes(note), dict[str, Any], note).get("dataset") or {}).get("root")
        path = Path(str(root)) / "meta" / "info.json"
    if not path.is_file():
        return None
    names = decode(read_bytes(path), dict[str, Any], path).get("features", {}).get(STATE, {}).get("names")
    return StateLayout.of_names(spec, list(map(str, names))) if isinstance(names, list) else None


# The policy


class LeRobotPolicy(LabellingPolicy):
    """One episode after the other with one model, which is told the same sentence in all of them."""

    acts_elsewhere = True  # in a process of its own

    def __init__(self, model: LeRobotModel, env: SceneEnv) -> None:
        if not isinstance(env.controls, BoxControls):
            raise BadInput(f"LeRobot's policies put out numbers, but the controls of '{env.task.name}' are a choice")
        super().__init__(env.labels)
        self.sentence = env.task.instruction.format(n=env.objects)
        self._model, self._env, self._controls = model, env, env.controls
        self._layout = state_layout(Path(model.folder), env.task.spec)
        inputs = model.config.input_features
        unknown = [name for name in inputs if name not in (STATE, PLACES) and inputs[name].type != "VISUAL"]
        if unknown:
            raise BadInput(f"{model.folder}: the policy wants '{unknown[0]}', which scenes do not have")
        if PLACES in inputs and self._layout is None:
            raise BadInput(f"{model.folder}: no names of its numbers: put info.json of its training data beside it")
        if model.backbone and not self.sentence:
            raise BadInput(f"the task '{env.task.name}' has no `instruction`, so nothing tells the policy what to do")

    def reset(self, scene: Scene) -> None:
        """Begin an episode; what is random in it follows from what is seen first."""
        super().reset(scene)
        self._server = loaded_server(self._model)
        size, wanted = self._server.action_size, self._controls.size
        is_longer = self._model.published is not None and self._model.published.has_longer_actions
        if size < wanted or (size > wanted and not is_longer):
            raise BadInput(
                f"{self._model.folder}: its actions are {size} numbers, but a control of the task "
                f"'{self._env.task.name}' is {wanted}; fine-tune the model on such controls"
            )
        seen = hashlib.sha256(scene.values.tobytes() + scene.features.tobytes())
        self._server.ask({"seed": int.from_bytes(seen.digest()[:4], "big")})
        self._wants_picture = self._model.config.camera is not None

    def act(self, scene: Scene) -> Control:
        """Return the model's control for what is there now."""
        super().reset(scene)
        question: dict[str, Any] = {"sentence": self.sentence, **self._numbers(scene)}
        if self._wants_picture:
            image = np.ascontiguousarray(self._env.render(), np.uint8)
            question |= {"size": image.shape[:2], "pixels": image.tobytes()}
        answer = self._server.ask(question)
        self._wants_picture = self._model.config.camera is not None and bool(answer["wants_picture"])
        numbers = np.asarray(answer["values"], np.float32)[: self._controls.size]
        if not np.isfinite(numbers).all():
            raise BadInput(f"{self._model.folder}: the model's action is not finite: {numbers.tolist()}")
        return self._controls.decode(self._controls.encode(numbers)[0])  # the nearest one within the bounds

    def _numbers(self, scene: Scene) -> dict[str, list[float]]:
        """Return the numbers that the policy is told; a published model's state is the agent, zeros after it."""
        found = (scene.values, []) if self._layout is None else self._layout.encode(scene)
        inputs = self._model.config.input_features
        return {
            name: np.asarray(part).tolist() for name, part in zip((STATE, PLACES), found, strict=True) if name in inputs
        }


# The process that runs the model


class ModelServer:
    """A process that has loaded a model and answers questions through a pipe; see `lerobot_server.py`.

    It ends when the pipe is closed, so also with us.
    """

    def __init__(self, model: LeRobotModel) -> None:
        self._connection, theirs = Pipe()
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        command = (model.python, "-I", model.server, str(theirs.fileno()), model.folder, model.backbone, model.device)
        with theirs:  # which is closed here, so that ours breaks when the process dies
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
            )
        self.action_size = int(self.ask({})["action_size"])

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
