"""The live page and its own server: for this machine alone, and for those who know the address.

It listens on 127.0.0.1 only. A request must name this server as its host, so that no other site's name can be made to
point here; a page of another origin is refused; and the address has a random part that nobody else knows.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from bilevel.policies.episode import Episode
from bilevel.policies.film import NameTags
from bilevel.policies.folder import RULES
from bilevel.policies.narration import EpisodePrinter
from bilevel.policies.policy import Policy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import RENDER_MODE
from bilevel.viewer.live import Board, LiveView, Request, Watched, read_request, viewer_asset

HERE = "127.0.0.1"
PATIENCE = 10.0  # seconds after which a page that waits for news is told that there are none
LONGEST = 1_000_000  # bytes of what a page may send
PACKAGE = Path(__file__).resolve().parents[1]

FILES = {
    "": ("live.html", "text/html; charset=utf-8"),
    "viewer.css": ("viewer.css", "text/css; charset=utf-8"),
    "live.css": ("live.css", "text/css; charset=utf-8"),
    "viewer.js": ("viewer.js", "text/javascript; charset=utf-8"),
    "live.js": ("live.js", "text/javascript; charset=utf-8"),
}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def watch(
    env: SceneEnv,
    policy: Policy,
    seed: int,
    *,
    who: str,
    folder: str | None = None,
    port: int = 0,
    noise: float = 0.0,
    names: bool = False,
    explain: bool = False,
) -> Episode | None:
    """Run episodes that a page shows, until its viewers or Ctrl-C end it; return the last one, if it ended."""
    watched = Watched(
        env, policy, who, noise, rules_file(folder), why_no_pictures(env, seed), NameTags() if names else None
    )
    if names and watched.no_pictures is None:
        env.locate()  # where that is impossible, it is said before a page is opened
    board = Board()
    view = LiveView(watched, board, EpisodePrinter(explain=explain))
    with closing(PageServer(board, view.tell, port)) as server:
        print(f"watch it at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if has_screen():
            import webbrowser

            webbrowser.open(server.address)
        return view.run(seed)


def has_screen() -> bool:
    """Whether a window can be shown; only Linux tells before one is opened."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def rules_file(folder: str | None) -> Path | None:
    """Return the file that a policy's rules may be saved to: one that is there, can be written, and is not ours."""
    if folder is None or not os.access(path := Path(folder) / RULES, os.W_OK):
        return None
    return None if path.resolve().is_relative_to(PACKAGE) else path


def why_no_pictures(env: SceneEnv, seed: int) -> str | None:
    """Return why there are no pictures of an environment; `None` where there are some."""
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


class PageServer:
    """Serves the live page of a board; what its viewers ask for is told to `tell`, which may refuse by `BadInput`."""

    def __init__(self, board: Board, tell: Callable[[Request], None], port: int = 0) -> None:
        self.token = secrets.token_urlsafe(16)
        try:
            self._server = _Server((HERE, port), _Handler)
        except (OSError, OverflowError) as error:
            raise BadInput(f"the page cannot use port {port}: {error}; try another --port, or none") from None
        self._server.board, self._server.tell, self._server.token = board, tell, self.token
        self.port: int = self._server.server_address[1]
        self.address = f"http://{HERE}:{self.port}/{self.token}/"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; pages that wait are answered, and so is the request that ends it."""
        self._server.board.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing it waits for answers that are on their way
    board: Board
    tell: Callable[[Request], None]
    token: str

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a page that is closed in the middle of an answer is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 2  # seconds for a request to come

    def do_GET(self) -> None:
        name, _, question = self.path.removeprefix(f"/{self.server.token}/").partition("?")
        if not self._is_allowed():
            return
        if name in FILES:
            file, kind = FILES[name]
            self._answer(HTTPStatus.OK, viewer_asset(file).encode(), kind)
        elif name == "news":
            known = {key: int(text) for key, text in parse_qsl(question) if text.isdecimal() and len(text) < 16}
            version, episode, beats = (known.get(key, 0) for key in ("version", "episode", "beats"))
            news = self.server.board.next(version, episode, beats, PATIENCE)
            self._answer(HTTPStatus.OK, msgspec.json.encode(news), "application/json")
        elif name == "picture.jpg":
            step, picture = self.server.board.picture()
            self._answer(HTTPStatus.OK if picture else HTTPStatus.NOT_FOUND, picture, "image/jpeg", step)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        if not self._is_allowed():
            return
        try:
            if self.path != f"/{self.server.token}/request":
                raise BadInput("there is nothing to send to here")
            if self.headers.get_content_type() != "application/json":  # which other origins cannot send unasked
                raise BadInput("a request has the Content-Type application/json")
            length = self.headers.get("Content-Length", "")
            if not (length.isdecimal() and len(length) < 16 and int(length) <= LONGEST):
                raise BadInput(f"a request is JSON of at most {LONGEST:,} bytes, and says of how many")
            self.server.tell(read_request(self.rfile.read(int(length))))
        except BadInput as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        else:
            self._answer(HTTPStatus.NO_CONTENT, b"")

    def _is_allowed(self) -> bool:
        """Whether it is this machine's own page that asks; else it is refused."""
        hosts = [f"{host}:{self.server.server_address[1]}" for host in (HERE, "localhost")]
        origin = self.headers.get("Origin")
        token = "".join(self.path.split("/")[1:2])
        if self.headers.get("Host") not in hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "this page is for this machine alone")
        elif origin is not None and origin not in [f"http://{host}" for host in hosts]:
            self._refuse(HTTPStatus.FORBIDDEN, "this page answers no other site")
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "this is not the address that bilevel has printed")
        else:
            return True
        return False

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._answer(status, f"{why}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: HTTPStatus, content: bytes, kind: str = "text/plain", step: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        if step is not None:
            self.send_header("X-Step", str(step))
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        return "bilevel"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal shows the episode."""
