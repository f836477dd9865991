"""What the tasks of the worlds share: labels that remember, an expert's view of facts, and the two tasks of a world.

Labels look at one scene at a time and at nothing else, neither the simulator nor the past. The relations that they are
made of are a few small arrays; as these rarely change from one step to the next, the facts are remembered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, Atom, Domain, Facts
from bilevel.tabletop.observation import POSITION, Bools, perceive
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.task import Expert, Task, found_at

REMEMBERED = 10_000  # sets of facts, before all are forgotten
PRETRAINED = Path(__file__).with_name("pretrained")  # a policy for each task
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


def locate(scene: Scene, env: Tabletop) -> dict[str, tuple[float, float]]:
    """Return where in the last picture each thing is that has a place."""
    names = [name for name, kind in scene.objects.items() if "x" in scene.spec.objects[kind]]
    points = [scene.features[scene.roster.row[name], POSITION] for name in names]
    found = env.locate(np.array(points, np.float64).reshape(-1, 3)).tolist()
    return {name: (across, down) for name, (across, down) in zip(names, found, strict=True)}


def twins(
    world: type[Tabletop],
    domain: Domain,
    label: Label,
    goal: Label,
    choose: Callable[[Facts, Facts], Action | None],
    control: Callable[[Scene, Action], Array],
) -> tuple[Task, Task]:
    """Return the two tasks of a world, called after its class: the still one, and the one in which objects teleport.

    `choose` and `control` are those of its expert.
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
        expert=Expert(choose, control),
        max_objects=world.max_objects,
        switches=(3,),  # the fingers
        save=world.save,
        restore=world.restore,
        locate=locate,
        packages=("mujoco", "metaworld"),
        pretrained=PRETRAINED / name,
        instruction=world.instruction,
    )
    noisy = f"{name}-noisy"
    make_noisy = partial(world, teleport_rate=TELEPORT_RATE)
    instruction = f"{world.instruction} {world.disturbance}" if world.instruction else ""
    twin = replace(still, name=noisy, make_env=make_noisy, pretrained=PRETRAINED / noisy, instruction=instruction)
    return found_at(still, name), found_at(twin, noisy)
