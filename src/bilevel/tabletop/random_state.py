"""The state of a random generator as a plain array, so that it can be saved with everything else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORD = 2**64


def random_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """(6,): two numbers of 128 bits, high word first, and what is left of the last draw of 32 bits."""
    state = rng.bit_generator.state
    wide = state["state"]["state"], state["state"]["inc"]
    words = [word for number in wide for word in divmod(number, _WORD)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def set_random_state(rng: np.random.Generator, saved: NDArray[np.uint64]) -> None:
    high, low, inc_high, inc_low, has_uint32, uinteger = (int(word) for word in saved)
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high * _WORD + low, "inc": inc_high * _WORD + inc_low},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
