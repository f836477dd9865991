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
from collections.abc import Iterator, Mapping, Sequence
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

SERVER = Path(__file__).with_name("lerobot_server.py")
ENVIRONMENT_VARIABLE = "BILEVEL_LEROBOT"  # names the folder of LeRobot's environment
DEVICE_VARIABLE = "BILEVEL_LEROBOT_DEVICE"  # cpu, cuda, cuda:1, …
VERSION = "0.4.4"
STATE, PLACES = "observation.state", "observation.environment_state"
CAMERA = "corner"  # about where LeRobot's MetaWorld has it, which the fine-tuned model was trained with
SIDE = 480  # pixels of the pictures in LeRobot's MetaWorld


class Published(NamedTuple):
    """A model on the hub; its actions may be those of a longer arm, of which the first numbers are used."""

    name: str
    revision: str
    has_longer_actions: bool = False


PUBLISHED: Mapping[str, Published] = {  # by their methods
    "smolvla": Published("lerobot/smolvla_base", "main", has_longer_actions=True),
    "smolvla-metaworld": Published("jadechoghari/smolvla_metaworld", "ef3089ecb84eeeb7d33fedab24f6c76180a68900"),
}
WEIGHTS, CONFIG = "model.safetensors", "config.json"
POLICY_FILES = (CONFIG, WEIGHTS, "policy_preprocessor.json", "policy_postprocessor.json")
BACKBONE_FILES = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


class Feature(msgspec.Struct, frozen=True):
    """What a policy is told under one name."""

    type: str  # STATE, ENV, VISUAL
    shape: tuple[int, ...]


class Config(msgspec.Struct, frozen=True):
    """What config.json says of a policy, as far as that matters here."""

    type: str  # act, diffusion, smolvla, …
    input_features: dict[str, Feature]
    n_obs_steps: int = 1
    vlm_model_name: str | None = None  # of a backbone whose weights are in the policy's own file


class LeRobotModel(NamedTuple):
    """All that it takes to run a policy; worker processes get a copy, and each starts a process for it."""

    python: str  # of LeRobot's environment
    folder: str
    config: Config
    names: tuple[str, ...] = ()  # of the numbers of its state, if its training data say them
    backbone: str = ""  # a folder
    device: str = "cpu"
    has_longer_actions: bool = False
    picture: tuple[int, int] | None = None  # (width, height)
    camera: str = CAMERA
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
        """How the environment draws what the policy looks at, as arguments of `SceneEnv`; nothing, if it does not."""
        if self.picture is None:
            return {}
        return {"render_mode": "rgb_array", "quality": "metaworld", "camera": self.camera, "picture_size": self.picture}


# What is needed


def find_model(method: str, folder: Path | None = None) -> LeRobotModel:
    """Return how to run the policy in a folder, or a published one, which is in the hub's cache.

    `BadInput` says all that is missing at once, and how to get it.
    """
    environment, published = environment_folder(), PUBLISHED.get(method)
    versions = installed_versions(environment)
    missing = []
    if versions.get("lerobot") != VERSION:
        there = f"lerobot {versions['lerobot']}, but {VERSION} is supported" if versions else "no LeRobot"
        missing.append(f"{environment}: {there}; make it with: bilevel lerobot install")
    place = folder or (_cached(published.name, published.revision) if published else None)
    name, remedy = published.name if published else str(folder), f"bilevel lerobot fetch {method}"
    lacking = [file for file in POLICY_FILES if place is None or not (place / file).is_file()]
    if lacking:
        advice = f"get them with: {remedy}" if folder is None else "save the policy with LeRobot's save_pretrained"
        missing.append(f"{folder or name}: missing {', '.join(lacking)}; {advice}")
    config = _read(place / CONFIG, Config) if place and not lacking else None
    backbone = None
    if config and config.vlm_model_name:
        own = Path(config.vlm_model_name)
        backbone = own if own.is_dir() else _cached(config.vlm_model_name)
        lacking = [file for file in BACKBONE_FILES if backbone is None or not (backbone / file).is_file()]
        if lacking:
            missing.append(f"{config.vlm_model_name}: missing {', '.join(lacking)}; get them with: {remedy}")
    if missing or config is None or place is None:
        raise BadInput(f"the method '{method}' cannot be run: {'; '.join(missing)}")
    visual = [(name, feature) for name, feature in config.input_features.items() if feature.type == "VISUAL"]
    picture, camera = None, CAMERA
    if visual:
        camera = visual[0][0].removeprefix("observation.images.") if folder and ".images." in visual[0][0] else CAMERA
        picture = (SIDE, SIDE) if published else (visual[0][1].shape[2], visual[0][1].shape[1])
    return LeRobotModel(
        python=str(environment / "bin" / "python"),
        folder=str(place.absolute()),
        config=config,
        names=_names_of_state(place),
        backbone=str(backbone.absolute()) if backbone else "",
        device=os.environ.get(DEVICE_VARIABLE) or _usual_device(versions["torch"]),
        has_longer_actions=published is not None and published.has_longer_actions,
        picture=picture,
        camera=camera,
    )


def _read(path: Path, kind: type[Any]) -> Any:
    return decode(read_bytes(path), kind, path)


