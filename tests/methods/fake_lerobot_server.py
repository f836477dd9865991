"""Speaks as lerobot_server does, without any model. How it behaves is the name of the "model" that it is told to run.

What it is asked it writes beside that, one line of JSON for each question. It prints, too.
"""

from __future__ import annotations

import json
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

CHUNK = 5  # actions for each picture
THREE_NUMBERS = [0.5, -0.05, 0.7]
ACTIONS = {"six numbers": [*THREE_NUMBERS, 9.0, 9.0, 9.0], "not finite": [0.0, float("nan"), 0.0]}


def main(pipe: str, model: str, device: str) -> None:
    connection, name, taken = Connection(int(pipe)), Path(model).name, 0
    while True:
        try:
            question: dict[str, Any] = connection.recv()
        except EOFError:
            return
        pixels, values = question.pop("pixels", b""), ACTIONS.get(name, THREE_NUMBERS)
        with Path(model).with_suffix(".log").open("a") as file:
            print(json.dumps({**question, "bytes": len(pixels), "device": device}), file=file)
        if name == "refuses":
            connection.send({"error": "no GPU: there is none"})
        elif "sentence" not in question:
            taken = 0
            connection.send({})
        elif name == "dies":
            sys.exit("Killed by a lack of memory")
        else:
            print("Loading weights …", flush=True)  # as LeRobot does
            taken += 1
            connection.send({"values": values, "wants_picture": taken % CHUNK == 0})


if __name__ == "__main__":
    main(*sys.argv[1:])
