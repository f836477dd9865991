"""A data set of demonstrations as one of Minari's, for programs that read those.

An action is the control that was executed, as it leads from one observation to the next: from its seed, an episode can
be lived through again. What else is known is in `infos`, with a row for each observation:

- `expert_control`: what the expert wanted, to be imitated; differs from the action where the hand was jostled
- `high_level_action`: what the expert was doing, such as pick(block1)
- `goal`: what is wanted by then, as facts with & between them
- `events`: what happened that no action explains, such as teleport block1, with ; between them

At the last observation nothing is done any more: its control is zero and its action is empty. Texts are UTF-8.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import minari
import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.dataset.minari_storage import MinariStorage
from minari.namespace import create_namespace, list_local_namespaces
from minari.storage.datasets_root_dir import get_dataset_path
from numpy.typing import NDArray

from bilevel.demonstrations.dataset import Dataset
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.manifest import Manifest, file_name
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import AGENT_FEATURES, FEATURES
from bilevel.tabletop.tabletop import SUCCESS, Tabletop

EXAMPLE = "bilevel/blocks-v0"
PINNED = ("bilevel", "mujoco")  # with other versions of these, an episode may go another way


def export_to_minari(
    dataset: Dataset, identifier: str, watch: Callable[[int, int], None] = lambda done, total: None
) -> Path:
    """Write a data set among Minari's own, where MINARI_DATASETS_PATH says; the folder it is in.

    Afterwards either all of it is there or, with `BadInput` or an interruption, nothing.
    """
    target = _target(identifier)
    environment = dataset.task.make(**dataset.manifest.recipe.arguments)
    with _appearing(identifier, target) as folder:
        _check_room(folder, dataset.manifest)
        storage = MinariStorage.new(
            folder / "data",
            observation_space=environment.observation_space,
            action_space=environment.action_space,
            env_spec=environment.spec,
            data_format="hdf5",
        )
        storage.update_metadata(_metadata(dataset.manifest, identifier))
        storage.update_episodes(_episodes(dataset, environment, watch))
    return target


# Where it goes


def _target(identifier: str) -> Path:
    """The folder for a new data set of this name."""
    if not _is_name(identifier):
        raise BadInput(f"'{identifier}' is no name of a Minari data set; an example of one: {EXAMPLE}")
    try:
        target = Path(get_dataset_path(identifier)).absolute()
    except OSError as error:
        raise BadInput(f"{error.filename}: Minari's data sets cannot be written there: {error.strerror}") from None
    if target.exists():
        remedy = f"choose another name or version, or remove it with: minari delete {identifier}"
        raise BadInput(f"{target}: there is a Minari data set '{identifier}' already; {remedy}")
    return target


def _is_name(identifier: str) -> bool:
    try:
        parse_dataset_id(identifier)
    except (ValueError, TypeError):  # the latter where there is no version
        return False
    return "//" not in identifier  # which would be another name for the same folder


@contextmanager
def _appearing(identifier: str, target: Path) -> Iterator[Path]:
    """A folder that Minari does not see, to be written to; it becomes the target if all goes well, else it goes."""
    unfinished = Path(get_dataset_path()).absolute() / f".{identifier.replace('/', '--')}"
    try:
        unfinished.mkdir()
    except FileExistsError:
        raise BadInput(f"{unfinished}: an export is under way, or was killed; in that case remove the folder") from None
    except OSError as error:
        raise BadInput(f"{unfinished}: cannot be written: {error.strerror}") from None
    try:
        yield unfinished
        _make_namespace(identifier)
        unfinished.rename(target)
    except (OSError, RuntimeError) as error:  # HDF5 knows both
        raise BadInput(f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _check_room(folder: Path, manifest: Manifest) -> None:
    """HDF5 crashes on a full disk, so it must not come to that."""
    moments = sum(entry.steps + 1 for entry in manifest.entries)
    numbers = len(AGENT_FEATURES) + len(manifest.slots) * len(FEATURES) + 2 * 4  # with two controls
    needed = 2 * moments * 4 * numbers  # twice, for the texts and the file's own order
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise BadInput(
            f"{folder.parent}: no room: about {needed / 1e6:.1f} MB are needed, {free / 1e6:.1f} MB are free"
        )


def _make_namespace(identifier: str) -> None:
    namespace = identifier.rpartition("/")[0]
    if namespace and namespace not in list_local_namespaces():
        create_namespace(namespace)


# What it holds


def _metadata(manifest: Manifest, identifier: str) -> dict[str, Any]:
    return {
        "dataset_id": identifier,
        "minari_version": minari.__version__,
        "algorithm_name": "expert",
        "description": (
            f"Successful episodes of a hand-written expert at the task {manifest.recipe.task} ({manifest.command}). "
            "Actions are the controls as they were executed. Infos hold for each observation what the expert wanted "
            "(expert_control) and was doing (high_level_action), the goal, and events that no action explains."
        ),
        "requirements": [f"{name}=={manifest.versions[name]}" for name in PINNED if name in manifest.versions],
        "bilevel": {
            **asdict(manifest.recipe),
            "slots": [[slot.name, slot.type] for slot in manifest.slots],
            "features": {"agent": AGENT_FEATURES, "object": FEATURES},
            "versions": dict(manifest.versions),
        },
    }


def _episodes(dataset: Dataset, environment: Tabletop, watch: Callable[[int, int], None]) -> Iterator[EpisodeBuffer]:
    for index, demonstration in enumerate(dataset):
        try:
            yield minari_episode(demonstration, environment)
        except BadInput as error:
            raise BadInput(f"{dataset.folder / file_name(index)}: {error}") from None
        watch(index + 1, len(dataset))


def minari_episode(demonstration: Demonstration, environment: Tabletop) -> EpisodeBuffer:
    """A demonstration as Minari wants it; `BadInput` where it does not fit the environment, which Minari ignores."""
    _check(demonstration, environment)
    last = np.arange(demonstration.steps) == demonstration.steps - 1
    success = demonstration.outcome == SUCCESS
    return EpisodeBuffer(
        seed=demonstration.seed,
        observations=_observations(demonstration),
        actions=demonstration.executed,
        rewards=(last & success).astype(np.float64),
        terminations=last & success,
        truncations=last & (not success),
        infos=_infos(demonstration),
    )


def _observations(demonstration: Demonstration) -> dict[str, NDArray[Any]]:
    return {name: getattr(demonstration, name) for name in ("agent", "objects", "visible")}


def _check(demonstration: Demonstration, environment: Tabletop) -> None:
    steps = demonstration.steps
    if steps == 0:
        raise BadInput("an episode without a single step")
    if len(demonstration.actions) != steps:
        raise BadInput(f"{steps} controls need {steps} high-level actions, not {len(demonstration.actions)}")
    seen: Any = environment.observation_space
    for name, array in _observations(demonstration).items():
        _check_rows(name, array, seen[name], steps + 1)
    for name, array in (("controls", demonstration.controls), ("executed", demonstration.executed)):
        _check_rows(name, array, environment.action_space, steps)


def _check_rows(name: str, array: NDArray[Any], space: Space[Any], rows: int) -> None:
    if not batch_space(space, rows).contains(array):
        raise BadInput(f"'{name}' of shape {array.shape} and type {array.dtype} is not {rows} rows in {space}")


def _infos(demonstration: Demonstration) -> dict[str, NDArray[Any]]:
    goals = [""] * (demonstration.steps + 1)
    events: list[list[str]] = [[] for _ in goals]
    for moment, goal in demonstration.goals:
        goals[moment:] = [" & ".join(map(str, sorted(goal)))] * len(goals[moment:])
    for moment, event in demonstration.events:
        events[moment].append(event)
    return {
        "expert_control": np.concatenate([demonstration.controls, np.zeros((1, 4), np.float32)]),
        "high_level_action": _texts([*map(str, demonstration.actions), ""]),
        "goal": _texts(goals),
        "events": _texts("; ".join(now) for now in events),
    }


def _texts(texts: Iterable[str]) -> NDArray[np.bytes_]:
    """As plain arrays of bytes: HDF5's own strings come back as Python objects."""
    return np.array([text.encode() for text in texts])
