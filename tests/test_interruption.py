"""Ctrl-C at any moment, even while modules are imported, is one line and exit code 130; SIGTERM is silent, and 143."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tiny_task

TINY = f"{tiny_task.__file__}:TINY"
# Sends a signal when the so-manieth module is looked for, in the way that is asked for.
INTERRUPT = """import signal, sys
from bilevel.cli import main

NUMBER = signal.Signals[sys.argv.pop(1)]

class Interruption:
    def __init__(self, left, how):
        self.left, self.how = left, how

    def find_spec(self, name, path, target=None):
        self.left -= 1
        if self.left == 0:
            self.how()

class Garbage:
    def __del__(self):
        signal.raise_signal(NUMBER)

def changed():
    try:
        signal.raise_signal(NUMBER)
    except (KeyboardInterrupt, SystemExit):
        raise SyntaxError("as the compiler says")

HOW = {"raised": lambda: signal.raise_signal(NUMBER), "ignored": Garbage, "changed": changed}
sys.meta_path.insert(0, Interruption(int(sys.argv[1]), HOW[sys.argv[2]]))
sys.argv[1:3] = []
main()
"""
RUN = ("run", TINY, "--objects", "1", "--policy", "expert")
COMMANDS = {
    "help": ("run", "--help"),
    "plan": ("plan", "domain.pddl", "problem.pddl"),
    "run": RUN,
    "evaluate": ("evaluate", TINY, "--method", "expert", "--objects", "1", "--output", "results.jsonl"),
}


def interrupted(
    folder: Path, words: tuple[str, ...], modules: int, how: str, number: str = "SIGINT"
) -> tuple[int, str, str]:
    command = [sys.executable, "-c", INTERRUPT, number, str(modules), how, *words]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("modules", [1, 12, 60])
def test_while_modules_are_imported(tmp_path: Path, name: str, modules: int) -> None:
    found = interrupted(tmp_path, COMMANDS[name], modules, "raised")
    assert found == (130, "", "bilevel: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_where_python_cannot_raise_it(tmp_path: Path) -> None:
    assert interrupted(tmp_path, RUN, 30, "ignored") == (130, "", "bilevel: interrupted; nothing was written\n")


def test_where_it_becomes_another_error(tmp_path: Path) -> None:
    assert interrupted(tmp_path, RUN, 30, "changed") == (130, "", "bilevel: interrupted\n")


@pytest.mark.parametrize("how", ["raised", "ignored", "changed"])
def test_who_is_told_to_end_ends_in_silence(tmp_path: Path, how: str) -> None:
    assert interrupted(tmp_path, RUN, 30, how, "SIGTERM") == (143, "", "")


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_at_the_very_end_it_is_too_late_to_say_anything(number: str) -> None:
    program = (
        f"import atexit, signal\nfrom bilevel.cli import main\natexit.register(signal.raise_signal, signal.{number})"
    )
    command = [sys.executable, "-c", f"{program}\nmain()", "--version"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (-signal.Signals[number], "")


LOSING = """import signal, sys
from importlib.machinery import ModuleSpec
from bilevel.cli import main

class ExtensionFileLoader:  # imports a module, as compiled ones do, and loses what is raised meanwhile
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == "bilevel.commands.run_command" else None

    def create_module(self, spec):
        try:
            for _ in range(presses):
                signal.raise_signal(number)
        except (KeyboardInterrupt, SystemExit):
            pass
        sys.meta_path.remove(self)
        import bilevel.commands.run_command
        return sys.modules.pop("bilevel.commands.run_command")

    def exec_module(self, module):
        import time
        time.sleep(0.1)

sys.meta_path.insert(0, ExtensionFileLoader())
number, presses = signal.Signals[sys.argv.pop(1)], int(sys.argv.pop(1))
main()
"""


@pytest.mark.parametrize(
    ("number", "presses", "code", "said"),
    [
        ("SIGINT", 1, 130, "bilevel: interrupted; nothing was written\n"),
        ("SIGINT", 2, 130, "bilevel: interrupted\n"),
        ("SIGTERM", 1, 143, ""),
        ("SIGTERM", 2, 143, ""),
    ],
)
def test_while_a_compiled_module_is_imported_that_would_lose_it(
    tmp_path: Path, number: str, presses: int, code: int, said: str
) -> None:
    command = [sys.executable, "-c", LOSING, number, str(presses), *RUN]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (code, "", said)
