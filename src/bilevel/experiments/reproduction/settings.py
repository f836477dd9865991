"""What is to be measured, and how: the rows of the table, and what all work in a folder has in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bilevel.experiments.methods import END_TO_END, METHODS
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import TASKS

if TYPE_CHECKING:  # it needs torch, which not all work does
    from bilevel.learning.bilevel import LearningConfig

PAPER, OURS = "paper", "best"  # recipes
BISON = "bison"


@dataclass(frozen=True)
class Entrant:
    """A row of the table: a method, with the recipe that it is learned by, if it is."""

    name: str
    method: str
    recipe: str | None = None

    @property
    def title(self) -> str:
        recipes = {PAPER: ", paper's setting", OURS: ", our recipe"} if self.method == BISON else {OURS: ", our recipe"}
        return METHODS[self.method].title + recipes.get(self.recipe or "", "")

    @property
    def learner(self) -> str | None:
        """The method that its network is learned for: those that plan run on BISON's."""
        training = METHODS[self.method].training
        return self.method if training == END_TO_END else BISON if training else None


def _entrants() -> list[Entrant]:
    rows = [Entrant("bison-paper", BISON, PAPER), Entrant("bison", BISON, OURS)]
    for name, method in METHODS.items():
        if name != BISON and not method.is_symbolic:
            rows.append(Entrant(name, name, PAPER if method.training else None))
            if method.training == END_TO_END:
                rows.append(Entrant(f"{name}-practised", name, OURS))
    return rows


ENTRANTS: Mapping[str, Entrant] = {entrant.name: entrant for entrant in _entrants()}

# What is measured unless somebody asks for something else: all that needs neither a download nor a GPU to be run.
USUAL = tuple(name for name, row in ENTRANTS.items() if not (METHODS[row.method].model or name.endswith("-practised")))


def find_entrant(name: str) -> Entrant:
    if name not in ENTRANTS:
        raise BadInput(f"unknown method '{name}'; what can be reproduced: {', '.join(ENTRANTS)}")
    return ENTRANTS[name]


@dataclass(frozen=True)
class Experiment:
    """What all work in a folder has in common, so that its results go together."""

    demonstrations: int = 200
    shown: int = 3  # objects in each of them
    epochs: int = 200  # of cloning, in the paper's setting
    end_to_end_epochs: int = 200  # the same for networks that do all
    practice: int = 60  # episodes in each round of practice, in our recipe
    planning_seconds: float = 100.0  # for each plan
    lama_seconds: float = 50.0  # for a large problem: little is lost when it is killed
    quick: bool = False  # a smaller version, to be labelled as such

    def config(self, learner: str, recipe: str) -> LearningConfig:
        from bilevel.learning.bilevel import RECIPES

        usual = RECIPES[recipe]
        if recipe != PAPER:
            return replace(usual, dagger=replace(usual.dagger, episodes=self.practice))
        epochs = self.epochs if learner == BISON else self.end_to_end_epochs
        return replace(usual, training=replace(usual.training, epochs=epochs))


QUICK = Experiment(demonstrations=50, epochs=20, end_to_end_epochs=6, practice=20, lama_seconds=10.0, quick=True)


@dataclass(frozen=True)
class Wanted:
    """What is asked for; all of it must fit the experiment of the folder that it goes into."""

    tasks: Sequence[str] = tuple(TASKS)
    entrants: Sequence[Entrant] = tuple(ENTRANTS[name] for name in USUAL)
    objects: Sequence[int] = tuple(range(1, 11))
    episodes: int = 10  # for each number of objects
    seeds: Sequence[int] = (0, 1, 2)  # a network each, and worlds of its own
    table: bool = True
    memory: bool = True  # how much each row needs on each task
    scaling: bool = True  # how long rules and LAMA take for large problems
    films: bool = True  # an episode of each task to look at
