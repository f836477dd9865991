"""What cannot be read as a command is one line on standard error, whatever is wrong with it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bilevel import cli
from bilevel.commands.mistakes import mistake
from bilevel.commands.options import Option, options_of
from bilevel.symbolic.domain import BadInput
from command_line import run

CASES = [
    ("", "no command is named; bilevel --help lists them"),
    ("lern", "unknown command 'lern' (did you mean learn?); bilevel --help lists those that there are"),
    ("xyzzy", "unknown command 'xyzzy'; bilevel --help lists those that there are"),
    ("--bogus", "unknown option '--bogus'; bilevel --help lists those that there are"),
    ("rules", "no command is named; bilevel rules --help lists them"),
    ("rules shwo", "unknown command 'shwo' (did you mean show?); bilevel rules --help lists those that there are"),
    ("evaluate --outpu f", "unknown option '--outpu' (did you mean --output?); see bilevel evaluate --help"),
    ("evaluate --task blocks --output f", "TASK is given without --task; see bilevel evaluate --help"),
    ("evaluate", "missing --output FILE; see bilevel evaluate --help"),
    ("evaluate --output", "--output needs a value: --output FILE; see bilevel evaluate --help"),
    ("evaluate --output --json", "--output needs a value: --output FILE; see bilevel evaluate --help"),
    ("evaluate --output f --episodes x", "--episodes takes a whole number, not 'x'; see bilevel evaluate --help"),
    ("evaluate --output f --noise=much", "--noise takes a number, not 'much'; see bilevel evaluate --help"),
    ("evaluate --output f a b", "unexpected argument 'b'; see bilevel evaluate --help"),
    ("methods --json=yes", "--json takes no value, and is given 'yes'; see bilevel methods --help"),
    ("evaluate --output f --seed None", "--seed takes a whole number, not 'None'; see bilevel evaluate --help"),
    ("learn d --output f --preset good", "--preset takes best or paper, not 'good'; see bilevel learn --help"),
    ("run blocks --video a b", "--video takes one FILE at most, not 'a' 'b'; see bilevel run --help"),
    ("evaluate --output f --json=yes", "--json takes no value, and is given 'yes'; see bilevel evaluate --help"),
    ("methods --tyro-print-completion tcsh", "unknown option '--tyro-print-completion'; see bilevel methods --help"),
    (
        "collect --env-args slip=1 blocks --output f",
        "missing TASK, unless --env-args has taken it: give it before --env-args; see bilevel collect --help",
    ),
    ("plan domain.pddl", "missing PROBLEM; see bilevel plan --help"),
    ("plan", "missing DOMAIN and PROBLEM; see bilevel plan --help"),
    ("rules learn --output f -x", "unknown option '-x'; see bilevel rules learn --help"),
]


@pytest.mark.parametrize(("words", "said"), CASES)
def test_it_says_what_is_wrong_where_and_what_to_do(capsys: pytest.CaptureFixture[str], words: str, said: str) -> None:
    assert run(capsys, *words.split()) == (2, "", f"bilevel: {said}\n")


@pytest.mark.parametrize("word", ["--a\nb", "a\nb", "\x1b[31m", "é" * 500, "\udcff"])
def test_a_strange_word_stays_on_one_line(capsys: pytest.CaptureFixture[str], word: str) -> None:
    for words in ([word], ["evaluate", word, word, "--output", "f"], ["evaluate", "--output", "f", "--seed", word]):
        code, _, err = run(capsys, *words)
        assert (code, err.count("\n"), err.startswith("bilevel: ")) == (2, 1, True)
        assert "\x1b" not in err
        assert len(err) < 250


def words_of(option: Option, rng: Random) -> list[str]:
    """An option as people give it: rightly, or not quite."""
    value = rng.choice(["1", "-1", "0.5", "x", "None", "", "-", *option.choices])
    flag = rng.choice([option.flag, option.flag, option.flag[:-1], "--" + option.name])
    return rng.choice([[value], [flag], [flag, value], [flag, value], [f"{flag}={value}"]])


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_whatever_is_refused_there_is_a_reason(name: str) -> None:
    """tyro decides what is wrong, and we say why: there must be a reason whenever it does, and none where not."""
    kind: Any = cli.load(name)
    options, rng, reasons = options_of(kind), Random(name), list[str]()
    for _ in range(30):
        words = [word for option in rng.choices(options, k=rng.randrange(5)) for word in words_of(option, rng)]
        try:
            cli._read(kind, words, f"bilevel {name}")
        except BadInput as error:
            reasons.append(f"{words}: {error}")
        else:
            assert mistake(kind, words, "bilevel") is None, words
    assert reasons
    assert [reason for reason in reasons if "does not take these" in reason] == []
