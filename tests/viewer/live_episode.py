"""Episodes of the tiny task that are watched, each with a server of its own, in a thread beside the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import NamedTuple

from bilevel.policies.episode import Episode
from bilevel.policies.policy import AskedExpert, BilevelPolicy, Policy, expert_policy
from bilevel.policies.rollout import rollout
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from bilevel.viewer.live import Board, LiveView, Request
from bilevel.viewer.server import PageServer
from drawn_task import DRAWN
from tiny_policies import RULES_TEXT
from tiny_task import control

PATIENCE = 10.0  # seconds


class Live(NamedTuple):
    view: LiveView
    board: Board
    server: PageServer
    env: SceneEnv
    runs: list[Episode | None]  # what the last episode was, once it is over


def following_rules(env: SceneEnv) -> BilevelPolicy:
    """Decides by rules, moves as the expert does."""
    return BilevelPolicy(
        env.labels, RulePolicy(parse_rules(RULES_TEXT), env.task.domain), AskedExpert(Expert(control=control))
    )


def recorded(objects: int, seed: int, noise: float = 0.0) -> Episode:
    """The same episode as nobody watches it."""
    with closing(SceneEnv(DRAWN, objects)) as env:
        return rollout(env, following_rules(env), seed, noise=noise, explain=True)


@contextmanager
def live(
    task: Task = DRAWN,
    *,
    objects: int = 2,
    seed: int = 1,
    expert: bool = False,
    paused: bool = True,
    folder: Path | None = None,
    pictures: bool = True,
    noise: float = 0.0,
) -> Iterator[Live]:
    """An episode that is being watched; by default it is paused before its first step."""
    render_mode = "rgb_array" if pictures else None
    with closing(SceneEnv(task, objects, render_mode=render_mode)) as env:
        policy: Policy = expert_policy(env) if expert else following_rules(env)
        board = Board()
        place = str(folder) if folder else None
        view = LiveView(env, policy, board, who="a policy of the tests", noise=noise, folder=place)
        runs: list[Episode | None] = []

        def run() -> None:
            runs.append(view.run(seed))
            env.close()  # by the thread that has drawn in it

        if paused:
            view.tell(Request("pace", paused=True))
        with closing(PageServer(board, view.tell)) as server:
            thread = Thread(target=run, daemon=True)
            thread.start()
            try:
                yield Live(view, board, server, env, runs)
            finally:
                board.close()
                view.tell(Request("quit"))
                thread.join(PATIENCE)
                assert not thread.is_alive()


def eventually(happened: object, what: str = "it did not happen") -> None:
    """Wait until a function is true."""
    assert callable(happened)
    end = monotonic() + PATIENCE
    while not happened():
        assert monotonic() < end, what
        sleep(0.01)
