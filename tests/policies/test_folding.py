"""What is said while an episode goes on: what repeats is folded."""

from __future__ import annotations

from bilevel.policies.folding import MOST_NAMED, PATIENCE, Folding

PICK, OPEN = "pick(block1)\nrule 1\nBecause it is there.", "open(box)\nrule 2\nBecause it is closed."


def folded(*texts: str, end: int = 10_000) -> list[tuple[int | None, str]]:
    """What comes out where a text is said at every tenth step."""
    said: list[tuple[int | None, str]] = []
    folding = Folding(lambda step, text: said.append((step, text)))
    for number, text in enumerate(texts):
        folding.add(10 * number, text)
    folding.end(end)
    return said


def test_what_is_new_is_said_as_it_is() -> None:
    assert folded(PICK, "(teleport block1)", OPEN) == [(0, PICK), (10, "(teleport block1)"), (20, OPEN)]


def test_reasons_are_given_once() -> None:
    said = folded(PICK, OPEN, PICK, "(bang)", "(bang)")
    assert said[2:] == [(20, "pick(block1) (as at step 0)"), (30, "(bang)"), (40, "(bang)")]


def test_a_cycle_is_told_a_few_times_and_then_counted() -> None:
    said = folded(*(107 * [OPEN, PICK]))
    assert len(said) == 2 + PATIENCE + 1
    more = 107 * 2 - 2 - PATIENCE
    counts = f"open(box) {more // 2} times, pick(block1) {more // 2} times"
    assert said[-1] == (None, f"… {more} more of the same until step 10,000: {counts}")


def test_something_new_ends_the_count_and_is_said() -> None:
    said = folded(*(20 * [PICK]), OPEN, PICK)
    assert said[-3:] == [
        (None, f"… {19 - PATIENCE} more of the same until step 200: pick(block1) {19 - PATIENCE} times"),
        (200, OPEN),
        (210, "pick(block1) (as at step 0)"),
    ]


def test_of_many_things_only_the_commonest_are_named() -> None:
    several = [f"pick(block{number})" for number in range(MOST_NAMED + 1)]
    assert folded(*several, *(5 * several))[-1][1].endswith(", and others")
