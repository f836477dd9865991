"""The page: everything in one file, which loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from bilevel.experiments.paper import TASKS, in_order
from bilevel.experiments.report.charts import Bar
from bilevel.experiments.report.differences import WORTH_A_WORD, differences
from bilevel.experiments.report.drawing import panel_svg, swatch
from bilevel.experiments.report.figures import figures
from bilevel.experiments.report.headline import numbers, outcome
from bilevel.experiments.report.scores import Cell, Results
from bilevel.experiments.report.sources import Source
from bilevel.experiments.report.styles import CAUSES, palette, slug
from bilevel.experiments.report.tables import absence, scope
from bilevel.experiments.report.viewer import episode
from bilevel.experiments.report.wording import (
    interval,
    listed,
    of_value,
    per_cent,
    plural,
    ranges,
    rate,
)
from bilevel.experiments.reproduction.rows import Findings
from bilevel.rules.explanation.formats import sentence, summary
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules

# What the settings of an experiment are called on the page.
EXPERIMENT = {
    "demonstrations": "demonstrations of each task",
    "shown": "objects in each of them",
    "epochs": "epochs, in the paper's setting",
    "end_to_end_epochs": "the same, for end-to-end networks",
    "practice": "episodes in each round of DAgger",
    "planning_seconds": "seconds for each plan",
    "lama_seconds": "seconds for LAMA, for a large problem",
    "quick": "small version",
}


def page_html(source: Source, files_folder: str | None = None) -> str:
    """Return the whole page; `files_folder` is the name of the folder with tables and figures, if there is one."""
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= _functions()
    return environment.get_template("report.html").render(_values(source), files_folder=files_folder)


def _asset(name: str) -> str:
    return (files("bilevel.experiments.report") / "assets" / name).read_text(encoding="utf-8")


def _functions() -> dict[str, object]:
    """Return what templates may call."""
    plain = (absence, bar_tip, cell_tip, interval, listed, of_value, plural, ranges, rate, sentence, slug)
    markup = (_asset, palette, panel_svg, swatch)
    return {
        **{function.__name__: function for function in plain},
        **{function.__name__.strip("_"): lambda *given, of=function: Markup(of(*given)) for function in markup},
    }


def _values(source: Source) -> dict[str, object]:
    """Return what templates know."""
    results, about = Results(source.findings), source.findings.about
    rows = results.cells if results.variants else []
    drawn, found = figures(results), results.outcomes()
    quick = bool(about.experiment.get("quick"))
    return {
        "about": about,
        "results": results,
        "quick": quick,
        "outcome": outcome(results),
        "numbers": numbers(results),
        "scope": scope(results),
        "rows": rows,
        "worth_a_word": WORTH_A_WORD,
        "differences": differences(rows, quick),
        "figures": drawn,
        "series": {row[0].variant.name for row in rows} | {s.key for figure in drawn.values() for s in figure.legend},
        "causes": {name: cause.meaning for name, cause in CAUSES.items() if found[name]},
        "rule_sets": rule_sets(about.rules),
        "episodes": [episode(timeline, video) for timeline, video in source.films],
        "filmless": [task for task in TASKS if task not in {timeline.task for timeline, _ in source.films}],
        "is_folder": source.is_folder,
        "settings": _settings(results),
        "versions": _versions(source.findings),
        "experiment": {EXPERIMENT.get(key, key): value for key, value in about.experiment.items()},
        "shown": plural(about.experiment.get("shown", 3), "object"),
    }


def cell_tip(cell: Cell) -> str:
    """Return all about a cell that has a score."""
    assert cell.score is not None
    lines = [
        f"{cell.variant.title}, {cell.task or 'all tasks'}",
        f"success\t{rate(cell.score.rate)}",
        f"95% interval\t{interval(cell.score.interval)}",
        f"episodes\t{cell.score.successes:,} of {cell.score.episodes:,}",
        f"with each seed\t{', '.join(map(rate, cell.score.by_seed))}",
    ]
    return "\n".join(lines if cell.paper is None else [*lines, f"paper\t{rate(cell.paper)}"])


def bar_tip(bar: Bar, cause: str) -> str:
    """Return all about a part of a bar."""
    number = bar.outcomes[cause]
    return f"{bar.title}\n{cause}\t{number:,} of {bar.episodes:,} ({per_cent(number / bar.episodes)})"


# Rules


@dataclass(frozen=True)
class RuleSet:
    """Rules that were learned for one task or several."""

    tasks: Sequence[str]
    summary: str
    rules: Sequence[Rule]


def rule_sets(texts: Mapping[str, str]) -> list[RuleSet]:
    """Return the learned rules, those of tasks that have learned the same together, in the order of the tasks."""
    found: dict[tuple[Rule, ...], list[str]] = {}
    for task in in_order(texts):
        found.setdefault(parse_rules(texts[task], f"the rules of {task}"), []).append(task)
    return [RuleSet(tasks, summary(rules), rules) for rules, tasks in found.items()]


# How it was made


def _settings(results: Results) -> dict[str, list[str]]:
    """Return what is particular to each method: how long it was trained, on how much, and what else it depends on."""
    found = {}
    for variant in results.variants:
        rows = results.rows(variant)
        trainings = [row.training for row in rows if row.training]
        others = {f"{key.replace('_', ' ')} {value}": None for row in rows for key, value in row.settings.items()}
        epochs = [plural(number, "epoch") for number in sorted({training.epochs for training in trainings})]
        samples = sorted({training.samples for training in trainings})
        many = [f"{samples[0]:,} to {samples[-1]:,} samples"] if samples else []
        found[variant.title] = [*epochs, *many, *others]
    return found


def _versions(findings: Findings) -> dict[str, str]:
    """Return the versions of everything that took part; several of one where it differed."""
    found: dict[str, dict[str, None]] = {}
    for versions in (*(row.versions for row in findings.rows), *(one.versions for one in findings.scaling)):
        for name, version in versions.items():
            found.setdefault(name, {})[version] = None
    return {name: ", ".join(versions) for name, versions in found.items()}
