"""Blocks among posts, which stand as high as the hand travels and must not be touched; no fact speaks of them."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel import Action, Expert, Scene
from bilevel.symbolic.pddl import parse_domain
from bilevel.tabletop import layout, skills
from bilevel.tabletop.furniture import SOLID, Furnishing
from bilevel.tabletop.observation import PLACED, POSITION, SYMMETRIES, numbered
from bilevel.tabletop.problems import domain_text
from bilevel.tabletop.tabletop import Options
from bilevel.tabletop.worlds import blocks
from bilevel.tasks.scene import Array

HEIGHT = 0.07  # half of it
BESIDE = (0.06, 0.12)  # blocks and places are at least so far from a post, in x or in y: open fingers are wide in y
TOUCHED = "touched a post"  # an outcome

CLEARANCE = np.array([0.055, 0.085], np.float32)  # between the middles of the hand and a post, in x and in y
MARGIN = 0.25  # so much more of it begins to count
AHEAD = 1.2  # so far ahead the hand looks


class Clutter(blocks.Blocks):
    """n blocks, n places, and some posts between them. The episode ends where the hand, or what it holds, touches one.

    No two posts are in neighbouring columns of places, so that the hand can always go round each.
    """

    scene_spec = replace(blocks.SPEC, objects={**blocks.SPEC.objects, "post": PLACED}, symmetries=SYMMETRIES[:2])
    max_objects: ClassVar[int] = 10
    options: ClassVar[Options] = {"posts": (3, 0, 1, 2, 4, 5, 6)}
    start = blocks.APART
    posts: int

    def name_objects(self) -> dict[str, list[str]]:
        return {**super().name_objects(), "post": numbered("post", self.posts)}

    def furnish(self) -> Furnishing:
        without, names = super().furnish(), self.slots.of_type("post")
        posts = [
            f'<body name="{name}"><geom type="box" pos="0 0 {HEIGHT}" size="0.012 0.012 {HEIGHT}" {SOLID}/></body>'
            for name in names
        ]
        return replace(without, bodies=[*without.bodies, *posts], fixtures=names)

    def arrange(self, rng: np.random.Generator) -> blocks.BlocksState:
        last = len(layout.COLUMNS) - 1
        columns = np.sort(rng.permutation(last + 2 - self.posts)[: self.posts]) + np.arange(self.posts)
        rows = np.where(columns % last, rng.integers(1, 3, self.posts), 2)  # away from where the hand begins
        posts = np.stack([layout.COLUMNS[columns], layout.ROWS[rows]], axis=1)
        self.simulation.reset(dict(enumerate(posts)))
        return super().arrange(rng)

    def room(self) -> layout.Floats:
        posts = [self.simulation.fixture(post)[:2] for post in range(self.posts)]
        return layout.clear_of(super().room(), np.reshape(posts, (-1, 2)), apart=BESIDE)

    def describe(self, features: Array) -> None:
        super().describe(features)
        for post, row in enumerate(range(len(self.slots))[self.slots.rows("post")]):
            features[row, POSITION] = np.add(self.simulation.fixture(post), (0, 0, 2 * HEIGHT))

    def broken(self) -> str | None:
        model, contacts = self.simulation.model, self.simulation.data.contact.geom
        posts = [model.body(name).id for name in self.slots.of_type("post")]
        return super().broken() or (TOUCHED if np.isin(model.geom_bodyid[contacts], posts).any() else None)


def around(velocity: Array, hand: Array, target: Array, posts: Array) -> Array:
    """Return the hand's velocity in x and y, but round the nearest of the posts that are between it and its target.

    It keeps to the side on which the target is. Distances count as shares of `CLEARANCE`.
    """
    offsets, goal = (posts[:, :2] - hand[:2]) / CLEARANCE, (target[:2] - hand[:2]) / CLEARANCE
    distances: NDArray[Any] = np.where(offsets @ goal > 0, np.hypot(*offsets.T), np.inf)
    if not np.isfinite(distances).any():
        return velocity
    nearest, plain = int(distances.argmin()), velocity / CLEARANCE
    ahead = offsets[nearest] / distances[nearest]
    sideways = np.array([-ahead[1], ahead[0]]) * (1 if goal[1] * ahead[0] >= goal[0] * ahead[1] else -1)
    gap = float(distances[nearest]) - min(AHEAD, float(goal @ ahead))
    aside = float(np.clip((1 + MARGIN - gap) / MARGIN, 0, 1)) * max(0.0, float(plain @ ahead))
    turned: Array = np.clip((plain + aside * (sideways - ahead)) * CLEARANCE, -1, 1)
    return turned


def control(scene: Scene, action: Action) -> Array:
    """Do an action as in Blocks, but go round posts."""
    plain, posts = skills.skilled(blocks.SKILLS)(scene, action), scene.features[scene.roster.rows("post"), POSITION]
    target = scene.features[scene.roster.row[action.arguments[action.name in ("place", "put-aside")]], POSITION]
    plain[:2] = around(plain[:2], scene.values, target, posts)
    return plain


domain_of_blocks = domain_text("blocks").replace("(domain blocks)", "(domain clutter)")

task = replace(
    blocks.task,
    name="clutter",
    domain=parse_domain(domain_of_blocks.replace("    table)", "    table post)")),
    make_env=Clutter,
    spec=Clutter.scene_spec,
    expert=Expert(blocks.choose, control),
    max_objects=Clutter.max_objects,
    pretrained=None,
)
