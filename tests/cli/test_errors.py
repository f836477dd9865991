"""What goes wrong is one line on standard error with the right exit code; what is a mistake of ours, a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tiny_task
from bilevel.symbolic.domain import BadInput
from command_line import refused, run
from tiny_policies import still_folder

RULES = "1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)\n"
TINY = f"{tiny_task.__file__}:TINY"

MISTAKES = {
    "lern": "No such command 'lern'. Did you mean 'learn'?; see bilevel --help",
    "--bogus": "No such option '--bogus'; see bilevel --help",
    "rules shwo": "No such command 'shwo'. Did you mean 'show'?; see bilevel rules --help",
    "evaluate --outpu f": "No such option '--outpu'. Did you mean '--output'?; see bilevel evaluate --help",
    "evaluate": "Missing option '--output'; see bilevel evaluate --help",
    "evaluate --output f --episodes x": "'x' is not a valid integer",
    "evaluate blocks --output f --env-args draw=uniform": "'draw'; it takes: ",
    "evaluate blocks --output f --recovery pray": "--recovery takes off, or some of",
    "evaluate blocks --output f --method magic": "unknown method 'magic'",
    "evaluate --output f --workers 111111111111111111111111111111": "is not in the range 1<=x<=1000000000",
    "evaluate --output f --noise nan": "nan is not a finite number",
    "evaluate --output f --objects 5-2": "'5-2' is no range of numbers from 1 on",
    "evaluate --output f a b": "Got unexpected extra argument (b)",
    "learn d --output f --preset good": "'good' is not one of 'best', 'paper'",
    "learn d --output http://somewhere": "'http://somewhere' is a URL; name a file or a folder of this machine",
    "run blocks --env-args slip": "--env-args takes KEY=VALUE, not 'slip'",
    "plan domain.pddl": "Missing argument 'PROBLEM'",
    "reproduce --output x --parts tables": "unknown part 'tables'",
    "plan a b --timeout 0": "0.0 is not in the range 0<x<=1000000",
    "rules complete a.rules b.pddl --budget 0": "0 is not in the range",
    "domain learn d --output d.pddl --held-out 1": "1.0 is not in the range",
    "learn nowhere --output p --log paper=here": "nowhere",
    "run --replay nowhere.jsonl": "nowhere.jsonl: there is no such file",
    "rules show nowhere.rules": "nowhere.rules: there is no such file",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line_that_says_what_is_wrong(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert MISTAKES[words] in refused(capsys, *words.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["--a\nb", "a\nb", "\x1b[31m", "é" * 1_000_000, "\udcff"])
def test_a_strange_word_is_shown_printable_and_short(capsys: pytest.CaptureFixture[str], word: str) -> None:
    for words in ([word], ["evaluate", word, word, "--output", "f"], ["evaluate", "--output", "f", "--seed", word]):
        told = refused(capsys, *words)
        assert "\x1b" not in told
        assert len(told) < 1000


def test_what_others_wrote_into_a_policy_is_shown_printable(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "policy"
    folder.mkdir()
    for file in still_folder().iterdir():
        text = file.read_bytes()
        (folder / file.name).write_bytes(text.replace(b'"0.2.0"', b'"\\u001b[2J' + b"x" * 100_000 + b'"'))
    code, out, err = run(capsys, "policies", folder)
    assert (code, "\x1b" in out + err, "\\x1b[2J" in out) == (0, False, True)
    assert len(out) < 20_000
    text = (folder / "policy.json").read_bytes()
    (folder / "policy.json").write_bytes(text.replace(b'"task": "tiny"', b'"task": "tiny\\n1: -> fly()"'))
    assert "matching regex" in refused(capsys, "policies", folder)


FAILURES: list[tuple[BaseException, int, str]] = [
    (BadInput("file.json:3: no\nnumber"), 2, "error: file.json:3: no number\n"),
    (FileNotFoundError(2, "No such file or directory", "gone"), 2, "error: gone: No such file or directory\n"),
    (
        ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"),
        2,
        "error: No module named 'torch.nn'; install it with: pip install 'bilevel[learning]'\n",
    ),
    (BrokenPipeError(), 0, ""),
    (KeyboardInterrupt(), 130, "error: interrupted\n"),
]


@pytest.mark.parametrize(("failure", "code", "line"), FAILURES, ids=lambda value: type(value).__name__)
def test_what_can_be_expected_is_one_line(
    failure: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr("bilevel.rules.rule_file.read_rules", fail)
    found, out, err = run(capsys, "rules", "show", "some.rules")
    assert (found, out, err.count("\n")) == (code, "", line.count("\n"))
    assert err.endswith(line)


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command line as a person types it; `bilevel` is this interpreter's."""
    typed = command.replace("bilevel", f"{sys.executable} -m bilevel")
    return subprocess.run(["bash", "-c", typed], cwd=folder, capture_output=True, text=True)


def test_a_full_disk_a_closed_output_and_a_poor_terminal_are_survived(tmp_path: Path) -> None:
    (tmp_path / "blocks.rules").write_text("variables: ?b - block, ?p - place\n" + RULES)
    full = shell(tmp_path, "bilevel rules show blocks.rules > /dev/full")
    assert (full.returncode, full.stderr) == (2, "error: No space left on device\n")
    assert shell(tmp_path, "bilevel rules show blocks.rules | head -1; exit ${PIPESTATUS[0]}").stderr == ""
    assert shell(tmp_path, "bilevel rules show blocks.rules >&-").stderr == ""
    poor = shell(tmp_path, "PYTHONIOENCODING=ascii bilevel rules show blocks.rules --format english")
    assert (poor.returncode, poor.stderr) == (0, "")
    closed = shell(tmp_path, f"bilevel run {TINY} --objects 1 --policy expert >&-")
    assert (closed.returncode, len(closed.stderr.splitlines())) == (0, 1)


def test_a_wrong_name_is_set_right_before_any_command_was_loaded() -> None:
    told = subprocess.run([sys.executable, "-m", "bilevel", "rin"], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (
        2,
        "error: No such command 'rin'. Did you mean 'run'?; see bilevel --help\n",
    )
