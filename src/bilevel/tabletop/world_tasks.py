"""What the tasks of the worlds share: labels that remember, an expert's view of facts, and the two tasks of a world.

Labels look at one scene at a time and at nothing else, neither the simulator nor the past. The relations that they are
made of are a few small arrays; as these rarely change from one step to the next, the facts are remembered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, Atom, Domain, Facts
from bilevel.tabletop.observation import Bools, perceive
from bilevel.tabletop.skills import Skill, skilled
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Expert, Task, found_at

REMEMBERED = 10_000  # sets of facts, before all are forgotten
TELEPORT_RATE = 1 / 2000  # per object at its goal and step, in the noisy twins

Relations = tuple[NDArray[Any], ...]
Label = Callable[[Scene], Facts]


def remembering(relations: Callable[[Scene], Relations], facts: Callable[..., Iterable[Atom]]) -> Label:
    """Make a labelling function of two.

    `relations(scene)` are the arrays that decide, together with the names of what is visible, which facts hold, and
    `facts(scene, *relations)` are these facts. While neither changes, the function returns the very same set.
    """
    known: dict[tuple[Any, ...], Facts] = {}

    def label(scene: Scene) -> Facts:
        found = relations(scene)
        key = (scene.roster, *[relation.tobytes() for relation in found])
        answer = known.get(key)
        if answer is None:
            if len(known) >= REMEMBERED:
                known.clear()
            answer = known[key] = frozenset(facts(scene, *found))
        return answer

    return label


def gripper(blocks: Sequence[str], held: Bools) -> Iterator[Atom]:
    """Yield which block is held; the gripper is free if none is, even with its fingers closed around something else."""
    if held.any():
        yield Atom("holding", (blocks[int(held.argmax())],))
    else:
        yield Atom("gripper-free")


def by_predicate(facts: Facts) -> Mapping[str, list[tuple[str, ...]]]:
    """Return for each predicate the terms of its facts, in order; nothing where there are none."""
    table: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for predicate, terms in sorted(facts):
        table[predicate].append(terms)
    return table


def twins(
    world: type[Tabletop],
    domain: Domain,
    label: Label,
    goal: Label,
    choose: Callable[[Facts, Facts], Action | None],
    skills: Mapping[str, Skill],
) -> tuple[Task, Task]:
    """Return the two tasks of a world, called after its class: the still one, and the one in which objects teleport.

    `choose` and `skills` are those of its expert.
    """
    name = world.__name__.lower()
    still = Task(
        name,
        domain,
        make_env=world,
        spec=world.scene_spec,
        perceive=perceive,
        label=label,
        goal=goal,
        expert=Expert(choose, skilled(skills)),
        max_objects=world.max_objects,
        switches=(3,),  # the fingers
        save=world.save,
        restore=world.restore,
        packages=("mujoco", "metaworld"),
    )
    noisy = f"{name}-noisy"
    twin = replace(still, name=noisy, make_env=partial(world, teleport_rate=TELEPORT_RATE))
    return found_at(still, name), found_at(twin, noisy)
