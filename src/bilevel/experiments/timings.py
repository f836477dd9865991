"""What episodes took on the machine that ran them: kept beside the results, which are the same bytes on any machine.

`results.jsonl` has `results.timings.jsonl` beside it. An episode that was run twice, since a kill lost its result, has
two lines there; the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TypeVar

import msgspec

from bilevel.experiments.records import EpisodeRecord
from bilevel.json_files import Amount, Count, decode, read_bytes

TIMING_BEGINNING = b'{"objects":'  # of every line


class Timing(msgspec.Struct, frozen=True):
    """What one episode took."""

    objects: Count
    episode: Count
    seconds: dict[str, Amount]  # that the policy and the physics took
    peak_mebibytes: Amount | None  # of the process that ran it

    def line(self) -> bytes:
        """Return it as a line of JSON."""
        return msgspec.json.encode(self) + b"\n"


AnyPath = TypeVar("AnyPath", bound=PurePath)
Timings = dict[tuple[int, int], Timing]  # by the number of objects and that of the episode


def timings_path(results: AnyPath) -> AnyPath:
    """Return where the timings of a file of results are."""
    return results.with_name(f"{results.stem}.timings{results.suffix}")


def timing_of(record: EpisodeRecord) -> Timing:
    """Return what an episode took."""
    return Timing(record.objects, record.episode, record.seconds, record.peak_mebibytes)


def read_timings(results: Path) -> Timings:
    """Read the timings that are beside some results, if there are any; `Damaged` where they are none."""
    path = timings_path(results)
    if not path.exists():
        return {}
    data = read_bytes(path)
    lines = data[: data.rfind(b"\n") + 1].splitlines()  # a kill may have torn the last one
    found = (
        decode(line, Timing, f"{path}, line {number}: not the timing of an episode")
        for number, line in enumerate(lines, 1)
    )
    return {(timing.objects, timing.episode): timing for timing in found}


def with_timings(records: Iterable[EpisodeRecord], timings: Timings) -> Iterator[EpisodeRecord]:
    """Yield the records with what is known of the time and memory that they took; old lines say it themselves."""
    for record in records:
        timing = timings.get((record.objects, record.episode))
        yield (
            record if timing is None else replace(record, seconds=timing.seconds, peak_mebibytes=timing.peak_mebibytes)
        )


def microseconds_per_step(records: Iterable[EpisodeRecord], part: str) -> float | None:
    """Return how long a step took the policy, or the physics, on average; `None` where no record says so."""
    timed = [record for record in records if part in record.seconds]
    steps = sum(record.steps for record in timed)
    return round(1e6 * sum(record.seconds[part] for record in timed) / steps, 1) if steps else None
