"""The server of the live page: for this machine alone, and for those who know its address."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest
from live_episode import Live, live

from bilevel.viewer.server import FILES

STEP = json.dumps({"type": "step"})
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def watched() -> Iterator[Live]:
    with live() as found:
        yield found


def ask(
    watched: Live,
    name: str,
    headers: Mapping[str, str] | None = None,
    body: str | None = None,
    token: str | None = None,
) -> tuple[int, str, HTTPResponse]:
    """The status, the text and the whole answer to a request; one with a body is a POST."""
    server = watched.server
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    path = f"/{server.token if token is None else token}/{name}"
    connection.request("POST" if body is not None else "GET", path, body, dict(headers or {}))
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text, answer


@pytest.mark.parametrize("name", FILES)
def test_the_page_is_served_with_nothing_from_elsewhere(watched: Live, name: str) -> None:
    status, text, answer = ask(watched, name)
    assert status == 200
    assert "http:" not in text
    assert "https:" not in text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_news_are_json_and_a_picture_says_which_step_it_shows(watched: Live) -> None:
    status, text, _ = ask(watched, "news?version=0&beats=nonsense&further=1")
    found: dict[str, Any] = json.loads(text)
    assert (status, found["about"]["task"], found["episode"]) == (200, "drawn", 1)
    status, _, answer = ask(watched, "picture.jpg")
    assert (status, answer.headers["X-Step"], answer.headers["Content-Type"]) == (200, "0", "image/jpeg")


REFUSED = {  # what another site's page sends, or one who does not know the address
    "this page is for this machine alone\n": [
        {"Host": host} for host in ("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "")
    ],
    "this page answers no other site\n": [
        {"Origin": origin} for origin in ("http://evil.example", "https://127.0.0.1:{port}", "null", "127.0.0.1:{port}")
    ],
    "this is not the address that bilevel has printed\n": [{"token": token} for token in ("", "x", "%00")],
}


@pytest.mark.parametrize("said", REFUSED)
@pytest.mark.parametrize("body", [None, STEP])
def test_only_the_page_itself_is_answered(watched: Live, said: str, body: str | None) -> None:
    for given in REFUSED[said]:
        headers = {name: text.format(port=watched.server.server_port) for name, text in given.items()}
        token = headers.pop("token", None)
        assert ask(watched, "request" if body else "news", {**JSON, **headers}, body, token)[:2] == (403, said)
    assert watched.env.steps == 0


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ({}, STEP, "a request has the Content-Type application/json"),
        ({**JSON, "Content-Length": "-1"}, STEP, "at most 1,000,000 bytes"),
        (JSON, "{", "truncated"),
        (JSON, "[" * 100_000, "Expected `object`"),
        (JSON, '{"type": "fly"}', "Invalid enum value 'fly'"),
        (JSON, '{"type": "pace", "speed": -1}', "$.speed"),
        (JSON, '{"type": "pace", "speed": 1e-300}', "the speed is 0, or"),
        (JSON, '{"type": "again", "ahead": -1}', "$.ahead"),
        (JSON, '{"type": "step", "more": 1}', "unknown field `more`"),
        (JSON, json.dumps({"type": "edit", "text": "1: -> fly()"}), "rules:1:7: unknown action 'fly'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    watched: Live, headers: Mapping[str, str], body: str, said: str
) -> None:
    status, text, _ = ask(watched, "request", headers, body)
    assert status == 400
    assert said in text
    assert len(text.splitlines()) == 1
    assert watched.env.steps == 0


def test_other_names_and_other_ways_are_refused(watched: Live) -> None:
    assert ask(watched, "../live.html")[0] == 404
    for target in ("http://[", "//[", "*", "http://127.0.0.1/"):
        with socket.create_connection(("127.0.0.1", watched.server.server_port), timeout=20) as plain:
            plain.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{watched.server.server_port}\r\n\r\n".encode())
            assert b" 403 " in plain.recv(1000)
    assert ask(watched, "news", JSON, STEP)[0] == 400
