"""Build the compiled parts, where there is a compiler. Each is optional and does what some Python does, but faster."""

from pathlib import Path

from setuptools import Extension, setup

try:
    from Cython.Build import cythonize
except ImportError:  # without build isolation, and without Cython: all is done in Python
    cythonize = None

SOURCES = sorted(Path("src").rglob("*.pyx"))


def module(path: Path) -> str:
    return ".".join(path.relative_to("src").with_suffix("").parts)


if cythonize is not None and SOURCES:
    extensions = [
        Extension(
            module(path),
            [str(path)],
            depends=[str(header) for header in sorted(path.parent.glob("*.hpp"))],
            include_dirs=[str(path.parent)],
            language="c++",
            extra_compile_args=["-O2", "-std=c++17"],
            optional=True,
        )
        for path in SOURCES
    ]
    setup(ext_modules=cythonize(extensions, build_dir="build/cython", language_level=3))
else:
    setup()
