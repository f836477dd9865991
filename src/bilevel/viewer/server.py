"""The live page and its own server: for this machine alone, and for who knows the address.

It listens on 127.0.0.1 only. A request must name this server as its host, so that no other site's name can be made to
point here; a page of another origin is refused; and the address has a random part, which is secret.
"""

from __future__ import annotations

import os
import secrets
import sys
import webbrowser
from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from bilevel.policies.episode import Episode
from bilevel.policies.policy import Policy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.viewer.live import Board, LiveView, Request, viewer_asset

HERE = "127.0.0.1"
PATIENCE = 10.0  # seconds after which a page that waits for news is told that there are none
LONGEST = 1_000_000  # bytes of what a page may send

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


def watch(env: SceneEnv, policy: Policy, seed: int, *, port: int = 0, **options: Any) -> Episode | None:
    """Run episodes that a page shows, until its viewers or Ctrl-C end it; return the last one, if it ended.

    The options are those of `LiveView`.
    """
    board = Board()
    view = LiveView(env, policy, board, **options)
    with closing(PageServer(board, view.tell, port)) as server:
        print(f"watch it at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if has_screen():
            webbrowser.open(server.address)
        return view.run(seed)


def has_screen() -> bool:
    """Whether a window can be shown; only Linux tells before one is opened."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


class PageServer(ThreadingHTTPServer):
    """Serves the live page of a board; what its viewers ask for is told to `tell`, which may refuse by `BadInput`."""

    daemon_threads = False  # so that closing it waits for answers that are on their way

    def __init__(self, board: Board, tell: Callable[[Request], None], port: int = 0) -> None:
        try:
            super().__init__((HERE, port), _Handler)
        except OSError as error:
            raise BadInput(f"the page cannot use port {port}: {error}; try another --port, or none") from None
        self.board, self.tell, self.token = board, tell, secrets.token_urlsafe(16)
        self.address = f"http://{HERE}:{self.server_port}/{self.token}/"
        self._thread = Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; pages that wait are answered, and so is the request that ends it."""
        self.board.close()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a page that is closed in the middle of an answer is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
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
            step, picture = self.server.board.picture
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
            self.server.tell(msgspec.json.decode(self.rfile.read(int(length)), type=Request))
        except (BadInput, ValueError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        else:
            self._answer(HTTPStatus.NO_CONTENT, b"")

    def _is_allowed(self) -> bool:
        """Whether it is this machine's own page that asks; else it is refused."""
        hosts = [f"{host}:{self.server.server_port}" for host in (HERE, "localhost")]
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

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal shows the episode."""
