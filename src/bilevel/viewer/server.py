"""The page's own server: for this machine alone, and for those who know the address.

It listens on 127.0.0.1 only. A request must name this server as its host, so that no other site's name can be made to
point here; a page of another origin is refused; and the address has a random part that nobody else knows.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from bilevel.symbolic.domain import BadInput
from bilevel.viewer import requests
from bilevel.viewer.board import Asked, Board
from bilevel.viewer.requests import read_request
from bilevel.viewer.timeline import viewer_asset

HERE = "127.0.0.1"
PATIENCE = 10.0  # seconds after which a page that waits for news is told that there are none
LAST_ANSWERS = 2.0  # seconds that a server which stops gives to answers that are on their way
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

Tell = Callable[[requests.Request], None]  # `BadInput` where it cannot be done


class PageServer:
    """Serves the live page of a board; what its viewers want is told to `tell`."""

    def __init__(self, board: Board, tell: Tell, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(16)
        try:
            self._server = _Server((HERE, port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise BadInput(f"the page cannot use port {port}: {why}; try another --port, or none") from None
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
        self._server.wait_for_answers()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a browser may keep its connection open for as long as it likes
    board: Board
    tell: Tell
    token: str

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._in_work, self._answered = 0, Condition()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Count a request as unanswered meanwhile."""
        with self._answered:
            self._in_work += 1
        try:
            yield
        finally:
            with self._answered:
                self._in_work -= 1
                self._answered.notify_all()

    def wait_for_answers(self) -> None:
        """Wait until all requests are answered, but not for a browser that does not listen."""
        with self._answered:
            self._answered.wait_for(lambda: self._in_work == 0, LAST_ANSWERS)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a page that is closed in the middle of an answer is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a silent connection is kept
    disable_nagle_algorithm = True  # small answers go out at once

    def do_GET(self) -> None:
        with self.server.answering():
            self._get()

    def do_POST(self) -> None:
        with self.server.answering():
            self._post()

    def _get(self) -> None:
        name, question = self._asked_for()
        if name is None:
            return
        if name in FILES:
            file, kind = FILES[name]
            self._answer(HTTPStatus.OK, viewer_asset(file).encode(), kind)
        elif name == "news":
            self._send_news(question)
        elif name == "picture.jpg":
            picture = self.server.board.picture()
            status = HTTPStatus.OK if picture.jpeg else HTTPStatus.NOT_FOUND
            self._answer(status, picture.jpeg, "image/jpeg", {"X-Step": str(picture.step)})
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def _post(self) -> None:
        name, _ = self._asked_for()
        if name is None:
            return
        try:
            if name != "request":
                raise BadInput("there is nothing to send to here")
            self.server.tell(read_request(self._body()))
        except BadInput as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        else:
            self._answer(HTTPStatus.NO_CONTENT, b"")

    def _asked_for(self) -> tuple[str | None, dict[str, str]]:
        """Return the name of what is asked for, and the question; no name where the request has been refused."""
        ours = [f"{host}:{self.server.server_address[1]}" for host in (HERE, "localhost")]
        origin = self.headers.get("Origin")
        address = urlsplit(self.path)
        _, token, *rest = address.path.split("/", 2) if address.path.startswith("/") else ("", "")
        if self.headers.get("Host") not in ours:
            self._refuse(HTTPStatus.FORBIDDEN, "this page is for this machine alone")
        elif origin is not None and origin not in [f"http://{host}" for host in ours]:
            self._refuse(HTTPStatus.FORBIDDEN, "this page answers no other site")
        elif not rest or not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "this is not the address that bilevel has printed")
        else:
            return rest[0], dict(parse_qsl(address.query))
        return None, {}

    def _body(self) -> bytes:
        """Return what a page has sent; a page of another origin cannot send this type without asking first."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != "application/json":
            raise BadInput("a request has the Content-Type application/json")
        if not length.isdecimal() or int(length) > LONGEST:
            raise BadInput(f"a request is JSON of at most {LONGEST:,} bytes, and says of how many")
        return self.rfile.read(int(length))

    def _send_news(self, question: Mapping[str, str]) -> None:
        known = {name: number for name, text in question.items() if (number := _number(text)) is not None}
        asked = Asked(**{name: known[name] for name in ("version", "episode", "beats", "rules") if name in known})
        news = self.server.board.news(asked, PATIENCE)
        self._answer(HTTPStatus.OK, msgspec.json.encode(news), "application/json")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Answer with one line; what was sent may not have been read, so nothing else can come on this connection."""
        self.close_connection = True
        self._answer(status, f"{why}\n".encode(), "text/plain; charset=utf-8")

    def _answer(
        self, status: HTTPStatus, content: bytes, kind: str = "text/plain", further: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        headers = {**HEADERS, **(further or {}), "Content-Type": kind, "Content-Length": str(len(content))}
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        return "bilevel"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal shows the episode."""


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 16 else None
