"""The manifest of a data set: what it is, how it was made, and which files belong to it."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import bilevel
from bilevel.demonstrations.demonstration import KEYFRAME, Demonstration, Recipe
from bilevel.demonstrations.json_objects import ARGUMENTS, NOISE, RECIPE, Keys, check_not_newer, checked
from bilevel.files import write_atomically
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import AGENT_FEATURES, FEATURES, Slot, Slots
from bilevel.tabletop.tasks import TASKS

FORMAT = 1
MANIFEST = "manifest.json"
MOST_EPISODES = 100_000  # their numbers have five digits
PACKAGES = ("mujoco", "metaworld", "gymnasium", "numpy")

KEYS: Keys = {
    "format": int,
    **RECIPE,
    "episodes": int,
    "complete": bool,
    "slots": list,
    "features": dict,
    "keyframe": int,
    "versions": dict,
    "files": list,
}
ENTRY_KEYS: Keys = {"file": str, "seed": int, "attempts": int, "steps": int, "sha256": str}


def file_name(index: int) -> str:
    return f"episode-{index:05d}.npz"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def versions() -> dict[str, str]:
    """Of all that the bits of an episode may depend on."""
    found = {"bilevel": bilevel.__version__, "python": platform.python_version()}
    return found | {package: metadata.version(package) for package in PACKAGES}


def other_versions(manifest: Manifest) -> str:
    """Where the versions that a data set was made with differ from those at hand, in words."""
    then, now = manifest.versions, versions()
    return ", ".join(f"{name} {then.get(name)} instead of {now[name]}" for name in now if then.get(name) != now[name])


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a data set; `attempts` counts the failed ones too."""

    file: str
    seed: int
    attempts: int
    steps: int
    sha256: str


def make_entry(index: int, demonstration: Demonstration, data: bytes) -> Entry:
    attempts = demonstration.attempt + 1
    return Entry(file_name(index), demonstration.seed, attempts, demonstration.steps, digest(data))


@dataclass(frozen=True)
class Manifest:
    """Its `entries` are listed once it is complete."""

    recipe: Recipe
    episodes: int  # how many are wanted
    slots: Slots
    versions: Mapping[str, str]
    entries: tuple[Entry, ...] = ()
    complete: bool = False

    @property
    def command(self) -> str:
        """The command that makes the data set, but for its --output."""
        arguments = dict(self.recipe.arguments)
        words = [f"--{name.replace('_', '-')} {value}" for name, value in arguments.items()]
        words += [f"--episodes {self.episodes}", f"--seed {self.recipe.seed}"]
        words += [f"--noise {self.recipe.noise['amplitude']}"] if self.recipe.noise else []
        return " ".join(["bilevel collect", self.recipe.task, *words])


def write_manifest(folder: Path, manifest: Manifest) -> None:
    fields = {
        "format": FORMAT,
        **asdict(manifest.recipe),
        "episodes": manifest.episodes,
        "complete": manifest.complete,
        "slots": [[slot.name, slot.type] for slot in manifest.slots],
        "features": _features(),
        "keyframe": KEYFRAME,
        "versions": dict(manifest.versions),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items()]
    entries = ",".join(f"\n  {json.dumps(asdict(entry))}" for entry in manifest.entries)
    write_atomically(folder / MANIFEST, "{\n" + "".join(f"{line},\n" for line in lines) + f'"files": [{entries}]\n}}\n')


def _features() -> dict[str, list[str]]:
    return {"agent": list(AGENT_FEATURES), "object": list(FEATURES)}


class BrokenManifest(BadInput):
    """There is a manifest, but it is damaged."""


def read_manifest(folder: Path) -> Manifest:
    """`BrokenManifest` where it is damaged, other `BadInput` where there is none or it is of another format."""
    path = folder / MANIFEST
    if not path.is_file():
        raise BadInput(f"{folder}: no data set: there is no {MANIFEST} in it")
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BrokenManifest(f"{path}: not JSON: {error}") from None
    check_not_newer(value, FORMAT, path)
    try:
        return _manifest(checked(value, KEYS, "the manifest"))
    except BadInput as error:
        raise BrokenManifest(f"{path}: {error}") from None


def _manifest(value: dict[str, Any]) -> Manifest:
    for key, expected in (("format", FORMAT), ("features", _features()), ("keyframe", KEYFRAME)):
        if value[key] != expected:
            raise BadInput(f"'{key}' is {json.dumps(value[key])}, not {json.dumps(expected)}")
    check_number(value["episodes"])
    entries = tuple(Entry(**checked(entry, ENTRY_KEYS, "an entry of 'files'")) for entry in value["files"])
    listed = value["episodes"] if value["complete"] else 0
    if [entry.file for entry in entries] != [file_name(index) for index in range(listed)]:
        raise BadInput(f"'files' must list {listed} files in the order of their numbers")
    return Manifest(
        recipe=_recipe(value),
        episodes=value["episodes"],
        slots=_slots(value["slots"]),
        versions=value["versions"],
        entries=entries,
        complete=value["complete"],
    )


def check_number(episodes: int) -> None:
    if not 1 <= episodes <= MOST_EPISODES:
        raise BadInput(f"the number of episodes must be at least 1, at most {MOST_EPISODES}, but is {episodes}")


def _recipe(value: dict[str, Any]) -> Recipe:
    recipe = Recipe(**{key: value[key] for key in RECIPE})
    if recipe.seed < 0:
        raise BadInput(f"the seed must not be negative, but is {recipe.seed}")
    if recipe.task in TASKS:  # else whoever needs the task will say so
        names = TASKS[recipe.task].arguments
        checked(value["arguments"], {name: ARGUMENTS[name] for name in names}, "'arguments'")
    if recipe.noise is not None:
        checked(value["noise"], NOISE, "'noise'")
    return recipe


def _slots(pairs: list[Any]) -> Slots:
    if not all(isinstance(pair, list) and [type(word) for word in pair] == [str, str] for pair in pairs):
        raise BadInput("'slots' must be pairs of a name and a type")
    return Slots(Slot(name, kind) for name, kind in pairs)
