"""How a policy and the process that runs its vision-language-action model talk: messages over pipes.

A message is a JSON object, and bytes that may come with it, such as a picture's. On the wire: the lengths of both as
two big-endian numbers of four bytes, the object in UTF-8, the bytes. Nothing is unpickled or run.

One question, one answer:

    {"ask": "load", "version": 1, "model": folder, "backbone": folder, "device": "auto"}
        -> {"answer": "ready", "version": 1, "lerobot": "0.4.4", "device": "cpu", "action_size": 4, "parameters": 9}
    {"ask": "reset", "seed": 7}
        -> {"answer": "done"}
    {"ask": "act", "sentence": "…", "state": [x, y, z, opening], "image": [height, width]} and height × width × 3 bytes
        -> {"answer": "action", "values": [four numbers], "wants_image": false}
    anything
        -> {"answer": "error", "message": "one line"}

The model predicts several actions from one picture. While some are left, the answer says that no picture is wanted, and
the next question may do without "image".

Both sides import this file, in different versions of Python, so it needs the standard library alone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

VERSION = 1
MOST_JSON = 1 << 20  # bytes; more is not one of our messages
MOST_BYTES = 1 << 28
_LENGTHS = struct.Struct(">II")


class BadMessage(Exception):
    """What came is not a message."""


class Message(NamedTuple):
    fields: Mapping[str, Any]
    data: bytes = b""


def encode(message: Message) -> bytes:
    """The message as it goes over the wire."""
    text = json.dumps(dict(message.fields)).encode()
    return _LENGTHS.pack(len(text), len(message.data)) + text + message.data


def read_message(read: Callable[[int], bytes]) -> Message | None:
    """The next message, or `None` at the end; `read(n)` gives n bytes, or fewer at the end."""
    lengths = read(_LENGTHS.size)
    if not lengths:
        return None
    if len(lengths) < _LENGTHS.size:
        raise BadMessage("the stream ends within a message")
    text_length, data_length = _LENGTHS.unpack(lengths)
    if text_length > MOST_JSON or data_length > MOST_BYTES:
        raise BadMessage("something else than a message was written to the stream")
    text, data = read(text_length), read(data_length)
    if len(text) < text_length or len(data) < data_length:
        raise BadMessage("the stream ends within a message")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadMessage("a message is a JSON object")
    return Message(fields, data)
