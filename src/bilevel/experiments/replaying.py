"""An evaluated episode, found among results, run again, and compared with what was recorded of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bilevel.experiments.comparison import circumstances, difference_lines, unequal
from bilevel.experiments.records import EpisodeRecord
from bilevel.methods.methods import EvaluatedPolicy
from bilevel.policies.episode import Episode
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.task import Task
from bilevel.versions import versions


def find_record(
    records: Sequence[EpisodeRecord], where: Path, objects: int | None, episode: int | None
) -> EpisodeRecord:
    """Return the episode of this number; where there are several numbers of objects, with so many objects.

    `BadInput`, which says what there is, where that is not exactly one.
    """
    sizes = sorted({record.objects for record in records})
    if episode is None:
        raise BadInput(f"say which episode of {where} to replay, with --episode N; {_failures(records)}")
    if objects is None and len(sizes) > 1:
        raise BadInput(f"{where} has episodes with {_listed(sizes)} objects: say which with --objects N")
    sized = [record for record in records if objects in (None, record.objects)]
    found = [record for record in sized if record.episode == episode]
    if not found:
        numbers = [record.episode for record in sized]
        there = f"they are {min(numbers)} to {max(numbers)}" if numbers else f"it has {_listed(sizes) or 'no'} objects"
        raise BadInput(f"{where} has no episode {episode}{f' with {objects} objects' if objects else ''}; {there}")
    if len(found) > 1:
        raise BadInput(f"{where} has {len(found)} such episodes; name the results of one policy and one task")
    return found[0]


def _failures(records: Sequence[EpisodeRecord]) -> str:
    failed = [f"{record.episode} of {record.objects} objects" for record in records if not record.success]
    return f"failed: {', '.join(failed[:10])}{', …' if len(failed) > 10 else ''}" if failed else "all succeeded"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def compare_with_record(record: EpisodeRecord, run: Episode, policy: EvaluatedPolicy, task: Task) -> list[str]:
    """Return how a run differs from what was recorded, and what may be the cause; nothing where it is the same."""
    then = record.outcome, record.reason, record.steps, record.changes
    if then == (run.outcome, run.reason, run.steps, run.counts):
        return []
    was = f"{record.outcome} after {record.steps} steps" + (f" ({record.reason})" if record.reason else "")
    present = replace(
        record,
        policy=policy.policy,
        policy_digest=policy.digest,
        settings=dict(policy.settings),
        versions=versions(task.packages),
    )
    causes = difference_lines(unequal(circumstances(record), circumstances(present)))
    return [f"not as recorded: that was {was}", *(causes or ["nothing that is recorded differs but the machine"])]
