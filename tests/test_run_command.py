"""`bilevel run`, at tiny size: what it prints, shows and exits with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import pytest

import drawn_task
import tiny_task
from bilevel.commands.arguments import NAMELESS, named_after
from bilevel.policies.film import Tile, Video
from bilevel.tabletop import opengl, rendering, tabletop
from command_line import run
from drawing import can_draw
from tiny_policies import PICK, PUT, RULES_TEXT, learned_folder, moving_as_the_expert, still_folder, still_policy

TINY = f"{tiny_task.__file__}:TINY"
DRAWN = f"{drawn_task.__file__}:DRAWN"
ONE = ("--objects", 1, "--seed", 1)


@pytest.fixture
def skilled() -> Iterator[Path]:
    """A policy whose network moves as the expert does."""
    with moving_as_the_expert():
        yield still_folder()


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = run(capsys, "run", *arguments, "--json")
    assert (code, err) == (0, "")
    result: dict[str, Any] = json.loads(out)
    return result


# What it says


def test_a_run_tells_every_action_and_event_with_its_step(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", TINY, "--policy", "expert", "--objects", 2, "--seed", 1)
    steps = [int(line.split()[0]) for line in out.splitlines()]
    told = [line.split(maxsplit=1)[1] for line in out.splitlines()]
    assert (code, told[:2]) == (0, ["pick(parcel1)", "put(parcel1, spot1)"])
    assert sorted(told[2:]) == ["(arrival parcel2)", "pick(parcel2)", "put(parcel2, spot2)"]
    assert err == f"success after {err.split()[2]} steps\n"
    assert steps == sorted(steps)
    assert 0 == steps[0] < steps[-1] < int(err.split()[2])


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, TINY, *ONE)
    asked = {"task": TINY, "policy": "expert", "objects": 1, "seed": 1}
    assert found == {
        **asked,
        "outcome": "success",
        "reason": None,
        "why": None,
        "steps": found["steps"],
        "incidents": [],
    }
    assert f"after {found['steps']} steps" in run(capsys, "run", TINY, *ONE)[2]


def test_arguments_reach_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert "(slip parcel1)" in run(capsys, "run", TINY, "--env-args", "slip_rate=0.2")[1]


def test_the_seed_decides_everything_and_noise_changes_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    calm, noisy = (run_json(capsys, TINY, "--noise", noise) for noise in (0, 0.7))
    assert run_json(capsys, TINY, "--noise", 0.7) == noisy
    assert noisy["steps"] != calm["steps"]
    assert run_json(capsys, TINY, "--seed", 1)["steps"] != calm["steps"]


def test_a_task_on_the_table_is_known_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", "blocks", "--policy", "expert", "--objects", 1, "--seed", 4)
    assert (code, [line.split(maxsplit=1)[1] for line in out.splitlines()]) == (
        0,
        ["pick(block1)", "place(block1, place1)"],
    )
    assert err.startswith("success after ")


# Explanations


def test_each_decision_is_told_with_its_rule_binding_and_sentence(
    capsys: pytest.CaptureFixture[str], skilled: Path
) -> None:
    code, out, err = run(capsys, "run", TINY, *ONE, "--policy", skilled, "--explain")
    lines = out.splitlines()
    assert (code, err.split()[0]) == (0, "success")
    assert lines[0] == "     0  pick(parcel1)"
    assert lines[4].split(maxsplit=1)[1] == "put(parcel1, spot1)"
    indent, binding = 10 * " ", "with ?p = parcel1, ?s = spot1"
    assert lines[1:3] == [f"{indent}rule {PICK}", indent + binding]
    assert lines[5:7] == [f"{indent}rule {PUT}", indent + binding]
    assert all(line.startswith(f"{indent}Because ") for line in (lines[3], lines[7]))
    assert run(capsys, "run", TINY, *ONE, "--policy", skilled)[1].splitlines() == [lines[0], lines[4]]

    found = run_json(capsys, TINY, *ONE, "--policy", skilled, "--explain")
    assert (found["policy"], found["unexpected"]) == (str(skilled), [])
    assert [decision["rule"] for decision in found["decisions"]] == [PICK, PUT]
    assert found["decisions"][0]["sentence"] == lines[3].strip()
    assert "decisions" not in run_json(capsys, TINY, *ONE, "--policy", skilled)


def test_the_expert_has_no_rules_and_says_so_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", TINY, "--policy", "expert", *ONE, "--explain")
    assert (code, len(out.splitlines())) == (0, 2)
    assert err.splitlines()[0] == "the expert has no rules to explain what it does"
    decisions = run_json(capsys, TINY, *ONE, "--explain")["decisions"]
    assert [(decision["action"], decision["rule"]) for decision in decisions] == [
        ("pick(parcel1)", None),
        ("put(parcel1, spot1)", None),
    ]


# Failures


def test_a_failure_is_told_and_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", TINY, *ONE, "--policy", still_folder())
    stuck = "it is stuck: nothing that it does has an effect any more"
    why = f"{stuck}; at last it did pick(parcel1), for 400 steps; the agent is 0.335 from parcel1"
    assert (code, out.split()) == (1, ["0", "pick(parcel1)"])
    assert err.splitlines() == ["step limit after 400 steps", why]
    code, out, err = run(capsys, "run", TINY, *ONE, "--policy", still_folder(), "--json")
    found = json.loads(out)
    assert (code, err, found["outcome"], found["reason"], found["why"]) == (1, "", "step limit", "stall", why)


def test_what_repeats_is_folded_but_json_has_it_all(capsys: pytest.CaptureFixture[str], skilled: Path) -> None:
    """A parcel that keeps slipping away is picked up again and again."""
    words = (TINY, *ONE, "--policy", skilled, "--env-args", "slip_rate=0.5", "--recovery", "off", "--explain")
    code, out, _ = run(capsys, "run", *words)
    assert code == 1
    assert out.count("Because ") <= 4
    (fold,) = [line for line in out.splitlines() if "more of the same until step" in line]
    assert fold.startswith("        … ")
    decisions = json.loads(run(capsys, "run", *words, "--json")[1])["decisions"]
    assert len(decisions) > len(out.splitlines())
    assert all(decision["rule"] for decision in decisions)


def test_where_no_rule_applies_it_says_what_the_nearest_lacks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    still_policy(rules=RULES_TEXT.replace(PICK, "")).write(tmp_path)
    code, out, err = run(capsys, "run", TINY, *ONE, "--policy", tmp_path, "--explain", "--recovery", "off")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "no action after 0 steps",
        "it does not know what to do: no rule applies",
        "  rule 1 put(parcel1, spot1): carrying(parcel1) does not hold",
    ]


def test_a_world_that_breaks_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bilevel.tabletop.simulation.Simulation.stable", property(lambda simulation: False))
    code, _, err = run(capsys, "run", "blocks", "--policy", "expert", *ONE)
    assert code == 1
    assert err.splitlines() == [
        "unstable simulation after 1 steps",
        "the simulation became unstable; at last it did pick(block1), for 1 steps",
    ]


# What is refused


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("cubes",), "unknown task 'cubes'; known tasks: blocks, blocks-noisy,"),
        (("tiny_task.py",), "tiny_task.py: say which task in it, as in tiny_task.py:task"),
        (("nowhere.py:TINY",), "nowhere.py: there is no such file"),
        ((TINY.replace(":TINY", ":BIG"),), "no task called 'BIG' there; tasks there: TINY, TINY_DISCRETE, TINY_ACTING"),
        ((TINY, "--objects", "0"), "the task 'tiny' takes 1 to 12 objects, not 0"),
        (("gacha", "--objects", "11"), "the task 'gacha' takes 1 to 10 objects, not 11"),
        ((TINY, "--seed", "-1"), "--seed must be at least 0, but is -1"),
        ((TINY, "--noise", "-1"), "--noise must be at least 0, but is -1.0"),
        ((TINY, "--noise", "nan"), "--noise must be at least 0, but is nan"),
        ((TINY, "--env-args", "draw=uniform"), "the task 'tiny' takes no argument 'draw'; it takes: slip_rate"),
        ((TINY, "--env-args", "slip_rate"), "--env-args takes KEY=VALUE, not 'slip_rate'"),
        (("blocks-noisy", "--env-args", "teleport_rate=2"), "the teleport rate is a probability"),
        ((TINY, "--window", "--video", "out.mp4"), "--window and --video do not go together; choose one"),
        ((TINY, "--video", "/dev/null/out.mp4"), "make_env"),
        ((DRAWN, "--video", "/dev/null/out.mp4"), "/dev/null/out.mp4: cannot be written: "),
        ((TINY, "--policy", "novice"), "novice: there is no such folder; `bilevel learn` makes one"),
        ((TINY, "--policy", "./expert"), "expert: there is no such folder"),
        ((TINY, "--method", "magic"), "unknown method 'magic'; known methods: bison, expert,"),
        ((TINY, "--method", "det-plan"), "the method 'det-plan' needs a --policy; `bilevel learn` makes one"),
        ((TINY, "--method", "expert", "--policy", "novice"), "the method 'expert' takes no --policy"),
    ],
)
def test_bad_input_is_one_line_and_exits_with_2(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "run", *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert reason in err


@pytest.mark.parametrize("arguments", [(TINY, "--objects", "many"), (TINY, "--explain", "why"), ()])
def test_arguments_that_make_no_sense_exit_with_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run(capsys, "run", *arguments)[:2] == (2, "")


def test_a_policy_for_another_domain_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", "gacha", "--policy", learned_folder())
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "the policy was learned on 'tiny': its domain lacks " in err
    assert err.endswith(" of 'gacha'\n")


def test_a_missing_simulator_is_one_line_that_names_the_extra() -> None:
    program = "import sys; sys.modules['mujoco'] = None; from bilevel import cli; cli.main(['run', 'blocks'])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, len(found.stderr.splitlines())) == (2, "", 1)
    assert found.stderr.startswith("bilevel: mujoco is missing; install it with: pip install 'bilevel[")


def test_a_rival_shows_what_it_does_with_a_learned_policy(capsys: pytest.CaptureFixture[str], skilled: Path) -> None:
    code, out, _ = run(capsys, "run", TINY, *ONE, "--policy", skilled, "--method", "ndt-plan")
    assert (code, [line.split(maxsplit=1)[1] for line in out.splitlines()]) == (
        0,
        ["pick(parcel1)", "put(parcel1, spot1)"],
    )


# What it shows


def frames(path: Path) -> list[tuple[int, int]]:
    """The sizes of a video's pictures."""
    with av.open(str(path)) as container:
        return [(frame.width, frame.height) for frame in container.decode(video=0)]


