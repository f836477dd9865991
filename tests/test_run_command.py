"""`bilevel run`, at tiny size: what it prints, shows and exits with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest

from bilevel.contact_sheet import Tile, contact_sheet
from bilevel.policies import narration
from bilevel.policies.narration import Shot
from bilevel.policies.policy_folder import write_policy
from bilevel.tabletop import opengl, rendering, tabletop
from bilevel.tabletop.rendering import Image, Quality
from bilevel.video import Video
from command_line import run
from drawing import can_draw
from idle_policy import idle_policy

BLOCKS = ("blocks", "--objects", "1", "--seed", "4")


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    code, out, err = run(capsys, "run", *arguments, "--json")
    assert (code, err) == (0, "")
    result: dict[str, object] = json.loads(out)
    return result


# What it says


def test_a_run_tells_every_action_with_its_step(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", *BLOCKS)
    (first, pick), (second, place) = (line.split(maxsplit=1) for line in out.splitlines())
    assert (code, pick, place) == (0, "pick(block1)", "place(block1, place1)")
    assert err.startswith("success after ")
    assert 0 == int(first) < int(second) < int(err.split()[2])


def test_events_are_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "run", "factory", "--objects", "1")
    assert code == 0
    assert [line.split(maxsplit=1)[1] for line in out.splitlines()] == [
        "pick(block1)",
        "place(block1, place1)",
        "(arrival block2)",
        "pick(block2)",
        "place(block2, place2)",
    ]


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, *BLOCKS)
    asked = {"task": "blocks", "policy": "expert", "objects": 1, "seed": 4}
    assert found == {**asked, "outcome": "success", "reason": None, "why": None, "steps": found["steps"]}
    assert f"after {found['steps']} steps" in run(capsys, "run", *BLOCKS)[2]


def test_the_arguments_of_a_world_reach_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "run", "colour", "--objects", "1", "--colours", "1")
    assert "place-goal(block1, tray1, red)" in out
    _, out, _ = run(capsys, "run", "blocks", "--objects", "2", "--teleport-rate", "0.02", "--seed", "1")
    assert "(teleport block1)" in out


def test_the_seed_decides_everything_and_noise_changes_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    calm, jostled = (run_json(capsys, "blocks", "--noise", noise) for noise in (0, 0.7))
    assert run_json(capsys, "blocks", "--noise", 0.7) == jostled
    assert jostled["steps"] != calm["steps"]
    assert run_json(capsys, "blocks", "--seed", 1)["steps"] != calm["steps"]


def test_a_failure_is_told_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabletop, "STEPS_PER_OBJECT", 10)
    code, out, err = run(capsys, "run", *BLOCKS)
    assert (code, out.split()) == (1, ["0", "pick(block1)"])
    assert err.splitlines() == [
        "step limit after 10 steps",
        "it was still making progress when the time was up; at last it did pick(block1), for 10 steps",
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("cubes",), "unknown task 'cubes'; known tasks: blocks, blocks-noisy, factory,"),
        (("blocks", "--objects", "0"), "Blocks takes 1 to 20 objects, not 0"),
        (("gacha", "--objects", "11"), "Gacha takes 1 to 10 objects, not 11"),
        (("blocks", "--seed", "-1"), "--seed must be at least 0, but is -1"),
        (("blocks", "--noise", "-1"), "--noise is an amplitude of controls, 0 or more, not -1.0"),
        (("blocks", "--noise", "nan"), "--noise is an amplitude of controls, 0 or more, not nan"),
        (("blocks", "--draw", "uniform"), "the task 'blocks' takes no --draw"),
        (("gacha", "--colours", "2"), "the task 'gacha' takes no --colours"),
        (("blocks-noisy", "--teleport-rate", "2"), "the teleport rate is a probability"),
        (("blocks", "--window", "--video", "out.mp4"), "--window and --video do not go together; choose one"),
        (("blocks", "--video", "/dev/null/out.mp4"), "/dev/null/out.mp4: cannot be written: "),
        (("blocks", "--policy", "novice"), "novice: there is no such folder; `bilevel learn` makes one"),
        (("blocks", "--policy", "./expert"), "expert: there is no such folder"),
    ],
)
def test_bad_input_is_one_line_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reason: str
) -> None:
    code, out, err = run(capsys, "run", *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert reason in err


@pytest.mark.parametrize("arguments", [("blocks", "--objects", "many"), ("blocks", "--explain", "why"), ()])
def test_arguments_that_make_no_sense_exit_with_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run(capsys, "run", *arguments)[:2] == (2, "")


@pytest.mark.parametrize("arguments", ["'run', 'blocks'", "'evaluate', '--output', 'results.jsonl'", "'methods'"])
@pytest.mark.parametrize("missing", ["mujoco", "safetensors"])
def test_missing_worlds_are_one_line(missing: str, arguments: str) -> None:
    program = f"import sys; sys.modules['{missing}'] = None; from bilevel import cli; cli.main([{arguments}])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == f"bilevel: {missing} is missing; install it with: pip install 'bilevel[worlds]'\n"


# What it shows


def frames(path: Path) -> list[tuple[int, int]]:
    """The sizes of a video's pictures."""
    with av.open(str(path)) as container:
        return [(frame.width, frame.height) for frame in container.decode(video=0)]


