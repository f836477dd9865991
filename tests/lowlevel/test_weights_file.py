"""Weights in files: read as they were written, and refused where they are damaged or not those of the network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from bilevel.lowlevel.numpy_network import Weights, check_shapes, read_weights, weights_data
from bilevel.symbolic.domain import BadInput

WEIGHTS: Weights = {"a": np.arange(6, dtype=np.float32).reshape(2, 3).T, "b": np.ones(2, np.float32)}
SHAPES = {"a": (3, 2), "b": (2,)}


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(weights_data(WEIGHTS))
    found = read_weights(path)
    assert found.keys() == WEIGHTS.keys()
    assert all(np.array_equal(found[name], array) for name, array in WEIGHTS.items())
    check_shapes(path, found, SHAPES)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (weights_data(WEIGHTS)[:-1], "damaged: "),
        (b"pickle", "damaged: "),
        (b"", "damaged: "),
        (save({"a": np.zeros(2)}), "the tensor 'a' does not hold finite 32-bit numbers"),
        (weights_data({"a": np.array([np.nan], np.float32)}), "the tensor 'a' does not hold finite"),
        (weights_data({"a": np.array([np.inf], np.float32)}), "the tensor 'a' does not hold finite"),
        (weights_data({"a": WEIGHTS["a"]}), "the tensor 'b' is missing, but"),
        (
            weights_data({**WEIGHTS, "c": WEIGHTS["b"]}),
            r"the tensor 'c' is of shape \(2,\), but in this network it is missing",
        ),
        (
            weights_data({**WEIGHTS, "b": WEIGHTS["a"]}),
            r"the tensor 'b' is of shape \(3, 2\), but in this network it is of shape \(2,\)",
        ),
    ],
)
def test_other_files_are_refused_in_one_line_that_names_them(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "weights"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=f"^{path}: {message}[^\n]*$"):
        check_shapes(path, read_weights(path), SHAPES)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        read_weights(tmp_path / "missing")
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        read_weights(tmp_path)
