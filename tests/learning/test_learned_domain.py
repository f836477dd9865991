"""What an expert calls learned actions: found from what it said, used to ask it, and silent where nothing is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bilevel.learning.learned_domain import Translation, find_translation, translated
from bilevel.symbolic.domain import Action


def action(text: str) -> Action:
    name, *arguments = text.split()
    return Action(name, tuple(arguments))


def translation(*doings: tuple[str, str], steps: int = 3) -> Translation:
    """Of one episode in which each of these was done for some steps, with a step of something else in between."""
    learned: list[Action | None] = []
    recorded: list[Action | None] = []
    for done, said in doings:
        learned += [*[action(done)] * steps, None]
        recorded += [*[action(said)] * (steps - 1), action("dither"), None]
    return find_translation([(learned, recorded)])


def back(forms: Translation) -> Translation:
    return [(theirs, ours) for ours, theirs in forms]


def test_names_and_the_order_of_arguments_are_the_experts() -> None:
    found = translation(("place s1 p1", "deliver p1 s1"), ("place s2 p1", "deliver p1 s2"))
    assert found == [(action("place ?0 ?1"), action("deliver ?1 ?0"))]
    assert translated(action("place s3 p3"), found) == action("deliver p3 s3")
    assert translated(action("deliver p3 s3"), back(found)) == action("place s3 p3")


def test_an_argument_that_is_always_the_same_object_is_that_object() -> None:
    found = translation(("drop p1", "drop p1 table"), ("drop p2", "drop p2 table"))
    assert translated(action("drop p3"), found) == action("drop p3 table")
    assert translated(action("drop p3 table"), back(found)) == action("drop p3")


def test_what_is_left_open_cannot_be_asked() -> None:
    found = translation(("let-go p1", "drop p1 s1"), ("let-go p2", "drop p2 s2"))
    assert translated(action("let-go p3"), found) is None
    assert translated(action("drop p3 s3"), back(found)) == action("let-go p3")


def test_what_the_expert_calls_by_two_names_cannot_be_asked() -> None:
    assert translation(*[("go p1", "walk p1"), ("go p2", "run p2")] * 3) == []


@pytest.mark.parametrize(
    "doings",
    [
        [("go p1", "walk p1"), ("stroll p1", "walk p1"), ("go p2", "walk p2"), ("stroll p2", "walk p2")],
        [("go p1 s1", "walk p1"), ("go p2 s2", "walk p2")],
    ],
    ids=["two learned actions", "an argument that the expert does not name"],
)
def test_what_the_expert_did_is_not_guessed(doings: Sequence[tuple[str, str]]) -> None:
    found = translation(*doings)
    assert translated(action("walk p3"), back(found)) is None
    assert translated(None, back(found)) is None
