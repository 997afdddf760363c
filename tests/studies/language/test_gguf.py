"""Language models in GGUF files."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import quantize

from axs6.files.gguf import GgufFile
from axs6.studies.language.gguf import folder_of
from axs6.studies.language.models import load


def test_a_file_gives_the_model_that_was_written(folder: Path, gguf_file: Path) -> None:
    ours, theirs = load(gguf_file), load(folder)
    text = "Names refer to objects 12 times.\n  Names are bound by operations."
    assert ours.tokenise(text) == theirs.tokenise(text)
    assert ours.context == theirs.context == 64
    expected = theirs.module.state_dict()
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, values in ours.module.state_dict().items():
        exact = expected[name].numpy()
        if exact.ndim > 1:
            exact = gguf.quants.dequantize(quantize(exact, kind), kind)
        assert np.array_equal(values.numpy(), exact), name


def test_it_is_turned_into_a_folder_once(gguf_file: Path) -> None:
    first = folder_of(gguf_file)
    before = (first / "model.safetensors").stat().st_mtime_ns
    assert folder_of(gguf_file) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == before


def test_metadata_and_shapes_are_those_of_the_package(gguf_file: Path) -> None:
    ours, theirs = GgufFile(gguf_file), gguf.GGUFReader(gguf_file)
    for name, field in theirs.fields.items():
        if not name.startswith("GGUF."):
            assert ours.metadata[name] == field.contents(), name
    assert {x.name: tuple(x.shape.tolist()[::-1]) for x in theirs.tensors} == {
        name: each.shape for name, each in ours.tensors.items()
    }


def test_files_cut_anywhere_are_refused(gguf_file: Path, tmp_path: Path) -> None:
    data = gguf_file.read_bytes()
    for size in [*range(64), *range(64, len(data), 997), len(data) - 1]:
        cut = tmp_path / "cut.gguf"
        cut.write_bytes(data[:size])
        with pytest.raises(ValueError, match=r"cut\.gguf must be a"):
            GgufFile(cut)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama",
            b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0other",
            "architecture must be one of",
        ),
        (b"gpt-2", b"gpt-9", "how 'gpt-9' splits text is not known"),
        (b"GGUF\x03", b"GGUF\x09", "version must be one of"),
    ],
)
def test_what_is_not_known_is_refused(
    gguf_file: Path, tmp_path: Path, old: bytes, new: bytes, message: str
) -> None:
    data = gguf_file.read_bytes()
    assert old in data
    path = tmp_path / "other.gguf"
    path.write_bytes(data.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        folder_of(path)


def test_scores_are_those_of_the_model(folder: Path, gguf_file: Path) -> None:
    """Rows in a wrong order give scores that have nothing to do with them."""
    tokens = torch.arange(2, 34)[None]
    with torch.no_grad():
        ours, theirs = (load(each).module(tokens).logits for each in (gguf_file, folder))
    assert float((ours - theirs).square().sum()) < 1e-2 * float(theirs.square().sum())
