"""The command that makes pages to look at from what was found in experiments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import tyro

from bilevel.commands.arguments import Output, count, print_json
from bilevel.files import require_writable
from bilevel.symbolic.domain import BadInput


@dataclass(frozen=True)
class Report:
    """Make one page of what `bilevel reproduce` has found: tables, charts, rules, films, and how it was made.

    The page is a single file that loads nothing. Beside it, in a folder of its name with -files, are the tables as CSV,
    Markdown and LaTeX, and the figures as PDF and PNG. What `bilevel benchmark hard` has found has a page like it, with
    -hard in its name where both have worked in one folder.

    Example: bilevel report build/reproduction --output build/report.html
    """

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR|FILE.jsonl")]
    """Folder of `bilevel reproduce` or `bilevel benchmark hard`, which may still be at work in it, or a file of what
    was found alone, without films."""
    output: Output
    """Where to write the page."""
    files: Annotated[Optional[Path], tyro.conf.arg(metavar="DIR")] = None
    """Folder for tables and figures (by default beside the page: report-files for report.html)."""
    page_only: bool = False
    """Write no tables and figures."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        if self.page_only and self.files:
            raise BadInput("--files and --page-only exclude each other")
        from bilevel.experiments.report.writing import write_report

        require_writable(self.output)
        folder = None if self.page_only else self.files or self.output.with_name(f"{self.output.stem}-files")
        files = write_report(self.source, self.output, folder)
        if self.json:
            print_json(output=str(self.output), folder=str(folder) if folder else None, files=files)
            return 0
        print(f"written to {self.output}")
        if folder:
            print(f"{count(files, 'file')} with tables and figures in {folder}")
        return 0
