"""Films: an episode of a policy to look at, with a timeline that says, step by step, what was done and why.

A timeline is a file of JSON beside the film; a step says where in the film it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec

from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.json_files import Count, Damaged, decode, encode, read_bytes
from bilevel.methods.methods import RunnablePolicy
from bilevel.policies.film import Camera, Video, frame_rate
from bilevel.policies.rollout import Transition, rollout
from bilevel.seeds import evaluation_seed
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Task
from bilevel.viewer.live import Beat, Beginning, beats, beginning

FILMED = 4  # objects: enough for several goals, and few enough for a film of half a minute
LONGEST = 3000  # steps; an episode that takes longer is not shown to its end
TRIED = 10  # episodes, in search of one worth looking at
ENCODER = {"crf": "29", "preset": "medium", "threads": "1"}  # for small films, since a page holds one for each task
MOST_PICTURES = 40.0  # for each second of the episode
SPEED = 0.5  # of the true one; a sentence takes a while to read
SURPRISE, SURPRISE_RATE = "teleport", "teleport_rate"  # the kind of event that noisy worlds have, and how often


Pace = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Timeline(msgspec.Struct, frozen=True, kw_only=True, rename={"variant": "entrant"}):
    """A whole episode."""

    task: str
    variant: str
    objects: Count
    seed: Count
    outcome: str
    steps: Count
    speed: Pace = 0.5  # of the film: what part of the true one
    steps_per_second: Pace  # of the film: a step is shown so many seconds after its beginning
    pictures_per_second: Pace  # a step that is not drawn is shown with the next that is
    seconds: Pace  # that the film lasts
    beats: Annotated[Sequence[Beat], msgspec.Meta(min_length=1)]
    beginning: Beginning = Beginning()  # timelines of older versions have none

    def text(self) -> str:
        """Return it as JSON for a file."""
        return encode(self, indent=1)


def read_timeline(path: Path) -> Timeline:
    """Read what `Timeline.text` wrote; `BadInput` for anything else."""
    what = f"{path}: not the timeline of a film; remove it, and `bilevel reproduce` makes another"
    timeline = decode(read_bytes(path), Timeline, what)
    if timeline.variant not in VARIANTS:
        raise Damaged(f"{what}: unknown method '{timeline.variant}'")
    return timeline


# Making them


def make_film(
    policy: RunnablePolicy,
    task: Task,
    objects: int,
    seed: int,
    path: Path,
    variant: str,
    *,
    width: int = 640,
    quality: str = "smooth",
    encoder: Mapping[str, str] = ENCODER,
) -> Timeline:
    """Run a policy for one episode and write a film of it with captions; `BadInput` where nothing can be drawn.

    The seed is that of the environment, as `bilevel run` takes it; the quality is that of pictures before they are made
    as small as `width` pixels.
    """
    policy.check(task)
    assert policy.make is not None, "rows of the table act in environments"
    with closing(SceneEnv(task, objects, render_mode="rgb_array", quality=quality)) as env:
        env.render()  # where that is impossible, it is said before a file is begun
        rate = frame_rate(env, MOST_PICTURES)
        with Video(path, rate.fps * SPEED, width=width, encoder=encoder) as video:
            camera = Camera(env, video, rate=rate)

            def shoot(transition: Transition) -> None:
                if transition.events:
                    env.save()  # things that nature has put elsewhere are drawn there from now on, not one step later
                camera(transition)

            acting = policy.make(env)
            episode = rollout(env, acting, seed, callback=shoot, stop=lambda: env.steps >= LONGEST, explain=True)
            camera.end(episode)
    return Timeline(
        task=task.name,
        variant=variant,
        objects=objects,
        seed=seed,
        outcome=episode.outcome,
        steps=episode.steps,
        speed=SPEED,
        steps_per_second=rate.steps_per_second * SPEED,
        pictures_per_second=video.fps,
        seconds=(len(range(0, episode.steps, rate.every)) + round(video.fps)) / video.fps,
        beats=beats(episode),
        beginning=beginning(episode.entries[0], episode.rules),
    )


def interesting_seed(policy: RunnablePolicy, task: Task, objects: int = FILMED) -> int:
    """Return the seed of the first episode of an evaluation that is worth a film.

    That is one that succeeds, in a noisy world in spite of a surprise. Where there is none among the first few, it is
    the first that succeeds, or else the first.
    """
    assert policy.make
    env = SceneEnv(task, objects)
    acting, is_noisy = policy.make(env), bool(task.arguments.get(SURPRISE_RATE))
    seeds = [evaluation_seed(0, objects, episode) for episode in range(TRIED)]
    succeeded: list[int] = []
    for seed in seeds:
        run = rollout(env, acting, seed)
        if run.outcome == SUCCESS and run.steps <= LONGEST:
            if not is_noisy or any(event.startswith(SURPRISE) for event in run.all_events):
                return seed
            succeeded.append(seed)
    return [*succeeded, seeds[0]][0]
