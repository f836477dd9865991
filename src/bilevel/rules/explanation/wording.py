"""English for the names in a domain: what a predicate says of its arguments, what an action does with them.

Nothing here knows any one domain. Names are split into words, and what kind of words they are, with a few short lists
where English has no rule, decides how they are put together. Where a name fits no pattern it is quoted as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


def _any(words: str) -> str:
    """Return a regular expression for any one of the words."""
    return f"(?:{'|'.join(words.split())})"


_PREPOSITION = _any("at on in inside under above below over near behind beside beneath underneath within")
_LINK = _any("to with from by into onto")
_ADJECTIVE = (
    r"(?!(?:bed|seed|need|speed|feed|shed|weed|reed|deed)\b)(?:\w{2,}ed|\w*[ai]ble|"
    + _any(
        "free clear empty open closed full ready available avail known unknown idle busy safe dirty clean hot cold on "
        "off alive dead visible dry wet new old far hungry broken done big small"
    )
    + ")"
)
_VERBS = ["hold", "carry", "grasp", "have", "grip", "own", "possess", "know", "see", "contain", "support", "need"]
_VERB_FORMS = {form: verb for verb in _VERBS for form in (verb, f"{verb}s", f"{verb}ing", f"{verb.rstrip('e')}ing")}
_VERB_FORMS["has"] = "have"
_VERB = _any(" ".join(_VERB_FORMS))
_TO = _any("adjacent connected linked attached assigned next close tied")
_CONNECTION = _any("road path link edge connection route way bridge rail")
_SIDE = _any("left right north south east west ahead top front")
_HAND = _any("gripper hand arm claw tool")
_PLACE = _any(
    "place location room floor city site cell tile position airport depot waypoint area spot square station zone"
)
_ENCLOSING = _any("room city area zone building house kitchen")
_SURFACE = _any("tray table platform surface shelf plate desk pallet pile stack")
_CONTAINER = _any("box bag bin van truck drawer crate container vehicle plane airplane car train cup")
_MOVE = _any("move go drive fly sail walk travel navigate turn run climb steer")
_DIRECTION = _any("up down left right forward forwards back north south east west")
_PUT = _any("place put drop stack load insert deliver set lay debark leave store")
_TAKE = _any("pick take grasp unstack unload remove lift collect get grab fetch")
_PRESSED = _any("button switch lever")
_PARTICLE = _any("up down on off out aside away open closed shut")
_FILLER = _any("goal to from at in into by with")
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


@dataclass(frozen=True, slots=True)
class Phrase:
    """A clause in pieces: subject, verb in its base form, and the rest.

    `{0}` stands for the first argument, `{0's}` for its possessive.
    """

    subject: str
    verb: str
    rest: str

    @property
    def is_location(self) -> bool:
        """Whether it says that something is at, on or in something."""
        return self.verb == "be" and _fits(rf"{_PREPOSITION}\b.*\}}", self.rest)

    def present(self) -> str:
        """Return the clause: it is so."""
        return self._join(_finite(self.verb, self.subject))

    def absent(self) -> str:
        """Return the clause: it is not so."""
        finite = _finite(self.verb, self.subject)
        if self.subject == "there":
            return f"there is no {self.rest.split(' ', 1)[1]}"
        if self.verb == "be":
            return self._join(f"{finite} not")
        return self._join(f"{'do' if self.subject == 'you' else 'does'} not {self.verb}")

    def ended(self) -> str:
        """Return the clause as something that was so and is not any more."""
        finite = _finite(self.verb, self.subject)
        if self.subject == "there":
            return f"there is no longer {self.rest}"
        return self._join(f"{finite} no longer" if self.verb == "be" else f"no longer {finite}")

    def wanted(self) -> str:
        """Return the clause as a goal that is not achieved yet."""
        if self.is_location:
            return self._join("belongs")
        if self.rest == "achieved":
            return f"{self.present()[: -len(self.rest)]}not achieved yet"
        return self._join(f"still {_finite('have', self.subject)} to {self.verb}")

    def _join(self, verb: str) -> str:
        return f"{self.subject} {verb} {self.rest}".rstrip()


def words(name: str) -> list[str]:
    """Return the words of a name, split at hyphens, underscores and capitals: `gripperFree` is gripper, free."""
    parts = re.sub(r"[-_]+|(?<=[a-z0-9])(?=[A-Z])", " ", name).lower().split()
    return [word for part in parts for word in _FULL_WORDS.get(part, part).split()] or [name]


def with_article(phrase: str) -> str:
    """Return `a block` or `an object`."""
    vowel = phrase[:1] in "aeiou" and not phrase.startswith(("uni", "use", "one", "eu"))
    return f"{'an' if vowel or phrase.startswith('hour') else 'a'} {phrase}"


def listed(items: list[str]) -> str:
    """Return the items as an enumeration: `a`, `a and b`, `a, b and c`."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


