"""The pages of the site that are made when it is built: the references, the report and the changelog."""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))  # hooks are loaded one by one, not as modules of a folder

from api_reference import api_page
from bilevel.experiments.report import write_report
from command_reference import command_page

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / "results" / "reproduction.jsonl"
CURVES = ROOT / "results" / "hard.jsonl"  # which may not have been measured yet
REPORT = """# The report of the reproduction

`bilevel reproduce` ends with a report: one page with tables, charts, rules and how it was made, which loads nothing
from elsewhere. This is the report of [`results/reproduction.jsonl`](../results/reproduction.jsonl), made by
`bilevel report results/reproduction.jsonl --output report.html`. [The reproduction](reproduction.md) discusses it.

<a class="md-button md-button--primary" href="reproduction-report.html">Open the report</a>

[![The report in a browser](images/report.png)](images/report.png)
"""
HARD_REPORT = """
[The hard suite](reproduction.md#the-hard-suite) has a report, too,
made of [`results/hard.jsonl`](../results/hard.jsonl).

<a class="md-button" href="hard-report.html">Open the hard suite's report</a>
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    report = REPORT + (HARD_REPORT if CURVES.exists() else "")
    pages = {"api.md": api_page(), "commands.md": command_page(), "report.md": report}
    pages["changelog.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Write the reports themselves, which are pages of their own."""
    write_report(FINDINGS, Path(config.site_dir) / "reproduction-report.html", None)
    if CURVES.exists():
        write_report(CURVES, Path(config.site_dir) / "hard-report.html", None)
