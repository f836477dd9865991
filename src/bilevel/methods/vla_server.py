"""Runs LeRobot's SmolVLA for a policy of ours, in a virtual environment of its own: `python vla_server.py PIPE`.

It needs none of our files. It ends when nobody is there to ask. One question, one answer, each a dictionary of plain
values, sent by `multiprocessing.connection` through the pipe of this number:

    {"ask": "load", "model": folder, "backbone": folder, "device": "auto"} -> {"action_size": 4}
    {"ask": "reset", "seed": 7} -> {}
    {"ask": "act", "sentence": "…", "state": [x, y, …], "image": (height, width), "pixels": all bytes}
        -> {"values": [numbers], "wants_image": False}
    anything -> {"error": "one line"}

The model predicts several actions from one picture. While some are left, the answer says that no picture is wanted, and
the next question may do without. What the model gets and gives:

- the picture, as numbers from 0 to 1, (3, height, width), as the first camera that it knows; others stay empty;
- the agent's state, followed by zeros where the model knows a longer one;
- the sentence;
- the action, unnormalised, as LeRobot's own evaluation has it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

IMAGE, STATE = "observation.image", "observation.state"


class CannotServe(Exception):
    """What the other side should tell its user, on one line."""


class Model:
    """SmolVLA with what prepares its input and its output. It keeps the actions that it has predicted in advance."""

    def __init__(self, folder: Path, backbone: Path, device: str) -> None:
        import torch
        from lerobot.configs.policies import PreTrainedConfig
        from lerobot.policies.factory import make_pre_post_processors
        from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy

        self._torch = torch
        self.device = _choose_device(torch, device)
        config: Any = PreTrainedConfig.from_pretrained(folder)
        if config.type != "smolvla":
            raise CannotServe(f"{folder}: a policy of type '{config.type}', not 'smolvla'")
        config.device = self.device
        config.vlm_model_name = str(backbone)
        config.load_vlm_weights = False  # they are all in the policy's own file
        self._policy = SmolVLAPolicy.from_pretrained(folder, config=config)
        _check_weights(folder / "model.safetensors", self._policy)
        self._before, self._after = make_pre_post_processors(
            config,
            str(folder),
            preprocessor_overrides={
                "device_processor": {"device": self.device},
                "tokenizer_processor": {"tokenizer_name": str(backbone)},
            },
        )
        self._camera = next(iter(config.image_features), IMAGE)
        self._state_size = config.robot_state_feature.shape[0] if config.robot_state_feature else 0
        self.action_size: int = config.action_feature.shape[0]
        self._chunk: int = config.n_action_steps
        self._left = 0  # actions that are predicted and not yet taken
        self._batch: Any = None

    @property
    def wants_image(self) -> bool:
        """Whether the next action needs a picture, since those that were predicted are used up."""
        return self._left == 0

    def reset(self, seed: int) -> None:
        """Forget all predictions; what is random follows from the seed."""
        self._torch.manual_seed(seed)
        self._policy.reset()
        self._left = 0

    def act(self, question: Mapping[str, Any]) -> list[float]:
        """Return the next action, of those that one picture gave or of a new one."""
        if self.wants_image:
            self._batch = self._before(self._observation(question))
            self._left = self._chunk
        self._left -= 1
        action = self._after(self._policy.select_action(dict(self._batch)))
        return [float(number) for number in action.reshape(-1)]

    def _observation(self, question: Mapping[str, Any]) -> dict[str, Any]:
        torch, state = self._torch, question["state"]
        if "image" not in question:
            raise CannotServe("a picture is wanted, but none was sent")
        pixels = torch.frombuffer(bytearray(question["pixels"]), dtype=torch.uint8)
        padded = state + [0.0] * (self._state_size - len(state))
        return {
            self._camera: pixels.reshape(*question["image"], 3).permute(2, 0, 1).float() / 255,
            STATE: torch.tensor(padded, dtype=torch.float32),
            "task": question["sentence"],
        }


def _choose_device(torch: Any, wish: str) -> str:
    if wish == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wish.startswith("cuda") and not torch.cuda.is_available():
        raise CannotServe(f"no GPU: torch {torch.__version__} sees none here; set BILEVEL_VLA_DEVICE=cpu")
    return wish


def _check_weights(file: Path, policy: Any) -> None:
    """LeRobot leaves weights that a file lacks as they are, at random: nobody should measure that.

    The language model's last layer is never used for actions, and some files leave out weights that are shared.
    """
    from safetensors import safe_open

    with safe_open(file, "pt") as weights:
        known = set(weights.keys())
    mine = policy.state_dict(keep_vars=True)
    there = {id(value) for name, value in mine.items() if name in known}
    missing = [name for name, value in mine.items() if id(value) not in there and "lm_head" not in name]
    if missing:
        raise CannotServe(f"{file}: lacks {len(missing)} of the policy's {len(mine)} weights, such as {missing[0]}")


def answer(model: Model | None, question: Mapping[str, Any]) -> tuple[Model | None, dict[str, Any]]:
    """Return the model, loaded if that is asked for, and the answer to a question."""
    if question["ask"] == "load":
        if find_spec("lerobot") is None:
            raise CannotServe(f"lerobot is not installed for {sys.executable}")
        model = Model(Path(question["model"]), Path(question["backbone"]), question["device"])
        return model, {"action_size": model.action_size}
    if model is None:
        raise CannotServe("no model is loaded")
    if question["ask"] == "reset":
        model.reset(question["seed"])
        return model, {}
    return model, {"values": model.act(question), "wants_image": model.wants_image}


def main() -> None:
    """Answer questions until nobody is there to ask them."""
    sys.path.pop(0)  # our folder, lest a file in it pass for a package of the same name
    model, connection = None, Connection(int(sys.argv[1]))
    with suppress(EOFError, BrokenPipeError):
        while True:
            question = connection.recv()
            try:
                model, found = answer(model, question)
            except CannotServe as error:
                found = {"error": str(error)}
            except Exception as error:  # whatever LeRobot and torch raise
                found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
            connection.send(found)


if __name__ == "__main__":
    main()