# Predicates

ATTRIBUTE = Phrase("{0}", "have", "{1}")

# For each number of arguments what a predicate's words mean; the first pattern that fits decides. After the slash
# stands what the last argument is called. `take` is the verb that the first word is a form of.
_PATTERNS = {
    0: (
        (rf"({_ADJECTIVE})", Phrase("you", "be", r"\1")),
        (rf"(.+) ({_ADJECTIVE}|\w+ing)", Phrase(r"the \1", "be", r"\2")),
        (rf"({_ADJECTIVE}) (.+)", Phrase(r"the \2", "be", r"\1")),
    ),
    1: (
        (rf"{_VERB}/.*", Phrase("you", "take", "{0}")),
        (r"on/.*", Phrase("{0}", "be", "on board")),
        (r"in/.*", Phrase("{0}", "be", "inside")),
        (r"at/.*", Phrase("{0}", "be", "there")),
        (rf"({_PREPOSITION}|{_ADJECTIVE}|\w+ing)/.*", Phrase("{0}", "be", r"\1")),
        (r"ha(?:s|ve) (.+)/.*", Phrase("{0}", "have", r"a \1")),
        (r"at (robby)/.*", Phrase(r"\1", "be", "at {0}")),
        (r"at (.+)/.*", Phrase(r"the \1", "be", "at {0}")),
        (rf"({_PREPOSITION}) board/.*", Phrase("{0}", "be", r"\1 board")),
        (rf"({_PREPOSITION}) (.+)/.*", Phrase("{0}", "be", r"\1 the \2")),
        (rf"(.+) (?!on/)({_PREPOSITION})/.*", Phrase(r"the \1", "be", r"\2 {0}")),
        (rf"(.+) ({_ADJECTIVE})/.*", Phrase(r"{0's} \1", "be", r"\2")),
        (rf"({_ADJECTIVE}) (.+)/.*", Phrase(r"{0's} \2", "be", r"\1")),
        (rf"{_VERB} (.+)/.*", Phrase("you", "take", r"the \1 of {0}")),
        (r"(.+)/.*", Phrase("{0}", "be", r"a \1")),
    ),
    2: (
        (rf"{_VERB}/{_HAND}", Phrase("{1}", "take", "{0}")),
        (rf"{_VERB}/.*", Phrase("{0}", "take", "{1}")),
        (rf"({_PREPOSITION})/.*", Phrase("{0}", "be", r"\1 {1}")),
        (rf"({_CONNECTION})/.*", Phrase("there", "be", r"a \1 from {0} to {1}")),
        (rf"({_TO})/.*", Phrase("{0}", "be", r"\1 to {1}")),
        (rf"({_ADJECTIVE})/.*", Phrase("{0}", "be", r"\1 with {1}")),
        (r"(\w+ing)/.*", Phrase("{0}", "be", r"\1 at {1}")),
        (r"belongs?/.*", Phrase("{0}", "belong", "to {1}")),
        (r"(\w*[^sui])s/.*", Phrase("{0}", r"\1", "{1}")),
        (rf"({_PREPOSITION}) (.+)/\2", Phrase("{0}", "be", r"\1 {1}")),
        (rf"({_PREPOSITION} .+|{_SIDE}(?: .+)? of|.+ (?:{_PREPOSITION}|{_LINK}))/.*", Phrase("{0}", "be", r"\1 {1}")),
        (r"has (.+)/\1", ATTRIBUTE),
        (r"has (.+)/.*", Phrase("{0}", "have", r"{1} as \1")),
        (r"have (.+)/.*", Phrase("you", "have", r"a \1 for {0} and {1}")),
        (r"(.+?)(?: of)?/\1", ATTRIBUTE),
        (r"(.+?)(?: of)?/.*", Phrase(r"{0's} \1", "be", "{1}")),
    ),
}


