"""The rows of the table, and what all work in a folder has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bilevel.experiments.methods import END_TO_END, METHODS
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:  # it needs torch, which not all work does
    from bilevel.learning.bilevel import LearningConfig

PAPER, OURS = "paper", "best"  # training presets
BISON = "bison"


@dataclass(frozen=True)
class Network:
    """What is learned on a task: for which method, by which preset, from which seed."""

    task: str
    learner: str
    recipe: str
    seed: int

    @property
    def policy(self) -> str:
        """Its folder, within that of the experiment."""
        return f"policies/{self.task}/{self.learner}-{self.recipe}-{self.seed}"

    @property
    def cost(self) -> str:
        """The file with what training it took."""
        return f"costs/{self.task}/{self.learner}-{self.recipe}-{self.seed}.json"


@dataclass(frozen=True)
class Variant:
    """A row of the table: a method, with the preset that it is learned by, if it is."""

    name: str
    method: str
    recipe: str | None = None

    @property
    def title(self) -> str:
        recipes = {PAPER: ", paper's setting", OURS: ", our recipe"} if self.method == BISON else {OURS: ", our recipe"}
        return METHODS[self.method].title + recipes.get(self.recipe or "", "")

    def network(self, task: str, seed: int) -> Network | None:
        """Return what it runs on, if that is learned: methods that plan run on BISON's network."""
        if self.recipe is None:
            return None
        learner = self.method if METHODS[self.method].training == END_TO_END else BISON
        return Network(task, learner, self.recipe, seed)


def _variants() -> list[Variant]:
    rows = [Variant("bison-paper", BISON, PAPER), Variant("bison", BISON, OURS)]
    for name, method in METHODS.items():
        if name != BISON and not method.is_symbolic:
            rows.append(Variant(name, name, PAPER if method.training else None))
            if method.training == END_TO_END:
                rows.append(Variant(f"{name}-practised", name, OURS))
    return rows


VARIANTS: Mapping[str, Variant] = {variant.name: variant for variant in _variants()}

# What is measured unless somebody asks for something else: all that needs neither a download nor a GPU to be run.
USUAL = tuple(name for name, row in VARIANTS.items() if not (METHODS[row.method].model or name.endswith("-practised")))


def find_variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise BadInput(f"unknown method '{name}'; what can be reproduced: {', '.join(VARIANTS)}")
    return VARIANTS[name]


@dataclass(frozen=True)
class Experiment:
    """What all work in a folder has in common, so that its results go together."""

    demonstrations: int = 200
    shown: int = 3  # objects in each of them
    epochs: int = 200  # of cloning, in the paper's setting
    end_to_end_epochs: int = 200  # the same for networks that do all
    practice: int = 60  # episodes in each round of DAgger, in our preset
    planning_seconds: float = 100.0  # for each plan
    lama_seconds: float = 50.0  # for a large problem: little is lost when it is killed
    quick: bool = False  # a smaller version, to be labelled as such

    def config(self, learner: str, recipe: str) -> LearningConfig:
        """Return how a network is learned."""
        from bilevel.learning.bilevel import RECIPES

        usual = RECIPES[recipe]
        if recipe != PAPER:
            return replace(usual, dagger=replace(usual.dagger, episodes=self.practice))
        epochs = self.epochs if learner == BISON else self.end_to_end_epochs
        return replace(usual, training=replace(usual.training, epochs=epochs))


QUICK = Experiment(demonstrations=50, epochs=20, end_to_end_epochs=6, practice=20, lama_seconds=10.0, quick=True)
Entrant = Variant
ENTRANTS = VARIANTS
