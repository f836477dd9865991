"""Watching episodes live: the page that `bilevel run --view` opens."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.policies.episode import Episode
    from bilevel.policies.narration import EpisodePrinter
    from bilevel.policies.policy import Policy
    from bilevel.tasks.scene_env import SceneEnv


PACKAGE = Path(__file__).resolve().parents[1]


def has_screen() -> bool:
    """Whether a window can be shown; only Linux tells before one is opened."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def watch(
    env: SceneEnv,
    policy: Policy,
    seed: int,
    printer: EpisodePrinter,
    *,
    who: str,
    noise: float,
    folder: str | None,
    port: int,
    names: bool = False,
) -> Episode | None:
    """Run episodes that a page shows, until its viewers or Ctrl-C end it; return how the last one went, if it ended."""
    from bilevel.policies.film import NameTags
    from bilevel.viewer.board import Board
    from bilevel.viewer.live import LiveView, Watched
    from bilevel.viewer.server import PageServer

    tags = NameTags() if names else None
    watched = Watched(env, policy, who, noise, rules_file(folder), why_no_pictures(env, seed), tags)
    if tags and watched.no_pictures is None:
        env.locate()  # where that is impossible, it is said before a page is opened
    board = Board()
    view = LiveView(watched, board, printer)
    with closing(PageServer(board, view.tell, port)) as server:
        print(f"watch it at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if has_screen():
            import webbrowser

            webbrowser.open(server.address)
        return view.run(seed)


def rules_file(folder: str | None) -> Path | None:
    """Return the file that a policy's rules may be saved to: one that is there, can be written, and is not ours."""
    from bilevel.policies.folder import RULES

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
