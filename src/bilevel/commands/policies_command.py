"""The command that lists pretrained policies, and shows the card of any policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import tyro

from bilevel.commands.arguments import Json, answer, count

if TYPE_CHECKING:
    from bilevel.policies.folder import Card, LearnedPolicy

PolicyName = Annotated[Optional[str], tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")]


@dataclass(frozen=True)
class Policies:
    """List the pretrained policies with how often they succeed, or show one policy: its data, settings and rules.

    Examples: bilevel policies
              bilevel policies gacha
    """

    policy: PolicyName = None
    """The name of a pretrained policy, or the folder of any other; without one, all pretrained policies are listed."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.policies.folder import find_folder, pretrained_policies, read_policy

        if self.policy is not None:
            folder = find_folder(self.policy)
            policy = read_policy(folder)
            answer(_row(self.policy, folder, policy), self.json, *_card_lines(folder, policy))
            return 0
        rows = [_row(name, folder, read_policy(folder)) for name, folder in pretrained_policies().items()]
        answer({"policies": rows}, self.json, *(_table(rows) if rows else ["no task here has a pretrained policy"]))
        return 0


def _row(name: str, folder: Path, policy: LearnedPolicy) -> dict[str, Any]:
    """What is said of a policy: the sizes of its parts, its successes, and how it came about."""
    from bilevel.experiments.statistics import wilson_interval

    card, measured = policy.card, policy.card.measured
    successes = {
        str(objects): {
            "successes": successes,
            "episodes": episodes,
            "interval": [round(bound, 4) for bound in wilson_interval(successes, episodes)],
        }
        for objects, (successes, episodes) in (measured.successes if measured else {}).items()
    }
    return {
        "name": name,
        "folder": str(folder),
        "task": card.task,
        "rules": len(policy.rules),
        "parameters": policy.parameters,
        "kilobytes": round(sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) / 1000),
        "objects": card.objects,
        "successes": successes,
        "evaluation": {"seed": measured.seed, "command": measured.command} if measured else None,
        "demonstrations": card.summary.get("demonstrations"),
        "seed": card.seed,
        "settings": card.settings,
        "versions": card.versions,
        "digest": policy.digest,
    }


def _table(rows: list[dict[str, Any]]) -> list[str]:
    sizes = sorted({size for row in rows for size in row["successes"]}, key=int)
    lines = [["policy", "rules", "parameters", "KB", *(f"with {count(int(size), 'object')}" for size in sizes)]]
    for row in rows:
        about = [row["name"], str(row["rules"]), f"{row['parameters']:,}", str(row["kilobytes"])]
        lines.append(about + [_success(row["successes"].get(size)) for size in sizes])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    note = "in brackets 95% intervals (Wilson) of these policies, not of what another training seed would give"
    return [*("  ".join(_aligned(line, widths)).rstrip() for line in lines), note]


def _aligned(line: list[str], widths: list[int]) -> list[str]:
    """The name to the left, all numbers to the right."""
    return [line[0].ljust(widths[0]), *(word.rjust(width) for word, width in zip(line[1:], widths[1:], strict=True))]


def _success(found: dict[str, Any] | None) -> str:
    from bilevel.experiments.statistics import wilson_interval

    if found is None:
        return "–"
    low, high = (100 * bound for bound in wilson_interval(found["successes"], found["episodes"]))
    return f"{found['successes']}/{found['episodes']} ({low:.1f}–{high:.1f}%)"


def _card_lines(folder: Path, policy: LearnedPolicy) -> list[str]:
    """The card of a policy, for a person to read."""
    row = _row("", folder, policy)
    card = policy.card
    lines = {
        "task": card.task,
        "folder": str(folder),
        "data": _data(card),
        "learned": _settings(card),
        "network": f"{policy.parameters:,} parameters, {card.network.hidden} wide, {card.network.rounds} rounds",
        **{f"n = {size}": _success(found) for size, found in row["successes"].items()},
        "measured by": card.measured.command if card.measured else "nobody yet; see `bilevel evaluate`",
        "versions": ", ".join(f"{name} {version}" for name, version in card.versions.items()),
    }
    width = max(map(len, lines))
    return [*(f"{name:{width}}  {text}" for name, text in lines.items()), "", policy.texts()["rules.txt"].rstrip()]


def _data(card: Card) -> str:
    made = card.summary.get("demonstrations")
    about = made if isinstance(made, dict) else {}
    number = about.get("episodes", "an unknown number of")
    return (
        f"{number} demonstrations with {count(card.objects, 'object')}: {about.get('command') or 'not collected here'}"
    )


def _settings(card: Card) -> str:
    command = f"bilevel learn DIR --preset {card.settings.get('preset')} --seed {card.seed} --output POLICY"
    parts = []
    for part, number, noun in (("training", "epochs", "epoch"), ("dagger", "rounds", "DAgger round")):
        found = card.settings.get(part)
        if isinstance(found, dict) and isinstance(found.get(number), int):
            parts.append(count(found[number], noun))
    return f"{', '.join(parts)}: {command}" if parts else command