def test_a_video_shows_every_second_step_with_its_action_and_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    captions: list[str] = []
    add = Video.add

    def noted(video: Video, picture: Image, caption: str = "", below: int = 0) -> None:
        captions.append(caption)
        add(video, picture, caption, below)

    monkeypatch.setattr(Video, "add", noted)
    monkeypatch.setitem(rendering.QUALITIES, "fast", Quality(64, 48, shadows=False, samples=0))
    path = tmp_path / "new" / "out.mp4"
    code, out, err = run(capsys, "run", *BLOCKS, "--video", path)
    if can_draw():
        assert (code, err.split()[0]) == (0, "success")
        second, steps = int(out.splitlines()[1].split()[0]), int(err.split()[2])
        actions = ["pick(block1)"] * second + ["place(block1, place1)"] * (steps - second)
        assert captions == actions[::2] + ["success"] * 40  # a second of how it ended
        assert frames(path) == [(64, 48)] * len(captions)
    else:
        assert (code, len(err.splitlines())) == (2, 1)
        assert "pictures" in err
    assert list(path.parent.iterdir()) == ([path] if can_draw() else [])


def test_a_sheet_shows_the_episode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn: list[tuple[str, str, list[Tile]]] = []

    def noted(headline: str, details: str, tiles: list[Tile]) -> bytes:
        drawn.append((headline, details, tiles))
        return contact_sheet(headline, details, tiles)

    monkeypatch.setattr(narration, "contact_sheet", noted)
    monkeypatch.setitem(rendering.QUALITIES, "good", Quality(64, 48, shadows=False, samples=0))
    path = tmp_path / "new" / "out.png"
    code, out, err = run(capsys, "run", *BLOCKS, "--sheet", path)
    if not can_draw():
        assert (code, out, len(err.splitlines()), list(tmp_path.iterdir())) == (2, "", 1, [])
        return
    second, steps = int(out.splitlines()[1].split()[0]), int(err.split()[2])
    ((headline, details, tiles),) = drawn
    assert (code, headline) == (0, f"blocks, 1 object: success after {steps} steps")
    assert details == "the expert, seed 4"
    assert [(tile.when, tile.text) for tile in tiles] == [
        ("step 0", "pick(block1)"),
        (f"step {second}", "place(block1, place1)"),
        (f"step {steps}", "success"),
    ]
    assert len({tile.picture.tobytes() for tile in tiles}) == 3
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("place", ["", "file/sheet.png"])
def test_a_sheet_without_a_place_is_refused_before_anything_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    monkeypatch.setattr(opengl, "backend", lambda: "any")
    (tmp_path / "file").touch()
    code, out, err = run(capsys, "run", *BLOCKS, "--sheet", tmp_path / place)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"{tmp_path / place}: cannot be written: " in err


def test_a_long_episode_keeps_the_first_and_the_last_shot_among_few(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    steps: list[int] = []

    def noted(stage: object, shots: list[Shot], *texts: str) -> bytes:
        steps.extend(shot.step for shot in shots)
        return b""

    monkeypatch.setattr(narration, "MOST_SHOTS", 4)
    monkeypatch.setattr(opengl, "backend", lambda: "any")
    monkeypatch.setattr(narration, "draw_sheet", noted)
    _, _, err = run(capsys, "run", "blocks", "--objects", "3", "--sheet", tmp_path / "out.png")
    assert len(steps) <= 4
    assert (steps[0], steps[-1]) == (0, int(err.split()[2]))
    assert steps == sorted(set(steps))


@pytest.fixture
def no_opengl(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MUJOCO_GL", "")
    monkeypatch.setattr(opengl, "works", lambda backend: False)
    opengl.backend.cache_clear()
    yield
    opengl.backend.cache_clear()


@pytest.mark.usefixtures("no_opengl")
def test_without_opengl_a_video_is_one_line_and_all_else_works(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = run(capsys, "run", *BLOCKS, "--video", tmp_path / "out.mp4")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "neither EGL nor OSMesa works here; on Debian: apt-get install libegl1" in err
    assert run(capsys, "run", *BLOCKS, "--sheet", tmp_path / "out.png")[::2] == (2, err)
    assert list(tmp_path.iterdir()) == []
    assert run(capsys, "run", *BLOCKS)[0] == 0


def test_a_video_that_is_interrupted_leaves_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tabletop.Tabletop, "step", interrupt)
    monkeypatch.setattr(tabletop.Tabletop, "render", lambda self: np.zeros((48, 64, 3), np.uint8))
    code, _, err = run(capsys, "run", *BLOCKS, "--video", tmp_path / "out.mp4")
    assert (code, err) == (130, "bilevel: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_a_window_is_shown_at_every_step_and_closed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(rendering, "has_screen", lambda: True)
    monkeypatch.setattr(tabletop.Tabletop, "render", lambda self: calls.append(self.render_mode))
    monkeypatch.setattr(tabletop.Tabletop, "close", lambda self: calls.append("close"))
    found = run_json(capsys, *BLOCKS, "--window")
    assert calls == ["human"] * (1 + int(str(found["steps"]))) + ["close"]


def test_a_window_needs_a_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "has_screen", lambda: False)
    code, out, err = run(capsys, "run", *BLOCKS, "--window")
    assert (code, out, err) == (2, "", "bilevel: no window: there is no screen here; try --video FILE\n")


def test_videos_without_their_package_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    code, out, err = run(capsys, "run", *BLOCKS, "--video", tmp_path / "out.mp4")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "pip install 'bilevel[video]'" in err


def test_a_rival_shows_what_it_does_with_a_learned_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_policy(tmp_path / "policy", idle_policy())
    code, out, _ = run(capsys, "run", "blocks", "--policy", tmp_path / "policy", "--method", "ndt-plan", "--objects", 1)
    assert code == 1
    assert "pick(block1)" in out.splitlines()[0]
    for method, reason in (
        ("lama", "does without worlds"),
        ("expert", "takes no --policy"),
        ("magic", "unknown method"),
    ):
        arguments = () if method == "lama" else ("--policy", tmp_path / "policy")
        code, _, err = run(capsys, "run", "blocks", "--method", method, *arguments)
        assert (code, len(err.splitlines())) == (2, 1)
        assert reason in err