def test_a_video_and_a_sheet_show_the_episode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    headings: list[tuple[str, ...]] = []
    texts: list[str] = []

    def noted(headline: str, details: str, tiles: list[Tile]) -> bytes:
        headings.append((headline, details))
        texts.extend(tile.text.split(": ")[1] for tile in tiles)
        return b"sheet"

    monkeypatch.setattr("bilevel.policies.film.contact_sheet", noted)
    video, sheet = tmp_path / "new" / "out.mp4", tmp_path / "new" / "out.png"
    code, _, err = run(
        capsys, "run", DRAWN, "--policy", "expert", *ONE, "--video", video, "--sheet", sheet, "--noise", 0.1
    )
    steps = int(err.split()[2])
    assert (code, err) == (0, f"success after {steps} steps\nwritten to {video}\nwritten to {sheet}\n")
    assert frames(video) == [(drawn_task.WIDTH, drawn_task.HEIGHT)] * (steps + 30)  # a second of how it ended
    assert headings == [
        (f"drawn, 1 object: success after {steps} steps", "the expert, seed 1, control noise 0.1"),
    ]
    assert (texts, sheet.read_bytes()) == (["pick(parcel1)", "put(parcel1, spot1)", "success"], b"sheet")
    assert sorted(video.parent.iterdir()) == [video, sheet]


