"""Recipes: how what a row of the table runs on is learned, and in which world."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bilevel.json_files import Plain

PAPER, OURS = "paper", "best"  # training presets

Settings = tuple[tuple[str, Plain], ...]


@dataclass(frozen=True)
class World:
    """The environment of a task, with arguments that are not its usual ones; its name is part of the names of files."""

    name: str = ""
    arguments: Settings = ()


USUAL_WORLD = World()
FIXED_TRAYS = World("fixed-trays", (("tray_position", "fixed"),))
BELTS = World("belts", (("tray_position", "belt"),))  # seen as fixed ones are, and there is always room
DRAWS_OF_MISSING = World("missing-draws", (("draw", "empty"),))


@dataclass(frozen=True)
class Recipe:
    """How a network is learned, whatever its method; its name is part of the names of files."""

    name: str
    preset: str
    settings: Settings = ()  # of learning, where they are not the preset's; "dagger.rounds" is that of a part
    demonstrations: int | None = None  # the first so many of the data set; `None` for all of the experiment's
    shown: int | None = None  # objects in each of them; `None` for as many as in the experiment
    world: World = USUAL_WORLD
    network: Recipe | None = None  # whose network it takes, so that the rules alone are learned

    def with_demonstrations(self, number: int) -> Recipe:
        """Return the same recipe for fewer demonstrations."""
        network = self.network and self.network.with_demonstrations(number)
        return replace(self, name=f"{self.name}-{number}", demonstrations=number, network=network)

    def with_shown(self, objects: int) -> Recipe:
        """Return the same recipe for demonstrations with so many objects."""
        network = self.network and self.network.with_shown(objects)
        return replace(self, name=f"{self.name}-shown{objects}", shown=objects, network=network)

    def in_world(self, world: World) -> Recipe:
        """Return the same recipe for demonstrations, and DAgger, in another world."""
        network = self.network and self.network.in_world(world)
        return replace(self, name=f"{self.name}-{world.name}", world=world, network=network)


PAPERS_RECIPE = Recipe(PAPER, PAPER)
OUR_RECIPE = Recipe(OURS, OURS)
# The paper's network, and its algorithm for rules as it is printed.
AS_PRINTED = Recipe("printed", PAPER, (("algorithm", "printed"),), network=PAPERS_RECIPE)
# The paper's, but for the actions that were recorded, which the paper does not have.
RECORDED = Recipe("recorded", PAPER, (("recorded_actions", True),))
# Ours, but for DAgger.
WITHOUT_DAGGER = Recipe("without-dagger", OURS, (("dagger.rounds", 0),))
