"""Where the fuzzer plays: a folder with the corpus and with files of a user, in which every change is noticed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

USERS = {"notes.txt": "mine\n", "data.jsonl": '{"mine": 1}\n'}


def add_users_files(folder: Path) -> None:
    """Write what no command may touch."""
    folder.mkdir()
    (folder / "empty").mkdir()
    for name, text in USERS.items():
        (folder / name).write_text(text, encoding="utf-8")


class Sandbox:
    """A folder with the corpus and with files of a user, which is the working folder of this process."""

    def __init__(self, corpus: Path, folder: Path) -> None:
        self._corpus, self._folder = corpus, folder
        shutil.copytree(corpus, folder / "outside" / "further" / "work")
        os.chdir(folder / "outside" / "further" / "work")
        self._known = dict(self._look())

    def _look(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for root, _, names in os.walk("."):
            for name in names:
                about = os.lstat(path := os.path.join(root, name))
                yield path, (about.st_mtime_ns, about.st_size)

    def changes(self, may_write: set[str]) -> list[str]:
        """Return the files that are not as they were, but for those that were named to be written; mend all."""
        now = dict(self._look())
        new = [path for path in now if path not in self._known]
        changed = [path for path, about in self._known.items() if now.get(path) != about]
        for path in new:
            os.unlink(path)
        for root, folders, names in os.walk(".", topdown=False):
            if not folders and not names and root != "." and not (self._corpus / root).exists():
                os.rmdir(root)
        for path in changed:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy2(self._corpus / path, path)
        for outside, ours in (("..", "work"), ("../..", "further")):
            for name in os.listdir(outside):
                if name != ours:
                    _remove(Path(outside) / name)
        self._known = dict(self._look()) if changed else self._known
        return [path for path in changed if not any(_is_at(path, given) for given in may_write)]

    def put(self, path: Path, data: bytes | None) -> None:
        """Damage a file, which is then known as it is."""
        path.unlink()
        if data is None:
            path.mkdir()
            self._known.pop(f"./{path}")
        else:
            path.write_bytes(data)
            about = path.stat()
            self._known[f"./{path}"] = about.st_mtime_ns, about.st_size

    def mend(self, path: Path) -> None:
        if path.is_dir():
            path.rmdir()
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._corpus / path, path)
        about = path.stat()
        self._known[f"./{path}"] = about.st_mtime_ns, about.st_size


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _is_at(path: str, given: str) -> bool:
    """Return whether a path is at, or below, one that was given."""
    return bool(given) and os.path.commonpath([os.path.abspath(path), os.path.abspath(given)]) == os.path.abspath(given)
