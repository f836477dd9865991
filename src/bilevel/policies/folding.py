"""What is said about an episode while it goes on, with what repeats folded, so that thousands of lines are a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

PATIENCE = 10  # lines in a row that say nothing new, before they are only counted
MOST_NAMED = 6  # of what is counted, the commonest are named


class Folding:
    """Passes on what is said, with its step. Reasons are given once; where nothing is new for long, it only counts."""

    def __init__(self, say: Callable[[int | None, str], None]) -> None:
        """`say` is given a step and a text, whose first line is what happens and the others why; or no step."""
        self._say = say
        self._told: dict[str, int] = {}  # each text, with the step at which it was told first
        self._repeated = 0  # in a row
        self._counted: Counter[str] = Counter()

    def add(self, step: int, text: str) -> None:
        """Say what happens at a step, unless it repeats too often."""
        what, *why = text.splitlines()
        if text not in self._told:
            self.end(step)
            self._told[text], self._repeated = step, 0
            self._say(step, text)
            return
        self._repeated += 1
        if self._repeated <= PATIENCE:
            self._say(step, f"{what} (as at step {self._told[text]:,})" if why else what)
        else:
            self._counted[what] += 1

    def end(self, step: int) -> None:
        """Say what was only counted until this step, if anything was."""
        if not self._counted:
            return
        named = [f"{what} {number:,} times" for what, number in self._counted.most_common(MOST_NAMED)]
        others = ["and others"] if len(self._counted) > MOST_NAMED else []
        total = sum(self._counted.values())
        self._say(None, f"… {total:,} more of the same until step {step:,}: {', '.join([*named, *others])}")
        self._counted.clear()
