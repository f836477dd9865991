"""Where to put the nodes of a directed graph so that its links run downwards: in layers, with few crossings.

Links that close a cycle run upwards. What has a text on it gets room for it: every link passes a layer for labels
between two layers of nodes, and a stand-in keeps its place in each layer that it passes.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

GAP = 22.0  # between neighbours in a layer
ROOM = 17.0  # between layers
ASIDE = 14.0  # of the middle of a node: where links upwards begin and end, as the others meet there
SWEEPS = 12  # to order layers
PLACINGS = 24  # to find places in them; the last few of these straighten
STRAIGHTNESS = 4.0  # how much more a long link minds being bent than a node being off its neighbours' middle


class Size(NamedTuple):
    width: float = 0.0
    height: float = 0.0


class Point(NamedTuple):
    x: float
    y: float


class Link(NamedTuple):
    """From one node to another, by their numbers, and the size of its label."""

    source: int
    target: int
    label: Size = Size()


class Route(NamedTuple):
    """The points that a link goes through from its source to its target, and the centre of its label."""

    points: tuple[Point, ...]
    label: Point
    upwards: bool


@dataclass(frozen=True)
class Layout:
    """The centres of the nodes and the routes of the links, in the order of these; nothing is left of or above 0."""

    centres: tuple[Point, ...]
    routes: tuple[Route, ...]
    size: Size


@dataclass(eq=False)
class _Item:
    """A node or a link's stand-in in one layer; nodes stand in even layers, labels in odd ones."""

    layer: int
    size: Size
    weight: float
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    x: float = 0.0


def lay_out(sizes: Sequence[Size], links: Sequence[Link]) -> Layout:
    """A layout of the nodes of these sizes; node 0 is on top, and every other can be reached from it.

    No link leads from a node to itself.
    """
    visits, upwards = _depth_first(len(sizes), links)
    ends = [(link.target, link.source) if link in upwards else (link.source, link.target) for link in links]
    depths = _depths(visits, ends)
    items = [_Item(2 * depth, size, 1.0) for depth, size in zip(depths, sizes, strict=True)]
    chains = [_add_chain(items, *end, link.label, link in upwards) for link, end in zip(links, ends, strict=True)]
    layers = _ordered(items, visits)
    _place(items, layers)
    sheet = _Sheet(items, layers)
    return Layout(
        tuple(sheet.centre(item) for item in items[: len(sizes)]),
        tuple(
            sheet.route([items[number] for number in chain], link in upwards)
            for link, chain in zip(links, chains, strict=True)
        ),
        sheet.size,
    )


class _Sheet:
    """Items that have their places within layers, and the layers one below the other."""

    def __init__(self, items: Sequence[_Item], layers: Sequence[Sequence[int]]) -> None:
        self._heights = [max(items[number].size.height for number in layer) for layer in layers]
        self._tops = list(accumulate((height + ROOM for height in self._heights[:-1]), initial=0.0))
        self._left = min(item.x - item.size.width / 2 for item in items)
        right = max(item.x + item.size.width / 2 for item in items)
        self.size = Size(right - self._left, self._tops[-1] + self._heights[-1])

    def centre(self, item: _Item) -> Point:
        return Point(item.x - self._left, self._tops[item.layer] + self._heights[item.layer] / 2)

    def route(self, chain: Sequence[_Item], climbs: bool) -> Route:
        """Of a link whose items these are, from top to bottom."""
        points = [point for item in chain for point in self._through(item, item in (chain[0], chain[-1]))][1:-1]
        if climbs:
            points[0], points[-1] = (Point(x + ASIDE, y) for x, y in (points[0], points[-1]))
            return Route(tuple(points[::-1]), self.centre(chain[-2]), climbs)
        return Route(tuple(points), self.centre(chain[1]), climbs)

    def _through(self, item: _Item, is_node: bool) -> Iterator[Point]:
        """From edge to edge of a node; for a stand-in, straight down through the layer, if there is anything in it."""
        height = item.size.height if is_node else self._heights[item.layer]
        if height:
            x, y = self.centre(item)
            yield Point(x, y - height / 2)
            yield Point(x, y + height / 2)


