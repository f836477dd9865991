"""The shape of an end-to-end network: its layers, by name, and how many numbers go into each and come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bilevel.baselines.graph_encoding import GraphEncoding
from bilevel.lowlevel.architecture import CONTROL, Layers, Weights, size_of

if TYPE_CHECKING:  # it needs torch, which policies do without
    from bilevel.baselines.graph_network import GraphNetwork


@dataclass(frozen=True)
class GraphArchitecture:
    """A global node, objects and facts exchange messages for some rounds.

    In each round, an object takes for each position j the maximum over what the facts with it as argument j tell it; a
    fact takes what each of its arguments tells it; both add what they were, what the global node tells them, and a
    bias. Then the global node adds the maximum over what objects tell it, that over facts, and its own. A maximum over
    nothing is zero. Controls are read from the sum of the global node and the maxima over objects and over facts, as
    BISON's are: the paper says of all nodes, but a network that has only ever seen graphs of one size is lost in others
    if each node adds to the sum.
    """

    encoding: GraphEncoding
    hidden: int = 64
    rounds: int = 2

    @property
    def layers(self) -> Layers:
        encoding, hidden = self.encoding, self.hidden
        layers = {"global.0": (encoding.global_size, hidden), "object.0": (encoding.object_size, hidden)}
        if encoding.relations:
            layers["fact.0"] = encoding.fact_size, hidden
        for number in range(1, self.rounds + 1):
            layers |= {f"{name}.{number}": shape for name, shape in self._round.items()}
        return {**layers, "readout.0": (hidden, hidden), "readout.1": (hidden, CONTROL)}

    @property
    def _round(self) -> dict[str, tuple[int, int]]:
        """The layers of one round; what goes to several nodes, or comes from several, is side by side."""
        hidden, arity = self.hidden, self.encoding.arity
        alone = {
            "object": (hidden, hidden),
            "global-to-object": (hidden, hidden),
            "global": (hidden, hidden),
            "object-to-global": (hidden, hidden),
        }
        if not self.encoding.relations:
            return alone
        return alone | {
            "fact": ((1 + arity) * hidden, hidden),  # from itself and from each argument
            "fact-to-object": (hidden, arity * hidden),  # to each argument
            "global-to-fact": (hidden, hidden),
            "fact-to-global": (hidden, hidden),
        }

    @property
    def size(self) -> int:
        return size_of(self.layers)

    def networks(self, seeds: Sequence[int], initial: Sequence[Weights] = ()) -> GraphNetwork:
        from bilevel.baselines.graph_network import GraphNetwork

        return GraphNetwork(self, seeds, initial)
