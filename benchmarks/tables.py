"""What README and docs say in numbers, as Markdown tables, from what was measured:

    python benchmarks/tables.py                              # print all tables
    python benchmarks/tables.py --write                      # put each between its marks in the file where it belongs

`TABLES` says which results each of them reads.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import breaking_tables as breaking
import domain_tables as domains
import few_tables as few
import hard_tables as hard
import package_tables as package
import reproduction_tables as reproduction
import result_tables as render
import robustness_tables as robustness
import statistics_tables as statistics
import suite_tables as suites
import world_tables as worlds
from reproduction_tables import of_report

from bilevel.experiments.hard.axes import AXES
from bilevel.experiments.report import tables as report
from bilevel.files import write_atomically


class Place(NamedTuple):
    """What renders rows of results, the file of results, and the file in which the table's marks are."""

    render: render.Render
    results: str
    file: str
    may_lack: bool = False  # results, as long as nobody has measured them

    def text(self, results: Path) -> str:
        if self.may_lack and not (results / self.results).exists():
            return render.NOT_MEASURED
        lines = (results / self.results).read_text(encoding="utf-8").splitlines()
        text = self.render([json.loads(line) for line in lines], self.results)
        return text.replace("](results/", "](../results/") if self.file.startswith("docs/") else text


FOUND, SLOWER, HARD = "reproduction.jsonl", "reproduction-0.001.jsonl", "hard.jsonl"
SUCCESS_AXES = [axis.name for axis in AXES.values() if "success" in axis.measures]
TABLES: Mapping[str, Place] = {
    "success": Place(render.success_table, "policies.jsonl", "docs/results.md"),
    "pretrained": Place(package.pretrained_table, "pretrained.jsonl", "docs/results.md"),
    "installation": Place(package.install_table, "install.jsonl", "docs/installation.md"),
    "settled episodes": Place(statistics.settled_table, "settled-episodes.jsonl", "docs/policies.md"),
    "failures": Place(render.failure_table, "policies.jsonl", "docs/policies.md"),
    "refinement": Place(render.refinement_table, "policies.jsonl", "docs/policies.md"),
    "schedules": Place(render.schedule_table, "schedules.jsonl", "docs/policies.md"),
    "how few": Place(few.curve_table, "few-demonstrations.jsonl", "docs/policies.md"),
    "what helps": Place(few.ablation_table, "few-demonstrations.jsonl", "docs/policies.md"),
    "learning times": Place(render.learning_table, "learning.jsonl", "docs/policies.md"),
    "step times": Place(render.step_table, "step-speed.jsonl", "docs/policies.md"),
    "large problems": Place(render.large_problem_table, "large-problems.jsonl", "docs/architecture.md"),
    "start-up": Place(render.startup_table, "startup.jsonl", "docs/architecture.md"),
    "fuzzing": Place(breaking.fuzz_table, "fuzz.jsonl", "docs/architecture.md"),
    "kills": Place(breaking.kill_table, "kills.jsonl", "docs/architecture.md"),
    "summary": Place(of_report(reproduction.summary_table), FOUND, "README.md"),
    "reproduction": Place(of_report(reproduction.short_table), FOUND, "docs/results.md"),
    "reproduction success": Place(of_report(report.main_table), FOUND, "docs/reproduction.md"),
    "reproduction further rows": Place(of_report(reproduction.further_table), SLOWER, "docs/reproduction.md"),
    "reproduction differences": Place(reproduction.difference_list, FOUND, "docs/reproduction.md"),
    "learning rates in the table": Place(reproduction.learning_rate_table, SLOWER, "docs/reproduction.md"),
    "interval coverage": Place(statistics.coverage_table, "interval-coverage.jsonl", "docs/reproduction.md"),
    "reproduction sizes": Place(of_report(report.size_table), FOUND, "docs/reproduction.md"),
    "reproduction costs": Place(of_report(report.cost_table), FOUND, "docs/reproduction.md"),
    "reproduction causes": Place(of_report(report.cause_table), FOUND, "docs/reproduction.md"),
    "solving time": Place(of_report(report.scaling_table), SLOWER, "docs/reproduction.md"),
    "reproduction speed": Place(reproduction.speed_table, "reproduction-speed.jsonl", "docs/reproduction.md"),
    "thinking": Place(render.thinking_table, "inference.jsonl", "docs/methods.md"),
    "strong-cyclic planning": Place(render.fond_table, "fond.jsonl", "docs/planning.md"),
    "growing families": Place(render.fond_family_table, "fond-families.jsonl", "docs/planning.md"),
    "experts": Place(worlds.expert_table, "experts.jsonl", "docs/worlds.md"),
    "speed": Place(worlds.world_speed_table, "world-speed.jsonl", "docs/worlds.md"),
    "robustness": Place(robustness.robustness_table, "robustness.jsonl", "docs/policies.md"),
    "disturbed": Place(robustness.disturbed_table, "robustness.jsonl", "docs/results.md"),
    "circles": Place(robustness.circle_table, "robustness.jsonl", "docs/policies.md"),
    "perception": Place(robustness.perception_table, "perception.jsonl", "docs/perception.md"),
    "learned rules": Place(robustness.generalised_table, "generalised-planning.jsonl", "docs/rules.md"),
    "completed rules": Place(robustness.completion_table, "rule-completion.jsonl", "docs/rules.md"),
    "official tasks": Place(suites.official_table, "ogbench.jsonl", "docs/suites.md"),
    "published figures": Place(suites.published_table, "ogbench.jsonl", "docs/suites.md"),
    "buttons, shelf, gates": Place(suites.size_table, "kinder.jsonl", "docs/suites.md"),
    "bins": Place(suites.size_table, "robosuite.jsonl", "docs/suites.md"),
    "proposed predicates": Place(domains.proposal_table, "proposed-predicates.jsonl", "docs/domains.md"),
    "faulty labels": Place(domains.fault_table, "domain-robustness.jsonl", "docs/domains.md"),
    "learned domains": Place(domains.learned_success_table, "learned-domains.jsonl", "docs/domains.md"),
    "few demonstrations": Place(domains.few_demonstrations_table, "learned-domains.jsonl", "docs/domains.md"),
    "learned operators": Place(domains.learned_operator_table, "learned-domains.jsonl", "docs/domains.md"),
    "learned differences": Place(domains.difference_table, "learned-domains.jsonl", "docs/domains.md"),
    "equivalence": Place(domains.equivalence_table, "domain-equivalence.jsonl", "docs/domains.md"),
    "demonstrations": Place(render.demonstration_table, "demonstrations.jsonl", "docs/demonstrations.md"),
    **{
        f"hard: {name}": Place(hard.of_axis(name), hard.ELSEWHERE.get(name, HARD), "docs/hard.md", True)
        for name in SUCCESS_AXES
    },
    "hard: commands": Place(hard.commands, HARD, "docs/hard.md", True),
    "hard: commands for teleports": Place(hard.commands, hard.ELSEWHERE["teleports"], "docs/hard.md", True),
    "hard: time to solve": Place(hard.of_time("symbols", "seconds"), HARD, "docs/hard.md", True),
    "hard: pauses in symbols": Place(hard.of_time("symbols", "pause"), HARD, "docs/hard.md", True),
    "hard: time to decide": Place(hard.of_time("deciding", "decision"), HARD, "docs/hard.md", True),
    "hard: pauses": Place(hard.of_time("deciding", "pause"), HARD, "docs/hard.md", True),
    "hard: falling behind": Place(hard.falling_behind, HARD, "docs/hard.md", True),
    "hard: demonstrations needed": Place(hard.demonstrations_needed, HARD, "docs/hard.md", True),
}


def inserted(page: str, name: str, text: str) -> str:
    """Return the page with the text between the marks of this name."""
    begin, end = f"<!-- table: {name}; made by python benchmarks/tables.py --write -->\n", "<!-- end of table -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        sys.exit(f"the marks of the table are missing, lines that read {begin.strip()} and {end.strip()}")
    return f"{before}{begin}\n{text}\n\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of README.md and docs")
    parser.add_argument("--write", action="store_true", help="put the tables into their files")
    given = parser.parse_args()
    for name, place in TABLES.items():
        text = place.text(given.results)
        if given.write:
            path = given.root / place.file
            write_atomically(path, inserted(path.read_text(encoding="utf-8"), name, text))
        else:
            print(f"{text}\n")


if __name__ == "__main__":
    main()