def names_a_kind(predicate: str) -> bool:
    """Return whether a unary predicate says what kind of thing its argument is: `ball`, not `clear` or `holding`."""
    first_or_last = rf"{_PREPOSITION}|{_ADJECTIVE}"
    other = rf"(?:{first_or_last}|is|has|have|not|{_VERB})(?: .*)?|(?:.* )?(?:{first_or_last}|\w*ing)"
    return not _fits(other, " ".join(words(predicate)))


def phrase_of(predicate: str, nouns: tuple[str, ...]) -> Phrase:
    """Return what a predicate says of arguments that are called `nouns`."""
    if predicate.endswith("+"):
        once = phrase_of(predicate.removesuffix("+"), nouns)
        return replace(once, rest=f"{once.rest} in one or more steps")
    parts = words(predicate)
    for superfluous in ("is", *nouns[:1]):
        parts = parts[1:] if len(parts) > 1 and parts[0] == superfluous else parts
    text = " ".join(parts) + (f"/{nouns[-1]}" if nouns else "")
    for pattern, phrase in _PATTERNS.get(len(nouns), ()):
        match = re.fullmatch(pattern, text)
        if match is not None:
            verb = _VERB_FORMS[parts[0]] if phrase.verb == "take" else match.expand(phrase.verb)
            rest = re.sub(r"^a (?=[aeiouh])(.*)", lambda m: with_article(m[1]), match.expand(phrase.rest))
            for i, thing in enumerate(nouns):
                rest = rest.replace(f"at {{{i}}}", f"in {{{i}}}") if _fits(rf"(?:.* )?{_ENCLOSING}", thing) else rest
            return Phrase(match.expand(phrase.subject), verb, rest)
    places = listed([f"{{{i}}}" for i in range(len(nouns))])
    return Phrase(f'"{predicate}"', "hold", f"for {places}" if nouns else "")


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
    particles = [word for word in rest if _fits(_PARTICLE, word)]
    order = " ".join([*(["go"] if _fits(_DIRECTION, verb) else []), verb, *particles])
    extra = [word for word in rest if word not in spoken and not _fits(f"{_PARTICLE}|{_FILLER}", word)]
    if _fits(f"{_MOVE}|{_DIRECTION}", verb):
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
    pressed = [i for i in arguments if _fits(_PRESSED, nouns[i])] if verb in ("press", "push", "pull") else []
    things = [i for i in arguments if not _is_place(nouns[i]) and not _fits(_HAND, nouns[i])]
    thing = (pressed or things or arguments)[0]
    pieces = [f"{order} {{{thing}}}"]
    for i in sorted(set(arguments) - {thing}, key=lambda i: (_fits(_HAND, nouns[i]), _is_place(nouns[i]), i)):
        located = next((places[j, i] for j in arguments if (j, i) in places), None)
        if _fits(_HAND, nouns[i]):
            pieces.append(f"with {{{i}}}")
        elif _fits(_TAKE, verb) and (not _is_place(nouns[i]) or (located and len(things) == 1)):
            pieces.append(f"from {{{i}}}")
        elif located:
            pieces.append(f"{located} {{{i}}}")
        elif _fits(_PUT, verb) or _is_place(nouns[i]) or _fits(_SURFACE, nouns[i]):
            pieces.append(_at(i, nouns))
        else:
            pieces.append(f"{'for' if pressed else 'with'} {{{i}}}")
    return " ".join(pieces)


def _is_place(thing: str) -> bool:
    return _fits(rf"(?:.* )?{_PLACE}", thing)


def _at(argument: int, nouns: Sequence[str]) -> str:
    inside = _fits(rf"(?:.* )?(?:{_ENCLOSING}|{_CONTAINER})", nouns[argument])
    return f"{'in' if inside else 'at' if _is_place(nouns[argument]) else 'on'} {{{argument}}}"
