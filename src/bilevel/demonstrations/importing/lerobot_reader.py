"""LeRobot's data sets, from their folder: no LeRobot, no hub.

Of each frame, the `observation.*` features are the observation, under their own names, `action` is the control, and all
other features are in the info, with the text of the task as "task". A feature of the shape (1,) is a plain number, as
in LeRobot. Pictures and videos are left out. What is seen after the last control is not in LeRobot's frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations import lerobot_format as names
from bilevel.demonstrations.demonstration import Demonstration, Metadata, demonstration_from
from bilevel.demonstrations.importing.lerobot_frames import Frames, read_frames, read_info, read_texts
from bilevel.demonstrations.importing.recorded import OwnExport, RecordedEpisode, Recordings, Timesteps
from bilevel.demonstrations.lerobot_format import OurEpisode, Ours
from bilevel.json_files import decode, read_bytes
from bilevel.symbolic.domain import Action, BadInput
from bilevel.tasks.spec import Spec, read_spec


def read_lerobot(folder: Path | str) -> Recordings:
    """Return the episodes of a LeRobot data set; those of an export of ours are the demonstrations it was made of."""
    folder = Path(folder)
    info = read_info(folder)
    if not any(name.startswith(names.OBSERVATION) for name in info.kept):
        raise BadInput(f"{folder}: nothing is seen in it but pictures, which are not read: no observation.* of numbers")
    left_out = f"left out, as pictures are not read: {', '.join(info.left_out)}"
    found = Recordings(
        format="lerobot",
        place=str(folder),
        episodes=map(_recorded, read_frames(folder)),
        total=info.total_episodes,
        rate=info.fps,
        notes=(left_out,) if info.left_out else (),
    )
    path = folder / names.OURS
    if not path.is_file():
        return found
    ours = decode(read_bytes(path), Ours, path)
    own = OwnExport(read_spec(ours.spec), ours.controls, ours.settings)
    return replace(found, episodes=_exported(folder, ours, own.spec), own=own)


def _recorded(frames: Frames) -> RecordedEpisode:
    """Return the frames of one episode as an episode."""
    columns = frames.columns
    seen = {name: column for name, column in columns.items() if name.startswith(names.OBSERVATION)}
    others = {name: column for name, column in columns.items() if name not in seen and name != names.ACTION}
    success = columns.get(names.SUCCESS)
    return RecordedEpisode(
        name=f"episode {frames.episode}",
        observations=Timesteps(seen, "the observations"),
        controls=columns.get(names.ACTION),
        infos=Timesteps({"task": frames.tasks, **others}, "the infos"),
        success=None if success is None else bool(success[-1:].any()),
    )


# What we exported


def _exported(folder: Path, ours: Ours, spec: Spec) -> Iterator[Demonstration]:
    """Give the demonstrations that an export of ours was made of; `BadInput` where it was changed since."""
    texts = read_texts(folder, read_info(folder), names.SUBTASKS, names.SUBTASK)
    try:
        for frames, about in zip(read_frames(folder), ours.episodes, strict=True):
            yield demonstration_from(_arrays(frames, about, texts, ours, spec), spec, ours.controls)
    except (LookupError, ValueError) as error:
        advice = "remove that file to import it as any other LeRobot data set"
        raise BadInput(f"{folder / names.OURS}: does not fit the frames any more ({error}); {advice}") from None


def _arrays(
    frames: Frames, about: OurEpisode, texts: dict[int, str], ours: Ours, spec: Spec
) -> dict[str, NDArray[Any]]:
    """Return the arrays of one demonstration."""
    data = bytes(about.metadata)
    metadata = decode(data, Metadata, names.OURS)
    actions = [str(Action(name, tuple(arguments))) for name, *arguments in metadata.actions]
    numbers = {number: actions.index(text) for number, text in texts.items() if text in actions}
    columns, steps, objects = frames.columns, len(frames.tasks), len(metadata.objects)
    controls = np.zeros((steps, *ours.controls.shape), ours.controls.dtype)
    none = np.zeros((steps, 0), np.float32)
    rows = columns.get(names.OBJECTS, none).reshape(steps, -1, max(1, len(spec.columns)))[:, :objects]
    visible = columns.get(names.VISIBLE, none).reshape(steps, -1)[:, :objects] != 0
    return {
        "agent": _followed(columns[names.STATE].reshape(steps, -1), about.agent),
        "features": _followed(rows, about.features),
        "visible": _followed(visible, about.visible),
        "controls": columns.get(names.EXPERT_CONTROL, controls).reshape(controls.shape),
        "executed": columns.get(names.ACTION, controls).reshape(controls.shape),
        "action": np.array([numbers.get(number, -1) for number in columns[names.SUBTASK].tolist()], np.int32),
        "metadata": np.frombuffer(data, np.uint8),
    }


def _followed(rows: NDArray[Any], last: Sequence[Any]) -> NDArray[Any]:
    """Return the rows with one more behind them; a number that is too large for them is infinite."""
    with np.errstate(over="ignore"):
        return np.concatenate([rows, np.array(last, rows.dtype).reshape(1, *rows.shape[1:])])
