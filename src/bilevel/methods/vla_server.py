"""Runs LeRobot's SmolVLA, in a virtual environment of its own: `python vla_server.py PIPE MODEL BACKBONE DEVICE`.

It needs none of our files. It ends when no question can come. One question, one answer, each a dictionary of plain
values, sent by `multiprocessing.connection` through the pipe of this number:

    {} -> {"action_size": 4}
    {"seed": 7} -> {}, at the beginning of an episode
    {"sentence": "…", "state": [x, y, …], "image": (height, width), "pixels": all bytes}
        -> {"values": [numbers], "wants_image": False}
    anything -> {"error": "one line"}

The model predicts several actions from one picture. While some are left, the answer says that no picture is wanted, and
the next question may do without. The picture goes to the first camera that the model knows, others stay empty; zeros
follow the agent's state where the model knows a longer one; actions are unnormalised, as LeRobot's evaluation has them.
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

    def __init__(self, folder: Path, backbone: str, device: str) -> None:
        if find_spec("lerobot") is None:
            raise CannotServe(f"lerobot is not installed for {sys.executable}")
        import torch
        from lerobot.configs.policies import PreTrainedConfig
        from lerobot.policies.factory import make_pre_post_processors
        from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy

        self._torch = torch
        config: Any = PreTrainedConfig.from_pretrained(folder)
        if config.type != "smolvla":
            raise CannotServe(f"{folder}: a policy of type '{config.type}', not 'smolvla'")
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        config.device, config.vlm_model_name = device, backbone
        config.load_vlm_weights = False  # they are all in the policy's own file
        self._policy = SmolVLAPolicy.from_pretrained(folder, config=config)
        _check_weights(folder / "model.safetensors", self._policy)
        self._before, self._after = make_pre_post_processors(
            config,
            str(folder),
            preprocessor_overrides={
                "device_processor": {"device": device},
                "tokenizer_processor": {"tokenizer_name": backbone},
            },
        )
        self._camera = next(iter(config.image_features), IMAGE)
        self._state_size = config.robot_state_feature.shape[0] if config.robot_state_feature else 0
        self.action_size: int = config.action_feature.shape[0]
        self._chunk: int = config.n_action_steps
        self._left = 0  # actions that are predicted and not yet taken
        self._batch: Any = None

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question."""
        if "seed" in question:
            self._torch.manual_seed(question["seed"])
            self._policy.reset()
            self._left = 0
            return {}
        if "sentence" not in question:
            return {"action_size": self.action_size}
        if self._left == 0:
            self._batch, self._left = self._before(self._observation(question)), self._chunk
        self._left -= 1
        action = self._after(self._policy.select_action(dict(self._batch)))
        return {"values": [float(number) for number in action.reshape(-1)], "wants_image": self._left == 0}

    def _observation(self, question: Mapping[str, Any]) -> dict[str, Any]:
        torch, state = self._torch, question["state"]
        pixels = torch.frombuffer(bytearray(question["pixels"]), dtype=torch.uint8)
        padded = state + [0.0] * (self._state_size - len(state))
        return {
            self._camera: pixels.reshape(*question["image"], 3).permute(2, 0, 1).float() / 255,
            STATE: torch.tensor(padded, dtype=torch.float32),
            "task": question["sentence"],
        }


def _check_weights(file: Path, policy: Any) -> None:
    """LeRobot leaves weights that a file lacks as they are, at random: that must not be measured.

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


def main(pipe: str, folder: str, backbone: str, device: str) -> None:
    """Answer questions until no more can come."""
    sys.path.pop(0)  # our folder, lest a file in it pass for a package of the same name
    model, connection = None, Connection(int(pipe))
    with suppress(EOFError, BrokenPipeError):
        while True:
            question = connection.recv()
            try:
                model = model or Model(Path(folder), backbone, device)
                found = model.answer(question)
            except CannotServe as error:
                found = {"error": str(error)}
            except Exception as error:  # whatever LeRobot and torch raise
                found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
            connection.send(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
