"""The drawings of docs/concepts.md are those that the program computes now."""

from __future__ import annotations

import re
from pathlib import Path

import concept_drawings
import concept_episode
import pytest

PICTURE = re.compile(r'<g class="picture">.*?</g>\n', re.DOTALL)  # drawn anew only where there is OpenGL
NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def episode() -> concept_episode.Episode:
    return concept_episode.run(with_picture=False)


@pytest.mark.parametrize("name", concept_drawings.DRAWINGS)
def test_a_drawing_says_what_the_program_computes(name: str, episode: concept_episode.Episode) -> None:
    path = concept_drawings.FOLDER / f"{name}.svg"
    drawn = str(concept_drawings.DRAWINGS[name](episode))
    kept = PICTURE.sub("", path.read_text(encoding="utf-8"))
    assert NUMBER.sub("", kept) == NUMBER.sub("", drawn), "run: python benchmarks/concept_drawings.py"
    assert numbers(kept) == pytest.approx(numbers(drawn), rel=0.02, abs=0.05)


def numbers(text: str) -> list[float]:
    return [float(found) for found in NUMBER.findall(text)]


def test_the_rules_drawn_are_those_of_the_page(episode: concept_episode.Episode) -> None:
    page = (Path(__file__).parents[1] / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert len(episode.rules) == 2
    assert all(str(rule) in page for rule in episode.rules)
