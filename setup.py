"""Build the compiled parts, where there is a compiler. Each is optional and does what some Python does, but faster."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from Cython.Build import cythonize
except ImportError:  # without build isolation, and without Cython: all is done in Python
    cythonize = None

SOURCES = sorted(Path("src/bilevel/native").glob("*.pyx"))
FLAGS = ["-O2", "-g0", "-std=c++17"]  # -g0: without what debuggers need, which is ten times the code
FLAGS_OF = {"msvc": ["/O2", "/std:c++17", "/EHsc"]}  # of compilers that have others


def module(path: Path) -> str:
    return ".".join(path.relative_to("src").with_suffix("").parts)


class Build(build_ext):
    """Builds what can be built, with the flags of the compiler at hand, which is known only now."""

    def build_extension(self, extension: Extension) -> None:
        extension.extra_compile_args = FLAGS_OF.get(self.compiler.compiler_type, FLAGS)
        try:
            super().build_extension(extension)
        except Exception as error:  # `optional` alone lets some failures through, which ones depends on setuptools
            self.warn(f"{extension.name} is not compiled, Python does its work: {error}")


if cythonize is not None and SOURCES:
    extensions = [
        Extension(
            module(path),
            [str(path)],
            depends=[str(header) for header in sorted(path.parent.glob("*.hpp"))],
            include_dirs=[str(path.parent)],
            language="c++",
            optional=True,
        )
        for path in SOURCES
    ]
    modules = cythonize(extensions, build_dir="build/cython", language_level=3)
    setup(ext_modules=modules, cmdclass={"build_ext": Build})
else:
    setup()
