"""Messages survive the way, and what is none is told from it."""

from __future__ import annotations

import io

import pytest

from bilevel.baselines.vla_protocol import MOST_BYTES, BadMessage, Message, encode, read_message

MESSAGES = [
    Message({"ask": "reset", "seed": 7}),
    Message({"ask": "act", "sentence": "Grüße, “Bär” …", "state": [0.1, -2.5, 1e-9, 1.0]}, bytes(range(256)) * 9),
    Message({}),
]


def test_messages_come_out_as_they_went_in() -> None:
    stream = io.BytesIO(b"".join(map(encode, MESSAGES)))
    assert [read_message(stream.read) for _ in MESSAGES] == MESSAGES
    assert read_message(stream.read) is None


def test_the_bytes_on_the_wire() -> None:
    assert encode(Message({"a": 1}, b"xyz")) == b'\x00\x00\x00\x08\x00\x00\x00\x03{"a": 1}xyz'


def test_a_message_that_is_cut_off_anywhere_is_noticed() -> None:
    whole = encode(MESSAGES[0]._replace(data=b"picture"))
    for length in range(1, len(whole)):
        with pytest.raises(BadMessage, match="the stream ends within a message"):
            read_message(io.BytesIO(whole[:length]).read)


@pytest.mark.parametrize(
    ("wire", "complaint"),
    [
        (b"Loading weights from local directory\n", "something else than a message"),
        (b"\x00\x00\x00\x02" + (MOST_BYTES + 1).to_bytes(4, "big") + b"{}", "something else than a message"),
        (b"\x00\x00\x00\x02\x00\x00\x00\x00{]", "not JSON"),
        (b"\x00\x00\x00\x02\x00\x00\x00\x00\xff\xff", "not JSON"),
        (b"\x00\x00\x00\x02\x00\x00\x00\x0010", "a message is a JSON object"),
    ],
)
def test_what_is_no_message_is_refused(wire: bytes, complaint: str) -> None:
    with pytest.raises(BadMessage, match=complaint):
        read_message(io.BytesIO(wire).read)
