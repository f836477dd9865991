"""Speaks as vla_server does, without any model. How it behaves is the name of the "model" that it is told to load.

What it is asked it writes beside that, one line of JSON for each question. It prints, too.
"""

from __future__ import annotations

import json
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

CHUNK = 5  # actions for each picture
THREE_NUMBERS = [0.5, -0.05, 0.7]
ACTIONS = {
    "two numbers": [0.0, 0.0],
    "six numbers": [*THREE_NUMBERS, 9.0, 9.0, 9.0],
    "not finite": [0.0, float("nan"), 0.0],
}


class Fake:
    def __init__(self, fields: dict[str, Any]) -> None:
        self.name = Path(fields["model"]).name
        self.log = Path(fields["model"]).with_suffix(".log")
        self.taken = 0

    def answer(self, fields: dict[str, Any]) -> dict[str, Any]:
        pixels = fields.pop("pixels", b"")
        with self.log.open("a") as file:
            print(json.dumps({**fields, "bytes": len(pixels), "pid": os.getpid()}), file=file)
        if fields["ask"] == "load":
            return self.load()
        if fields["ask"] == "reset":
            self.taken = 0
            return {}
        return self.act()

    def load(self) -> dict[str, Any]:
        action = ACTIONS.get(self.name, THREE_NUMBERS)
        if self.name == "refuses":
            return {"error": "no GPU: there is none"}
        return {"action_size": len(action)}

    def act(self) -> dict[str, Any]:
        if self.name == "dies":
            sys.exit("Killed by a lack of memory")
        print("Loading weights …", flush=True)  # as LeRobot does
        self.taken += 1
        values = ACTIONS.get(self.name, THREE_NUMBERS)
        return {"values": values, "wants_image": self.taken % CHUNK == 0}


def main() -> None:
    fake: Fake | None = None
    connection = Connection(int(sys.argv[1]))
    while True:
        try:
            fields = connection.recv()
        except EOFError:
            return
        fake = fake or Fake(fields)
        answer = fake.answer(fields)
        connection.send(answer)


if __name__ == "__main__":
    main()
