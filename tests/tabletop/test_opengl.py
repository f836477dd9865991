"""Which way to draw is taken, and what is said where none works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import opengl


@pytest.fixture
def no_memory() -> Iterator[None]:
    """Forget what worked before and afterwards."""
    opengl.backend.cache_clear()
    yield
    opengl.backend.cache_clear()


@pytest.mark.usefixtures("no_memory")
@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("", "neither EGL nor OSMesa works here; on Debian: apt-get install libegl1 .* libosmesa6"),
        ("egl", "MUJOCO_GL=egl does not work here; on Debian: apt-get install libegl1"),
        ("off", "switched off by MUJOCO_GL=off"),
    ],
)
def test_where_nothing_works_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, wish: str, message: str
) -> None:
    monkeypatch.setenv("MUJOCO_GL", wish)
    monkeypatch.setattr(opengl, "works", lambda backend: False)
    with pytest.raises(BadInput, match=message) as raised:
        opengl.backend()
    assert "\n" not in str(raised.value)


# In processes of their own


@pytest.mark.parametrize(
    ("wish", "cause"),
    [
        ("", "neither EGL nor OSMesa works here"),
        ("egl", "MUJOCO_GL=egl does not work here"),  # with which MuJoCo itself cannot be imported
    ],
)
def test_worlds_work_without_any_library_to_draw_with(tmp_path: Path, wish: str, cause: str) -> None:
    """The libraries are hidden by empty files of their names."""
    for library in ("EGL", "GL", "OpenGL", "OSMesa", "GLESv2", "GLX"):
        for version in ("", ".0", ".1", ".2", ".6", ".8"):
            (tmp_path / f"lib{library}.so{version}").touch()
    (line,) = run(
        """
        from bilevel.tabletop.worlds.blocks import Blocks
        from bilevel.symbolic.domain import BadInput
        world = Blocks(objects=1, render_mode="rgb_array")
        try:
            world.reset(seed=0)
            world.step([0, 0, 0, 0])
            world.render()
        except BadInput as error:
            print(error)
        world.close()
        """,
        LD_LIBRARY_PATH=str(tmp_path),
        MUJOCO_GL=wish,
    )
    assert line.startswith(f"no pictures: {cause}; on Debian: apt-get install libegl1")


def run(program: str, **variables: str) -> list[str]:
    """What a program prints, without a screen; it must neither fail nor complain."""
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    process = subprocess.run(
        [sys.executable, "-c", dedent(program)], env=environment | variables, capture_output=True, text=True
    )
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.splitlines()
