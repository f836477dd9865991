"""Speaks vla_protocol without any model. How it behaves is the name of the "model" that it is told to load.

What it is asked it writes beside that, one line of JSON for each question.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bilevel.baselines.vla_protocol import VERSION, Message, encode, read_message

CHUNK = 5  # actions for each picture
ACTIONS = {"six numbers": [0.5, -0.5, 2.0, 1.0, 9.0, 9.0], "not finite": [0.0, float("nan"), 0.0, 0.0]}
FOUR_NUMBERS = [0.5, -0.5, 2.0, -3.0]


class Fake:
    def __init__(self, fields: dict[str, Any]) -> None:
        self.name = Path(fields["model"]).name
        self.log = Path(fields["model"]).with_suffix(".log")
        self.taken = 0

    def answer(self, message: Message) -> dict[str, Any]:
        fields = dict(message.fields)
        with self.log.open("a") as file:
            print(json.dumps({**fields, "bytes": len(message.data), "pid": os.getpid()}), file=file)
        if fields["ask"] == "load":
            return self.load()
        if fields["ask"] == "reset":
            self.taken = 0
            return {"answer": "done"}
        return self.act()

    def load(self) -> dict[str, Any]:
        action = ACTIONS.get(self.name, FOUR_NUMBERS)
        version = VERSION + 1 if self.name == "another version" else VERSION
        if self.name == "refuses":
            return {"answer": "error", "message": "no GPU: there is none"}
        if self.name == "three numbers":
            action = FOUR_NUMBERS[:3]
        return {"answer": "ready", "version": version, "action_size": len(action)}

    def act(self) -> dict[str, Any]:
        if self.name == "dies":
            sys.exit("Killed by a lack of memory")
        if self.name == "hangs":
            time.sleep(600)
        if self.name == "prints":
            print("Loading weights …", flush=True)
        self.taken += 1
        values = ACTIONS.get(self.name, FOUR_NUMBERS)
        return {"answer": "action", "values": values, "wants_image": self.taken % CHUNK == 0}


def main() -> None:
    fake: Fake | None = None
    while message := read_message(sys.stdin.buffer.read):
        fake = fake or Fake(dict(message.fields))
        answer = fake.answer(message)
        if fake.name == "with a child":
            answer["child"] = subprocess.Popen(["sleep", "600"]).pid
        sys.stdout.buffer.write(encode(Message(answer)))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