def test_pictures_without_the_name_of_a_file_are_named_after_the_task(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bilevel.policies.film.contact_sheet", lambda *_, **__: b"sheet")
    code, _, err = run(capsys, "run", DRAWN, "--policy", "expert", "--sheet", "--video", *ONE)
    assert (code, err.splitlines()[1:]) == (0, ["written to drawn_task.mp4", "written to drawn_task.png"])
    assert {path.name for path in tmp_path.iterdir()} == {"drawn_task.mp4", "drawn_task.png"}


@pytest.mark.parametrize(
    ("task", "file"),
    [("gacha", "gacha.mp4"), ("a/cubes.py:task", "cubes.mp4"), ("package.worlds:task", "worlds.mp4")],
)
def test_a_file_is_named_after_the_task(task: str, file: str) -> None:
    assert named_after(task, NAMELESS, ".mp4") == Path(file)
    assert named_after(task, Path("mine.mp4"), ".mp4") == Path("mine.mp4")
    assert named_after(task, None, ".mp4") is None


def test_a_world_on_the_table_is_drawn_where_that_is_possible(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for quality in rendering.QUALITIES:
        monkeypatch.setitem(rendering.QUALITIES, quality, rendering.Quality(64, 48, shadows=False, samples=0))
    path = tmp_path / "out.png"
    code, _, err = run(capsys, "run", "blocks", *ONE, "--sheet", path)
    if can_draw():
        assert (code, path.read_bytes()[:4]) == (0, b"\x89PNG")
    else:
        assert (code, len(err.splitlines()), list(tmp_path.iterdir())) == (2, 1, [])
        assert "pictures" in err


def test_what_a_task_cannot_draw_is_refused_in_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    video = ("--video", tmp_path / "film.mp4")
    for words, what in (
        ((*video, "--names"), "no names in pictures: the task 'drawn' does not say where things are (`locate`)"),
        ((*video, "--size", "320x200"), "the task 'drawn' has pictures of one size: its make_env takes no "),
        ((*video, "--size", "320"), "--size takes WIDTHxHEIGHT, such as 1280x960, not '320'"),
        (("--view", "--names"), "no names in pictures: the task 'drawn' does not say where things are (`locate`)"),
        (("--names",), "--names and --size are about pictures: add --video, --sheet or --view"),
    ):
        code, out, err = run(capsys, "run", DRAWN, "--policy", "expert", *ONE, *words)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert err.startswith(f"bilevel: {what}")
    assert list(tmp_path.iterdir()) == []


def test_names_and_sizes_reach_the_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if not can_draw():
        return
    path = tmp_path / "out.mp4"
    one = ("run", "blocks", "--objects", 1, "--seed", 4)
    assert run(capsys, *one, "--video", path, "--size", "48x32", "--names")[0] == 0
    assert set(frames(path)) == {(48, 32)}


@pytest.mark.parametrize("place", ["", "file/sheet.png"])
def test_a_sheet_without_a_place_is_refused_before_anything_is_done(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    code, out, err = run(capsys, "run", DRAWN, *ONE, "--sheet", tmp_path / place)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"{tmp_path / place}: cannot be written: " in err


@pytest.fixture
def no_opengl(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MUJOCO_GL", "")
    monkeypatch.setattr(opengl, "works", lambda backend: False)
    opengl.backend.cache_clear()
    yield
    opengl.backend.cache_clear()


@pytest.mark.usefixtures("no_opengl")
def test_without_opengl_pictures_are_one_line_and_all_else_works(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = run(capsys, "run", "blocks", *ONE, "--video", tmp_path / "out.mp4")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "neither EGL nor OSMesa works here; on Debian: apt-get install libegl1" in err
    assert run(capsys, "run", "blocks", *ONE, "--sheet", tmp_path / "out.png")[::2] == (2, err)
    assert list(tmp_path.iterdir()) == []


def test_a_video_that_is_interrupted_leaves_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Video, "add", interrupt)
    code, _, err = run(capsys, "run", DRAWN, "--policy", "expert", *ONE, "--video", tmp_path / "out.mp4")
    assert (code, err) == (130, "bilevel: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_a_window_is_shown_at_every_step_and_closed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(rendering, "has_screen", lambda: True)
    monkeypatch.setattr(tabletop.Tabletop, "render", lambda self: calls.append(self.render_mode))
    monkeypatch.setattr(tabletop.Tabletop, "close", lambda self: calls.append("close"))
    found = run_json(capsys, "blocks", *ONE, "--window")
    assert calls == ["human"] * (1 + int(found["steps"])) + ["close"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells before a window is opened")
def test_a_window_needs_a_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    code, out, err = run(capsys, "run", DRAWN, *ONE, "--window")
    assert (code, out, err) == (2, "", "bilevel: no window: there is no screen here; try --video FILE\n")


def test_videos_without_their_package_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    code, out, err = run(capsys, "run", DRAWN, *ONE, "--video", tmp_path / "out.mp4")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "pip install 'bilevel[video]'" in err
