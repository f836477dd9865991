"""SmolVLA as a policy: it looks at a picture and at the agent, is told what to do in a sentence, and moves.

LeRobot runs the model, in a virtual environment of its own, as it wants other versions of packages than we do; see
`vla_server.py`. The files of a model are in Hugging Face's cache on this machine, or in a folder. The model knows
nothing of symbols: its policy labels what it sees only so that others can tell what happened.
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

import numpy as np
from numpy.typing import NDArray

from bilevel.json_files import decode, read_bytes
from bilevel.policies.policy import LabellingPolicy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

SERVER = Path(__file__).with_name("vla_server.py")
ENVIRONMENT_VARIABLE = "BILEVEL_VLA"  # names the folder of LeRobot's environment
DEVICE_VARIABLE = "BILEVEL_VLA_DEVICE"  # auto, cpu, cuda, …
SIDE = 480  # pixels of the square picture, at most, as LeRobot's MetaWorld has it; SmolVLA resizes it to 512
CAMERA = "corner"  # about where LeRobot's MetaWorld has it, which the fine-tuned model was trained with
SUPPORTED = "0.4"
REQUIREMENT = "lerobot[smolvla]>=0.4,<0.5"

MODELS: Mapping[str, str] = {  # by their methods, as the hub names them
    "smolvla": "lerobot/smolvla_base",  # its actions are the six joints of another arm; the first numbers are used
    "smolvla-metaworld": "jadechoghari/smolvla_metaworld",
}
CUT_ACTIONS = ("smolvla",)  # as LeRobot's evaluation in MetaWorld does
BACKBONE = "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"  # whose weights are in the policy's own file
WEIGHTS = "model.safetensors"
POLICY_FILES = ("config.json", WEIGHTS, "policy_preprocessor.json", "policy_postprocessor.json")
BACKBONE_FILES = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


class VlaSettings(NamedTuple):
    """All that it takes to run a model; worker processes get a copy, and each starts a process for the model."""

    python: str  # of LeRobot's environment
    model: str  # folders
    backbone: str
    cut_actions: bool = False
    device: str = "auto"
    server: str = str(SERVER)

    @property
    def digest(self) -> str:
        """Return the digest of the weights."""
        return hashlib.sha256(np.memmap(Path(self.model) / WEIGHTS, np.uint8, "r").data).hexdigest()


# What is needed


def find_vla(method: str, folder: Path | None = None) -> VlaSettings:
    """Return how to run a method's model from the hub's cache, or from a copy of it in a folder.

    `BadInput` says all that is missing at once, and how to get it.
    """
    hub_name, environment = MODELS[method], environment_folder()
    version, missing = lerobot_version(environment), []
    if not (version or "").startswith(f"{SUPPORTED}."):
        there = f"lerobot {version}, but {SUPPORTED} is supported" if version else "no virtual environment with lerobot"
        missing.append(f"{environment}: {there}; make it with: bilevel vla set-up")
    policy = folder or _cached(hub_name)
    backbone_name, backbone = _find_backbone(policy)
    for name, place, files in ((hub_name, policy, POLICY_FILES), (backbone_name, backbone, BACKBONE_FILES)):
        lacking = [file for file in files if place is None or not (place / file).is_file()]
        if lacking:
            is_copy = folder is not None and place == folder
            remedy = f"hf download {name} --local-dir {folder}" if is_copy else f"bilevel vla fetch {method}"
            missing.append(f"{place or name}: missing {', '.join(lacking)}; get them with: {remedy}")
    if missing or policy is None or backbone is None:
        raise BadInput(f"the method '{method}' cannot be run: {'; '.join(missing)}")
    python, device = environment / "bin" / "python", os.environ.get(DEVICE_VARIABLE) or "auto"
    is_cut = method in CUT_ACTIONS
    return VlaSettings(str(python), str(policy.absolute()), str(backbone.absolute()), is_cut, device)


def _find_backbone(policy: Path | None) -> tuple[str, Path | None]:
    """Return the name of the backbone that the policy's settings name, and the folder with its files."""
    config = policy / "config.json" if policy else None
    settings = decode(read_bytes(config), dict[str, Any], config) if config and config.is_file() else {}
    name = str(settings.get("vlm_model_name", BACKBONE))
    return name, Path(name) if Path(name).is_dir() else _cached(name)


def _cached(hub_name: str) -> Path | None:
    """Return the folder in the hub's cache with the files of a model's main branch, if there is one."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    folder = cache / f"models--{hub_name.replace('/', '--')}"
    reference = folder / "refs" / "main"
    return folder / "snapshots" / reference.read_text(encoding="utf-8").strip() if reference.is_file() else None


def environment_folder() -> Path:
    """Return the folder of LeRobot's environment that the variable names, or else one in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get(ENVIRONMENT_VARIABLE) or f"{cache}/bilevel/smolvla").expanduser()


