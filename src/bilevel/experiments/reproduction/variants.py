"""The rows of the table: methods, each with the recipe that it is learned by, and with how it is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bilevel.experiments.methods import METHODS, is_published
from bilevel.experiments.reproduction.recipes import (
    AS_PRINTED,
    BELTS,
    DRAWS_OF_MISSING,
    FIXED_TRAYS,
    OUR_RECIPE,
    PAPER,
    PAPERS_RECIPE,
    RECORDED,
    USUAL_WORLD,
    WITHOUT_DAGGER,
    Recipe,
    World,
)
from bilevel.experiments.reproduction.units import Train
from bilevel.methods.methods import END_TO_END, EXPERT, OFF
from bilevel.policies.folder import BISON
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS


@dataclass(frozen=True)
class Variant:
    """A row of the table: a method, with the recipe that it is learned by, if it is."""

    name: str
    method: str
    recipe: Recipe | None = None
    ending: str = ""  # of its title
    world: World = USUAL_WORLD
    planner: str | None = None  # where that is not the usual one of its method
    tasks: tuple[str, ...] = ()  # that it is for, where it differs from another row on these alone

    @property
    def preset(self) -> str | None:
        """The training preset of its recipe, if it has one."""
        return self.recipe.preset if self.recipe else None

    @property
    def title(self) -> str:
        """What the table calls it."""
        return METHODS[self.method].title + self.ending

    @property
    def as_in_paper(self) -> bool:
        """Whether it runs as in the paper: without state estimation, and stops where it is at a loss."""
        return self.preset == PAPER

    @property
    def recovery(self) -> str | None:
        """What it does where it is at a loss, as `--recovery` takes it; `None` for what its policy says, if any."""
        return OFF if self.as_in_paper and self.method == BISON else None

    @property
    def estimation(self) -> str | None:
        """Whether it estimates what is there, as `--estimation` takes it; `None` for what its policy says, if any."""
        return OFF if self.as_in_paper and METHODS[self.method].training != END_TO_END else None

    def is_for(self, task: str) -> bool:
        """Return whether a task has the world of this row, and is one of its tasks."""
        has_world = all(name in TASKS[task].arguments for name, _ in self.world.arguments)
        return has_world and (not self.tasks or task in self.tasks)

    def in_world(self, world: World, ending: str) -> Variant:
        """Return the same, learned and run in another world."""
        recipe = self.recipe and self.recipe.in_world(world)
        return replace(self, name=f"{self.name}-{world.name}", ending=self.ending + ending, world=world, recipe=recipe)

    def learned_by(self, ending: str, recipe: Recipe) -> Variant:
        """Return the same by another recipe, which is told in its name."""
        return replace(self, name=f"{self.name}-{ending}", recipe=recipe)

    def training(self, task: str, seed: int) -> Train | None:
        """Return what trains what it runs on, if that is learned: methods that plan run on BISON's network."""
        if self.recipe is None:
            return None
        learner = self.method if METHODS[self.method].training == END_TO_END else BISON
        return Train(task, learner, self.recipe, seed)


PAPERS = Variant("bison-paper", BISON, PAPERS_RECIPE, ", paper's setting")
OURS, EXPERTS = Variant(BISON, BISON, OUR_RECIPE, ", our preset"), Variant(EXPERT, EXPERT)


def _usual() -> Iterator[Variant]:
    """Yield what is measured unless somebody asks for something else: all that needs no download."""
    yield Variant("bison-printed", BISON, AS_PRINTED, ", Algorithm 1 as printed")
    yield PAPERS
    yield Variant("bison-recorded", BISON, RECORDED, ", paper's setting and recorded actions")
    yield Variant("bison-without-dagger", BISON, WITHOUT_DAGGER, ", our preset without DAgger")
    yield from (OURS, EXPERTS)
    for name, method in METHODS.items():
        if name != BISON and method.training:
            yield Variant(name, name, PAPERS_RECIPE)
            if method.training == END_TO_END:
                yield Variant(f"{name}-dagger", name, OUR_RECIPE, " with DAgger")
            elif method.replan:
                yield Variant(f"{name}-dagger", name, OUR_RECIPE, ", on the network of our preset")
    new_objects = tuple(name for name, task in TASKS.items() if task.domain.makes_objects)
    yield Variant("det-replan-lama", "det-replan", PAPERS_RECIPE, ", LAMA alone", planner="lama", tasks=new_objects)
    for one in (PAPERS, OURS, EXPERTS):
        yield one.in_world(FIXED_TRAYS, ", trays without a free spot")


def _further() -> Iterator[Variant]:
    """Yield what is measured where somebody asks for it."""
    yield from (Variant(name, name) for name, method in METHODS.items() if is_published(method))
    yield Variant("det-replan-search", "det-replan", PAPERS_RECIPE, ", built-in search", planner="search")
    yield Variant("expert-estimating", EXPERT, OUR_RECIPE, " with state estimation")
    rival = Variant("pddl-nn-dagger", "pddl-nn", OUR_RECIPE, " with DAgger")
    yield rival.in_world(FIXED_TRAYS, ", trays without a free spot")
    for one in (PAPERS, OURS, EXPERTS):
        yield one.in_world(BELTS, ", trays that are belts")
    for one in (OURS, EXPERTS):
        yield one.in_world(DRAWS_OF_MISSING, ", draws of missing colours")


USUAL = tuple(variant.name for variant in _usual())
VARIANTS: Mapping[str, Variant] = {variant.name: variant for variant in (*_usual(), *_further())}
# The rows that the paper's table has, with ours beside BISON's.
PAPERS_ROWS = (
    "bison-paper", BISON, EXPERT, "det-plan", "det-replan", "ndt-plan", "ndt-replan", "pddl-nn", "pure-nn",
)  # fmt: skip


def find_variant(name: str) -> Variant:
    """Return the row of this name; `BadInput`, which lists the names, where there is none."""
    if name not in VARIANTS:
        raise BadInput(f"unknown method '{name}'; what can be reproduced: {', '.join(VARIANTS)}")
    return VARIANTS[name]
