"""Films of policies in environments of others, and their rules, for docs/gallery.md:

    python examples/gallery_of_others.py ogbench

It shows the policies that `python benchmarks/foreign_suites.py SUITE` has learned with its first seed.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from film import film

from bilevel.files import write_atomically

ROOT = Path(__file__).parents[1]
PAGE, FILMS = ROOT / "docs" / "gallery.md", ROOT / "docs" / "images" / "films"
MOST_RULES = 8  # on the page


@dataclass(frozen=True)
class Shot:
    """One film: the family whose policy acts, the task's file, and what is seen."""

    family: str
    task: str
    objects: int
    arguments: dict[str, Any] = field(default_factory=dict)
    method: str = "bison"
    every: int = 8


SHOTS = {
    "ogbench": {
        "cubes": Shot("cubes", "ogbench/cubes.py", 8, {"task_id": 5}),
        "scene": Shot("scene", "ogbench/scene.py", 1, {"task_id": 5}, every=5),
        "puzzle": Shot("puzzle", "ogbench/puzzle.py", 24, {"task_id": 3}, "det-replan", every=5),
    },
    "kinder": {
        "stick-button": Shot("stick-button", "kinder/stick_button.py", 10, every=4),
        "shelf": Shot("shelf", "kinder/shelf.py", 5, every=10),
        "motion": Shot("motion", "kinder/motion.py", 5, every=3),
    },
    "robosuite": {"pick-place": Shot("two-of-four", "robosuite_bins/pick_place.py", 4, every=10)},
}


def shown_rules(folder: Path) -> str:
    """The first rules of a policy, and how many more there are."""
    lines = (folder / "rules.txt").read_text(encoding="utf-8").splitlines()
    numbered = [line for line in lines if re.match(r"\d+: ", line)]
    more = [f"... and {len(numbered) - MOST_RULES} more"] if len(numbered) > MOST_RULES else []
    return "\n".join([*numbered[:MOST_RULES], *more]) or "no rules: a planner decides"


def with_rules(page: str, name: str, text: str) -> str:
    """The page with these rules below the film of this name."""
    begin, end = f"<!-- rules: {name} -->\n", "<!-- end of rules -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{PAGE}: the marks of '{name}' are missing: {begin.strip()} and {end.strip()}")
    return f"{before}{begin}\n```\n{text}\n```\n\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SHOTS)
    parser.add_argument("--only", nargs="+", help="only these films")
    parser.add_argument("--folder", type=Path, default=Path("build/suites"), help="where the policies are")
    given = parser.parse_args()
    for name, shot in SHOTS[given.suite].items():
        if given.only and name not in given.only:
            continue
        folder = given.folder / given.suite / f"{shot.family}-0" / "policy"
        target = FILMS / f"{name}.webp"
        print(
            film(
                f"{ROOT / 'examples' / shot.task}:task",
                folder,
                target,
                shot.objects,
                shot.arguments,
                shot.method,
                shot.every,
            )
        )
        write_atomically(PAGE, with_rules(PAGE.read_text(encoding="utf-8"), name, shown_rules(folder)))


if __name__ == "__main__":
    main()
