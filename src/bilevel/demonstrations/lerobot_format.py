"""What a folder of LeRobot's holds: the names of its files and columns, info.json, and what an export of ours adds.

An export of ours has one more file than LeRobot asks for, meta/bilevel.json, which LeRobot does not look at. It holds
what has no place in a frame, so that the demonstrations can be had back as they were.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from bilevel.demonstrations.dataset import CollectionSettings
from bilevel.tasks.controls import Controls

V2, V3 = "v2.1", "v3.0"
INFO, EPISODES, TASKS, SUBTASKS, STATS = (
    "meta/info.json",
    "meta/episodes",
    "meta/tasks",
    "meta/subtasks",
    "meta/stats.json",
)
OURS = "meta/bilevel.json"
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"

OBSERVATION, STATE, OBJECTS = "observation.", "observation.state", "observation.environment_state"
VISIBLE = "observation.visible"
ACTION, EXPERT_CONTROL, SUBTASK = "action", "expert_control", "subtask_index"
REWARD, DONE, SUCCESS = "next.reward", "next.done", "next.success"
TIME, FRAME, EPISODE, INDEX, TASK = "timestamp", "frame_index", "episode_index", "index", "task_index"
INDICES = (TIME, FRAME, EPISODE, INDEX, TASK)  # columns of every data set
PICTURES = ("image", "video")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # Arrow's own limit


class Feature(msgspec.Struct, frozen=True):
    """What info.json says of one column; of the shape (1,) are plain numbers."""

    dtype: str
    shape: list[Count]
    names: Any = None


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """What info.json says of a data set, as far as that is of use without pictures."""

    codebase_version: str = V3
    robot_type: str | None = None
    total_episodes: Count
    total_frames: Count = 0
    total_tasks: Count = 0
    chunks_size: Annotated[int, msgspec.Meta(ge=1)] = 1000
    data_files_size_in_mb: int = 100
    video_files_size_in_mb: int = 200
    fps: Annotated[float, msgspec.Meta(gt=0)]
    splits: dict[str, Any] = {}
    data_path: str = f"data/{FILE}"
    video_path: str | None = None
    features: dict[str, Feature]

    @property
    def left_out(self) -> tuple[str, ...]:
        """The features that are pictures."""
        return tuple(name for name, feature in self.features.items() if feature.dtype in PICTURES)

    @property
    def kept(self) -> dict[str, Feature]:
        """The features that are read, without the indices."""
        return {name: self.features[name] for name in self.features if name not in (*self.left_out, *INDICES)}


class OurEpisode(msgspec.Struct, frozen=True):
    """What is not in the frames of an episode: the last timestep, at which nothing is done, and what is no array."""

    agent: list[float]
    features: list[list[float]]
    visible: list[bool]
    metadata: msgspec.Raw


class Ours(msgspec.Struct, frozen=True):
    """What an export of ours says of the data set that it was made of, and of each episode."""

    format: Literal[1]
    spec: dict[str, Any]
    controls: Controls
    settings: CollectionSettings | None
    versions: dict[str, str]
    episodes: list[OurEpisode]
