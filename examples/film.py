"""A film of one episode that a page can show: an animated picture, a few hundred kilobytes, at several times the speed.

python examples/film.py examples/ogbench/cubes.py:task build/policy cubes.webp --objects 8 --env-args task_id=4
python examples/film.py gacha gacha gacha.webp --objects 5 --env-args quality=good --every 12 --width 560 --explain
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PillowImage

import bilevel
from bilevel.cli.options import env_argument
from bilevel.methods.methods import find_policy
from bilevel.policies.film import SENTENCE, Image, captioned, take_picture
from bilevel.policies.narration import caption
from bilevel.policies.policy import Policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.tasks.scene_env import SceneEnv

QUALITY = 40  # of WebP, up to 100
MILLISECONDS = 80  # that a picture is shown
LAST = 1500  # milliseconds for the last one


class Camera:
    """The callback of a rollout that takes a picture of every so many steps, of all or from one to another."""

    def __init__(
        self,
        env: SceneEnv,
        policy: Policy,
        every: int,
        width: int,
        begin: int = 0,
        end: float = math.inf,
        names: bool = False,
        explain: bool = False,
    ) -> None:
        """With `explain`, there is room below the picture for the reason of each action."""
        self._env, self._policy, self._every, self._width = env, policy, every, width
        self._begin, self._end = begin, end
        self._names = names
        self._explain = explain
        self._steps = 0
        self.pictures: list[PillowImage.Image] = []

    def __call__(self, transition: Transition) -> None:
        if self._begin <= self._steps < self._end and self._steps % self._every == 0:
            self.take(caption(transition.episode) if self._explain else str(self._policy.action or ""))
        self._steps += 1

    def take(self, text: str) -> None:
        picture: Image = np.asarray(take_picture(self._env, self._names))
        height = round(picture.shape[0] * self._width / picture.shape[1])
        small = PillowImage.fromarray(picture).resize((self._width, height), PillowImage.Resampling.LANCZOS)
        picture = np.asarray(small)
        picture = captioned(picture, text, SENTENCE if self._explain else 1)
        self.pictures.append(PillowImage.fromarray(picture))

    def write(self, output: Path) -> str:
        """Write what was filmed; say how much it is."""
        first, *rest = self.pictures
        durations = [*[MILLISECONDS] * len(rest), LAST]
        output.parent.mkdir(parents=True, exist_ok=True)
        first.save(output, save_all=True, append_images=rest, duration=durations, loop=0, quality=QUALITY, method=4)
        return f"{len(self.pictures)} pictures, {output.stat().st_size // 1000} kB"


def film(
    task: str,
    policy: Path,
    output: Path,
    objects: int,
    arguments: Mapping[str, Any],
    method: str = "bison",
    every: int = 8,
    seed: int = 1,
    width: int = 360,
    explain: bool = False,
    names: bool = False,
) -> str:
    """Run one episode and write its film; say what has become of it."""
    env = SceneEnv(bilevel.find_task(task), objects, render_mode="rgb_array", **arguments)
    evaluated = find_policy(policy, method=method, planner="search" if method == "det-replan" else None)
    assert evaluated.make is not None
    acting = evaluated.make(env)
    camera = Camera(env, acting, every, width, explain=explain, names=names)
    episode = rollout(env, acting, seed, callback=camera, explain=explain)
    camera.take(f"{episode.outcome} after {episode.steps} steps")
    env.close()
    return f"{output}: {episode.outcome}, {camera.write(output)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("policy", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--method", default="bison")
    parser.add_argument("--objects", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--env-args", nargs="*", default=())
    parser.add_argument("--every", type=int, default=8, help="steps from one picture to the next")
    parser.add_argument("--width", type=int, default=360, help="pixels")
    parser.add_argument("--explain", action="store_true", help="below the picture, why each thing is done")
    parser.add_argument("--names", action="store_true", help="the names of things over them")
    given = parser.parse_args()
    arguments = dict(map(env_argument, given.env_args))
    about = given.task, given.policy, given.output, given.objects, arguments, given.method
    print(film(*about, given.every, given.seed, given.width, given.explain, given.names))


if __name__ == "__main__":
    main()
