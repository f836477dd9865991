"""Ctrl-C at any moment, even while modules are imported, is one line and exit code 130."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tiny_task

TINY = f"{tiny_task.__file__}:TINY"
# Presses Ctrl-C when the so-manieth module is looked for, in the way that is asked for.
INTERRUPT = """import signal, sys
from bilevel.cli import main

class Interruption:
    def __init__(self, left, how):
        self.left, self.how = left, how

    def find_spec(self, name, path, target=None):
        self.left -= 1
        if self.left == 0:
            self.how()

class Garbage:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def changed():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise SyntaxError("as the compiler says")

HOW = {"raised": lambda: signal.raise_signal(signal.SIGINT), "ignored": Garbage, "changed": changed}
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


def interrupted(folder: Path, words: tuple[str, ...], modules: int, how: str) -> tuple[int, str, str]:
    command = [sys.executable, "-c", INTERRUPT, str(modules), how, *words]
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


LOSING = """import signal, sys
from importlib.machinery import ModuleSpec
from bilevel.cli import main

class ExtensionFileLoader:  # imports a module, as compiled ones do, and loses what is raised meanwhile
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == "bilevel.commands.run_command" else None

    def create_module(self, spec):
        try:
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pass
        sys.meta_path.remove(self)
        import bilevel.commands.run_command
        return sys.modules.pop("bilevel.commands.run_command")

    def exec_module(self, module):
        import time
        time.sleep(0.1)

sys.meta_path.insert(0, ExtensionFileLoader())
presses = int(sys.argv.pop(1))
main()
"""


@pytest.mark.parametrize(("presses", "said"), [(1, "interrupted; nothing was written"), (2, "interrupted")])
def test_while_a_compiled_module_is_imported_that_would_lose_it(tmp_path: Path, presses: int, said: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOSING, str(presses), *RUN], cwd=tmp_path, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", f"bilevel: {said}\n")
