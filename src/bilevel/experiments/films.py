"""Films: an episode of a policy to look at, with a timeline that says, step by step, what was done and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from bilevel.experiments.experiment import Cell, Settings, load_row
from bilevel.files import write_atomically
from bilevel.json_files import Count, encode
from bilevel.methods.methods import RunnablePolicy
from bilevel.policies.film import EpisodeCamera, Video, every_nth_step
from bilevel.policies.rollout import Transition, rollout
from bilevel.seeds import evaluation_seed
from bilevel.tabletop import TASKS
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from bilevel.viewer.live import Beat, Beginning, beat, beginning

FILMED = 4  # objects: enough for several goals, and few enough for a film of half a minute
LONGEST = 3000  # steps; an episode that takes longer is not shown to its end
TRIED = 10  # episodes, in search of one worth looking at
ENCODER = {"crf": "29", "preset": "medium", "threads": "1"}  # for small films, since a page holds one for each task
MOST_PICTURES = 40.0  # for each second of the episode
SPEED = 0.5  # of the true one; a sentence takes a while to read


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A whole episode, as a page shows it beside its film."""

    task: str
    row: str
    objects: Count
    seed: Count
    outcome: str
    steps: Count
    steps_per_second: float  # of the film: a step is shown so many seconds after its beginning
    pictures_per_second: float  # a step that is not drawn is shown with the next that is
    seconds: float  # that the film lasts
    beginning: Beginning
    beats: Sequence[Beat]


def make_film(folder: Path, settings: Settings, cell: Cell) -> None:
    """Film an episode of a policy in an experiment."""
    task, policy = TASKS[cell.task], load_row(folder, settings, cell)
    seed = interesting_seed(policy, task, cell.objects)
    timeline = film(policy, task, cell.objects, seed, folder / f"films/{task.name}.mp4", cell.row)
    write_atomically(folder / cell.file, encode(timeline, indent=1))


def film(
    policy: RunnablePolicy,
    task: Task,
    objects: int,
    seed: int,
    path: Path,
    row: str,
    *,
    width: int = 640,
    quality: str = "smooth",
    encoder: Mapping[str, str] = ENCODER,
) -> Timeline:
    """Run a policy for one episode, write a film of it, and return its timeline; `BadInput` if it cannot be drawn.

    The seed is that of the environment, as `bilevel run` takes it; the quality is that of pictures before they are made
    as small as `width` pixels.
    """
    assert policy.make is not None, "rows of the table act in environments"
    with closing(SceneEnv(task, objects, render_mode="rgb_array", quality=quality)) as env:
        env.render()  # where that is impossible, it is said before a file is begun
        every, steps_per_second = every_nth_step(env, MOST_PICTURES), env.steps_per_second * SPEED
        with Video(path, steps_per_second / every, width=width, encoder=encoder) as video:
            camera = EpisodeCamera(env, video, every=every)

            def shoot(transition: Transition) -> None:
                if transition.events:
                    env.save()  # things that nature has put elsewhere are drawn there from now on, not one step later
                camera(transition)

            acting = policy.make(env)
            episode = rollout(env, acting, seed, callback=shoot, stop=lambda: env.steps >= LONGEST, explain=True)
            camera.end(episode)
    return Timeline(
        task=task.name,
        row=row,
        objects=objects,
        seed=seed,
        outcome=episode.outcome,
        steps=episode.steps,
        steps_per_second=steps_per_second,
        pictures_per_second=video.fps,
        seconds=(len(range(0, episode.steps, every)) + round(video.fps)) / video.fps,
        beginning=beginning(episode.entries[0], episode.rules),
        beats=[beat(entry, episode.rules) for entry in episode.entries],
    )


def interesting_seed(policy: RunnablePolicy, task: Task, objects: int) -> int:
    """Return the seed of the first episode of an evaluation that succeeds in time, or else of the first."""
    assert policy.make is not None, "rows of the table act in environments"
    seeds = [evaluation_seed(0, objects, number) for number in range(TRIED)]
    with closing(SceneEnv(task, objects)) as env:
        acting = policy.make(env)
        for seed in seeds:
            if rollout(env, acting, seed, stop=lambda: env.steps >= LONGEST).success:
                return seed
    return seeds[0]
