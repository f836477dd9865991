"""How many facts share an argument: the little that join planning needs to know of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

SAMPLE = 2000


class Relation(NamedTuple):
    """Facts of the state, goals not yet achieved, objects of a type, or the keys of a view."""

    kind: str
    name: str


Rows = Sequence[tuple[str, ...]] | Sequence[str]  # of one column as plain strings


class Statistics:
    """Estimates from samples of the rows of each relation."""

    def __init__(self, rows: Mapping[Relation, Rows]) -> None:
        self._sizes = {relation: len(found) for relation, found in rows.items()}
        self._samples = {relation: found[:: max(1, len(found) // SAMPLE)] for relation, found in rows.items()}
        self._degrees: dict[tuple[Relation, tuple[int, ...]], float] = {}

    def degree(self, relation: Relation, bound: tuple[int, ...]) -> float:
        """Return the expected number of rows that agree with a random row in the bound positions."""
        if (relation, bound) not in self._degrees:
            self._degrees[relation, bound] = self._estimate(relation, bound)
        return self._degrees[relation, bound]

    def _estimate(self, relation: Relation, bound: tuple[int, ...]) -> float:
        size, sample = self._sizes.get(relation, 0), self._samples.get(relation, ())
        if not bound:
            return float(size)
        if len(sample) < 2 or isinstance(sample[0], str):
            return 1.0
        counts = Counter(tuple(row[i] for i in bound) for row in sample)
        agreeing_pairs = sum(n * (n - 1) for n in counts.values())
        return 1.0 + (size - 1) * agreeing_pairs / (len(sample) * (len(sample) - 1))

    def magnitudes(self) -> frozenset[tuple[Relation, int, tuple[int, ...]]]:
        """Return sizes, and degrees by each argument, in powers of eight: data that agree in these are joined alike."""
        return frozenset(
            (
                relation,
                _magnitude(size),
                tuple(_magnitude(self.degree(relation, (i,))) for i in self._columns(relation)),
            )
            for relation, size in self._sizes.items()
        )

    def _columns(self, relation: Relation) -> range:
        sample = self._samples[relation]
        return range(len(sample[0]) if sample and not isinstance(sample[0], str) else 0)


def _magnitude(number: float) -> int:
    return int(number).bit_length() // 3
