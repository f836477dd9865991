"""What is made for a cell: a data set, a policy, the records of episodes in a world or of symbols alone, a film."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bilevel.experiments.evaluate import evaluate
from bilevel.experiments.experiment import Cell, Settings
from bilevel.experiments.rows import OURS, PAPER, ROWS, Row
from bilevel.files import write_atomically
from bilevel.json_files import encode
from bilevel.methods.methods import METHODS, RunnablePolicy, find_policy
from bilevel.planning.planners import PLANNERS, PlannedPolicy
from bilevel.policies.episode import NO_ACTION, Episode, Seconds
from bilevel.policies.film import Film
from bilevel.policies.folder import LearnedPolicy, read_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.solving import default_bound
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import bind_outcome, ground_action, progress
from bilevel.tabletop import TASKS
from bilevel.tabletop.problems import generate_problem
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, SceneEnv
from bilevel.tasks.task import Task
from bilevel.viewer.live import beat, beginning

Make = Callable[[Path, Settings, Cell], None]  # makes the file of a cell in a folder
LIMIT, QUICK_LIMIT = 20.0, 10.0  # seconds for all decisions about a problem
ALMOST = 0.95  # of it: a planner that stops by itself stops a little earlier
FILMED = 4  # objects: enough for several goals, and few enough for a film of half a minute
LONGEST = 3000  # steps; an episode that takes longer is not shown to its end
PICTURES: Mapping[str, Any] = {"render_mode": "rgb_array", "quality": "smooth", "picture_size": (640, 480)}
ENCODER = {"crf": "29", "preset": "medium", "threads": "1"}  # for small films, since a page holds one for each task
MOST_PICTURES = 40.0  # for each second of the episode
SPEED = 0.5  # of the true one; a sentence takes a while to read


def collect_data(folder: Path, settings: Settings, cell: Cell) -> None:
    """Collect the demonstrations that the policy of a cell is learned from."""
    from bilevel.demonstrations.collect import collect

    shown, arguments = cell.shown or settings.shown, settings.arguments(cell.task)
    collect(TASKS[cell.task], folder / cell.data, objects=shown, episodes=settings.demonstrations, **arguments)
    write_atomically(folder / f"{cell.data}.complete", "")


def learn_policy(folder: Path, settings: Settings, cell: Cell) -> None:
    """Learn the policy of a cell."""
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.learning.learn import label_demonstrations, learn

    row, demonstrations = cell.learned, Demonstrations.read(folder / cell.data)
    assert row is not None
    if cell.demonstrations:
        demonstrations = demonstrations.first(cell.demonstrations)
    config, task, output = learning_config(settings, row), TASKS[cell.task], folder / "policies" / cell.policy
    if not row.network:
        preset = row.preset or OURS
        learn(demonstrations, output, task=task, method=row.method, preset=preset, seed=cell.seed, config=config)
        return
    kept = read_policy(folder / "policies" / cell.with_kept_network.policy)
    rules = label_demonstrations(demonstrations, task, config).rules
    learned_by = {**kept.card.settings, **msgspec.to_builtins(config)}
    summary = {**kept.card.summary, "rules_shown": len(rules)}
    replace(kept, card=msgspec.structs.replace(kept.card, settings=learned_by, summary=summary), rules=rules).write(
        output
    )


def learning_config(settings: Settings, row: Row) -> Any:
    """Return how the policy of a row is learned: BISON's and its rivals' at one rate, as many epochs and rollouts."""
    from bilevel.learning.learn import PRESETS

    change = msgspec.structs.replace
    config = change(PRESETS[row.preset or OURS], **row.config)
    training = change(config.training, learning_rate=settings.learning_rate)
    if row.preset == PAPER:
        return change(config, training=change(training, epochs=settings.epochs, updates=settings.updates))
    rounds = config.dagger.rounds if row.is_dagger else 0
    dagger = change(config.dagger, rounds=rounds, episodes=settings.dagger_episodes)
    return change(config, training=training, dagger=dagger)


def load_row(folder: Path, settings: Settings, cell: Cell) -> RunnablePolicy:
    """Return what is run for a cell; its policy is named as the folder knows it, wherever that is."""
    method, options = METHODS[ROWS[cell.row].method], dict(ROWS[cell.row].options)
    policy = folder / "policies" / cell.policy if cell.learned else None
    if method.planners:
        options["planning_seconds"] = settings.planning_seconds
    if policy and method.training is None:  # a method that is not learned only sees as the policy does
        return find_policy(**{**options, "estimation": str(policy)})
    found = find_policy(policy, **options)
    return replace(found, policy=f"policies/{cell.policy}") if policy else found


def run_episodes(folder: Path, settings: Settings, cell: Cell) -> None:
    """Run the episodes of a cell that are not in its file yet."""
    run_policy(load_row(folder, settings, cell), folder, cell, **settings.arguments(cell.task))


def run_policy(policy: RunnablePolicy, folder: Path, cell: Cell, **arguments: Any) -> None:
    """Evaluate a policy as a cell says, into its file; `arguments` are further ones of the environment."""
    which: dict[str, Any] = {"objects": [cell.objects], "episodes": cell.episodes, "seed": cell.seed}
    evaluate(policy, TASKS[cell.task], **which, **arguments, **cell.options, output=folder / cell.file)


# Symbols alone


def solve_with_nature(folder: Path, settings: Settings, cell: Cell) -> None:
    """Let a method decide and nature answer on random problems, until the goal holds or the time is up."""
    row, limit = ROWS[cell.row], QUICK_LIMIT if settings.quick else LIMIT
    learned = read_policy(folder / "policies" / cell.policy) if cell.learned else None
    measure = partial(_decide, cell.row, learned, limit)
    digest, about = learned.digest if learned else None, {"planner": row.planner, "planning_seconds": limit}
    run_policy(RunnablePolicy(row.method, measure=measure, digest=digest, settings=about), folder, cell)


def _high_level(row: str, learned: LearnedPolicy | None, limit: float, task: Task) -> RulePolicy | PlannedPolicy:
    """Return the rules that were learned, or the planner of the row."""
    if learned:
        return RulePolicy(learned.rules, task.domain, commit=learned.card.commit)
    method = METHODS[ROWS[row].method]
    planner = ROWS[row].planner or method.planners[-1 if task.domain.makes_objects else 0]
    return PlannedPolicy(task.domain, PLANNERS[planner], replan=method.replan, time_limit=limit)


def _decide(row: str, learned: LearnedPolicy | None, limit: float, task: Task, objects: int, seed: int) -> Episode:
    """Solve a random problem within about so many seconds of deciding, and return an episode without a world."""
    domain, rng = task.domain, random.Random(seed)
    problem = generate_problem(domain.name, objects, rng)
    high, nature = _high_level(row, learned, limit, task), Nature(domain, problem.objects, rng)
    state, goal, actions, total, longest = problem.state, problem.goal, 0, 0.0, 0.0
    outcome, reason, began = SUCCESS, "", time.perf_counter()
    high.reset(state, goal, problem.objects)
    while outcome == SUCCESS and not goal <= state:
        action = high.choose(state, goal)
        taken = time.perf_counter() - began
        total, longest = total + taken, max(longest, taken)
        spelt = action and ground_action(domain, action)
        if total > ALMOST * limit or actions >= default_bound(problem):
            outcome, reason = STEP_LIMIT, "time"
        elif spelt is None or not spelt.condition.holds(state):
            outcome, reason = NO_ACTION, high.failure[0] if high.failure else "no rule"
        else:
            known, move = len(nature.objects), nature.move(domain.schemas[spelt.action.name])
            state, actions = progress(state, bind_outcome(spelt.outcomes[move.outcome], move.binding)), actions + 1
            began = time.perf_counter()
            if len(nature.objects) > known:
                high.declare(nature.objects)
    failure = (reason, "") if reason else None
    return Episode(seed, outcome=outcome, steps=actions, failure=failure, seconds=Seconds(total, 0.0, longest))


# Films


def make_film(folder: Path, settings: Settings, cell: Cell) -> None:
    """Film the first episode of a policy in an experiment."""
    arguments = settings.arguments(cell.task)
    timeline = film(load_row(folder, settings, cell), cell, folder / f"films/{cell.task}.mp4", **arguments)
    write_atomically(folder / cell.file, encode(timeline, indent=1))


def film(policy: RunnablePolicy, cell: Cell, path: Path, **arguments: Any) -> dict[str, Any]:
    """Run a policy for one episode, write a film of it, and return its timeline; `BadInput` if it cannot be drawn.

    The timeline holds how many steps and pictures a second of the film shows, how long it lasts, and what was done and
    why, step by step.
    """
    task, seed = TASKS[cell.task], evaluation_seed(cell.seed, cell.objects, 0)
    assert policy.make is not None, "rows of the table act in environments"
    with closing(SceneEnv(task, cell.objects, **PICTURES, **arguments)) as env:
        env.render()  # where that is impossible, it is said before a file is begun
        with Film(path, env, most=MOST_PICTURES, speed=SPEED, encoder=ENCODER) as video:

            def shoot(transition: Transition) -> None:
                if transition.events:
                    env.save()  # things that nature has put elsewhere are drawn there from now on, not one step later
                video(transition)

            acting = policy.make(env)
            episode = rollout(env, acting, seed, callback=shoot, stop=lambda: env.steps >= LONGEST, explain=True)
            video.end(episode)
    seconds = (len(range(0, episode.steps, video.every)) + round(video.fps)) / video.fps
    return {
        "task": task.name,
        "row": cell.row,
        "objects": cell.objects,
        "seed": seed,
        "outcome": episode.outcome,
        "steps": episode.steps,
        "seconds": seconds,
        "steps_per_second": env.steps_per_second * SPEED,
        "pictures_per_second": video.fps,
        "beginning": beginning(episode.entries[0], episode.rules),
        "beats": [beat(entry, episode.rules) for entry in episode.entries],
    }


# The purposes of cells, in the order in which they are measured
MEASURES: Mapping[str, Make] = {"episodes": run_episodes, "symbols": solve_with_nature, "films": make_film}
