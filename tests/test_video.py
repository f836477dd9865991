"""Videos: what is written is what was shown, and a video that fails leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput
from bilevel.video import INK, Image, Video, captioned

RED, BLUE = (200, 30, 40), (30, 60, 190)


def plain(colour: tuple[int, int, int], height: int = 96, width: int = 128) -> Image:
    return np.full((height, width, 3), colour, np.uint8)


def write_video(path: Path, pictures: list[Image], fps: float = 25) -> None:
    with Video(path, fps) as video:
        for picture in pictures:
            video.add(picture)


def frames(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def test_a_video_is_what_browsers_play(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "out.mp4"
    write_video(path, [plain(RED)] * 5, fps=40)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height, stream.frames, stream.average_rate) == (128, 96, 5, 40)


def test_pictures_come_in_order_and_in_their_colours(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    write_video(path, [plain(RED), plain(RED), plain(BLUE)])
    for frame, colour in zip(frames(path), (RED, RED, BLUE), strict=True):
        assert np.abs(frame.mean((0, 1)) - colour).max() < 8


def test_odd_sizes_are_made_even(tmp_path: Path) -> None:
    write_video(tmp_path / "out.mp4", [plain(RED, 95, 127)])
    assert frames(tmp_path / "out.mp4")[0].shape == (96, 128, 3)


def test_pictures_can_be_made_smaller_and_files_too(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (96, 128, 3), np.uint8)
    sizes = []
    for name, encoder in (("fine.mp4", {"crf": "10"}), ("coarse.mp4", {"crf": "45"})):
        with Video(tmp_path / name, fps=25, width=64, encoder=encoder) as video:
            video.add(noise, "pick(block1)", below=2)
            video.add(noise[::2, ::2], "pick(block1)", below=2)  # which is small enough as it is
        sizes.append((tmp_path / name).stat().st_size)
    assert frames(tmp_path / "fine.mp4")[0].shape == (48 + 30, 64, 3)
    assert sizes[0] > 2 * sizes[1]


def test_a_name_may_hold_a_colon(tmp_path: Path) -> None:
    write_video(tmp_path / "http: a test.mp4", [plain(RED)])
    assert [file.name for file in tmp_path.iterdir()] == ["http: a test.mp4"]


# Captions


def test_a_caption_is_written_below(tmp_path: Path) -> None:
    with Video(tmp_path / "out.mp4", fps=25) as video:
        video.add(plain(RED), "pick(block1)")
    (frame,) = frames(tmp_path / "out.mp4")
    assert np.abs(frame[:70].mean((0, 1)) - RED).max() < 8
    assert frame[-4:].mean() < 90
    assert frame[80:].max() > 200


def test_a_caption_leaves_the_picture_above_it_and_the_given_array_alone() -> None:
    picture = plain(BLUE)
    shown = captioned(picture, "pick(block1)")
    assert (picture == plain(BLUE)).all()
    assert (shown[:70] == picture[:70]).all()
    assert shown.dtype == np.uint8


def test_each_line_of_a_caption_has_its_own_strip() -> None:
    def strip(caption: str) -> int:
        return int((captioned(plain(RED), caption) != RED).any((1, 2)).sum())

    assert strip("one") < strip("one\ntwo") < strip("one\ntwo\nthree")


def test_a_line_that_is_too_long_ends_within_the_picture() -> None:
    shown = captioned(plain(RED, 480, 640), "place(block1, place1) " * 20)
    letters = np.abs(shown.astype(int) - INK).max(axis=2) < 60
    columns = np.flatnonzero(letters.any(axis=0))
    assert columns.min() > 10
    assert 500 < columns.max() < 630


def test_more_lines_than_fit_show_the_last_ones() -> None:
    assert captioned(plain(RED, 20, 128), "one\ntwo\nthree").shape == (20, 128, 3)


# What goes wrong


def test_an_interrupted_video_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    path.write_text("an older one")

    def interrupted() -> None:
        with Video(path, fps=25) as video:
            video.add(plain(RED))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [file.name for file in tmp_path.iterdir()] == ["out.mp4"]
    assert path.read_text() == "an older one"


def test_pictures_of_another_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"a video of 128 x 96 pixels cannot take a picture of 64 x 64"):
        write_video(tmp_path / "out.mp4", [plain(RED), plain(RED, 64, 64)])
    assert list(tmp_path.iterdir()) == []


def test_a_video_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="at least one picture"):
        write_video(tmp_path / "out.mp4", [])
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_named_before_any_picture(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"out.mp4: cannot be written"):
        Video(tmp_path / "file" / "out.mp4", fps=25)
    with pytest.raises(BadInput, match="cannot be written: Is a directory"):
        Video(tmp_path, fps=25)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert list(tmp_path.parent.glob(f".{tmp_path.name}*")) == []


NO_ROOM = """
import resource, sys
from pathlib import Path
import numpy as np
from bilevel.symbolic.domain import BadInput
from bilevel.video import Video
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
rng = np.random.default_rng(0)
try:
    with Video(Path(sys.argv[1]), fps=25) as video:
        for _ in range(100):
            video.add(rng.integers(0, 255, (64, 64, 3), np.uint8))
except BadInput as error:
    print(error)
"""


def test_a_disk_without_room_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    run = subprocess.run([sys.executable, "-c", NO_ROOM, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout == f"{path}: cannot be written: File too large\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["av", "PIL.ImageFont"])
def test_a_missing_package_is_noticed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=module):
        Video(tmp_path / "out.mp4", fps=25)
