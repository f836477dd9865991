"""What is wrong with the words of a command that cannot be read: one line that says what, where, and what to do."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from bilevel.commands.options import Option, options_of

NUMBERS = {int: "a whole number", float: "a number"}


def command_mistake(word: str | None, commands: Sequence[str], program: str) -> str:
    """Say that there is no command of this name, or that none was named."""
    if word is None:
        return f"no command is named; {program} --help lists them"
    what = "option" if _is_flag(word) else "command"
    nearest = [] if what == "option" else _nearest(word, commands)
    return f"unknown {what} {shown(word)}{_meant(nearest)}; {program} --help lists those that there are"


def mistake(command: Any, words: Sequence[str], program: str) -> str | None:
    """Say what is wrong with the words that follow the name of a command, if anything is."""
    found = next(_mistakes(options_of(command), words), None)
    return found and f"{found}; see {program} --help"


def _mistakes(options: Sequence[Option], words: Sequence[str]) -> Iterator[str]:
    named = {option.flag: option for option in options if not option.is_positional}
    places = [option for option in options if option.is_positional]
    given, loose, waiting, greedy = set[Option](), list[str](), deque(words), None
    while waiting:
        word = waiting.popleft()
        if word == "--" or not _is_flag(word):
            loose += [*waiting] if word == "--" else [word]
            waiting = deque() if word == "--" else waiting
            continue
        flag, equals, value = word.partition("=")
        option = named.get(flag.replace("_", "-"))
        if option is None:
            yield _unknown(flag, named, places)
            return
        given.add(option)
        needed = sum(place.is_required and not place.takes_several for place in places) - len(loose)
        values = [value] if equals else _values(option, waiting, needed)
        greedy = flag if option.takes_several and values and not equals else greedy
        yield from _wrong_values(option, flag, values, bool(equals))
    yield from _wrong_places(places, loose, greedy)
    missing = [option.usage for option in named.values() if option.is_required and option not in given]
    if missing:
        yield f"missing {listed(missing, 'and')}"


def _values(option: Option, waiting: deque[str], needed: int) -> list[str]:
    """Take the words that are an option's; one that takes several leaves the last that are `needed` elsewhere."""
    values: list[str] = []
    most = 0 if option.kind is bool else len(waiting) - max(needed, 0) if option.takes_several else 1
    while waiting and len(values) < most and not _is_flag(waiting[0]):
        values.append(waiting.popleft())
    return values


def _wrong_values(option: Option, flag: str, values: Sequence[str], has_equals: bool) -> Iterator[str]:
    if option.kind is bool:
        if has_equals:
            yield f"{flag} takes no value, and is given {shown(values[0])}"
        return
    if not values and not option.takes_several:
        yield f"{flag} needs a value: {option.usage}"
    if len(values) > 1 and option.metavar.startswith("["):
        yield f"{flag} takes one {option.metavar.strip('[]')} at most, not {' '.join(map(shown, values))}"
    for value in values:
        if option.choices and value not in option.choices:
            yield f"{flag} takes {listed(option.choices)}, not {shown(value)}"
        elif option.kind in NUMBERS and not _is_number(option.kind, value):
            yield f"{flag} takes {NUMBERS[option.kind]}, not {shown(value)}"


def _wrong_places(places: Sequence[Option], words: Sequence[str], greedy: str | None) -> Iterator[str]:
    """What is missing, which may be behind an option that takes all words that follow it; and what is too much."""
    needed = [option.metavar for option in places if option.is_required and not option.takes_several]
    missing = needed[len(words) :]
    if missing:
        hint = f", unless {greedy} has taken it: give it before {greedy}" if greedy else ""
        yield f"missing {listed(missing, 'and')}{hint}"
    if len(words) > len(places) and not any(option.takes_several for option in places):
        yield f"unexpected argument {shown(words[len(places)])}"


def _unknown(flag: str, named: Iterable[str], places: Sequence[Option]) -> str:
    for option in places:
        if option.flag == flag:
            return f"{option.metavar} is given without {flag}"
    return f"unknown option {shown(flag)}{_meant(_nearest(flag, [*named, '--help']))}"


def _meant(nearest: Sequence[str]) -> str:
    return f" (did you mean {listed(nearest)}?)" if nearest else ""


def _nearest(word: str, names: Iterable[str]) -> list[str]:
    known = list(dict.fromkeys(names))
    return get_close_matches(word, known) or [name for name in known if len(word) > 3 and name.startswith(word)]


def _is_flag(word: str) -> bool:
    """Whether a word is the name of an option, and no number below 0."""
    return word.startswith("-") and len(word) > 1 and not _is_number(float, word)


def _is_number(kind: Any, word: str) -> bool:
    try:
        kind(word)
    except ValueError:
        return False
    return True


def listed(names: Sequence[str], last: str = "or") -> str:
    """Return `a, b or c`."""
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def shown(word: str) -> str:
    """A word as it can stand in a line: quoted, on one line, and not too long."""
    text = word if word.isprintable() else repr(word)[1:-1]
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"
