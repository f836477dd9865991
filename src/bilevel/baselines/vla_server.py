"""Runs LeRobot's SmolVLA for a policy of ours, in a virtual environment of its own: `python vla_server.py`.

It speaks vla_protocol on standard input and output, and ends as soon as its input does. Of our files it needs that one
alone, beside it; the rest is LeRobot's. What goes in and out:

- the picture, as numbers from 0 to 1, (3, height, width), as the first camera that the model knows; others stay empty;
- the hand's position and opening, followed by zeros where the model knows a longer state;
- the sentence;
- the action, unnormalised, as LeRobot's own evaluation has it.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

from vla_protocol import VERSION, BadMessage, Message, encode, read_message

IMAGE, STATE, ACTION = "observation.image", "observation.state", "action"


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
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self._policy.parameters())

    @property
    def wants_image(self) -> bool:
        return self._left == 0

    def reset(self, seed: int) -> None:
        """Forget all predictions; what is random follows from the seed."""
        self._torch.manual_seed(seed)
        self._policy.reset()
        self._left = 0

    def act(self, sentence: str, state: list[float], shape: list[int] | None, pixels: bytes) -> list[float]:
        if self.wants_image:
            if shape is None:
                raise CannotServe("a picture is wanted, but none was sent")
            self._batch = self._before(self._observation(sentence, state, shape, pixels))
            self._left = self._chunk
        self._left -= 1
        action = self._after(self._policy.select_action(dict(self._batch)))
        return [float(number) for number in action.reshape(-1)]

    def _observation(self, sentence: str, state: list[float], shape: list[int], pixels: bytes) -> dict[str, Any]:
        torch = self._torch
        height, width = shape
        if len(pixels) != height * width * 3:
            raise CannotServe(
                f"a picture of {height} x {width} pixels has {height * width * 3} bytes, not {len(pixels)}"
            )
        image = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(height, width, 3)
        padded = state + [0.0] * (self._state_size - len(state))
        return {
            self._camera: image.permute(2, 0, 1).float() / 255,
            STATE: torch.tensor(padded, dtype=torch.float32),
            "task": sentence,
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


class Server:
    """Answers questions, one at a time."""

    def __init__(self) -> None:
        self._model: Model | None = None
        self._answers: Mapping[str, Callable[[Message], dict[str, Any]]] = {
            "load": self._load,
            "reset": self._reset,
            "act": self._act,
        }

    def answer(self, message: Message) -> dict[str, Any]:
        try:
            return self._answers[message.fields["ask"]](message)
        except CannotServe as error:
            return {"answer": "error", "message": str(error)}
        except Exception as error:  # whatever LeRobot and torch raise
            return {"answer": "error", "message": f"{type(error).__name__}: {_one_line(str(error))}"}

    def _load(self, message: Message) -> dict[str, Any]:
        ask = message.fields
        if ask["version"] != VERSION:
            raise CannotServe(f"the server speaks version {VERSION} of the protocol, not {ask['version']}")
        try:
            lerobot = version("lerobot")
        except PackageNotFoundError:
            raise CannotServe(f"lerobot is not installed for {sys.executable}") from None
        self._model = model = Model(Path(ask["model"]), Path(ask["backbone"]), ask["device"])
        return {
            "answer": "ready",
            "version": VERSION,
            "lerobot": lerobot,
            "device": model.device,
            "action_size": model.action_size,
            "parameters": model.parameters,
        }

    def _reset(self, message: Message) -> dict[str, Any]:
        self._loaded.reset(message.fields["seed"])
        return {"answer": "done"}

    def _act(self, message: Message) -> dict[str, Any]:
        ask = message.fields
        values = self._loaded.act(ask["sentence"], ask["state"], ask.get("image"), message.data)
        return {"answer": "action", "values": values, "wants_image": self._loaded.wants_image}

    @property
    def _loaded(self) -> Model:
        if self._model is None:
            raise CannotServe("no model is loaded")
        return self._model


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


def _listen(stream: BinaryIO, messages: queue.Queue[Message]) -> None:
    """In a thread of its own, so that the process ends at once when nobody is left to answer, amid a prediction too."""
    try:
        while message := read_message(stream.read):
            messages.put(message)
    except BadMessage as error:
        print(f"vla_server: {error}", file=sys.stderr, flush=True)
    os._exit(0)


def main() -> None:
    sys.path.pop(0)  # our folder, lest a file in it pass for a package of the same name
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # LeRobot prints; only answers may go to the output
    messages: queue.Queue[Message] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, messages), daemon=True).start()
    server = Server()
    while True:
        output.write(encode(Message(server.answer(messages.get()))))
        output.flush()


if __name__ == "__main__":
    main()
