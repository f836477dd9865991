"""English for the names in a domain: what a predicate says of its arguments, what an action does with them.

Nothing here knows any one domain. Names are split into words, and what kind of words they are, with a few short lists
where English has no rule, decides how they are put together. Where a name fits no pattern it is quoted as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PREPOSITIONS = word_set("at on in inside under above below over near behind beside beneath underneath within")
_LINKS = word_set("to with from by into onto")
_ADJECTIVES = word_set(
    "free clear empty open closed full ready available avail known unknown idle busy safe dirty clean hot cold on off "
    "alive dead visible dry wet new old hungry broken done big small"
)
_NOT_PARTICIPLES = word_set("bed seed need speed feed red shed weed reed deed")
_TAKING = word_set("hold carry grasp have grip own possess know see contain support need")
_TO = word_set("adjacent connected linked attached assigned next close tied")
_CONNECTIONS = word_set("road path link edge connection route way bridge rail")
_SIDES = word_set("left right north south east west ahead top front")
_HANDS = word_set("gripper hand arm claw tool")
_ENCLOSING = word_set("room city area zone building house kitchen")
_PLACES = word_set(
    "place location room floor city site cell tile position airport depot waypoint area spot square station zone"
)
_SURFACES = word_set("tray table platform surface shelf plate desk pallet pile stack")
_CONTAINERS = word_set("box bag bin van truck drawer crate container vehicle plane airplane car train cup")
_MOVES = word_set("move go drive fly sail walk travel navigate turn run climb steer")
_DIRECTIONS = word_set("up down left right forward forwards back north south east west")
_PUTS = word_set("place put drop stack load insert deliver set lay debark leave store")
_TAKES = word_set("pick take grasp unstack unload remove lift collect get grab fetch")
_PRESSED = word_set("button switch lever")
_PARTICLES = word_set("up down on off out")
_FILLERS = word_set("goal to from at in into by")
_FULL_WORDS = {
    "destin": "destination",
    "dest": "destination",
    "loc": "location",
    "pos": "position",
    "obj": "object",
    "avail": "available",
    "opened": "open",
    "handempty": "hand empty",
    "armempty": "arm empty",
    "ontable": "on table",
    "clr": "clear",
    "boarded": "on board",
}
_PROPER_NAMES = frozenset({"robby"})


@dataclass(frozen=True, slots=True)
class Phrase:
    """A clause in pieces: subject, verb in its base form, and the rest.

    `{0}` stands for the first argument, `{0's}` for its possessive. `is_location` marks "is at/on/in something".
    """

    subject: str
    verb: str
    rest: str
    is_location: bool = False

    def present(self) -> str:
        return self._join(_finite(self.verb, self.subject))

    def absent(self) -> str:
        finite = _finite(self.verb, self.subject)
        if self.subject == "there":
            return f"there is no {self.rest.split(' ', 1)[1]}"
        if self.verb == "be":
            return self._join(f"{finite} not")
        return self._join(f"{'do' if self.subject == 'you' else 'does'} not {self.verb}")

    def wanted(self) -> str:
        """As a goal that is not achieved yet."""
        if self.is_location:
            return self._join("belongs")
        if self.rest == "achieved":
            return f"{self.present()[: -len(self.rest)]}not achieved yet"
        return self._join(f"still {_finite('have', self.subject)} to {self.verb}")

    def _join(self, verb: str) -> str:
        return f"{self.subject} {verb} {self.rest}".rstrip()


ATTRIBUTE = Phrase("{0}", "have", "{1}")


def words(name: str) -> list[str]:
    """The words of a name, split at hyphens, underscores and capitals: `gripperFree` is gripper, free."""
    parts = re.sub(r"[-_]+|(?<=[a-z0-9])(?=[A-Z])", " ", name).lower().split()
    return [word for part in parts for word in _FULL_WORDS.get(part, part).split()] or [name]


def with_article(phrase: str) -> str:
    vowel = phrase[:1] in "aeiou" and not phrase.startswith(("uni", "use", "one", "eu"))
    return f"{'an' if vowel or phrase.startswith('hour') else 'a'} {phrase}"


def listed(items: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def _is_adjective(word: str) -> bool:
    participle = word.endswith("ed") and len(word) > 3 and word not in _NOT_PARTICIPLES
    return word in _ADJECTIVES or participle or word.endswith(("able", "ible"))


def names_a_kind(predicate: str) -> bool:
    """Whether a unary predicate says what kind of thing its argument is: `ball`, but not `clear` or `holding`."""
    parts = words(predicate)
    first, last = parts[0], parts[-1]
    return not (
        any(part in PREPOSITIONS or _is_adjective(part) for part in (first, last))
        or first in ("is", "has", "have", "not")
        or last.endswith("ing")
        or _taking(first)
    )


def phrase_of(predicate: str, nouns: tuple[str, ...]) -> Phrase:
    """What a predicate says of arguments that are called `nouns`."""
    parts = words(predicate)
    if len(parts) > 1 and parts[0] == "is":
        parts = parts[1:]
    if nouns and len(parts) > 1 and parts[0] == nouns[0]:
        parts = parts[1:]
    by_arity = (_nullary, _unary, _binary)
    found = by_arity[len(nouns)](parts, nouns) if len(nouns) < len(by_arity) and parts else None
    if found is not None:
        return _with_fitting_preposition(found, nouns)
    places = listed([f"{{{i}}}" for i in range(len(nouns))])
    return Phrase(f'"{predicate}"', "hold", f"for {places}" if nouns else "")


def _with_fitting_preposition(phrase: Phrase, nouns: tuple[str, ...]) -> Phrase:
    """`at` a place, but `in` a room."""
    rest = phrase.rest
    for i, thing in enumerate(nouns):
        if thing.split()[-1] in _ENCLOSING:
            rest = re.sub(rf"\bat \{{{i}\}}", f"in {{{i}}}", rest)
    return replace(phrase, rest=rest)


def _nullary(parts: list[str], _: tuple[str, ...]) -> Phrase | None:
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return Phrase("you", "be", first) if first in _ADJECTIVES else None
    if _is_adjective(last) or last.endswith("ing"):
        return Phrase(f"the {' '.join(parts[:-1])}", "be", last)
    return Phrase(f"the {' '.join(parts[1:])}", "be", first) if _is_adjective(first) else None


def _unary(parts: list[str], _: tuple[str, ...]) -> Phrase | None:
    first, last, before, after = parts[0], parts[-1], " ".join(parts[:-1]), " ".join(parts[1:])
    if not after:
        return _unary_word(first)
    if first in ("has", "have"):
        return Phrase("{0}", "have", with_article(after))
    if first == "at":
        return Phrase(after if after in _PROPER_NAMES else f"the {after}", "be", "at {0}", is_location=True)
    if first in PREPOSITIONS:
        return Phrase("{0}", "be", f"{first} board" if after == "board" else f"{first} the {after}")
    if last in PREPOSITIONS - {"on"}:
        return Phrase(f"the {before}", "be", f"{last} {{0}}", is_location=True)
    if _is_adjective(last):
        return Phrase(f"{{0's}} {before}", "be", last)
    if _is_adjective(first):
        return Phrase(f"{{0's}} {after}", "be", first)
    verb = _taking(first)
    return Phrase("you", verb, f"the {after} of {{0}}") if verb else Phrase("{0}", "be", with_article(" ".join(parts)))


def _unary_word(word: str) -> Phrase:
    verb = _taking(word)
    if verb:
        return Phrase("you", verb, "{0}")
    if word in PREPOSITIONS:
        return Phrase("{0}", "be", {"on": "on board", "in": "inside", "at": "there"}.get(word, word))
    if _is_adjective(word) or word.endswith("ing"):
        return Phrase("{0}", "be", word)
    return Phrase("{0}", "be", with_article(word))


def _binary(parts: list[str], nouns: tuple[str, ...]) -> Phrase | None:
    first, last, before, after = parts[0], parts[-1], " ".join(parts[:-1]), " ".join(parts[1:])
    if not after:
        return _binary_word(first, nouns)
    if first in PREPOSITIONS:
        where = first if after == nouns[1] else " ".join(parts)
        return Phrase("{0}", "be", f"{where} {{1}}", is_location=True)
    if last == "of":
        return Phrase("{0}", "be", f"{before} of {{1}}") if first in _SIDES else _attribute(before, nouns)
    if last in PREPOSITIONS | _LINKS:
        return Phrase("{0}", "be", f"{before} {last} {{1}}")
    if first == "has":
        return Phrase("{0}", "have", "{1}" if after == nouns[1] else f"{{1}} as {after}")
    if first == "have":
        return Phrase("you", "have", f"{with_article(after)} for {{0}} and {{1}}")
    return _attribute(" ".join(parts), nouns)


def _binary_word(word: str, nouns: tuple[str, ...]) -> Phrase:
    verb = _taking(word)
    if verb:
        holder, held = ("{1}", "{0}") if nouns[1] in _HANDS else ("{0}", "{1}")
        return Phrase(holder, verb, held)
    if word in PREPOSITIONS:
        return Phrase("{0}", "be", f"{word} {{1}}", is_location=True)
    if word in _CONNECTIONS:
        return Phrase("there", "be", f"{with_article(word)} from {{0}} to {{1}}")
    if word in _TO or _is_adjective(word):
        return Phrase("{0}", "be", f"{word} {'to' if word in _TO else 'with'} {{1}}")
    if word.endswith("ing"):
        return Phrase("{0}", "be", f"{word} at {{1}}")
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return Phrase("{0}", word[:-1], "{1}")
    return _attribute(word, nouns)


def _attribute(name: str, nouns: tuple[str, ...]) -> Phrase:
    """`colour-of(x, c)`: the block has a colour, if that is what the value is called; else its origin is a floor."""
    return ATTRIBUTE if nouns[1] == name else Phrase(f"{{0's}} {name}", "be", "{1}")


def _taking(word: str) -> str | None:
    """The base form of a verb such as hold, holding, holds, if the word is one."""
    forms = (word, word.removesuffix("ing"), word.removesuffix("s"), word.removesuffix("ing") + "e")
    return "have" if word == "has" else next((form for form in forms if form in _TAKING), None)


def _finite(verb: str, subject: str) -> str:
    if subject == "you":
        return "are" if verb == "be" else verb
    irregular = {"be": "is", "have": "has", "carry": "carries"}
    return irregular.get(verb, f"{verb}{'es' if verb.endswith(('s', 'sh', 'ch')) else 's'}")


# Actions


def instruction(
    action: str, nouns: Sequence[str], arguments: Sequence[int], places: Mapping[tuple[int, int], str]
) -> str:
    """Return what an action does with arguments called `nouns`, such as `place {0} on {1}`.

    `arguments` are those worth mentioning; `places` has the preposition for pairs of which the first is at the second.
    """
    verb, *rest = words(action)
    spoken = {word for thing in nouns for word in thing.split()}
    order = " ".join([*(["go"] if verb in _DIRECTIONS else []), verb, *(word for word in rest if word in _PARTICLES)])
    extra = [word for word in rest if word not in spoken | _PARTICLES | _FILLERS]
    if verb in _MOVES | _DIRECTIONS:
        return _moving(order, nouns, arguments, "to" in rest)
    if extra:
        everything = listed([f"{{{i}}}" for i in arguments])
        return f"{order} {with_article(' '.join(extra))}{f' for {everything}' if arguments else ''}"
    return _handling(order, verb, nouns, arguments, places) if arguments else order


def _moving(order: str, nouns: Sequence[str], arguments: Sequence[int], target_first: bool) -> str:
    """Return an order to move: the thing that moves, if it is named, then from where to where."""
    called = [nouns[i] for i in arguments]
    ends = [i for i in arguments if called.count(nouns[i]) > 1][-2:]
    ends = ends or [i for i in arguments if _is_place(nouns[i])][:2]
    links = ("to", "from") if target_first else ("from", "to")
    pieces = [f"{link} {{{i}}}" for link, i in zip(links if len(ends) == 2 else ("to",), ends, strict=False)]
    before = [f"{{{i}}}" for i in arguments if i not in ends and i < min(ends, default=len(nouns))]
    after = [_at(i, nouns) for i in arguments if ends and i not in ends and i > ends[0]]
    return " ".join([order, *before, *pieces, *after])


def _handling(
    order: str, verb: str, nouns: Sequence[str], arguments: Sequence[int], places: Mapping[tuple[int, int], str]
) -> str:
    """Return an order with the thing that is handled, then where it comes from or goes, then what it is done with."""
    pressed = [i for i in arguments if nouns[i] in _PRESSED] if verb in ("press", "push", "pull") else []
    things = [i for i in arguments if not _is_place(nouns[i]) and nouns[i] not in _HANDS]
    thing = (pressed or things or arguments)[0]
    pieces = [f"{order} {{{thing}}}"]
    for i in sorted(set(arguments) - {thing}, key=lambda i: (nouns[i] in _HANDS, _is_place(nouns[i]), i)):
        located = next((places[j, i] for j in arguments if (j, i) in places), None)
        if nouns[i] in _HANDS:
            pieces.append(f"with {{{i}}}")
        elif verb in _TAKES and (not _is_place(nouns[i]) or (located and len(things) == 1)):
            pieces.append(f"from {{{i}}}")
        elif located:
            pieces.append(f"{located} {{{i}}}")
        elif verb in _PUTS or _is_place(nouns[i]) or nouns[i] in _SURFACES:
            pieces.append(_at(i, nouns))
        else:
            pieces.append(f"{'for' if pressed else 'with'} {{{i}}}")
    return " ".join(pieces)


def _is_place(thing: str) -> bool:
    return thing.split()[-1] in _PLACES


def _at(argument: int, nouns: Sequence[str]) -> str:
    thing = nouns[argument].split()[-1]
    inside = thing in _ENCLOSING or (thing in _CONTAINERS and thing not in _PLACES)
    return f"{'in' if inside else 'at' if thing in _PLACES else 'on'} {{{argument}}}"
