"""The rows of the table, and what all work in a folder has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from bilevel.experiments.methods import METHODS, is_published, is_symbolic
from bilevel.methods.methods import END_TO_END
from bilevel.policies.policy_folder import BISON
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:  # it needs torch, which not all work does
    from bilevel.learning.config import LearningConfig

PAPER, OURS = "paper", "best"  # training presets


@dataclass(frozen=True)
class Network:
    """What is learned on a task: for which method, by which preset, from which seed."""

    task: str
    learner: str
    preset: str
    seed: int

    @property
    def policy(self) -> str:
        """Its folder, within that of the experiment."""
        return f"policies/{self.task}/{self.learner}-{self.preset}-{self.seed}"

    @property
    def cost(self) -> str:
        """The file with what training it took."""
        return f"costs/{self.task}/{self.learner}-{self.preset}-{self.seed}.json"


@dataclass(frozen=True)
class Variant:
    """A row of the table: a method, with the preset that it is learned by, if it is."""

    name: str
    method: str
    preset: str | None = None

    @property
    def title(self) -> str:
        endings = {OURS: ", our preset"} | ({PAPER: ", paper's setting"} if self.method == BISON else {})
        return METHODS[self.method].title + endings.get(self.preset or "", "")

    def network(self, task: str, seed: int) -> Network | None:
        """Return what it runs on, if that is learned: methods that plan run on BISON's network."""
        if self.preset is None:
            return None
        learner = self.method if METHODS[self.method].training == END_TO_END else BISON
        return Network(task, learner, self.preset, seed)


def _variants() -> list[Variant]:
    rows = [Variant("bison-paper", BISON, PAPER), Variant("bison", BISON, OURS)]
    for name, method in METHODS.items():
        if name != BISON and not is_symbolic(method):
            rows.append(Variant(name, name, PAPER if method.training else None))
            if method.training == END_TO_END:
                rows.append(Variant(f"{name}-practised", name, OURS))
    return rows


VARIANTS: Mapping[str, Variant] = {variant.name: variant for variant in _variants()}

# What is measured unless somebody asks for something else: all that needs neither a download nor a GPU to be run.
USUAL = tuple(
    name
    for name, variant in VARIANTS.items()
    if not is_published(METHODS[variant.method]) and not name.endswith("-practised")
)


def find_variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise BadInput(f"unknown method '{name}'; what can be reproduced: {', '.join(VARIANTS)}")
    return VARIANTS[name]


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"dagger_episodes": "practice"}):
    """What all work in a folder has in common, so that its results go together."""

    demonstrations: int = 200
    shown: int = 3  # objects in each of them
    epochs: int = 200  # of cloning, in the paper's setting
    end_to_end_epochs: int = 200  # the same for networks that do all
    dagger_episodes: int = 60  # in each round, in our preset
    planning_seconds: float = 100.0  # for each plan
    lama_seconds: float = 50.0  # for a large problem: little is lost when it is killed
    quick: bool = False  # a smaller version, to be labelled as such

    def config(self, learner: str, preset: str) -> LearningConfig:
        """Return how a network is learned."""
        from bilevel.learning.config import PRESETS

        usual, replace = PRESETS[preset], msgspec.structs.replace
        if preset != PAPER:
            return replace(usual, dagger=replace(usual.dagger, episodes=self.dagger_episodes))
        epochs = self.epochs if learner == BISON else self.end_to_end_epochs
        return replace(usual, training=replace(usual.training, epochs=epochs))


QUICK = Experiment(demonstrations=50, epochs=20, end_to_end_epochs=6, dagger_episodes=20, lama_seconds=10.0, quick=True)