def _names_of_state(folder: Path) -> tuple[str, ...]:
    """Return what the numbers of the state are called by the data set that the policy was trained on, if it is known.

    LeRobot notes the folder of the data set beside the policy; its info.json may lie there, too.
    """
    path = folder / "info.json"
    if not path.is_file() and (folder / "train_config.json").is_file():
        root = (_read(folder / "train_config.json", dict).get("dataset") or {}).get("root")
        path = Path(str(root)) / "meta" / "info.json"
    if not path.is_file():
        return ()
    names = _read(path, dict).get("features", {}).get(STATE, {}).get("names")
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _cached(hub_name: str, revision: str = "main") -> Path | None:
    """Return the folder in the hub's cache with the files of a model at a revision, if there is one."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    folder = cache / f"models--{hub_name.replace('/', '--')}"
    reference = folder / "refs" / revision
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    return folder / "snapshots" / commit if (folder / "snapshots" / commit).is_dir() else None


def environment_folder() -> Path:
    """Return the folder of LeRobot's environment that the variable names, or else one in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get(ENVIRONMENT_VARIABLE) or f"{cache}/bilevel/lerobot").expanduser()


def installed_versions(folder: Path) -> dict[str, str]:
    """Return the versions in LeRobot's environment as pip noted them, which are sooner read than asked for."""
    places = [str(place) for place in folder.glob("lib/python*/site-packages")]
    found = {each.name.lower(): each.version for each in metadata.distributions(path=places)}
    return {name: found[name] for name in ("lerobot", "torch", "transformers") if name in found}


def _usual_device(torch_version: str) -> str:
    """Return where a build of torch computes: on the GPU if there is one and the build is not for CPUs."""
    return "cuda" if Path("/dev/nvidiactl").exists() and not torch_version.endswith("+cpu") else "cpu"


# PyPI's torchvision is built for CUDA. Beside a build of torch for CPUs its library cannot be loaded, and two of its
# operations, which no policy uses, must be declared before it can be imported.
MEND_TORCHVISION = """
import importlib.util, pathlib
try:
    import torchvision
except RuntimeError:
    folder = importlib.util.find_spec("torchvision").submodule_search_locations[0]
    with open(pathlib.Path(folder, "extension.py"), "a") as file:
        for name in ("nms", "qnms"):
            schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            print(f'torch.library.define("torchvision::{name}", "{schema}")', file=file)
"""


def install_commands() -> Iterator[Sequence[str]]:
    """Yield the commands that make the environment; pip's own variables choose builds for CPUs or CUDA.

    What LeRobot requires is listed beside this file, as it asks for an older torch than what is used here.
    """
    folder = environment_folder()
    python = str(folder / "bin" / "python")
    pip = (python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet")
    yield sys.executable, "-m", "venv", str(folder)
    yield *pip, "torch==2.13.0"
    yield *pip, "--no-deps", "torchvision==0.28.0", f"lerobot=={VERSION}"
    yield *pip, "--requirement", str(SERVER.with_name("lerobot_requirements.txt"))
    yield python, "-c", MEND_TORCHVISION
    yield python, "-c", "import lerobot.policies.factory"


def fetch_commands(method: str) -> Iterator[Sequence[str]]:
    """Yield the commands that download a published model and the settings of its backbone into the hub's cache."""
    program, published = environment_folder() / "bin" / "hf", PUBLISHED[method]
    if not program.is_file():
        raise BadInput(f"{program}: there is no such program; make it with: bilevel lerobot install")
    yield str(program), "download", published.name, "--revision", published.revision
    config = _read((_cached(published.name, published.revision) or Path(published.name)) / CONFIG, Config)
    if config.vlm_model_name:
        yield str(program), "download", config.vlm_model_name, *BACKBONE_FILES


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
        self._layout = StateLayout.of_names(env.task.spec, model.names) if model.names else None
        inputs = model.config.input_features
        for name in inputs:
            if name not in (STATE, PLACES) and inputs[name].type != "VISUAL":
                raise BadInput(f"{model.folder}: the policy wants '{name}', which no scene of ours has")
        if PLACES in inputs and self._layout is None:
            raise BadInput(
                f"{model.folder}: nothing says what its numbers are: put info.json of its training data beside it"
            )
        if model.config.vlm_model_name and not self.sentence:
            raise BadInput(f"the task '{env.task.name}' has no `instruction`, so nothing tells the policy what to do")

    def reset(self, scene: Scene) -> None:
        """Begin an episode; what is random in it follows from what is seen first."""
        super().reset(scene)
        self._server = loaded_server(self._model)
        size, wanted = self._server.action_size, self._controls.size
        if size < wanted or (size > wanted and not self._model.has_longer_actions):
            raise BadInput(
                f"{self._model.folder}: its actions are {size} numbers, but a control of the task "
                f"'{self._env.task.name}' is {wanted}; fine-tune the model on such controls"
            )
        seen = hashlib.sha256(scene.values.tobytes() + scene.features.tobytes())
        self._server.ask({"seed": int.from_bytes(seen.digest()[:4], "big")})
        self._wants_picture = self._model.picture is not None

    def act(self, scene: Scene) -> Control:
        """Return the model's control for what is there now."""
        super().reset(scene)
        question: dict[str, Any] = {"sentence": self.sentence, **self._numbers(scene)}
        if self._wants_picture:
            image = np.ascontiguousarray(self._env.render(), np.uint8)
            question |= {"size": image.shape[:2], "pixels": image.tobytes()}
        answer = self._server.ask(question)
        self._wants_picture = self._model.picture is not None and bool(answer["wants_picture"])
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
