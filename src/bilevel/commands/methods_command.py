"""The command that lists the methods."""

from __future__ import annotations

from dataclasses import dataclass

from bilevel.commands.arguments import print_json
from bilevel.commands.demonstration_commands import needing_worlds


@dataclass(frozen=True)
class Methods:
    """List the methods that can be compared: what each of them is, how it is learned, and what it lacks here."""

    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        with needing_worlds():
            from bilevel.experiments.methods import METHODS

        rows = [
            {
                "name": name,
                "title": method.title,
                "about": method.about,
                "training": method.training,
                "planners": method.planners,
                "missing": method.missing(),
            }
            for name, method in METHODS.items()
        ]
        if self.json:
            print_json(methods=rows)
            return 0
        width = max(map(len, METHODS))
        for row in rows:
            learned = "" if row["training"] is None else f"; learned, {row['training']}"
            print(f"{row['name']:{width}}  {row['about']}{learned}")
            if row["missing"]:
                print(f"{'':{width}}  not here: {row['missing']}")
        return 0
