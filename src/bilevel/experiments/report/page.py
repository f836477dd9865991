"""The page: everything in one file, which loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from bilevel.experiments.report.charts import Figure
from bilevel.experiments.report.differences import WORTH_A_WORD, differences
from bilevel.experiments.report.figures import figures, shown_objects
from bilevel.experiments.report.headline import numbers, outcome
from bilevel.experiments.report.scores import Cell, cells, entrants_in, missing, rows_of, seeds_in
from bilevel.experiments.report.sources import Source
from bilevel.experiments.report.styles import CAUSES, palette, slug
from bilevel.experiments.report.svg import bar_svg, micro_svg, panel_svg, swatch
from bilevel.experiments.report.tables import absence, scope
from bilevel.experiments.report.viewer import page_file, viewer_html
from bilevel.experiments.report.wording import CAUSE_MEANINGS, interval, listed, of_value, plural, ranges, rate
from bilevel.experiments.reproduction.rows import Findings
from bilevel.rules.explanation.english import sentence, summary
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.tabletop.tasks import TASKS

# What the settings of an experiment are called on the page.
EXPERIMENT = {
    "demonstrations": "demonstrations of each task",
    "shown": "objects in each of them",
    "epochs": "epochs, in the paper's setting",
    "end_to_end_epochs": "the same, for end-to-end networks",
    "practice": "episodes in each round of practice",
    "planning_seconds": "seconds for each plan",
    "lama_seconds": "seconds for LAMA, for a large problem",
    "quick": "small version",
}


def page_html(source: Source, files_folder: str | None = None) -> str:
    """The whole page; `files_folder` is the name of the folder with tables and figures, if there is one."""
    environment = Environment(
        loader=FunctionLoader(page_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= _words()
    return environment.get_template("report.html").render(_facts(source) | {"files_folder": files_folder})


def _words() -> dict[str, object]:
    """What templates may call."""
    return {
        "asset": lambda name: Markup(page_file(name)),
        "palette": lambda dark: Markup(palette(dark)),
        "panel_svg": lambda panel: Markup(panel_svg(panel)),
        "micro_svg": lambda cell: Markup(micro_svg(cell)),
        "bar_svg": lambda bar, first: Markup(bar_svg(bar, first)),
        "swatch": lambda key: Markup(swatch(key)),
        "absence": absence,
        "cell_tip": cell_tip,
        "interval": interval,
        "listed": listed,
        "of_value": of_value,
        "plural": plural,
        "ranges": ranges,
        "rate": rate,
        "slug": slug,
    }


def _facts(source: Source) -> dict[str, object]:
    """What templates know."""
    findings = source.findings
    rows = cells(findings) if findings.rows else []
    drawn = figures(findings)
    quick = bool(findings.about.experiment.get("quick"))
    return {
        "about": findings.about,
        "quick": quick,
        "outcome": outcome(findings),
        "numbers": numbers(findings),
        "scope": scope(findings),
        "missing": missing(findings),
        "tasks": list(TASKS),
        "rows": rows,
        "worth_a_word": WORTH_A_WORD,
        "differences": differences(rows, quick),
        "figures": drawn,
        "causes": _causes(drawn.get("causes-of-failure")),
        "rule_sets": rule_sets(findings.about.rules),
        "films": source.films,
        "filmless": [task for task in TASKS if task not in {timeline.task for timeline, _ in source.films}],
        "is_folder": source.is_folder,
        "viewer": Markup(viewer_html(source.films)),
        "settings": _settings(findings),
        "versions": _versions(findings),
        "experiment": [(EXPERIMENT.get(key, key), value) for key, value in findings.about.experiment.items()],
        "shown": shown_objects(findings),
        "seeds": seeds_in(findings),
    }


def cell_tip(cell: Cell) -> str:
    """All about a cell that has a score."""
    assert cell.score is not None
    lines = [
        f"{cell.entrant.title}, {cell.task or 'all tasks'}",
        f"success\t{rate(cell.score.rate)}",
        f"95% interval\t{interval(cell.score.interval)}",
        f"episodes\t{cell.score.successes:,} of {cell.score.episodes:,}",
        f"with each seed\t{', '.join(map(rate, cell.score.by_seed))}",
    ]
    return "\n".join(lines if cell.paper is None else [*lines, f"paper\t{rate(cell.paper)}"])


def _causes(figure: Figure | None) -> list[tuple[str, str]]:
    """The causes that came up, with what they mean."""
    found = {part.cause for stack in figure.stacks for bar in stack.bars for part in bar.parts} if figure else set()
    return [(cause, CAUSE_MEANINGS.get(cause, "")) for cause in CAUSES if cause in found]


# Rules


@dataclass(frozen=True)
class ToldRule:
    """A rule for people: on what conditions, what to do, and all of it as a sentence."""

    priority: int
    conditions: Sequence[str]
    action: str
    sentence: str


@dataclass(frozen=True)
class RuleSet:
    """Rules that were learned for one task or several."""

    tasks: Sequence[str]
    summary: str
    rules: Sequence[ToldRule]


def rule_sets(texts: Mapping[str, str]) -> list[RuleSet]:
    """Those of tasks that have learned the same together, in the order of the tasks."""
    found: dict[tuple[Rule, ...], list[str]] = {}
    for task in sorted(texts, key=lambda name: (list(TASKS).index(name) if name in TASKS else len(TASKS), name)):
        found.setdefault(parse_rules(texts[task], f"the rules of {task}").rules, []).append(task)
    return [RuleSet(tasks, summary(rules), list(map(_told, rules))) for rules, tasks in found.items()]


def _told(rule: Rule) -> ToldRule:
    return ToldRule(rule.priority, list(rule.conditions()), str(rule.action), sentence(rule))


# How it was made


def _settings(findings: Findings) -> list[tuple[str, list[str]]]:
    """What is particular to each method: how long it was trained, on how much, and what else its results depend on."""
    found = []
    for entrant in entrants_in(findings):
        rows = rows_of(findings, entrant)
        trainings = [row.training for row in rows if row.training]
        others = {f"{key.replace('_', ' ')} {value}": None for row in rows for key, value in row.settings.items()}
        epochs = [plural(number, "epoch") for number in sorted({training.epochs for training in trainings})]
        samples = sorted({training.samples for training in trainings})
        many = [f"{samples[0]:,} to {samples[-1]:,} samples"] if samples else []
        found.append((entrant.title, [*epochs, *many, *others]))
    return found


def _versions(findings: Findings) -> list[tuple[str, str]]:
    """Of everything that took part; several of one where it differed."""
    found: dict[str, dict[str, None]] = {}
    for versions in (*(row.versions for row in findings.rows), *(one.versions for one in findings.scaling)):
        for name, version in versions.items():
            found.setdefault(name, {})[version] = None
    return [(name, ", ".join(versions)) for name, versions in found.items()]
