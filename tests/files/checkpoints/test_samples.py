"""The checkpoints in vectors/, and the drawing of their bytes."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.files.checkpoints import KINDS
from axs6.files.checkpoints.drawing import drawn
from axs6.files.checkpoints.layouts import ONNX_LAYOUTS
from axs6.files.checkpoints.samples import SAMPLED, VALUES, values_of, write_samples

FOLDER = Path(__file__).parents[3] / "vectors/checkpoints"


def test_the_files_are_those_that_are_written(tmp_path: Path) -> None:
    """A change of a file needs another version, and `python -m axs6.files.checkpoints.samples`."""
    written = {path.name: path.read_bytes() for path in write_samples(tmp_path)}
    assert written == {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    assert {Path(name).stem for name in written} - {"values", "SHA256SUMS"} == set(SAMPLED)
    assert set(SAMPLED) | {layout.name for layout in ONNX_LAYOUTS} == {
        layout.name for kind in KINDS.values() for layout in kind.layouts
    }


def test_digests_and_values_are_those_of_the_files() -> None:
    for line in (FOLDER / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest
    for line in (FOLDER / "values.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, words = line.split(" -> ")
            assert values_of(FOLDER / name) == words


def test_the_values_are_in_mixed_order() -> None:
    assert sorted(VALUES.tolist()) == [k / 32 for k in range(-32, 32)]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "modelopt-nvfp4.safetensors",
            [
                "  value  1: byte 0, high bits, code 0x02, element 1, times 448 x 0.000372023816: "
                "0.166666672",
            ],
        ),
        (
            "gguf-nvfp4.gguf",
            [
                "  value  1: byte 5, low bits, code 0x02, element 1, times 448 x 0.000372023816: "
                "0.166666672",
            ],
        ),
        ("gguf-q8-0.gguf", ["  value 32: byte 36, code 0x00, element 0, times 0.00762939453: 0"]),
        (
            "compressed-tensors-nvfp4.safetensors",
            ["  value  0: byte 0, low bits, code 0x0f, element -6, times 448 / 2688: -1"],
        ),
    ],
)
def test_drawings(name: str, lines: list[str]) -> None:
    found = list(drawn(FOLDER / name))
    for line in lines:
        assert line in found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*-*")), ids=lambda path: path.name)
def test_the_command_shows_the_bytes(path: Path, main: Callable[..., Any]) -> None:
    said = main("info", str(path), "--bytes").succeeded()
    assert said.splitlines()[0].startswith("layer.weight: 1 x 64 in ")
    assert "--bytes is text" in main("info", str(path), "--bytes", "--json", "-").refused()
