"""Showing the same samples in other forms: as their images under the spec's symmetries, and with noise on what is seen.

A network looks up its samples in a table; here, that table is written anew before each pass over the samples. What it
then holds depends on the seed, the epoch and the pass alone, so that a run can be taken up again bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilevel.lowlevel.table_columns import CONTROL, COSINE, TableColumn, TableColumns
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.spec import Mirror, Symmetry

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

    def __init__(self, columns: TableColumns, table: Tensor, seed: int, symmetries: bool, jitter: float) -> None:
        self._table, self._original, self._seed, self._jitter = table, table.clone(), seed, jitter
        self._done: tuple[int, int] | None = None
        self._noisy = [number for number, column in enumerate(columns.columns) if column and column.part != CONTROL]
        self._seen = self._original[:, self._noisy] != 0  # what an object does not have stays 0
        self._groups = []  # of samples that have the same images
        for name, place in columns.schemas.items() if symmetries else ():
            holding = [symmetry for symmetry in columns.symmetries if name not in symmetry.except_for]
            rows = np.flatnonzero(self._original[:, place].cpu().numpy())
            self._groups.append((rows, images(holding, columns.columns)))

    def __call__(self, epoch: int, number: int) -> None:
        """Write the table for a pass of an epoch, unless it is there."""
        if self._done == (epoch, number):
            return
        self._done = epoch, number
        rng, device = np.random.default_rng([self._seed, epoch, number, _APART]), self._table.device
        self._table.copy_(self._original)
        for rows, choices in self._groups:
            drawn = rng.integers(len(choices), size=len(rows))
            for each, one in enumerate(choices[1:], 1):
                which = torch.from_numpy(rows[drawn == each]).to(device)
                sources, factors = torch.from_numpy(one.sources).to(device), torch.from_numpy(one.factors).to(device)
                self._table[which] = self._original[which][:, sources] * factors
        if self._jitter:
            noise = rng.standard_normal((len(self._table), len(self._noisy)), np.float32) * np.float32(self._jitter)
            self._table[:, self._noisy] += torch.from_numpy(noise).to(device) * self._seen


def augmentation(
    columns: TableColumns | None, table: Sequence[Tensor], seed: int, symmetries: bool, jitter: float
) -> Callable[[int, int], None] | None:
    """Return what writes a table anew for a pass of an epoch; `None` where it stays as it is."""
    if columns is None or not (jitter or (symmetries and columns.symmetries)):
        return None
    return Augmentation(columns, table[0], seed, symmetries, jitter)
