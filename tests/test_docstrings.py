"""Everything public says what it is or does: all classes, functions and methods of the package have a docstring.

A method may have that of a class above it. Nothing is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import bilevel

ROOT = Path(bilevel.__file__).parent
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """All classes by their names; a name may be that of several."""
    found: dict[str, list[ast.ClassDef]] = {}
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def bases(node: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """The classes above a class, as far as they are ours."""
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        for above in classes().get(name, ()):
            if above is not node:
                yield above
                yield from bases(above)


def is_documented(function: Function, owner: ast.ClassDef | None) -> bool:
    alike = [part for above in (bases(owner) if owner else ()) for part in above.body]
    alike = [part for part in alike if isinstance(part, Function) and part.name == function.name]
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    is_part_of_another = any(name == "overload" or name.endswith(".setter") for name in decorators)
    return is_part_of_another or any(ast.get_docstring(part) for part in (function, *alike))  # type: ignore[arg-type]


def undocumented(body: Sequence[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield node.name
            yield from undocumented(node.body, node)
        elif isinstance(node, Function) and not node.name.startswith("_") and not is_documented(node, owner):
            yield f"{owner.name}.{node.name}" if owner else node.name


def test_everything_public_has_a_docstring() -> None:
    missing = {
        str(path.relative_to(ROOT)): names for path, tree in trees().items() if (names := [*undocumented(tree.body)])
    }
    assert missing == {}
    assert sum(1 for _ in classes()) > 100


def test_what_has_none_is_found() -> None:
    documented = 'class B:\n    """B."""\n    def g(self):\n        """G."""\n'
    tree = ast.parse(f"class A:\n    def f(self): ...\n    def _g(self): ...\n{documented}def h(): ...\n")
    assert list(undocumented(tree.body)) == ["A", "A.f", "h"]
