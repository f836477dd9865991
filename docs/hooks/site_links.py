"""Links of the docs to files outside docs/, which a repository's viewer follows, made to work on the site as well.

Programs and domains that a page links to become pages of the site, files of results are copied, folders become lists.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)")
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LANGUAGES = {".py": "python", ".pddl": "pddl", ".toml": "toml", ".sh": "sh", ".yml": "yaml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add to the site whatever outside docs/ its pages link to."""
    texts = [file.content_string for file in files.documentation_pages()]
    for path in sorted({path for text in texts for path in OUTSIDE.findall(text)}):
        if path not in PAGES:
            files.append(_file_of(path, config))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files outside docs/ into links to what stands for them on the site."""
    here = posixpath.dirname(page.file.src_uri)
    return OUTSIDE.sub(lambda found: f"]({posixpath.relpath(_place(found[1]), here or '.')}", markdown)


def _place(path: str) -> str:
    """Return where on the site a file of the repository is, as a source of a page or as a file to download."""
    if path in PAGES:
        return PAGES[path]
    is_page = (ROOT / path).is_dir() or Path(path).suffix in LANGUAGES
    return f"files/{path.rstrip('/')}.md" if is_page else f"files/{path}"


def _file_of(path: str, config: MkDocsConfig) -> File:
    source = ROOT / path
    if source.is_dir():
        names = sorted(f"{file.name}/" if file.is_dir() else file.name for file in source.iterdir())
        text = "\n".join(f"- `{name}`" for name in names if not name.startswith(("__", ".")))
    elif source.suffix in LANGUAGES:
        text = f"```{LANGUAGES[source.suffix]}\n{source.read_text(encoding='utf-8')}```"
    else:
        return File.generated(config, _place(path), abs_src_path=str(source))
    head = f"---\ntitle: {source.name}\nsearch: {{exclude: true}}\nhide: [toc]\n---\n\n# `{path.rstrip('/')}`\n"
    return File.generated(config, _place(path), content=f"{head}\n{text}\n")
