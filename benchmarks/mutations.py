"""Ways to damage a file: bytes, words and, in JSON, values."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

NOISE = (
    *("(", ")", ") )", "(((", "-", "?x", "=", ";", "5", "\0", "é", "\r", "\r\n", "- object", "(either a b)"),
    *(
        ":action",
        ":event",
        ":init",
        ":goal",
        ":objects",
        "exists",
        "oneof",
        "new",
        "not",
        "and",
        "when",
        "(= (f) 1)",
        "(and)",
    ),
)

DEEP = "\ue000"  # stands for something deep, which json could not write
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        2,
        10**30,
        2**63,
        -1.5,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "x",
        "1",
        "\ud800",
        "é\n",
        "\0",
    ),
    *("x" * 10_000, [], {}, [[]], [1, "x"], {"x": 1}, {"": []}, DEEP, "NaN", "../../etc", "/dev/null"),
)


def flip_byte(data: bytes, rng: Random, other: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def change_case_bit(data: bytes, rng: Random, other: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << rng.randrange(7))]) + data[place + 1 :]


def delete_stretch(data: bytes, rng: Random, other: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 20) :]


def duplicate_stretch(data: bytes, rng: Random, other: bytes) -> bytes:
    start = rng.randrange(len(data))
    end = start + rng.randint(1, 60)
    return data[:end] + data[start:end] + data[end:]


def truncate(data: bytes, rng: Random, other: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def splice(data: bytes, rng: Random, other: bytes) -> bytes:
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


def add_noise(data: bytes, rng: Random, other: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + f" {rng.choice(NOISE)} ".encode() + data[place:]


def change_tokens(data: bytes, rng: Random, other: bytes, change: Callable[[list[bytes], int, int], None]) -> bytes:
    tokens = re.split(rb"([()\s]+)", data)
    change(tokens, rng.randrange(len(tokens)), rng.randrange(len(tokens)))
    return b"".join(tokens)


def swap_tokens(data: bytes, rng: Random, other: bytes) -> bytes:
    def swap(tokens: list[bytes], i: int, j: int) -> None:
        tokens[i], tokens[j] = tokens[j], tokens[i]

    return change_tokens(data, rng, other, swap)


def copy_token(data: bytes, rng: Random, other: bytes) -> bytes:
    def copy(tokens: list[bytes], i: int, j: int) -> None:
        tokens[i] = tokens[j]

    return change_tokens(data, rng, other, copy)


MUTATIONS = (
    flip_byte,
    change_case_bit,
    delete_stretch,
    duplicate_stretch,
    truncate,
    splice,
    add_noise,
    swap_tokens,
    copy_token,
)


def mutated(data: bytes, rng: Random, other: bytes) -> bytes:
    """Return a file with a few changes, or none; `other` is one whose end it may get."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        if data and other:
            data = rng.choice(MUTATIONS)(data, rng, other)
    return data


def mutated_json(data: bytes, rng: Random) -> bytes:
    """Return JSON, or lines of it, with a value replaced, removed, doubled or renamed; as it is where it is none."""
    lines = data.split(b"\n") if data.count(b"\n{") else [data]
    place = rng.randrange(len(lines))
    try:
        value = json.loads(lines[place])
    except ValueError:
        return data
    for _ in range(rng.choice((1, 1, 2))):
        spots = list(_spots(value))
        if spots:
            _change(*rng.choice(spots), rng)
    text = json.dumps(value).replace(json.dumps(DEEP), "[" * (depth := rng.choice((150, 900, 5000))) + "]" * depth)
    lines[place] = text.encode()
    return b"\n".join(lines)


def _spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all places in a value, as a list or an object and the index or the key there."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield value, key
        yield from _spots(member)


def _change(holder: Any, key: Any, rng: Random) -> None:
    if key not in holder if isinstance(holder, dict) else key >= len(holder):
        return  # a first change has removed it
    kind = rng.randrange(10)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[rng.choice(("x", "", "task", str(key) * 2))] = holder.pop(key)
    elif kind == 2 and isinstance(holder, list):
        holder.append(deepcopy(holder[key]))
    elif kind == 3 and isinstance(holder[key], int | float):
        holder[key] = rng.choice((holder[key] + 1, -holder[key], str(holder[key]), holder[key] * 10**12))
    else:
        holder[key] = deepcopy(rng.choice(VALUES))  # lest a second change is made to all that have it


def mutated_hdf5(data: bytes, rng: Random) -> bytes:
    """Return an HDF5 file that is cut off, or whole but with something missing, renamed or of another kind.

    Its other bytes are left alone: on some of them HDF5 itself loops or crashes, whoever uses it.
    """
    import h5py

    if rng.random() < 0.2:
        return truncate(data, rng, data)
    buffer = io.BytesIO(data)
    with h5py.File(buffer, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = rng.choice(names)
        kind = rng.randrange(4)
        if kind == 0:
            del file[name]
        elif kind == 1:
            file.move(name, name + rng.choice(("x", "_1")))
        elif kind == 2 and file[name].attrs:
            file[name].attrs[rng.choice(list(file[name].attrs))] = rng.choice(("", "[" * 5000, "{", "3", 7, [1.0, 2.0]))
        else:
            del file[name]
            file[name] = rng.choice((3.5, "text", [1, 2], [[float("nan")] * 3] * 5, [b"x"], [[[1e308]]], []))
    return buffer.getvalue()