def _depth_first(count: int, links: Sequence[Link]) -> tuple[list[int], set[Link]]:
    """The nodes such that links lead from earlier to later ones, but for those that lead back, which are given too."""
    outgoing: list[list[Link]] = [[] for _ in range(count)]
    for link in links:
        outgoing[link.source].append(link)
    done: dict[int, None] = {}
    back: set[Link] = set()
    stack, path = [(0, iter(outgoing[0]))], {0}
    while stack:
        node, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            stack.pop()
            path.remove(node)
            done[node] = None
        elif following.target in path:
            back.add(following)
        elif following.target not in done:
            path.add(following.target)
            stack.append((following.target, iter(outgoing[following.target])))
    return list(done)[::-1], back


def _depths(visits: Sequence[int], ends: Sequence[tuple[int, int]]) -> list[int]:
    """How many links the longest way down to each node has."""
    below: list[list[int]] = [[] for _ in visits]
    for upper, lower in ends:
        below[upper].append(lower)
    depths = [0] * len(visits)
    for node in visits:
        for lower in below[node]:
            depths[lower] = max(depths[lower], depths[node] + 1)
    return depths


def _add_chain(items: list[_Item], upper: int, lower: int, label: Size, climbs: bool) -> list[int]:
    """Stand-ins in all layers between two nodes; the one next to the link's source carries the label."""
    layers = range(items[upper].layer + 1, items[lower].layer)
    labelled = layers[-1] if climbs else layers[0]
    chain = [upper]
    for layer in layers:
        chain.append(len(items))
        items.append(_Item(layer, label if layer == labelled else Size(), STRAIGHTNESS))
    chain.append(lower)
    for one, other in pairwise(chain):
        items[one].below.append(other)
        items[other].above.append(one)
    return chain


# --- Order within layers


def _ordered(items: Sequence[_Item], visits: Sequence[int]) -> list[list[int]]:
    """The layers, ordered by sweeps down and up in which each item goes to the middle of its neighbours."""
    layers: list[list[int]] = [[] for _ in range(1 + max(item.layer for item in items))]
    for number in [*visits, *range(len(visits), len(items))]:
        layers[items[number].layer].append(number)
    best, fewest = [list(layer) for layer in layers], _crossings(items, layers)
    for sweep in range(SWEEPS):
        _sweep(items, layers, downwards=sweep % 2 == 0)
        crossings = _crossings(items, layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _sweep(items: Sequence[_Item], layers: list[list[int]], downwards: bool) -> None:
    pairs = pairwise(layers if downwards else layers[::-1])
    for fixed, moving in pairs:
        places = {number: place for place, number in enumerate(fixed)}

        def middle(number: int, places: dict[int, int] = places) -> float:
            neighbours = items[number].above if downwards else items[number].below
            return sum(places[other] for other in neighbours) / len(neighbours) if neighbours else -1.0

        moving.sort(key=middle)


def _crossings(items: Sequence[_Item], layers: Sequence[Sequence[int]]) -> int:
    total = 0
    for upper, lower in pairwise(layers):
        places = {number: place for place, number in enumerate(lower)}
        seen: list[int] = []
        for number in upper:
            ends = sorted(places[other] for other in items[number].below)
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


# --- Place within layers


def _place(items: Sequence[_Item], layers: Sequence[Sequence[int]]) -> None:
    """Each item as near to the middle of its neighbours as the order and the widths allow."""
    for layer in layers:
        _spread(items, layer, [0.0] * len(layer))
    for sweep in range(PLACINGS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = []
            for number in layer:
                item = items[number]
                one_side = item.above if sweep % 2 == 0 else item.below
                near = one_side if sweep < PLACINGS - 4 else [*item.above, *item.below]
                wanted.append(sum(items[other].x for other in near) / len(near) if near else item.x)
            _spread(items, layer, wanted)


def _spread(items: Sequence[_Item], layer: Sequence[int], wanted: Sequence[float]) -> None:
    """The places nearest to those wanted, by weighted squares, in this order and with room between neighbours.

    Less the room that is needed to the left of each, places must not fall: neighbours that would are pooled.
    """
    members = [items[number] for number in layer]
    gaps = [(one.size.width + other.size.width) / 2 + GAP for one, other in pairwise(members)]
    needed = list(accumulate(gaps, initial=0.0))
    pools: list[tuple[float, float, int]] = []  # the mean, the weight and the number of the items pooled
    for item, want, need in zip(members, wanted, needed, strict=False):
        pool = (want - need, item.weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, weight, count = pools.pop()
            total = weight + pool[1]
            pool = ((mean * weight + pool[0] * pool[1]) / total, total, count + pool[2])
        pools.append(pool)
    means = [mean for mean, _, count in pools for _ in range(count)]
    for item, mean, need in zip(members, means, needed, strict=False):
        item.x = mean + need
