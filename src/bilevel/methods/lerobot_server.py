"""Runs a policy that LeRobot saved, in LeRobot's environment: `lerobot_server.py PIPE FOLDER DEVICE`.

It needs none of our files. One question, one answer, each a dictionary of plain values, sent by
`multiprocessing.connection` through the pipe of this number; it ends when no question can come:

    {"seed": 7} -> {}, at the beginning of an episode
    {"sentence": "…", "observation.state": [x, y, …], "size": (height, width), "pixels": all bytes}
        -> {"values": [numbers]}
    anything -> {"error": "one line"}

Where there is no picture, as for actions that are planned already, it is the last one. It goes to the first camera that
the policy knows; others stay empty. Actions are unnormalised, as in LeRobot's evaluation.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


class Model:
    """A policy with what prepares its input and its output. It keeps the actions that it has predicted in advance."""

    def __init__(self, folder: Path, device: str) -> None:
        import torch
        from lerobot.configs.policies import PreTrainedConfig
        from lerobot.policies.factory import get_policy_class, make_pre_post_processors
        from safetensors.torch import load_model

        self._torch = torch
        config: Any = PreTrainedConfig.from_pretrained(folder)
        config.device = device
        if hasattr(config, "pretrained_backbone_weights"):
            config.pretrained_backbone_weights = None  # the policy's own file has them all
        self._policy = get_policy_class(config.type)(config)
        missing, _ = load_model(self._policy, folder / "model.safetensors", strict=False)
        missing = [name for name in missing if "lm_head" not in name]  # which is never used for actions
        if missing:  # they would stay as they are, at random: that must not be measured
            raise ValueError(f"{folder}: its weights lack {len(missing)} of the policy's, such as {missing[0]}")
        self._policy.to(device).eval()
        overrides = {"device_processor": {"device": device}}
        self._before, self._after = make_pre_post_processors(config, str(folder), preprocessor_overrides=overrides)
        self._camera = next(iter(config.image_features), None)
        self._picture: Any = None

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question."""
        torch = self._torch
        if "seed" in question:
            torch.manual_seed(question["seed"])
            self._policy.reset()
            return {}
        numbers = {name: values for name, values in question.items() if name.startswith("observation.")}
        batch = {name: torch.tensor(values, dtype=torch.float32) for name, values in numbers.items()}
        if "pixels" in question:
            pixels = torch.frombuffer(bytearray(question["pixels"]), dtype=torch.uint8)
            self._picture = pixels.reshape(*question["size"], 3).permute(2, 0, 1).float() / 255
        if self._camera is not None:
            batch[self._camera] = self._picture
        with torch.inference_mode():
            action = self._after(self._policy.select_action(self._before({**batch, "task": question["sentence"]})))
        return {"values": [float(number) for number in action.reshape(-1)]}


def main(pipe: str, folder: str, device: str) -> None:
    """Answer questions until no more can come."""
    model, connection = None, Connection(int(pipe))
    with suppress(EOFError, BrokenPipeError):
        while True:
            question = connection.recv()
            try:
                model = model or Model(Path(folder), device)
                found = model.answer(question)
            except Exception as error:  # whatever LeRobot and torch raise
                found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
            connection.send(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
