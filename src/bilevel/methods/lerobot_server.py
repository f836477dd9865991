"""Runs a policy that LeRobot saved, in LeRobot's environment: `lerobot_server.py PIPE FOLDER BACKBONE DEVICE`.

It needs none of our files. One question, one answer, each a dictionary of plain values, sent by
`multiprocessing.connection` through the pipe of this number; it ends when no question can come:

    {} -> {"action_size": 4}
    {"seed": 7} -> {}, at the beginning of an episode
    {"sentence": "…", "observation.state": [x, y, …], "size": (height, width), "pixels": all bytes}
        -> {"values": [numbers], "wants_picture": False}
    anything -> {"error": "one line"}

A policy that acts on one observation predicts several actions from it. While some are left it wants no picture. Its
picture goes to the first camera that it knows; others stay empty. Actions are unnormalised, as LeRobot's evaluation
has them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


class CannotServe(Exception):
    """What the other side should tell its user, on one line."""


class Model:
    """A policy with what prepares its input and its output. It keeps the actions that it has predicted in advance."""

    def __init__(self, folder: Path, backbone: str, device: str) -> None:
        if find_spec("lerobot") is None:
            raise CannotServe(f"lerobot is not installed for {sys.executable}")
        import torch
        from lerobot.configs.policies import PreTrainedConfig
        from lerobot.policies.factory import get_policy_class, make_pre_post_processors

        self._torch = torch
        config: Any = PreTrainedConfig.from_pretrained(folder)
        config.device = device
        overrides = {"device_processor": {"device": device}}
        if backbone:
            config.vlm_model_name, config.load_vlm_weights = backbone, True
            overrides["tokenizer_processor"] = {"tokenizer_name": backbone}
            _make_backbones_without_weights()
        if hasattr(config, "pretrained_backbone_weights"):
            config.pretrained_backbone_weights = None  # the policy's own file has them all
        self._policy = get_policy_class(config.type).from_pretrained(folder, config=config).eval()
        _check_weights(folder / "model.safetensors", self._policy)
        self._before, self._after = make_pre_post_processors(config, str(folder), preprocessor_overrides=overrides)
        self._camera = next(iter(config.image_features), None)
        self._sizes = {name: f.shape[0] for name, f in config.input_features.items() if f.type.value != "VISUAL"}
        self.action_size: int = config.action_feature.shape[0]
        self._chunk: int = getattr(config, "n_action_steps", 1) if config.n_obs_steps == 1 else 1
        self._left = 0  # actions that are predicted from one observation and not yet taken
        self._picture: Any = None

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question."""
        if "seed" in question:
            self._torch.manual_seed(question["seed"])
            self._policy.reset()
            self._left = 0
            return {}
        if "sentence" not in question:
            return {"action_size": self.action_size}
        self._left = (self._left or self._chunk) - 1
        with self._torch.inference_mode():
            action = self._after(self._policy.select_action(self._before(self._observation(question))))
        return {"values": [float(number) for number in action.reshape(-1)], "wants_picture": self._left == 0}

    def _observation(self, question: Mapping[str, Any]) -> dict[str, Any]:
        torch = self._torch
        batch = {"task": question["sentence"]}
        for name, size in self._sizes.items():
            values = question[name]
            batch[name] = torch.tensor(values + [0.0] * (size - len(values)), dtype=torch.float32)
        if "pixels" in question:
            pixels = torch.frombuffer(bytearray(question["pixels"]), dtype=torch.uint8)
            self._picture = pixels.reshape(*question["size"], 3).permute(2, 0, 1).float() / 255
        if self._camera is not None:
            batch[self._camera] = self._picture
        return batch


def _make_backbones_without_weights() -> None:
    """Let SmolVLA make its backbone as it does, but without weights of its own: the policy's file has them all."""
    from lerobot.policies.smolvla import smolvlm_with_expert
    from transformers import AutoConfig, AutoModelForImageTextToText

    class Unread:
        @staticmethod
        def from_pretrained(name: str, torch_dtype: str, **_: Any) -> Any:
            config = AutoConfig.from_pretrained(name)
            return AutoModelForImageTextToText.from_config(config, torch_dtype=torch_dtype)

    smolvlm_with_expert.AutoModelForImageTextToText = Unread


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
