"""Pages carried out from top to bottom in a folder of their own, block by block, each with a verdict."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import symbolic_situations
import task_situations
from page_blocks import ROOT, Block, Command, blocks_of, commands_in, variables_in
from page_commands import captured, run
from page_tables import (
    ELSEWHERE,
    EVERYWHERE,
    ILLUSTRATIONS,
    MAY_LACK,
    MAY_SAY_NO,
    NOT_RUN,
    OTHER_PROGRAMS,
    PRETRAINED,
    PROGRAMS,
    SIMULATED,
    SMALLER,
)
from task_situations import PREPARED

from bilevel import cli
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.networks import LearningConfig
from bilevel.lowlevel.training import TrainingConfig
from bilevel.policies.folder import pretrained_policies
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.pddl import parse_domain

BRIEF = LearningConfig(training=TrainingConfig(epochs=1), dagger=DaggerConfig(rounds=0))
LINKED = ("src", "results", "benchmarks", "tests")
MEASURED = re.compile(r"\d+(?:\.\d+)?(?= (?:s|ms|µs|MB)\b)")  # differs from run to run
NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
RULE = re.compile(r"^\d+: .*->", re.MULTILINE)
ROW = re.compile(r"^ *(?:\d+|total) +\d+/\d+ .*?%.*")  # of an evaluation
DOTS = re.compile(r"\.\.\.|…")


class Line(NamedTuple):
    """A line that was printed, and whether its numbers say nothing, as something smaller has printed it."""

    text: str
    is_rough: bool


class Page:
    """A page that is being carried out."""

    def __init__(self, path: Path, folder: Path, sources: Sequence[str], patch: pytest.MonkeyPatch) -> None:
        self.name = path.name
        self.patch = patch
        self.blocks = blocks_of(path)
        self.folder = folder
        self.sources = sources
        self.variables = ""
        self.namespace: dict[str, Any] = {"__name__": "__page__", "BRIEF": BRIEF}
        self.printed: list[Line] = []
        self.is_simulated = self.name in SIMULATED
        if self.name in PREPARED:
            PREPARED[self.name](folder, self.namespace)

    def verdict(self, block: Block) -> str:
        """Carry a block out, or check it, and say which; an assertion fails if it is not as it should be."""
        if not block.language or block.language == "text":
            return self._text(block)
        assert block.language in VERDICTS, f"{block}: nobody knows what to do with {block.language}"
        return VERDICTS[block.language](self, block)

    # What is run

    def python(self, block: Block) -> str:
        if any(block.text in source for source in self.sources):
            return "an excerpt of a file"
        if "\n...\n" in block.text:
            written = [line for file in self.folder.glob("*.py") for line in file.read_text().splitlines()]
            problem = unprinted(block.text, self._lines(written))
            assert problem is None, f"{block}: no file that was written has: {problem}"
            return "an excerpt of a file that the page's commands wrote"
        program = self._smaller(block.text)
        with captured() as output:
            missing = [name for name in ELSEWHERE if f"from {name}" in program and not find_spec(name)]
            code = compile(program, str(block), "exec")
            if missing:
                return f"compiled: {ELSEWHERE[missing[0]]}"
            exec(code, self.namespace)
        printed = output.getvalue().splitlines()
        is_rough = program != same(block.text)
        self.printed += self._lines(printed, is_rough)
        for said, text in expected_prints(program, printed):
            (line,) = self._lines([text], is_rough)
            assert matches(said, line), f"{block} prints {text!r}, not {said!r}"
        return "run"

    def shell(self, block: Block) -> str:
        text = f"{self.variables}\n{block.text}"
        self.variables += f"\n{variables_in(block.text)}"
        for name, value in re.findall(r"^export (\w+)=(\S+)$", block.text, re.MULTILINE):
            self.patch.setenv(name, value)
        verdicts = [self._command(block, command) for command in commands_in(text, self.folder)]
        return ", ".join(dict.fromkeys(verdicts)) or "run"

    def _command(self, block: Block, command: Command) -> str:
        program, *words = command.words
        if program != "bilevel":
            return other_program(block, command)
        line = self._smaller(str(command))
        self._options(words)
        reason = next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, line)), None)
        if reason:
            return f"parsed: {reason}"
        code, printed = run(shlex.split(line)[1:], command.folder)
        may_say_no = any(re.search(pattern, str(command)) for pattern in MAY_SAY_NO)
        assert code == 0 or (code == 1 and may_say_no), f"{block}: {line}: exit code {code}\n" + "\n".join(printed)
        self.printed += self._lines(printed, line != same(str(command)))
        if words[0] == "learn" and self.name in PRETRAINED:
            output = command.folder / words[words.index("--output") + 1]
            shutil.copytree(pretrained_policies()[PRETRAINED[self.name]], output, dirs_exist_ok=True)
        return "run"

    @staticmethod
    def _options(words: list[str]) -> None:
        """Read the options as they are, before they are made smaller."""
        if not any(word.startswith(("--help", "--version", "--completion")) for word in words):
            cli._asked(words)

    def _smaller(self, text: str) -> str:
        """Return a command or a program that takes less time, by the table."""
        text = same(text)
        for pattern, replacement in SMALLER.get(self.name, {}).items():
            text = re.sub(pattern, replacement, text)
        return text

    def _lines(self, texts: Sequence[str], is_smaller: bool = False) -> list[Line]:
        return [Line(text, is_smaller or self.is_simulated) for text in texts]

    # What is compared or parsed

    def _text(self, block: Block) -> str:
        """Compare what a page says is printed with what its commands have printed, or other commands would."""
        problem = unprinted(block.text, self.printed)
        if problem is None:
            return "as printed"
        for begin, situation in {**symbolic_situations.SITUATIONS, **task_situations.SITUATIONS}.items():
            if block.text.startswith(begin):
                problem = unprinted(block.text, self._lines(situation(self.folder)))
                assert problem is None, f"{block}: {situation.__name__} did not print: {problem}"
                return "as printed in another situation"
        reason = next((reason for begin, reason in ILLUSTRATIONS.items() if block.text.startswith(begin)), None)
        if reason:
            return f"not checked: {reason}"
        if not RULE.search(block.text):
            raise AssertionError(f"{block}: nothing that ran on this page printed: {problem}")
        return self.rules(block)

    def rules(self, block: Block) -> str:
        text = "\n".join(line for line in block.text.splitlines() if not DOTS.match(line.strip()))
        assert parse_rules(text)
        return "parsed as rules"

    def pddl(self, block: Block) -> str:
        if any(squeezed(block.text) in squeezed(source) for source in self.sources):
            return "an excerpt of a file"
        assert parse_domain(block.text if block.text.startswith("(define") else domain_around(block.text))
        return "parsed as PDDL"

    def json(self, block: Block) -> str:
        json.loads(block.text if block.text.startswith(("{", "[")) else f"{{{block.text}}}")
        return "parsed as JSON"

    def toml(self, block: Block) -> str:
        assert re.fullmatch(r'\[[\w."-]+\]\n([\w-]+ = ".*"\n)+', block.text), f"{block} is not TOML of texts"
        return "parsed as TOML"

    def bibtex(self, block: Block) -> str:
        assert re.fullmatch(r"@\w+\{\w+,\n(  \w+ *= \{.*\},?\n)+\}\n", block.text), f"{block} is not BibTeX"
        return "parsed as BibTeX"


VERDICTS: Mapping[str, Callable[[Page, Block], str]] = {
    "python": Page.python,
    "sh": Page.shell,
    "bash": Page.shell,
    "pddl": Page.pddl,
    "rules": Page.rules,
    "json": Page.json,
    "toml": Page.toml,
    "bibtex": Page.bibtex,
}


def other_program(block: Block, command: Command) -> str:
    """Check a command that is not ours as far as can be without carrying it out."""
    program, *words = command.words
    if program == "make":
        targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(words) <= set(targets), f"{block}: the Makefile has no {words}"
        return "the Makefile's targets"
    if program == "pip":
        extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
        named = {name for word in words for part in re.findall(r"\[(.*)\]", word) for name in part.split(",")}
        assert named <= set(extras), f"{block}: there are no extras {named - set(extras)}"
        return "its extras exist"
    if program == "python" and words[0] in PROGRAMS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words)
            patch.syspath_prepend(Path(words[0]).parent)
            runpy.run_path(words[0], run_name="__main__")
        return "run"
    name = f"python {words[0]}" if program == "python" else program
    if program == "python" and name not in OTHER_PROGRAMS:
        source = (command.folder / words[0]).read_text(encoding="utf-8")
        options = [word for word in words[1:] if word.startswith("--")]
        assert all(f'"{option}"' in source for option in options), f"{block}: {words[0]} has no such options"
        return "the program and its options exist"
    assert name in OTHER_PROGRAMS, f"{block}: nobody knows what to do with {command}"
    return OTHER_PROGRAMS[name]


def same(text: str) -> str:
    """Return a command or a program that prints the same, with less trouble."""
    for pattern, replacement in EVERYWHERE.items():
        text = re.sub(pattern, replacement, text)
    return text


def unprinted(text: str, printed: Sequence[Line]) -> str | None:
    """Return the first line that was not printed, in this order; dots stand for anything, also for whole lines."""
    found = 0
    for line in filter(str.strip, text.splitlines()):
        if not DOTS.sub("", line).strip() or line.startswith(MAY_LACK):
            continue
        place = next((place for place in range(found, len(printed)) if matches(line, printed[place])), None)
        if place is None:
            return line
        found = place if printed[place].is_rough else place + 1  # something smaller may have fewer lines of a kind
    return None


def matches(said: str, printed: Line) -> bool:
    """Whether a line of a page is what was printed, apart from seconds and, where they say nothing, from numbers."""
    parts = DOTS.split(blurred(said, printed.is_rough))
    text = squeezed(blurred(printed.text, printed.is_rough))
    return re.fullmatch(".*".join(re.escape(squeezed(part)) for part in parts), text) is not None


def blurred(line: str, is_rough: bool) -> str:
    """Return a line without what differs from run to run: seconds, or all numbers."""
    if not is_rough:
        return MEASURED.sub("0", line)
    return NUMBER.sub("0", ROW.sub("a row", line).replace("episodes", "episode"))


def domain_around(actions: str) -> str:
    """Return a domain that has these actions or events, and whatever types and predicates they need."""
    types = " ".join(dict.fromkeys(re.findall(r"- (\w+)", actions)))
    arities = {name: len(rest.split()) for name, rest in re.findall(r"\(([\w-]+)((?: \?\w+)*)\)", actions)}
    predicates = " ".join(
        f"({name} {' '.join(f'?x{number}' for number in range(arity))})"
        for name, arity in arities.items()
        if name not in ("and", "new")
    )
    return f"(define (domain shown) (:types {types}) (:predicates {predicates}) {actions})"


def squeezed(text: str) -> str:
    return " ".join(text.split())


def expected_prints(program: str, printed: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what comments behind calls of print, or below them, say, with what is printed there."""
    lines = [*program.splitlines(), ""]
    calls = [number for number, line in enumerate(lines) if line.startswith("print(")]
    comments = [re.search(r"(?:  |^)# (.*)", lines[n]) or re.match(r"# (.*)", lines[n + 1]) for n in calls]
    if any(comments):
        assert len(calls) == len(printed), f"not one line for each call of print: {printed}"
        yield from ((comment[1], line) for comment, line in zip(comments, printed, strict=True) if comment)