def lerobot_version(folder: Path) -> str | None:
    """Return the version of LeRobot in an environment as pip noted it, which is sooner read than asked for."""
    places = [str(place) for place in folder.glob("lib/python*/site-packages")]
    return next((found.version for found in metadata.distributions(name="lerobot", path=places)), None)


def setup_commands() -> Iterator[Sequence[str]]:
    """Yield the commands that make the environment."""
    folder = environment_folder()
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check")
    yield sys.executable, "-m", "venv", str(folder)
    yield *pip, "--upgrade", "pip"  # an old one takes many minutes to find versions that go together
    yield *pip, REQUIREMENT


def fetch_commands(method: str) -> Iterator[Sequence[str]]:
    """Yield the commands that download a method's model and the settings of its backbone into the hub's cache."""
    program = environment_folder() / "bin" / "hf"
    if not program.is_file():
        raise BadInput(f"{program}: there is no such program; make it with: bilevel vla set-up")
    yield str(program), "download", MODELS[method]
    yield str(program), "download", _find_backbone(_cached(MODELS[method]))[0], *BACKBONE_FILES


# The policy


def make_vla(settings: VlaSettings, env: SceneEnv) -> VlaPolicy:
    """Return the policy of a model for an environment, whose task says in words what to do."""
    if not env.task.instruction:
        raise BadInput(
            f"the task '{env.task.name}' has no `instruction`, so a vision-language-action model cannot do it"
        )
    env.env.camera = CAMERA
    return VlaPolicy(settings, env, env.task.instruction.format(n=env.objects))


class VlaPolicy(LabellingPolicy):
    """One episode after the other with one model, which is told the same sentence in all of them.

    The environment draws pictures, and takes numbers as controls.
    """

    acts_elsewhere = True  # in a process of its own

    def __init__(self, settings: VlaSettings, env: SceneEnv, instruction: str) -> None:
        if not isinstance(env.controls, BoxControls):
            raise BadInput(f"SmolVLA puts out numbers, but the controls of the task '{env.task.name}' are a choice")
        super().__init__(env.labels)
        self.instruction = instruction
        self._settings, self._env, self._controls = settings, env, env.controls

    def reset(self, scene: Scene) -> None:
        """Begin an episode; what is random in it follows from what is seen first."""
        super().reset(scene)
        self._server = loaded_server(self._settings)
        size, wanted = self._server.action_size, self._controls.size
        if size < wanted or (size > wanted and not self._settings.cut_actions):
            raise BadInput(
                f"{self._settings.model}: its actions are {size} numbers, but a control of the task "
                f"'{self._env.task.name}' is {wanted}; fine-tune the model on such controls"
            )
        seen = hashlib.sha256(scene.values.tobytes() + scene.features.tobytes())
        self._server.ask({"seed": int.from_bytes(seen.digest()[:4], "big")})
        self._wants_image = True

    def act(self, scene: Scene) -> Control:
        """Return the model's control for a picture of what is there now."""
        super().reset(scene)
        question = {"sentence": self.instruction, "state": scene.values.tolist()}
        if self._wants_image:
            image = _middle(np.asarray(self._env.render(), np.uint8))
            question |= {"image": image.shape[:2], "pixels": image.tobytes()}
        answer = self._server.ask(question)
        self._wants_image = bool(answer["wants_image"])
        numbers = np.asarray(answer["values"], np.float32)[: self._controls.size]
        if not np.isfinite(numbers).all():
            raise BadInput(f"{self._settings.model}: the model's action is not finite: {numbers.tolist()}")
        return self._controls.decode(self._controls.encode(numbers)[0])  # the nearest one within the bounds


def _middle(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the middle of a picture, (side, side, 3), as large a square as there is, up to that of the model."""
    height, width, _ = image.shape
    side = min(height, width, SIDE)
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(image[top : top + side, left : left + side])


# The process that runs the model


class ModelServer:
    """A process that has loaded a model and answers questions through a pipe; see `vla_server.py`.

    It ends when the pipe is closed, so also with us.
    """

    def __init__(self, settings: VlaSettings) -> None:
        self._connection, theirs = Pipe()
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        environment.pop("PYTHONPATH", None)  # which is for our environment
        command = (
            settings.python,
            settings.server,
            str(theirs.fileno()),
            settings.model,
            settings.backbone,
            settings.device,
        )
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
_LOADED: dict[VlaSettings, ModelServer] = {}


def loaded_server(settings: VlaSettings) -> ModelServer:
    """Return the process of this model, started if there is none. Others are ended first: two may not fit a GPU."""
    if settings not in _LOADED:
        while _LOADED:
            _LOADED.popitem()[1].close()
        _LOADED[settings] = ModelServer(settings)
    return _LOADED[settings]
