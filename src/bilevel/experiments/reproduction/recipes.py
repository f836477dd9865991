"""Recipes: how what a row of the table runs on is learned."""

from __future__ import annotations

from dataclasses import dataclass, replace

PAPER, OURS = "paper", "best"  # training presets


@dataclass(frozen=True)
class Recipe:
    """How a network is learned, whatever its method; its name is part of the names of files."""

    name: str
    preset: str
    demonstrations: int | None = None  # the first so many of the data set; `None` for all of the experiment's
    shown: int | None = None  # objects in each of them; `None` for as many as in the experiment

    def with_demonstrations(self, number: int) -> Recipe:
        """Return the same recipe for fewer demonstrations."""
        return replace(self, name=f"{self.name}-{number}", demonstrations=number)

    def with_shown(self, objects: int) -> Recipe:
        """Return the same recipe for demonstrations with so many objects."""
        return replace(self, name=f"{self.name}-shown{objects}", shown=objects)


PAPERS_RECIPE = Recipe(PAPER, PAPER)
OUR_RECIPE = Recipe(OURS, OURS)
