"""What `bilevel run` prints while an episode goes on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bilevel.policies.episode_log import Entry, EpisodeLog
from bilevel.policies.episode_run import EpisodeRun
from bilevel.policies.folding import Folding
from bilevel.policies.narration import as_json, lines_of, surprise_lines, surprises
from bilevel.symbolic.domain import Domain


class Telling:
    """A listener of an episode's log that prints what is new, with what repeats folded."""

    def __init__(self) -> None:
        self._folding = Folding(print_step)

    def __call__(self, entry: Entry, before: Entry | None) -> None:
        for text in lines_of(entry, before):
            self._folding.add(entry.step, text)

    def end(self, step: int) -> None:
        """Say what was only counted, as the episode ends at this step."""
        self._folding.end(step)


@dataclass(frozen=True)
class Ending:
    """How an episode ended, and why it did not succeed; of one that was to be as recorded, how it was unlike that."""

    run: EpisodeRun
    why: str | None
    unlike: Sequence[str] | None

    def tell(self, log: EpisodeLog, domain: Domain | None) -> None:
        """Print it; with a domain, the unexpected changes of the state, too."""
        for line in surprise_lines(log, domain) if domain else ():
            print(line)
        sys.stdout.flush()
        recorded = () if self.unlike is None else self.unlike or ["as recorded"]
        lines = f"{self.run.outcome} after {self.run.steps} steps", *filter(None, [self.why]), *recorded
        print(*lines, sep="\n", file=sys.stderr)

    def as_json(self, log: EpisodeLog, domain: Domain | None) -> dict[str, object]:
        """The same for a program; with a domain, all decisions and unexpected changes of the state, too."""
        run, unlike = self.run, self.unlike
        found: dict[str, object] = {"outcome": run.outcome, "reason": run.reason, "why": self.why, "steps": run.steps}
        found |= {} if unlike is None else {"as_recorded": not unlike, "unlike": unlike}
        found |= {"incidents": [incident.as_json() for incident in run.incidents]}
        if domain:
            unexpected = [{"step": change.timestep, "kind": change.kind} for change in surprises(log, domain)]
            found |= {"decisions": [as_json(entry) for entry in log.decisions()], "unexpected": unexpected}
        return found


def print_step(step: int | None, text: str) -> None:
    """Print what happens at a step, and below it why."""
    first, *further = text.splitlines()
    label = "" if step is None else str(step)
    print("\n".join([f"{label:>6}  {first}", *(f"{'':10}{line}" for line in further)]), flush=True)
