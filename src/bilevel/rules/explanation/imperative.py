"""English for an action: an instruction such as `place {0} on {1}`, from the names of the schema and its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bilevel.rules.explanation.wording import is_enclosing, is_hand, is_person, listed, with_article, word_set, words

_PLACES = word_set(
    "place location room floor city site cell tile position airport depot waypoint area spot square station zone"
)
_SURFACES = word_set("tray table platform surface shelf plate desk pallet pile stack floor")
_CONTAINERS = word_set("box bag bin truck drawer crate container vehicle plane airplane car train cup")
_MOVING = word_set("move go drive fly sail walk travel navigate turn run climb steer")
_DIRECTIONS = word_set("up down left right forward forwards back north south east west")
_PUTTING = word_set("place put drop stack load insert deliver set lay debark leave store")
_TAKING = word_set("pick take grasp unstack unload remove lift collect get grab fetch")
_ON_THEIR_OWN = word_set("board depart leave exit enter alight")
_PRESSED = word_set("button switch lever")
_PARTICLES = word_set("up down on off out")


Places = Mapping[tuple[int, int], str]


def is_place(thing: str) -> bool:
    return thing.split()[-1] in _PLACES


def instruction(name: str, nouns: Sequence[str], now: Places, wanted: Places, attributes: frozenset[int]) -> str:
    """What to do with arguments called `nouns`.

    `now` and `wanted` have the preposition for each pair of arguments of which the first is, or shall be, at, on or in
    the second. `attributes` are arguments that describe others (the tray's colour), which an order need not repeat.
    """
    verb, *rest = words(name)
    spoken = {word for thing in nouns for word in thing.split()}
    particles = [word for word in rest if word in _PARTICLES]
    extra = [
        word for word in rest if word not in spoken | _PARTICLES | {"goal", "to", "from", "at", "in", "into", "by"}
    ]
    arguments = [i for i in range(len(nouns)) if i not in attributes] or list(range(len(nouns)))
    order = " ".join([verb, *particles] + ([with_article(" ".join(extra))] if extra else []))
    if verb in _DIRECTIONS:
        return _moving(f"go {order}", arguments, nouns, "to" in rest)
    if verb in _MOVING:
        return _moving(order, arguments, nouns, "to" in rest)
    people = [i for i in arguments if is_person(nouns[i])]
    if verb in _ON_THEIR_OWN and people:
        others = [_at(i, nouns) for i in arguments if i not in people]
        return " ".join([f"let {listed([f'{{{i}}}' for i in people])} {order}", *others])
    if extra:
        return f"{order} for {listed([f'{{{i}}}' for i in arguments])}" if arguments else order
    return _handling(order, verb, arguments, nouns, now, wanted)


def _moving(order: str, arguments: list[int], nouns: Sequence[str], target_first: bool) -> str:
    """The thing that moves, if it is named, then from where to where."""
    repeated = [i for i in arguments if [nouns[j] for j in arguments].count(nouns[i]) > 1]
    ends = repeated[-2:] or [i for i in arguments if is_place(nouns[i])][:2]
    before = [i for i in arguments if i not in ends and ends and i < ends[0]]
    after = [i for i in arguments if i not in ends and i not in before]
    pieces = [order, *(f"{{{i}}}" for i in before)]
    if len(ends) == 2:
        first, second = ("to", "from") if target_first else ("from", "to")
        pieces.append(f"{first} {{{ends[0]}}} {second} {{{ends[1]}}}")
    else:
        pieces += [f"to {{{i}}}" for i in ends]
    return " ".join([*pieces, *(_at(i, nouns) if ends else f"{{{i}}}" for i in after)])


def _handling(order: str, verb: str, arguments: list[int], nouns: Sequence[str], now: Places, wanted: Places) -> str:
    """The thing that is handled, then where it comes from or goes, then what it is done with."""
    if not arguments:
        return order
    pressed = [i for i in arguments if nouns[i] in _PRESSED] if verb in ("press", "push", "pull") else []
    things = [i for i in arguments if not is_place(nouns[i]) and not is_hand(nouns[i])]
    thing = (pressed or things or arguments)[0]
    pieces = [f"{order} {{{thing}}}"]
    for i in sorted(set(arguments) - {thing}, key=lambda i: (is_hand(nouns[i]), is_place(nouns[i]), i)):
        if pressed and i in things:
            pieces.append(next((f"{now[j, i]} {{{i}}}" for j in things if (j, i) in now), f"for {{{i}}}"))
        elif verb in _TAKING and (not is_place(nouns[i]) or ((thing, i) in now and len(things) == 1)):
            pieces.append(f"{'with' if is_hand(nouns[i]) else 'from'} {{{i}}}")
        else:
            pieces.append(_relation(verb, i, nouns, wanted.get((thing, i)) or now.get((thing, i))))
    return " ".join(pieces)


def _relation(verb: str, other: int, nouns: Sequence[str], preposition: str | None) -> str:
    """`on {1}`, `with {1}`: how the other argument takes part."""
    if is_hand(nouns[other]):
        return f"with {{{other}}}"
    if preposition:
        return f"{preposition} {{{other}}}"
    if verb in _PUTTING and nouns[other] in _CONTAINERS:
        return f"into {{{other}}}"
    if verb in _PUTTING or is_place(nouns[other]) or nouns[other] in _SURFACES:
        return _at(other, nouns)
    return f"with {{{other}}}"


def _at(argument: int, nouns: Sequence[str]) -> str:
    thing = nouns[argument].split()[-1]
    if thing in _PLACES:
        return f"{'in' if is_enclosing(thing) else 'at'} {{{argument}}}"
    return f"{'in' if thing in _CONTAINERS else 'on'} {{{argument}}}"
