"""Commands load what they need when they need it: neither help nor `solve` loads numbers, pictures or a simulator."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bilevel import cli
from bilevel.commands.summaries import SUMMARIES
from bilevel.tabletop.problems import domain_text

HEAVY = {
    "numpy",
    "torch",
    "mujoco",
    "gymnasium",
    "msgspec",
    "matplotlib",
    "rich",
    "typeguard",
    "asyncio",
    "safetensors",
}
RULES = """# Rules for the domain blocks
1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)
"""
PROBLEM = """(define (problem small) (:domain blocks) (:objects b1 - block p1 - place)
  (:init (clear b1) (clear p1) (gripper-free)) (:goal (at b1 p1)))"""
PLAN = "(pick b1)\n(place b1 p1)\n"
FILES = {"domain.pddl": domain_text("blocks"), "problem.pddl": PROBLEM, "rules": RULES, "small.plan": PLAN}
FIND = """import sys
from bilevel import cli
try:
    cli.main(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
"""


def modules_of(folder: Path, *words: str) -> set[str]:
    """Return the names of all modules that are loaded when a command is done."""
    run = subprocess.run([sys.executable, "-c", FIND, *words], cwd=folder, capture_output=True, text=True, check=True)
    return set(run.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "command",
    [
        "--version",
        "--help",
        "rules --help",
        "solve domain.pddl problem.pddl --rules rules --plan new.plan",
        "validate domain.pddl problem.pddl small.plan",
        "plan domain.pddl problem.pddl",
        "rules show rules",
        "problem blocks --output new.pddl",
    ],
)
def test_what_needs_no_numbers_and_no_pictures_loads_nothing_heavy(tmp_path: Path, command: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    loaded = modules_of(tmp_path, *command.split())
    assert HEAVY & {name.split(".")[0] for name in loaded} == set()
    if "help" in command:
        assert not any(name.startswith(("bilevel.commands.", "bilevel.rules", "bilevel.planning"))
                       for name in loaded - {"bilevel.commands.summaries", "bilevel.commands.help_text"})  # fmt: skip
    if command.startswith(("solve", "validate")):
        assert not any(name.startswith(("bilevel.planning", "bilevel.tasks", "bilevel.tabletop")) for name in loaded)


HELP_OF_ALL = """import sys
from bilevel import cli
for name in cli.COMMANDS:
    if name != "reproduce":  # whose default lists words, for which tyro imports typeguard
        try:
            cli.main([*name.split(), "--help"])
        except SystemExit as stopped:
            assert stopped.code in (0, None)
print(*sys.modules)
"""


def test_the_help_of_a_command_loads_nothing_heavy() -> None:
    shown = subprocess.run([sys.executable, "-c", HELP_OF_ALL], capture_output=True, text=True, check=True).stdout
    assert HEAVY & set(shown.splitlines()[-1].split()) == set()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_all_commands_says_what_each_says_of_itself(name: str) -> None:
    module, _, kind = cli.COMMANDS[name].partition(":")
    command = getattr(__import__(f"bilevel.commands.{module}", fromlist=[kind]), kind)
    text = inspect.getdoc(command)
    assert text is not None
    assert SUMMARIES[name] == " ".join(text.split("\n\n")[0].split())


def test_every_command_has_a_summary_and_every_group_commands() -> None:
    assert list(SUMMARIES) == list(cli.COMMANDS)
    assert {name.split()[0] for name in cli.COMMANDS if " " in name} == set(cli.GROUPS)


def python_m(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run([sys.executable, "-m", "bilevel", *words], capture_output=True, text=True, env=environment)


def test_the_module_is_the_command() -> None:
    shown = python_m("--help")
    assert shown.returncode == 0
    assert all(f"\n  {name.split()[0]} " in shown.stdout for name in cli.COMMANDS)
    assert shown.stdout.startswith("usage: bilevel ")


def test_a_group_shows_its_commands() -> None:
    shown = python_m("rules", "--help")
    assert all(f"\n  {name} " in shown.stdout for name in ("learn", "complete", "show", "verify"))
    assert cli.GROUPS["rules"] in shown.stdout


COMPLETE = """source /dev/stdin
COMP_WORDS=({words} "")
COMP_CWORD={last}
_tyro_bilevel
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def test_bash_completes_commands_options_and_values() -> None:
    script = python_m("--completion", "bash").stdout

    def completed(*words: str) -> list[str]:
        program = COMPLETE.format(words=" ".join(words), last=len(words))
        run = subprocess.run(["bash", "-c", program], input=script, capture_output=True, text=True, check=True)
        return run.stdout.splitlines()

    assert {"policies", "evaluate", "rules"} <= set(completed("bilevel"))
    assert {"verify", "complete"} <= set(completed("bilevel", "rules"))
    assert {"--objects", "--video"} <= set(completed("bilevel", "run", "gacha"))
    assert set(completed("bilevel", "run", "--quality")) == {"auto", "fast", "smooth", "good"}
    assert set(completed("bilevel", "learn", "--preset")) == {"best", "paper"}
    assert {"--version", "--completion"} <= set(completed("bilevel"))
    assert set(completed("bilevel", "--completion")) == {"bash", "zsh", "fish"}
    for command in ("run", "evaluate", "learn", "collect", "import", "reproduce"):  # and no word of their help
        assert all(word.startswith("-") for word in completed("bilevel", command, "x"))


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_options_of_every_command(shell: str) -> None:
    script = python_m("--completion", shell).stdout
    assert "memoryless" in script
    assert "grow" in script
    assert "--version" in script
    completed = next(line for line in script.splitlines() if line.startswith("COMPLETION_SPEC"))
    assert not re.search(r"\\n", completed)


@pytest.mark.parametrize("words", [(), ("tcsh",), ("bash", "zsh")])
def test_a_shell_that_is_not_known_is_one_line(words: tuple[str, ...]) -> None:
    refused = python_m("--completion", *words)
    said = "bilevel: --completion takes a shell: bash, zsh, fish\n"
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", said)
