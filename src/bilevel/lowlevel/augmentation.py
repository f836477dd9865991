"""Showing each sample as one of its images under the spec's symmetries.

A network looks up its samples in a table; here, that table is written anew before each pass over the samples, in place,
so that a step that was recorded on a GPU finds it. What it then holds depends on the seed, the epoch and the pass
alone, so that a run can be taken up again bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilevel.lowlevel.table_columns import CONTROL, COSINE, TableColumn, TableColumns
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.spec import Mirror, Symmetry

ROWS_AT_ONCE = 1 << 16  # of a table, so that its images take little memory
_APART = 3  # keeps these random numbers apart from those that order the samples


@dataclass(frozen=True)
class Image:
    """A symmetry as it acts on a row: column i becomes `factors[i]` times column `sources[i]`."""

    sources: NDArray[np.int64]
    factors: NDArray[np.float32]

    def after(self, first: Image) -> Image:
        """Return this one after another."""
        return Image(first.sources[self.sources], self.factors * first.factors[self.sources])

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Equal for equal images, but for rounding."""
        return tuple(self.sources.tolist()), tuple(np.sign(self.factors).tolist())


def image(symmetry: Symmetry, columns: Sequence[TableColumn | None]) -> Image:
    """Return how a symmetry acts on rows; `BadInput` where a swapped feature has nothing to be swapped with."""
    place = {replace(column, scale=1.0): index for index, column in enumerate(columns) if column}
    sources, factors = np.arange(len(columns)), np.ones(len(columns), np.float32)
    for index, column in enumerate(columns):
        if column is None:
            continue
        of = symmetry.controls if column.part == CONTROL else symmetry.features
        is_mirrored = column.name in (of if isinstance(symmetry, Mirror) else symmetry.angles)
        if is_mirrored or column.name not in of:
            factors[index] = -1.0 if is_mirrored and column.part != COSINE else 1.0
            continue
        other = of[1] if column.name == of[0] else of[0]
        source = place.get(replace(column, name=other, scale=1.0))
        if source is None:
            raise BadInput(f"the symmetry swaps '{column.name}' with '{other}', which is not told in the same way")
        found = columns[source]
        assert found is not None
        sources[index], factors[index] = source, column.scale / found.scale
    return Image(sources, factors)


def images(symmetries: Sequence[Symmetry], columns: Sequence[TableColumn | None]) -> list[Image]:
    """Return all images that the symmetries make together, the identity first."""
    generators = [image(symmetry, columns) for symmetry in symmetries]
    found = {one.key: one for one in [Image(np.arange(len(columns)), np.ones(len(columns), np.float32))]}
    waiting = list(found.values())
    while waiting:
        one = waiting.pop(0)
        for generator in generators:
            more = generator.after(one)
            if more.key not in found:
                found[more.key] = more
                waiting.append(more)
    return list(found.values())


class Augmentation:
    """Writes a table anew, in place, before each pass."""

    def __init__(self, columns: TableColumns, table: Tensor, seed: int) -> None:
        self._table, self._original, self._seed = table, table.clone(), seed
        self._done: tuple[int, int] | None = None
        found: list[Image] = []
        self._first = np.zeros(len(table), np.int64)  # for each sample, where its images begin among all
        self._count = np.ones(len(table), np.int64)  # and how many it has
        for name, place in columns.schemas.items():
            holding = [symmetry for symmetry in columns.symmetries if name not in symmetry.except_for]
            rows, ours = self._original[:, place].cpu().numpy() > 0, images(holding, columns.columns)
            self._first[rows], self._count[rows] = len(found), len(ours)
            found += ours
        if not columns.schemas:
            found = images(columns.symmetries, columns.columns)
            self._count[:] = len(found)
        self._sources = torch.from_numpy(np.stack([one.sources for one in found])).to(table.device)
        self._factors = torch.from_numpy(np.stack([one.factors for one in found])).to(table.device)

    def __call__(self, epoch: int, number: int) -> None:
        """Write the table for a pass of an epoch, unless it is there."""
        if self._done == (epoch, number):
            return
        self._done = epoch, number
        drawn = self._first + np.random.default_rng([self._seed, epoch, number, _APART]).integers(self._count)
        for rows in torch.split(torch.arange(len(drawn)), ROWS_AT_ONCE):
            which, here = torch.from_numpy(drawn[rows]).to(self._table.device), rows.to(self._table.device)
            self._table[here] = self._original[here].gather(1, self._sources[which]) * self._factors[which]


def augmentation(columns: TableColumns | None, table: Sequence[Tensor], seed: int) -> Augmentation | None:
    """Return what writes a table anew for a pass of an epoch; `None` where nothing is known to be symmetric."""
    if columns is None or not columns.symmetries:
        return None
    return Augmentation(columns, table[0], seed)
