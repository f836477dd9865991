"""Watching episodes live: the page that `bilevel run --view` opens."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.policies.episode_log import Entry
    from bilevel.policies.episode_run import EpisodeRun
    from bilevel.policies.policy import ObservedPolicy
    from bilevel.tasks.scene_env import SceneEnv


PACKAGE = Path(__file__).resolve().parents[1]


def has_screen() -> bool:
    """Whether a window can be shown; only Linux tells before one is opened."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


class Teller:
    """Tells each episode in lines as `bilevel run` does, with reasons if they are asked for."""

    def __init__(self, say: Callable[[int | None, str], None], explain: bool) -> None:
        self._say, self._explain = say, explain

    def hear(self, entry: Entry, before: Entry | None) -> None:
        """Print what is new in an entry of the log, folding what repeats."""
        from bilevel.policies.folding import Folding
        from bilevel.policies.narration import lines_of

        if before is None:
            self._folding = Folding(self._say)
        for text in lines_of(entry if self._explain else replace(entry, match=None), before):
            self._folding.add(entry.step, text)

    def end(self, run: EpisodeRun, why: str | None) -> None:
        """Print how the episode ended, and why."""
        self._folding.end(run.steps)
        print(f"{run.outcome} after {run.steps} steps", *filter(None, [why]), sep="\n", file=sys.stderr)


def watch(
    env: SceneEnv,
    policy: ObservedPolicy,
    seed: int,
    teller: Teller,
    *,
    who: str,
    noise: float,
    folder: str | None,
    port: int,
    names: bool = False,
) -> EpisodeRun | None:
    """Run episodes that a page shows, until its viewers or Ctrl-C end it; return how the last one went, if it ended."""
    from bilevel.name_tags import NameTags
    from bilevel.viewer.board import Board
    from bilevel.viewer.live import LiveView, Watched
    from bilevel.viewer.server import PageServer

    tags = NameTags() if names else None
    watched = Watched(env, policy, who, noise, rules_file(folder), why_no_pictures(env, seed), tags)
    if tags and watched.no_pictures is None:
        env.locate()  # where that is impossible, it is said before a page is opened
    board = Board()
    view = LiveView(watched, board, teller)
    with closing(PageServer(board, view.tell, port)) as server:
        print(f"watch it at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if has_screen():
            import webbrowser

            webbrowser.open(server.address)
        return view.run(seed)


def rules_file(folder: str | None) -> Path | None:
    """Return the file that a policy's rules may be saved to: one that is there, can be written, and is not ours."""
    from bilevel.policies.policy_folder import RULES

    if folder is None or not os.access(path := Path(folder) / RULES, os.W_OK):
        return None
    return None if path.resolve().is_relative_to(PACKAGE) else path


def why_no_pictures(env: SceneEnv, seed: int) -> str | None:
    """Return why there are no pictures of an environment; `None` where there are some."""
    from bilevel.tasks.task import RENDER_MODE

    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError:
        return "pictures need pillow: pip install 'bilevel[video]'"
    if not env.task.takes_render_mode:
        return f"the environment of '{env.task.name}' gives no pictures: its make_env takes no render_mode"
    if getattr(env.env, RENDER_MODE, None) == "human":
        return "they are in the simulator's own window"
    try:
        env.reset(seed)
        env.render()
    except BadInput as error:
        return str(error)
    return None
