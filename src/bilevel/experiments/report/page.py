"""The page: everything in one file, which loads nothing."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from bilevel.experiments.hard.curves import Curves
from bilevel.experiments.paper import ADDRESS, TITLE, in_order
from bilevel.experiments.report import wording
from bilevel.experiments.report.drawing import panel_svg, swatch
from bilevel.experiments.report.explanations import LARGE, differences, first_of, in_curves, in_table
from bilevel.experiments.report.figures import figures
from bilevel.experiments.report.hard_results import HardResults
from bilevel.experiments.report.looks import CAUSES, palette
from bilevel.experiments.report.scores import Results
from bilevel.experiments.report.wording import asset, plural, spread
from bilevel.experiments.reproduction.films import Timeline
from bilevel.experiments.reproduction.findings import Findings, Training
from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.rules.explanation.english import sentence, summary
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.viewer.live import viewer_asset

Film = tuple[Timeline, bytes]


def page_html(
    findings: Findings,
    films: Sequence[Film] | None = None,
    files_folder: str | None = None,
    other_page: str | None = None,
    curves: Curves | None = None,
) -> str:
    """Return the whole page.

    There are no films, not even none, where there is but a file of findings; `files_folder` is the name of the folder
    with tables and figures, and `other_page` that of the page about the hard suite, if there is one. Its `curves` may
    explain what differs from the paper.
    """
    results = Results(findings)
    known = [in_table(results), *([in_curves(HardResults(curves))] if curves else [])]
    values = {**_values(results, films), "differences": differences(results, first_of(*known)), "large": LARGE}
    return environment().get_template("report.html").render(values, files_folder=files_folder, other_page=other_page)


@cache
def environment() -> Environment:
    """Return what compiles templates, and keeps those that it has compiled."""
    return Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def as_markup(function: Callable[..., str]) -> Callable[..., Markup]:
    """Return a function whose result is part of the page as it is."""
    return lambda *given: Markup(function(*given))


def shared_values() -> dict[str, object]:
    """Return what the templates of all pages know."""
    return {
        "asset": as_markup(asset),
        "palette": as_markup(palette),
        "panel_svg": as_markup(panel_svg),
        "swatch": as_markup(swatch),
        "wording": wording,
    }


def _values(results: Results, films: Sequence[Film] | None) -> dict[str, object]:
    """Return what templates know, functions among it."""
    about = results.findings.about
    rows = results.cells if results.variants else []
    drawn, found = figures(results), results.outcomes()
    return {
        **shared_values(),
        "viewer_asset": as_markup(viewer_asset),
        "about": about,
        "experiment": msgspec.to_builtins(about.experiment),
        "seeds": results.seeds,
        "results": results,
        "rows": rows,
        "figures": drawn,
        "series": {row[0].variant.name for row in rows} | {s.key for figure in drawn.values() for s in figure.legend},
        "causes": {name: cause.meaning for name, cause in CAUSES.items() if found[name]},
        "rule_sets": rule_sets(about.rules),
        "rules_summary": summary,
        "sentence": sentence,
        "titles": {name: variant.title for name, variant in VARIANTS.items()},
        "episodes": [episode(timeline, video) for timeline, video in films or ()],
        "filmless": [task for task in results.tasks if task not in {timeline.task for timeline, _ in films or ()}],
        "missing": [*results.missing(), *_no_films(films)],
        "sections": _sections(results, films),
        "paper": {"title": TITLE, "address": ADDRESS},
        "settings": _settings(results),
        "versions": _versions(results),
    }


def _sections(results: Results, films: Sequence[Film] | None) -> dict[str, str]:
    """Return the sections that there is something for, with what the menu calls them."""
    findings, drawn = results.findings, figures(results)
    named = {
        "table": ("Success", findings.rows),
        "objects": ("Objects", "success-by-objects" in drawn),
        "costs": ("Costs", "success-against-costs" in drawn),
        "scaling": ("Large problems", findings.scaling),
        "causes": ("Failures", findings.rows),
        "rules": ("Rules", findings.about.rules),
        "films": ("Films", films),
        "making": ("How it was made", True),
    }
    return {name: title for name, (title, found) in named.items() if found}


def _no_films(films: Sequence[Film] | None) -> list[str]:
    if films is None:
        return ["Films: this page was made from a file of findings alone; give the folder of `bilevel reproduce`."]
    return [] if films else ["Films: there are none in the folder."]


def rule_sets(texts: Mapping[str, str]) -> dict[tuple[Rule, ...], list[str]]:
    """Return the learned rules with the tasks for which they were learned, in the order of the tasks."""
    found: dict[tuple[Rule, ...], list[str]] = {}
    for task in in_order(texts):
        found.setdefault(parse_rules(texts[task], f"the rules of {task}"), []).append(task)
    return found


def _settings(results: Results) -> dict[str, list[str]]:
    """Return what is particular to each method: how long it was trained, on how much, and what else it depends on."""
    found = {}
    for variant in results.variants:
        rows = results.rows(variant)
        trainings = [row.training for row in rows if row.training]
        others = {f"{key.replace('_', ' ')} {value}": None for row in rows for key, value in row.settings.items()}
        lengths = [plural(*length) for length in sorted({_length(training) for training in trainings})]
        lengths += [f"learning rate {rate:g}" for rate in sorted({training.learning_rate for training in trainings})]
        samples = [spread({training.samples for training in trainings}, "sample")] if trainings else []
        sizes = {training.parameters for training in trainings if training.parameters is not None}
        found[variant.title] = [*lengths, *samples, *([spread(sizes, "parameter")] if sizes else []), *others]
    return found


def _length(training: Training) -> tuple[int, str]:
    """Return how long a network was cloned: in updates where their number was given, else in epochs."""
    return (training.updates, "update") if training.updates else (training.epochs, "epoch")


def _versions(results: Results) -> dict[str, list[str]]:
    """Return the versions of everything that took part; several of one where it differed."""
    found: dict[str, list[str]] = {}
    findings = results.findings
    known = [row.versions for row in findings.rows] + [one.versions for one in findings.scaling]
    for versions in (*known, *(row.training.versions for row in findings.rows if row.training)):
        for name, version in versions.items():
            if version not in found.setdefault(name, []):
                found[name].append(version)
    return found


# Films


@dataclass(frozen=True)
class Episode:
    """A film with a timeline, which follows it, and moves it when it is clicked."""

    timeline: Timeline
    video: str  # base64
    still: str | None  # base64
    shape: str | None  # width / height of a picture, where that is known


def episode(timeline: Timeline, video: bytes) -> Episode:
    """Return an episode with its film, ready to be shown."""
    still, shape = _first_picture(video)
    return Episode(
        timeline,
        base64.b64encode(video).decode(),
        still,
        shape,
    )


def _first_picture(video: bytes) -> tuple[str | None, str | None]:
    """Return a JPEG of it, to be seen before the film is loaded, and on paper, and its shape; `None` if that fails."""
    try:
        import av

        with av.open(io.BytesIO(video)) as film, io.BytesIO() as buffer:
            picture = next(film.decode(video=0)).to_image()
            picture.save(buffer, "JPEG", quality=70)
            return base64.b64encode(buffer.getvalue()).decode(), f"{picture.width} / {picture.height}"
    except (ImportError, OSError, ValueError, LookupError, StopIteration):  # some browser may yet play it
        return None, None
