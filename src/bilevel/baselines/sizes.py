"""How large networks are: end-to-end ones get as many parameters as BISON's, so that size is no advantage."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from bilevel.baselines import end_to_end
from bilevel.baselines.graph_encoding import GraphEncoding
from bilevel.lowlevel import numpy_network
from bilevel.lowlevel.encoding import Encoding
from bilevel.tasks.controls import Controls

WIDEST = 4  # times as wide as BISON's network, which has no layers for facts


def _parameters(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return how many numbers of these arrays are learned: all but scales, which are measured."""
    return sum(prod(shape) for name, shape in shapes.items() if not name.endswith("_scale"))


def matching_hidden(encoding: GraphEncoding, like: Encoding, controls: Controls, hidden: int, rounds: int) -> int:
    """Return the width at which an end-to-end network has about as many parameters as BISON's of width `hidden`.

    The nearest number is taken, be it a little more or a little less.
    """
    wanted = _parameters(numpy_network.weight_shapes(like, controls, hidden, rounds))

    def distance(width: int) -> int:
        return abs(_parameters(end_to_end.weight_shapes(encoding, controls, width, rounds)) - wanted)

    return min(range(1, WIDEST * hidden + 1), key=distance)
